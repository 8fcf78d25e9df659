package agent_test

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"text/template"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// renderNotifications renders the notifications of Argo CD about an Application. It returns the settings of the service, and path and
// body by template.
func renderNotifications(t *testing.T, settings agent.Settings, application string) (service map[string]any, sent map[string][2]string) {
	t.Helper()
	sent = map[string][2]string{}
	for _, object := range renderObjects(t, settings) {
		if object.GetName() != "argocd-notifications-cm" {
			continue
		}
		data, _ := object.Object["data"].(map[string]any)
		for key, text := range data {
			var value map[string]any
			if strings.HasPrefix(key, "trigger.") {
				continue
			}
			if err := yaml.Unmarshal([]byte(text.(string)), &value); err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			name, isTemplate := strings.CutPrefix(key, "template.flotilla-")
			if !isTemplate {
				service = value
				continue
			}
			webhook, _ := value["webhook"].(map[string]any)["flotilla"].(map[string]any)
			fill := func(field string) string {
				parsed, err := template.New("").Parse(webhook[field].(string))
				if err != nil {
					t.Fatalf("%s: %v", key, err)
				}
				status := map[string]any{
					"sync": map[string]any{"status": "Synced", "revision": "c0ffee"}, "health": map[string]any{"status": "Healthy"},
					"operationState": map[string]any{"operation": map[string]any{"sync": map[string]any{"revision": "deadbeef"}}},
				}
				var text strings.Builder
				app := map[string]any{"metadata": map[string]any{"name": application}, "status": status}
				if err := parsed.Execute(&text, map[string]any{"app": app}); err != nil {
					t.Fatalf("%s: %v", key, err)
				}
				return text.String()
			}
			sent[name] = [2]string{fill("path"), fill("body")}
		}
	}
	return service, sent
}

func TestArgoCDReportsToEachGitHost(t *testing.T) {
	for kind, want := range map[forge.Forge]struct{ repository, api, path, context, success, failure string }{
		"github":  {"https://github.com/platform/gitops", "https://api.github.com", "/repos/platform/gitops/statuses/c0ffee", "context", "success", "failure"},
		"gitlab":  {"https://git.example.com/a/b/gitops.git", "https://git.example.com/api/v4", "/projects/a%2Fb%2Fgitops/statuses/c0ffee", "name", "success", "failed"},
		"gitea":   {"git@git.example.com:platform/gitops.git", "https://git.example.com/api/v1", "/repos/platform/gitops/statuses/c0ffee", "context", "success", "failure"},
		"forgejo": {"https://git.example.com/platform/gitops", "https://git.example.com/api/v1", "/repos/platform/gitops/statuses/c0ffee", "context", "success", "failure"},
		"": {
			"git@ssh.dev.azure.com:v3/contoso/platform/gitops", "https://dev.azure.com/contoso",
			"/platform/_apis/git/repositories/gitops/commits/c0ffee/statuses?api-version=7.1", "", "succeeded", "failed",
		},
		"azure": {
			"https://dev.azure.com/contoso/platform/_git/gitops", "https://dev.azure.com/contoso",
			"/platform/_apis/git/repositories/gitops/commits/c0ffee/statuses?api-version=7.1", "", "succeeded", "failed",
		},
		"bitbucket": {
			"git@bitbucket.org:platform/gitops.git", "https://api.bitbucket.org/2.0",
			"/repositories/platform/gitops/commit/c0ffee/statuses/build", "name", "SUCCESSFUL", "FAILED",
		},
		"bitbucket_datacenter": {
			"ssh://git@git.example.com:7999/~anna/gitops.git", "https://git.example.com/rest",
			"/api/latest/projects/~anna/repos/gitops/commits/c0ffee/builds", "name", "SUCCESSFUL", "FAILED",
		},
	} {
		settings := smallSettings("argocd")
		settings.Repository.URL = want.repository
		if !strings.HasPrefix(want.repository, "https:") {
			settings.Credentials.SSHPrivateKey = privateKey
		}
		settings.Feedback = &agent.Reporting{Forge: kind, Token: "secret"}
		for application, context := range map[string]string{
			"flotilla-cluster": "flotilla/store-17/cluster", "flotilla-cluster-type": "flotilla/store-17/cluster-type",
		} {
			service, sent := renderNotifications(t, settings, application)
			if service["url"] != want.api {
				t.Errorf("%s: the API is %v, want %s", kind, service["url"], want.api)
			}
			if got := sent["succeeded"][0]; got != want.path {
				t.Errorf("%s: the path is %s, want %s", kind, got, want.path)
			}
			for name, state := range map[string]string{"succeeded": want.success, "degraded": want.failure, "failed": want.failure} {
				var body map[string]any
				if err := json.Unmarshal([]byte(sent[name][1]), &body); err != nil {
					t.Fatalf("%s: %v: %s", kind, err, sent[name][1])
				}
				got, _ := body[want.context].(string)
				if inner, isObject := body["context"].(map[string]any); isObject {
					got, _ = inner["name"].(string)
				}
				if body["state"] != state || got != context {
					t.Errorf("%s, %s: %v", kind, name, body)
				}
				if hash := sha1.Sum([]byte(context)); want.success == "SUCCESSFUL" &&
					(body["key"] != hex.EncodeToString(hash[:]) || body["url"] == "") {
					t.Errorf("%s, %s: %v", kind, name, body)
				}
				if name == "failed" && !strings.Contains(sent[name][0], "deadbeef") {
					t.Errorf("%s: the failure is reported for %s, want deadbeef", kind, sent[name][0])
				}
			}
			cluster, _, ok := observe.DefaultContexts("dev").Cluster(context, func(name string) bool { return name == "store-17" })
			if !ok || cluster != "store-17" {
				t.Errorf("flotilla_compliance cannot read the context %s", context)
			}
		}
	}
}

// Agents recognize a Git host by its name, like pull requests do.
func TestAGitHostIsRecognizedByItsName(t *testing.T) {
	for repository, api := range map[string]string{
		"https://github.com/platform/gitops":                     "https://api.github.com",
		"https://acme.ghe.com/platform/gitops":                   "https://api.acme.ghe.com",
		"https://gitlab.com/platform/gitops":                     "https://gitlab.com/api/v4",
		"https://codeberg.org/platform/gitops":                   "https://codeberg.org/api/v1",
		"https://bitbucket.org/platform/gitops.git":              "https://api.bitbucket.org/2.0",
		"https://contoso.visualstudio.com/platform/_git/gitops":  "https://contoso.visualstudio.com",
		"git@vs-ssh.visualstudio.com:v3/contoso/platform/gitops": "https://dev.azure.com/contoso",
	} {
		settings := smallSettings("argocd")
		settings.Repository.URL = repository
		if strings.HasPrefix(repository, "git@") {
			settings.Credentials.SSHPrivateKey = privateKey
		}
		settings.Feedback = &agent.Reporting{Token: "secret"}
		if service, _ := renderNotifications(t, settings, "flotilla-cluster"); service["url"] != api {
			t.Errorf("%s: got the API %v, want %s", repository, service["url"], api)
		}
	}
}

func TestFluxDistinguishesTheFoldersOfACluster(t *testing.T) {
	settings := smallSettings("flux")
	settings.Feedback = &agent.Reporting{
		Forge:   "azure",
		Token:   "secret",
		URL:     "https://dev.azure.com/contoso/platform/_git/gitops",
		Context: "prod/{cluster}/{host}",
	}
	for _, object := range renderObjects(t, settings) {
		spec, _ := object.Object["spec"].(map[string]any)
		switch object.GetKind() {
		case "Provider":
			want := "event.involvedObject.name == 'flotilla-cluster' ? 'prod/store-17/cluster' : 'prod/store-17/cluster-type'"
			if spec["commitStatusExpr"] != want || spec["type"] != "azuredevops" || spec["address"] != settings.Feedback.URL {
				t.Errorf("got the Provider %v", spec)
			}
		case "Alert":
			if sources, _ := spec["eventSources"].([]any); len(sources) != 2 || spec["eventSeverity"] != "info" {
				t.Errorf("got the Alert %v", spec)
			}
		}
	}
}

// Bitbucket Cloud accepts each kind of token only with its own username.
func TestTokensForBitbucketCloudHaveTheirUsernames(t *testing.T) {
	for username, want := range map[string]string{"": "x-token-auth", "me@example.com": "x-bitbucket-api-token-auth", "me": "me"} {
		settings := smallSettings("flux")
		settings.Repository.URL, settings.Credentials = "https://bitbucket.org/platform/gitops.git", agent.Credentials{
			Username: username,
			Token:    "secret",
		}
		found := false
		for _, object := range renderObjects(t, settings) {
			if data, _ := object.Object["stringData"].(map[string]any); object.GetKind() == "Secret" {
				found = found || data["username"] == want && data["password"] == "secret"
			}
		}
		if !found {
			t.Errorf("%q: no Secret has the username %s", username, want)
		}
	}
}

// Flux's provider for Bitbucket Cloud expects username:token. The key of its statuses is a hash of the context.
func TestFluxReportsToBitbucket(t *testing.T) {
	for kind, want := range map[forge.Forge]struct{ provider, address, token string }{
		"bitbucket":            {"bitbucket", "https://bitbucket.org/platform/gitops", "me@example.com:secret"},
		"bitbucket_datacenter": {"bitbucketserver", "https://git.example.com/bitbucket/scm/plat/gitops", "secret"},
	} {
		settings := smallSettings("flux")
		settings.Feedback = &agent.Reporting{Forge: kind, Token: want.token, URL: want.address + ".git"}
		for _, object := range renderObjects(t, settings) {
			spec, _ := object.Object["spec"].(map[string]any)
			data, _ := object.Object["stringData"].(map[string]any)
			switch {
			case object.GetKind() == "Provider" && (spec["type"] != want.provider || spec["address"] != want.address || !strings.Contains(spec["commitStatusExpr"].(string), "'flotilla/store-17/cluster'")):
				t.Errorf("got the Provider %v", spec)
			case object.GetName() == "flotilla-status" && object.GetKind() == "Secret" && data["token"] != want.token:
				t.Errorf("got the Secret %v", data)
			}
		}
	}
}
