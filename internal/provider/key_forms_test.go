package provider_test

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// keyForms are common forms of pasted keys and certificates.
var keyForms = map[string]func(text string) string{
	"as made":                 func(text string) string { return text },
	"literal \\n":             func(text string) string { return strings.ReplaceAll(text, "\n", `\n`) },
	"indented":                func(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") },
	"CRLF":                    func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") },
	"without a final newline": strings.TrimSpace,
}

type keyTexts struct{ certificate, key, ssh, pgp, pgpPublic, cosign, rsa string }

func newKeyTexts(t *testing.T) (keys keyTexts) {
	t.Helper()
	keys.certificate, keys.key = kubetest.SelfSigned(t)
	keys.ssh, _ = sshKey(t, "")
	keys.pgp, keys.pgpPublic = openPGPKey(t)
	_, keys.cosign = cosignKey(t)
	private, err := gitHubKey()
	if err != nil {
		t.Fatal(err)
	}
	keys.rsa = string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)}))
	return keys
}

func TestTheProviderReadsKeysInEachForm(t *testing.T) {
	t.Parallel()
	keys := newKeyTexts(t)
	git := func(key string, value any) map[string]any { return map[string]any{"git": map[string]any{key: value}} }
	app := func(key string) map[string]any {
		return map[string]any{"id": "1", "installation_id": "2", "private_key": key}
	}
	cluster := func(attributes ...any) map[string]any {
		return map[string]any{"clusters": map[string]any{"eu-1": with(map[string]any{"host": "https://127.0.0.1:1"}, attributes...)}}
	}
	trusted := func(url, key string) map[string]any {
		return map[string]any{"verification": map[string]any{"sources": []any{map[string]any{"url": url, "keys": []any{key}}}}}
	}
	for attribute, block := range map[string]func(form func(string) string) map[string]any{
		"git.ca_certificates": func(form func(string) string) map[string]any { return git("ca_certificates", form(keys.certificate)) },
		"git.ca_certificates, a bundle": func(form func(string) string) map[string]any {
			return git("ca_certificates", form(keys.certificate+keys.certificate))
		},
		"git.signing_key, ssh":     func(form func(string) string) map[string]any { return git("signing_key", form(keys.ssh)) },
		"git.signing_key, OpenPGP": func(form func(string) string) map[string]any { return git("signing_key", form(keys.pgp)) },
		"git.allowed_signers": func(form func(string) string) map[string]any {
			return map[string]any{"git": map[string]any{"signing_key": form(keys.pgp), "allowed_signers": []any{form(keys.pgpPublic)}}}
		},
		"git.github_app": func(form func(string) string) map[string]any { return git("github_app", app(form(keys.rsa))) },
		"git.credentials.github_app": func(form func(string) string) map[string]any {
			return git("credentials", []any{map[string]any{"url": "https://github.com/owner", "github_app": app(form(keys.rsa))}})
		},
		"clusters.cluster_ca_certificate": func(form func(string) string) map[string]any {
			return cluster("cluster_ca_certificate", form(keys.certificate))
		},
		"clusters.client_certificate": func(form func(string) string) map[string]any {
			return cluster("client_certificate", form(keys.certificate), "client_key", form(keys.key))
		},
		"verification, Git": func(form func(string) string) map[string]any {
			return trusted("https://git.example.com", form(keys.pgpPublic))
		},
		"verification, a registry": func(form func(string) string) map[string]any {
			return trusted("oci://registry.example.com", form(keys.cosign))
		},
		"measurements, certificates": func(form func(string) string) map[string]any {
			return map[string]any{"measurements": map[string]any{"ca_certificates": form(keys.certificate)}}
		},
	} {
		for name, form := range keyForms {
			t.Run(attribute+", "+name, func(t *testing.T) {
				t.Parallel()
				_, diags := providertest.New(startProvider).Plan(t.Context(), providertest.Configuration{Provider: block(form)})
				if len(diags) > 0 {
					t.Errorf("got diagnostics %s", diags)
				}
			})
		}
	}
}

// Nothing listens at the address. The error must be the refused connection, not the key.
func TestASSHKeyIsReadInEachForm(t *testing.T) {
	t.Parallel()
	private, public := sshKey(t, "")
	for name, form := range keyForms {
		login := map[string]any{"ssh_private_key": form(private), "ssh_known_hosts": "* " + public}
		for attribute, settings := range map[string]map[string]any{
			"git":             login,
			"git.credentials": {"credentials": []any{with(login, "url", "ssh://git@127.0.0.1:1")}},
		} {
			configuration := assigned("ssh://git@127.0.0.1:1/o/r.git", fleetOf(nil), nil)
			configuration.Provider = map[string]any{"git": settings}
			_, diags := providertest.New(startProvider).Plan(t.Context(), configuration)
			if text := diags.String(); !strings.Contains(text, "refused") || strings.Contains(text, "ssh key") {
				t.Errorf("%s, %s: got diagnostics %s", attribute, name, text)
			}
		}
	}
}

// TLS uses the text that the plan has checked.
func TestAClusterIsReachedWithItsCertificateInEachForm(t *testing.T) {
	t.Parallel()
	client, key := kubetest.SelfSigned(t)
	for name, form := range keyForms {
		var asked atomic.Bool
		url, authority := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Store(true)
			http.Error(w, "no", http.StatusForbidden)
		}))
		configuration := providertest.Configuration{Provider: map[string]any{"clusters": map[string]any{"eu-1": map[string]any{
			"host": url, "cluster_ca_certificate": form(authority), "client_certificate": form(client), "client_key": form(key),
		}}}}
		_, diags := providertest.New(startProvider).ReadData(t.Context(), configuration, "flotilla_cluster_facts", map[string]any{})
		if !asked.Load() {
			t.Errorf("%s: the cluster received no request: %s", name, diags)
		}
	}
}

// Agents read the keys as written.
func TestAgentManifestsHaveTheSameKeysForEachForm(t *testing.T) {
	t.Parallel()
	keys := newKeyTexts(t)
	w := providertest.New(startProvider)
	for attributes, texts := range map[string][]string{
		`reconciler = "flux", gitops_repo = { url = "ssh://git@git.example.com/a/b", branch = "dev" }, credentials = { ssh_private_key = %q, ssh_known_hosts = "x" }`:                                                                            {keys.ssh},
		`reconciler = "flux", gitops_repo = { url = "https://git.example.com/a/b", branch = "dev" }, credentials = { token = "t", ca_certificates = %q }`:                                                                                        {keys.certificate},
		`reconciler = "flux", gitops_repo = { url = "https://github.com/a/b", branch = "dev" }, credentials = { github_app = { id = "1", installation_id = "2", private_key = %q } }`:                                                            {keys.rsa},
		`environment = "prod", reconciler = "argocd-hub", gitops_repo = { url = "https://git.example.com/a/b", branch = "dev" }, registration = { server = "https://a", cluster_ca_certificate = %q, client_certificate = %q, client_key = %q }`: {keys.certificate, keys.certificate, keys.key},
	} {
		written := map[string]string{}
		for name, form := range keyForms {
			values := make([]any, len(texts))
			for i, text := range texts {
				values[i] = form(text)
			}
			result, err := w.Evaluate(t.Context(), moduleOf(t, fmt.Sprintf(`output "objects" {
  value = provider::flotilla::agent_manifests({ cluster = "store-17", cluster_type = "store", `+attributes+` })
}`, values...)).Outputs["objects"])
			if err != nil {
				t.Errorf("%s, %s: got error %s", attributes, name, err)
			}
			written[name] = fmt.Sprint(result)
		}
		for name, text := range written {
			if text != written["as made"] {
				t.Errorf("%s, %s: the objects are\n%s\nwant\n%s", attributes, name, text, written["as made"])
			}
		}
	}
}
