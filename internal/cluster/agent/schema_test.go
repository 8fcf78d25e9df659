package agent_test

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m.Run)) }

// resources are the names of resources in the API, by kind.
var resources = map[string]string{
	"Namespace": "namespaces", "Secret": "secrets", "ConfigMap": "configmaps", "GitRepository": "gitrepositories",
	"Kustomization": "kustomizations", "Application": "applications", "ApplicationSet": "applicationsets",
	"AppProject": "appprojects", "GitRepo": "gitrepos", "RootSync": "rootsyncs",
	"Provider": "providers", "Alert": "alerts",
}

func TestARealAPIAcceptsTheObjectsOfEveryAgent(t *testing.T) {
	acceptancetest.Only(t)
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	for name, settings := range allSettings() {
		for _, object := range renderObjects(t, settings) {
			if _, known := resources[object.GetKind()]; !known {
				t.Errorf("%s: resources has no kind %s", name, object.GetKind())
				continue
			}
			if object.GetKind() == "Namespace" {
				server.Apply(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+object.GetName()+`}}`)
				continue
			}
			created, err := server.DryRun(t.Context(), object.Unstructured)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			// The API server drops unknown fields.
			for _, lost := range findMissing("", object.Object, created.Object) {
				if !strings.HasPrefix(lost, ".stringData") {
					t.Errorf("%s: %s: the API drops %s", name, object.ID(), lost)
				}
			}
		}
	}
}

// The definitions of a reconciler's kinds have all fields of its table.
func TestDecisiveFieldsAreFieldsOfTheirKinds(t *testing.T) {
	acceptancetest.Only(t)
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	for _, name := range reconciler.Names() {
		for _, one := range reconciler.Named(name).Decisive {
			if strings.HasPrefix(one.Group, "notification.") { // the module proxy has no such definitions
				continue
			}
			definition := server.Get(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", resources[one.Kind]+"."+one.Group)
			if definition == nil {
				t.Errorf("%s: kind %s of %s is not defined", name, one.Kind, one.Group)
				continue
			}
			versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
			version, _ := versions[len(versions)-1].(map[string]any)
			for _, field := range one.Fields {
				if field.Steps()[0] == "metadata" {
					continue
				}
				below, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
				for _, step := range field.Steps() {
					properties, _ := below["properties"].(map[string]any)
					below, _ = properties[step].(map[string]any)
				}
				if below == nil {
					t.Errorf("%s: %s has no field %s", name, one.Kind, field.Path)
				}
			}
		}
	}
}

// The state contains no credentials, so an object marks every field outside of a Secret that has some.
func TestEveryFieldOfACredentialIsMarked(t *testing.T) {
	t.Parallel()
	others := strings.NewReplacer("secret", "another", "MIIB", "MIIC")
	app := func(app *agent.GitHubApp) *agent.GitHubApp {
		if app == nil {
			return nil
		}
		return &agent.GitHubApp{
			ID:             "7" + app.ID,
			InstallationID: "7" + app.InstallationID,
			PrivateKey:     others.Replace(app.PrivateKey),
			URL:            app.URL,
		}
	}
	found := 0
	for name, settings := range allSettings() {
		changed := settings
		c := &changed.Credentials
		c.Token, c.BearerToken, c.Password = others.Replace(c.Token), others.Replace(c.BearerToken), others.Replace(c.Password)
		c.SSHPrivateKey, c.CACertificates, c.GitHubApp = others.Replace(c.SSHPrivateKey), others.Replace(c.CACertificates), app(c.GitHubApp)
		if c.Username != "" {
			c.Username += "-too"
		}
		if changed.Feedback != nil {
			feedback := *changed.Feedback
			feedback.Token, feedback.App = others.Replace(feedback.Token), app(feedback.App)
			changed.Feedback = &feedback
		}
		before, after := renderObjects(t, settings), renderObjects(t, changed)
		for i := range before {
			for _, steps := range before[i].FromCredentials {
				found++
				unstructured.RemoveNestedField(before[i].Object, steps...)
				unstructured.RemoveNestedField(after[i].Object, steps...)
			}
			if different := findMissing("", before[i].Object, after[i].Object); before[i].GetKind() != "Secret" && len(different) > 0 {
				t.Errorf("%s: %s has credentials in %q", name, before[i].ID(), different)
			}
		}
	}
	if found == 0 {
		t.Error("no object has a credential outside of a Secret")
	}
}

// findMissing returns the fields of want that are missing or different in got.
func findMissing(path string, want, got any) []string {
	switch want := want.(type) {
	case map[string]any:
		fields, ok := got.(map[string]any)
		if !ok {
			return []string{path}
		}
		var lost []string
		for key, value := range want {
			lost = append(lost, findMissing(path+"."+key, value, fields[key])...)
		}
		return lost
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return []string{path}
		}
		var lost []string
		for i := range want {
			lost = append(lost, findMissing(path, want[i], list[i])...)
		}
		return lost
	}
	if want != got {
		return []string{path}
	}
	return nil
}

const (
	privateKey  = "-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n-----END OPENSSH PRIVATE KEY-----\n"
	certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
)

// allSettings returns settings that together render every kind of object and field.
func allSettings() map[string]agent.Settings {
	all := map[string]agent.Settings{}
	for _, reconciler := range reconciler.Agents() {
		add := func(name string, change func(*agent.Settings)) {
			settings := smallSettings(reconciler)
			if reconciler == "argocd-hub" {
				settings.Environment = "dev"
				settings.Registration = &agent.Registration{Server: "https://api.example.com:6443", CACertificate: certificate, Token: "secret"}
			}
			change(&settings)
			all[reconciler+", "+name] = settings
		}
		add("no credentials", func(*agent.Settings) {})
		add("a token", func(s *agent.Settings) {
			s.Credentials = agent.Credentials{Token: "secret", CACertificates: certificate}
		})
		add("a password", func(s *agent.Settings) { s.Credentials = agent.Credentials{Username: "me", Password: "secret"} })
		add("an app", func(s *agent.Settings) {
			s.Credentials = agent.Credentials{GitHubApp: &agent.GitHubApp{ID: "1", InstallationID: "2", PrivateKey: privateKey}}
		})
		add("ssh", func(s *agent.Settings) {
			s.Repository.URL = "git@git.example.com:platform/gitops.git"
			s.Credentials = agent.Credentials{SSHPrivateKey: privateKey}
			if reconciler == "flux" || reconciler == "fleet" || reconciler == "config-sync" {
				s.Credentials.SSHKnownHosts = "git.example.com ssh-ed25519 AAAA"
			}
		})
		add("long names", func(s *agent.Settings) {
			s.Cluster, s.ClusterType = strings.Repeat("c", 63), strings.Repeat("t", 63)
		})
		if reconciler == "flux" {
			add("decryption", func(s *agent.Settings) { s.Decryption = &fleet.Decryption{Secret: "sops-age", ServiceAccount: "sops"} })
		}
		if reconciler == "flux" || reconciler == "argocd" {
			for _, kind := range forge.Names() {
				add("feedback to "+kind, func(s *agent.Settings) {
					s.Feedback = &agent.Reporting{Forge: forge.Forge(kind), Token: "secret"}
					switch forge.Forge(kind) {
					case forge.Azure:
						s.Feedback.URL = "https://dev.azure.com/contoso/platform/_git/gitops"
					case forge.Bitbucket:
						s.Feedback.Token = "me@example.com:secret"
					case forge.BitbucketDataCenter:
						s.Feedback.URL = "https://git.example.com/scm/plat/gitops.git"
					}
				})
			}
			add("feedback by an app", func(s *agent.Settings) {
				s.Feedback = &agent.Reporting{Forge: "github", App: &agent.GitHubApp{ID: "1", InstallationID: "2", PrivateKey: privateKey}}
			})
			add("feedback with a secret", func(s *agent.Settings) { s.Feedback = &agent.Reporting{Forge: "gitea", Secret: "there"} })
		}
		if reconciler == "argocd-hub" {
			add("a program", func(s *agent.Settings) {
				s.Registration.Token = ""
				s.Registration.Exec = &agent.Exec{
					Command:    "argocd-k8s-auth",
					Args:       []string{"azure"},
					Env:        map[string]string{"A": "b"},
					APIVersion: "client.authentication.k8s.io/v1beta1",
				}
				s.Registration.Labels = map[string]string{"region": "east"}
			})
			add("aws", func(s *agent.Settings) {
				s.Registration.Token = ""
				s.Registration.AWS = &agent.AWS{ClusterName: "store-17", RoleARN: "arn:aws:iam::1:role/argocd"}
			})
		}
	}
	return all
}
