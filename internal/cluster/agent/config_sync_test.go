package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
)

func TestConfigSyncFollowsTheFoldersOfTheTypeAndOfTheCluster(t *testing.T) {
	secret := "rest credential Secret config-management-system/flotilla-repository"
	for name, test := range map[string]struct {
		change  func(*agent.Settings)
		secrets []string
		want    string // fields of spec.git
	}{
		"no credentials": {func(*agent.Settings) {}, nil, "auth:none"},
		"a token":        {func(s *agent.Settings) { s.Credentials.Token = "secret" }, []string{secret + " [token username]"}, "auth:token secretRef:map[name:flotilla-repository]"},
		"a password": {func(s *agent.Settings) { s.Credentials = agent.Credentials{Username: "me", Password: "secret"} },
			[]string{secret + " [token username]"}, "auth:token secretRef:map[name:flotilla-repository]"},
		"an app": {func(s *agent.Settings) {
			s.Credentials.GitHubApp = &agent.GitHubApp{ID: "1", InstallationID: "2", PrivateKey: privateKey}
		}, []string{secret + " [github-app-application-id github-app-installation-id github-app-private-key]"}, "auth:githubapp secretRef:map[name:flotilla-repository]"},
		"ssh": {func(s *agent.Settings) {
			s.Repository.URL = "ssh://git@git.example.com/platform/gitops"
			s.Credentials = agent.Credentials{SSHPrivateKey: privateKey, SSHKnownHosts: "git.example.com ssh-ed25519 AAAA"}
		}, []string{secret + " [known_hosts ssh]"}, "auth:ssh secretRef:map[name:flotilla-repository]"},
		"certificates": {func(s *agent.Settings) {
			s.Credentials = agent.Credentials{Token: "secret", CACertificates: certificate}
		},
			[]string{"rest credential Secret config-management-system/flotilla-certificates [cert]", secret + " [token username]"}, "auth:token caCertSecretRef:map[name:flotilla-certificates] secretRef:map[name:flotilla-repository]"},
		"a Secret that exists":         {func(s *agent.Settings) { s.CredentialsSecret = "theirs" }, nil, "auth:token secretRef:map[name:theirs]"},
		"a Secret for ssh that exists": {func(s *agent.Settings) { s.Repository.URL, s.CredentialsSecret = "git@git.example.com:a/b", "theirs" }, nil, "auth:ssh secretRef:map[name:theirs]"},
	} {
		t.Run(name, func(t *testing.T) {
			settings := smallSettings("config-sync")
			test.change(&settings)
			var secrets, roots []string
			for _, object := range renderObjects(t, settings) {
				switch object.GetKind() {
				case "Secret":
					var keys []string
					data, _ := object.Object["stringData"].(map[string]any)
					for key := range data {
						keys = append(keys, key)
					}
					slices.Sort(keys)
					secrets = append(secrets, fmt.Sprintf("%s %s %s %s", object.Stage, object.Part, object.ID(), keys))
				case "RootSync":
					roots = append(roots, object.ID().String())
					spec := object.Object["spec"].(map[string]any)
					git := spec["git"].(map[string]any)
					folder := map[string]string{"flotilla-cluster-type": "fleet/store", "flotilla-cluster": "fleet/clusters/store-17"}[object.GetName()]
					for _, field := range strings.Fields(test.want) {
						key, value, _ := strings.Cut(field, ":")
						if fmt.Sprint(git[key]) != value {
							t.Errorf("%s: got %v, want %s", key, git[key], value)
						}
					}
					if spec["sourceFormat"] != "unstructured" || git["dir"] != folder || git["branch"] != "dev" ||
						(git["caCertSecretRef"] != nil) != strings.Contains(test.want, "caCert") {
						t.Errorf("%s: got %v", object.GetName(), spec)
					}
				}
			}
			slices.Sort(secrets)
			if !slices.Equal(secrets, test.secrets) {
				t.Errorf("got %q, want %q", secrets, test.secrets)
			}
			if want := "RootSync config-management-system/flotilla-cluster-type RootSync config-management-system/flotilla-cluster"; strings.Join(
				roots,
				" ",
			) != want {
				t.Errorf("got %v, want %s", roots, want)
			}
		})
	}
}
