package provider_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// newHostileCluster starts an API server that repeats every secret it receives. The first segment of the path selects the answer.
func newHostileCluster(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		echo := strings.Join(requestSecrets(r), " ")
		route, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if code, err := strconv.Atoi(route); err == nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "message": echo, "code": code, "reason": echo})
			return
		}
		switch route {
		case "redirect":
			to := url.URL{Scheme: "https", User: url.UserPassword("me", requestSecrets(r)[0]), Host: "127.0.0.1:1", Path: "/" + requestSecrets(r)[0]}
			http.Redirect(w, r, to.String(), http.StatusTemporaryRedirect)
		case "page":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<html>%s</html>", echo)
		case "text":
			http.Error(w, echo, http.StatusBadRequest)
		case "garbage":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, "[%q]", echo)
		case "half":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"kind":%q,`, echo)
		case "hub":
			answerAsHub(w, r, echo)
		case "hang":
			<-r.Context().Done()
		}
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // failed handshakes
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// answerAsHub answers as a hub with credentials in the objects of Argo CD and in a ClusterProfile.
func answerAsHub(w http.ResponseWriter, r *http.Request, canary string) {
	data := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	var answer any
	switch {
	case strings.HasSuffix(r.URL.Path, "/secrets"):
		metadata := map[string]any{
			"name":        "cluster-a",
			"namespace":   "argocd",
			"annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": canary},
		}
		server := url.URL{
			Scheme:   "https",
			User:     url.UserPassword("me", canary),
			Host:     "registered.example.com",
			RawQuery: url.QueryEscape(canary),
		}
		answer = map[string]any{"apiVersion": "v1", "kind": "SecretList", "items": []any{map[string]any{
			"metadata": metadata, "data": map[string]any{"name": data("registered"), "server": data(server.String()), "config": data(canary), "shard": data(canary)},
		}}}
	case strings.HasSuffix(r.URL.Path, "/clusterprofiles"):
		answer = map[string]any{"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfileList", "items": []any{map[string]any{
			"metadata": map[string]any{
				"name":        "profiled",
				"annotations": map[string]any{"a": canary},
			}, "status": map[string]any{"credentialProviders": []any{map[string]any{"name": canary}}},
		}}}
	case strings.HasSuffix(r.URL.Path, "/version"):
		answer = map[string]any{"gitVersion": "v1.31.2"}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// clusterCell is an entry with secrets, and the expected message.
type clusterCell struct{ entry, want string }

// clusterCanaries returns the secrets and the clusters, by name.
func clusterCanaries(t *testing.T) (secrets map[string]string, cells map[string]clusterCell) {
	t.Helper()
	server := newHostileCluster(t)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	signing, key := kubetest.SelfSigned(t)
	firstKeyLine := func(text string) string { return strings.Split(text, "\n")[1] }
	kubeconfig := func(route, user string) string {
		text := fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"clusters":[{"name":"a","cluster":{"server":%q,"certificate-authority-data":%q}}],"users":[{"name":"a","user":%s}]}`,
			server.URL+"/"+route,
			base64.StdEncoding.EncodeToString(certificate),
			user,
		)
		return text
	}
	secrets = map[string]string{
		"token": `cluster-t0ken-01/+ü%`, "env": `env-s3cret-0123 "q" & /+ü`, "argument": `4rgument-secret-0123456789`, "proxy": "pr0xy-secret-0123",
		"printed": "pr1nted-credential-0123", "key": key, "body": firstKeyLine(key), "key64": base64.StdEncoding.EncodeToString([]byte(key)),
		"inner": "1nner-token-0123456789", "certificate": signing,
	}
	secrets["kubeconfig"] = kubeconfig("403", fmt.Sprintf(`{"token":%q}`, secrets["inner"]))
	secrets["kubeconfig_key"] = kubeconfig("401", fmt.Sprintf(`{"client-certificate-data":%q,"client-key-data":%q}`,
		base64.StdEncoding.EncodeToString([]byte(signing)), secrets["key64"]))
	secrets["kubeconfig_exec"] = kubeconfig(
		"403",
		fmt.Sprintf(
			`{"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"sh","args":["-c","echo $S >&2; exit 4"],"env":[{"name":"S","value":%q}]}}`,
			secrets["env"],
		),
	)
	hostAttributes := func(route string) string {
		return fmt.Sprintf("host = %q, cluster_ca_certificate = %q", server.URL+"/"+route, string(certificate))
	}
	execAttributes := func(script string) string {
		return fmt.Sprintf(
			"exec = { api_version = \"client.authentication.k8s.io/v1\", command = \"sh\", args = [\"-c\", %s, var.secret.argument], env = { S = var.secret.env, P = var.secret.printed } }",
			strconv.Quote(script),
		)
	}
	const notKubernetes = "does not answer like a Kubernetes API server"
	cells = map[string]clusterCell{
		"words":     {hostAttributes("403") + ", token = var.secret.token", "does not let these credentials"},
		"refused":   {hostAttributes("401") + ", token = var.secret.token", "refuses the credentials"},
		"broken":    {hostAttributes("500") + ", token = var.secret.token", "answers 500"},
		"redirect":  {hostAttributes("redirect") + ", token = var.secret.token", "redirects to"},
		"page":      {hostAttributes("page") + ", token = var.secret.token", notKubernetes},
		"text":      {hostAttributes("text") + ", token = var.secret.token", "answers 400 Bad Request, which is not"},
		"garbage":   {hostAttributes("garbage") + ", token = var.secret.token", notKubernetes},
		"half":      {hostAttributes("half") + ", token = var.secret.token", "closed the connection in"},
		"hub":       {hostAttributes("hub") + ", token = var.secret.token", "no "},
		"hang":      {hostAttributes("hang") + ", token = var.secret.token", "did not answer within"},
		"untrusted": {fmt.Sprintf("host = %q, token = var.secret.token", server.URL), "is not trusted"},
		"gone":      {`host = "https://127.0.0.1:1", token = var.secret.token`, "connection refused"},
		"proxy": {
			hostAttributes("403") + `, token = var.secret.token, proxy_url = "http://me:${var.secret.proxy}@127.0.0.1:1"`,
			"cannot be reached",
		},
		"key": {
			hostAttributes("403") + ", client_certificate = var.secret.certificate, client_key = var.secret.key",
			"does not let these credentials",
		},
		"fails":          {hostAttributes("403") + ", " + execAttributes("echo $S; echo $S >&2; echo $P; exit 3"), `the exec command "sh" fails`},
		"prints-garbage": {hostAttributes("403") + ", " + execAttributes("echo $S $P"), "prints no ExecCredential"},
		"signs-in": {
			hostAttributes(
				"403",
			) + ", " + execAttributes(
				`printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s"}}' "$P"; echo $S >&2`,
			),
			"does not let these credentials",
		},
		"kubeconfig":      {"kubeconfig = var.secret.kubeconfig", "does not let these credentials"},
		"kubeconfig-key":  {"kubeconfig = var.secret.kubeconfig_key", "refuses the credentials"},
		"kubeconfig-exec": {"kubeconfig = var.secret.kubeconfig_exec", `the exec command "sh" fails`},
	}
	return secrets, cells
}

// TestSecretsOfClustersAppearNowhere puts secrets into every attribute of clusters and provokes every verdict and error. The server repeats
// the secrets in all forms.
func TestSecretsOfClustersAppearNowhere(t *testing.T) {
	requireAcceptance(t)
	secrets, cells := clusterCanaries(t)
	var clusters, entries strings.Builder
	for _, name := range slices.Sorted(maps.Keys(cells)) {
		fmt.Fprintf(&clusters, "{ name = %q, cluster_type = \"drone\" }, ", name)
		fmt.Fprintf(&entries, "    %s = { %s }\n", name, cells[name].entry)
	}
	const variable = "variable \"secret\" {\n  type      = map(string)\n  ephemeral = true\n}\n"
	block := func(entries string) string { return "provider \"flotilla\" {\n  clusters = {\n" + entries + "  }\n}\n" }
	encoded, err := json.Marshal(secrets)
	if err != nil {
		t.Fatal(err)
	}
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TF_VAR_secret", string(encoded))
			config := small{
				fleet: "clusters = [" + clusters.String() + "]",
			}.config(
				repository{url: bare(t), provider: variable + block(entries.String())},
			) + `
data "flotilla_compliance" "test" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = { url = flotilla_assignment.test.gitops_repo.url, branch = "dev" }
  feedback    = { clusters = { deadline = "5s" } }
}
data "flotilla_cluster_facts" "test" {
  sources = { clusters = { deadline = "5s" }, hub = "hub" }
}
output "facts" {
  value = { of = data.flotilla_cluster_facts.test.clusters, evidence = data.flotilla_cluster_facts.test.evidence }
}
output "evidence" {
  value = data.flotilla_compliance.test.evidence
}
output "metrics" {
  value = data.flotilla_compliance.test.metrics
}
`
			w := newWorkdir(t, tool, map[string]string{"main.tf": requiredProviders + config})
			for _, arguments := range [][]string{
				{"plan", "-input=false", "-out=plan.out"}, {"apply", "-input=false", "plan.out"},
				{"plan", "-input=false", "-out=after.out"}, {"show", "-json", "after.out"},
			} {
				if printed, err := w.runTraced(t, arguments[0], arguments...); err != nil {
					t.Fatalf("%s: %v\n%s", arguments[0], err, printed)
				}
			}
			for cluster, message := range clusterMessages(t, w) {
				if !strings.Contains(message, cells[cluster].want) {
					t.Errorf("cluster %s: the message is %q, want %q", cluster, message, cells[cluster].want)
				}
			}

			if facts := w.run("output", "-json", "facts"); !strings.Contains(facts, `"server":"https://registered.example.com"`) ||
				!strings.Contains(facts, "profiled") {
				t.Errorf("the clusters of the hub are not found: %s", facts)
			}

			// Errors of a wrong configuration must not show secrets either: first errors without the values of variables, then the others.
			for stage, wrong := range []map[string]string{
				{
					"a misspelt key": `host = "https://x", tokn = var.secret.token`,
					"both":           `kubeconfig = var.secret.kubeconfig, token = var.secret.token`,
					"a list":         `host = "https://x", token = [var.secret.token]`,
					"args":           `host = "https://x", exec = { command = "x", args = var.secret.token, env = { "=" = var.secret.env } }`,
				}, {
					"an authority":        `host = "https://x", cluster_ca_certificate = var.secret.token`,
					"a certificate":       `host = "https://x", client_certificate = var.secret.token, client_key = var.secret.key`,
					"the key of another":  `host = "https://x", client_certificate = var.secret.key, client_key = var.secret.certificate`,
					"a host":              `host = "https://me:${var.secret.proxy}@x"`,
					"a proxy":             `host = "https://x", proxy_url = var.secret.proxy`,
					"plain http":          `host = "http://x", token = var.secret.token`,
					"a line":              `host = "https://x", token = "${var.secret.token}\n"`,
					"a kubeconfig":        `kubeconfig = "a: ${var.secret.token}\n b: [\n"`,
					"no kubeconfig":       `kubeconfig = var.secret.token`,
					"another kind":        `kubeconfig = "kind: ${var.secret.inner}\napiVersion: v1\n"`,
					"another context":     `kubeconfig = var.secret.kubeconfig, context = "b"`,
					"an exec of nothing":  `host = "https://x", exec = var.secret.token`,
					"a name for a server": `host = "https://x", tls_server_name = "https://${var.secret.proxy}"`,
				},
			} {
				var wrongEntries strings.Builder
				for _, which := range slices.Sorted(maps.Keys(wrong)) {
					fmt.Fprintf(&wrongEntries, "    %q = { %s }\n", which, wrong[which])
				}
				writeFile(t, filepath.Join(w.path, "main.tf"), requiredProviders+strings.Replace(config, entries.String(), wrongEntries.String(), 1))
				printed, err := w.runTraced(t, fmt.Sprint("wrong-", stage), "plan", "-input=false", "-no-color")
				for which := range wrong {
					if err == nil || !words(fmt.Sprintf("clusters[%q]", which)).MatchString(printed) {
						t.Errorf("%s has no error: %v\n%s", which, err, printed)
					}
				}
			}

			// Certificates are public, and all kubeconfigs begin alike.
			hidden := maps.Clone(secrets)
			maps.DeleteFunc(hidden, func(which, _ string) bool { return which == "certificate" || strings.HasPrefix(which, "kubeconfig") })
			checkNoSecrets(t, w.path, hidden)
		})
	}
}

func clusterMessages(t *testing.T, w workdir) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.path, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	var state struct {
		Resources []struct {
			Type      string
			Instances []struct {
				Attributes struct {
					Clusters map[string]struct{ Message string }
				}
			}
		}
	}
	if err := json.Unmarshal(text, &state); err != nil {
		t.Fatal(err)
	}
	messages := map[string]string{}
	for _, resource := range state.Resources {
		if resource.Type == "flotilla_compliance" {
			for name, cluster := range resource.Instances[0].Attributes.Clusters {
				messages[name] = cluster.Message
			}
		}
	}
	return messages
}
