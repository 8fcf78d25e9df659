package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// renderProblems returns the problems of settings as texts, in order.
func renderProblems(settings agent.Settings) []string {
	_, problems := agent.Render(settings)
	var texts []string
	for _, problem := range problems {
		texts = append(texts, problem.String())
	}
	return texts
}

func TestMistakesInSettingsAreReportedAtTheirAttributes(t *testing.T) {
	for want, change := range map[string]func(*agent.Settings){
		`cluster: is required`:            func(s *agent.Settings) { s.Cluster = "" },
		`cluster: "A" is not a DNS label`: func(s *agent.Settings) { s.Cluster = "A" },
		`cluster_type: is required`:       func(s *agent.Settings) { s.ClusterType = "" },
		`reconciler: must be one of argocd, argocd-hub, config-sync, fleet, flux`: func(s *agent.Settings) { s.Reconciler = "fluxx" },
		`; did you mean "argocd"?`:                 func(s *agent.Settings) { s.Reconciler = "argocdd" },
		`reconciler: is required`:                  func(s *agent.Settings) { s.Reconciler = "" },
		`name: "a b" is not a DNS label`:           func(s *agent.Settings) { s.Name = "a b" },
		`is longer than 40 characters`:             func(s *agent.Settings) { s.Name = strings.Repeat("a", 41) },
		`decryption.secret: "A" is not`:            func(s *agent.Settings) { s.Decryption = &fleet.Decryption{Secret: "A"} },
		`decryption.service_account: "a b" is not`: func(s *agent.Settings) { s.Decryption = &fleet.Decryption{ServiceAccount: "a b"} },
		`decryption: cannot be set: Argo CD decrypts nothing without a plugin`: func(s *agent.Settings) {
			s.Reconciler, s.Decryption = "argocd", &fleet.Decryption{}
		},
		`namespace: "a_b" is not`:                          func(s *agent.Settings) { s.Namespace = "a_b" },
		`interval: is shorter than a second`:               func(s *agent.Settings) { s.Interval = 1 },
		`timeout: is shorter than a second`:                func(s *agent.Settings) { s.Timeout = 1 },
		`gitops_repo.url: the URL is empty`:                func(s *agent.Settings) { s.Repository.URL = "" },
		`gitops_repo.url: is a repository on this machine`: func(s *agent.Settings) { s.Repository.URL = "/srv/gitops.git" },
		`gitops_repo.url: the URL has credentials`:         func(s *agent.Settings) { s.Repository.URL = "https://me:secret@git.example.com/a/b" },
		`gitops_repo.branch: the branch is empty`:          func(s *agent.Settings) { s.Repository.Branch = "" },
		`gitops_repo.path: `:                               func(s *agent.Settings) { s.Repository.Path = ".git" },
		`credentials: has more than one of`:                func(s *agent.Settings) { s.Credentials = agent.Credentials{Token: "a", Password: "b"} },
		`credentials.username: is required with password`:  func(s *agent.Settings) { s.Credentials = agent.Credentials{Password: "b"} },
		`credentials.ssh_private_key: is for a repository`: func(s *agent.Settings) {
			s.Credentials = agent.Credentials{SSHPrivateKey: privateKey, SSHKnownHosts: "a"}
		},
		`credentials.ssh_private_key: is required for`:             func(s *agent.Settings) { s.Repository.URL = "ssh://git@git.example.com/a/b" },
		`credentials.ca_certificates: is no PEM text`:              func(s *agent.Settings) { s.Credentials = agent.Credentials{CACertificates: "b"} },
		`credentials.github_app.id: must be a number`:              func(s *agent.Settings) { s.Credentials.GitHubApp = &agent.GitHubApp{ID: "x"} },
		`credentials.github_app.private_key: is no PEM text`:       func(s *agent.Settings) { s.Credentials.GitHubApp = &agent.GitHubApp{ID: "1"} },
		`credentials_secret: cannot be set together`:               func(s *agent.Settings) { s.CredentialsSecret, s.Credentials.Token = "a", "b" },
		`credentials_secret: "A" is not`:                           func(s *agent.Settings) { s.CredentialsSecret = "A" },
		`gitops_repo.url: is not https: the credentials`:           func(s *agent.Settings) { s.Repository.URL, s.Credentials.Token = "http://git.example.com/a/b", "c" },
		`feedback: must have one of token, github_app and secret`:  func(s *agent.Settings) { s.Feedback = &agent.Reporting{Forge: "gitea"} },
		`feedback.forge: must be one of gitea, forgejo`:            func(s *agent.Settings) { s.Feedback = &agent.Reporting{Token: "a"} },
		`feedback.forge: must be one of gitea, forgejo, github, g`: func(s *agent.Settings) { s.Feedback = &agent.Reporting{Token: "a", Forge: "githab"} },
		`feedback.context: context "a" has no {cluster}`:           func(s *agent.Settings) { s.Feedback = &agent.Reporting{Token: "a", Forge: "gitea", Context: "a"} },
		`feedback.context: has no {host}: the folder of`: func(s *agent.Settings) {
			s.Feedback = &agent.Reporting{Token: "a", Forge: "gitea", Context: "a/{cluster}"}
		},
		`feedback.context: must be plain text`: func(s *agent.Settings) {
			s.Feedback = &agent.Reporting{Token: "a", Forge: "gitea", Context: "a'/{cluster}/{host}"}
		},
		`feedback.github_app: is for GitHub`: func(s *agent.Settings) { s.Feedback = &agent.Reporting{Forge: "gitea", App: &agent.GitHubApp{}} },
		`feedback.url: the URL's path "/platform/gitops" is not that of a repository of Bitbucket Data Center`: func(s *agent.Settings) {
			s.Feedback = &agent.Reporting{Forge: "bitbucket_datacenter", Token: "a"}
		},
		`feedback.token: must be username:token for Flux and Bitbucket Cloud, where the username of an API token is its user's address of mail`: func(s *agent.Settings) {
			s.Reconciler, s.Feedback = "flux", &agent.Reporting{Forge: "bitbucket", Token: "a"}
		},
		`feedback.url: must be the https:// URL of the repository`: func(s *agent.Settings) { s.Feedback = &agent.Reporting{Forge: "gitea", Token: "a", URL: "x"} },
		`feedback.url: the URL's path "/a" is not that of a re`:    func(s *agent.Settings) { s.Feedback = &agent.Reporting{Forge: "gitea", Token: "a", URL: "https://x/a"} },
		`name: "flotilla-on-all-of-the-clusters" is longer than 25 characters`: func(s *agent.Settings) {
			s.Reconciler, s.Name = "config-sync", "flotilla-on-all-of-the-clusters"
		},
		`feedback: cannot be set for Config Sync, which does not report to Git hosts`: func(s *agent.Settings) { s.Reconciler, s.Feedback = "config-sync", &agent.Reporting{} },
		`feedback: cannot be set for Rancher Fleet`:                                   func(s *agent.Settings) { s.Reconciler, s.Feedback = "fleet", &agent.Reporting{} },
		`feedback: cannot be set for the reconciler "argocd-hub"`:                     func(s *agent.Settings) { s.Reconciler, s.Feedback = "argocd-hub", &agent.Reporting{} },
		`registration: is for the reconciler "argocd-hub"`:                            func(s *agent.Settings) { s.Registration = &agent.Registration{} },
		`registration: is required: how the hub reaches`:                              func(s *agent.Settings) { s.Reconciler = "argocd-hub" },
		`environment: is required`:                                                    func(s *agent.Settings) { s.Reconciler = "argocd-hub" },
		`registration: has none of token`:                                             func(s *agent.Settings) { s.Reconciler, s.Registration = "argocd-hub", &agent.Registration{} },
		`registration.server: must be the https:// URL`: func(s *agent.Settings) {
			s.Reconciler, s.Registration = "argocd-hub", &agent.Registration{Token: "a"}
		},
		`registration.server: is the name by which every cluster reaches itself`: func(s *agent.Settings) {
			s.Reconciler, s.Registration = "argocd-hub", &agent.Registration{Token: "a", Server: "https://kubernetes.default.svc"}
		},
		`registration.cluster_ca_certificate: is no PEM text`: func(s *agent.Settings) {
			s.Reconciler, s.Registration = "argocd-hub", &agent.Registration{Token: "a", Server: "https://a", CACertificate: "LS0t"}
		},
		`registration.labels["flotilla.dev/x"]: is a label that Flotilla sets`: func(s *agent.Settings) {
			s.Reconciler, s.Registration = "argocd-hub", &agent.Registration{Token: "a", Server: "https://a", Labels: map[string]string{"flotilla.dev/x": "y"}}
		},
		`registration.secret: "A" is not`: func(s *agent.Settings) {
			s.Reconciler, s.Registration = "argocd-hub", &agent.Registration{Secret: "A"}
		},
		`registration.secret: cannot be set together with other attributes`: func(s *agent.Settings) {
			s.Reconciler, s.Registration = "argocd-hub", &agent.Registration{Secret: "a", Token: "a"}
		},
		`credentials.ssh_passphrase: is for Flux alone`: func(s *agent.Settings) {
			s.Reconciler, s.Credentials.SSHPassphrase = "argocd", "x"
		},
		`credentials.bearer_token: cannot be used with Rancher Fleet`: func(s *agent.Settings) {
			s.Reconciler, s.Credentials.BearerToken = "fleet", "x"
		},
		`install: document 1, from line 1: `: func(s *agent.Settings) {
			s.Install = []agent.Text{{Path: "install", Text: "a: ["}}
		},
		`install: is for an agent on the cluster`: func(s *agent.Settings) {
			s.Reconciler, s.Environment, s.Registration = "argocd-hub", "dev", &agent.Registration{Token: "a", Server: "https://a"}
			s.Install = []agent.Text{{Path: "install", Text: "{}"}}
		},
		`install: holds no YAML document`: func(s *agent.Settings) {
			s.Install = []agent.Text{{Path: "install", Text: "# nothing\n"}}
		},
		`install["x"]: line 1: is no Kubernetes object`: func(s *agent.Settings) {
			s.Install = []agent.Text{{Path: `install["x"]`, Text: "[]"}}
		},
		`install: line 1: the object has no kind`: func(s *agent.Settings) {
			s.Install = []agent.Text{{Path: "install", Text: "apiVersion: v1"}}
		},
		`install: line 1: the ConfigMap has no metadata.name`: func(s *agent.Settings) {
			s.Install = []agent.Text{{Path: "install", Text: "apiVersion: v1\nkind: ConfigMap"}}
		},
		`install: line 3: ConfigMap a/b appears twice, first in install, line 1`: func(s *agent.Settings) {
			s.Install = []agent.Text{{Path: "install", Text: "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: a}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: a}}\n"}}
		},
		`install: GitRepository flux-system/flotilla is an object that Flotilla renders: leave it out`: func(s *agent.Settings) {
			s.Install = []agent.Text{{Path: "install", Text: "{apiVersion: source.toolkit.fluxcd.io/v1beta2, kind: GitRepository, metadata: {name: flotilla, namespace: flux-system}}"}}
		},
	} {
		settings := smallSettings("flux")
		change(&settings)
		if got := renderProblems(settings); !slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, want) }) {
			t.Errorf("want %q, got:\n%s", want, strings.Join(got, "\n"))
		}
	}
}

func TestProblemsNeverHoldASecret(t *testing.T) {
	settings := smallSettings("flux")
	settings.Repository.URL = "https://me:hidden@git.example.com/a/b"
	settings.Credentials = agent.Credentials{
		Token:          "hidden",
		Password:       "hidden",
		SSHPrivateKey:  "hidden",
		CACertificates: "hidden",
		BearerToken:    "hidden",
	}
	settings.Feedback = &agent.Reporting{Token: "hidden", URL: "https://me:hidden@x/a/b"}
	settings.Registration = &agent.Registration{Token: "hidden", Server: "https://me:hidden@x"}
	for _, text := range renderProblems(settings) {
		if strings.Contains(text, "hidden") {
			t.Error(text)
		}
	}
}

func TestSettingsWithWarningsAreRendered(t *testing.T) {
	settings := smallSettings("flux")
	settings.Repository.URL, settings.Credentials = "http://git.example.com/a/b", agent.Credentials{Token: "secret"}
	objects, problems := agent.Render(settings)
	if len(objects) == 0 || len(problems) != 1 || !problems[0].Warning || agent.Failed(problems) {
		t.Errorf("got %d objects and the problems %v", len(objects), problems)
	}
}

func TestMisspeltAndUnknownSettings(t *testing.T) {
	_, known, problems := agent.Decode(map[string]any{
		"cluster": "a", "cluster_typ": "b", "gitops_repo": map[string]any{"url": fleet.Unknown{}, "brnch": "dev"},
		"credentials": map[string]any{"tokn": "x"}, "install": []any{"a", 1.0},
	})
	if known {
		t.Error("settings with an unknown URL count as known")
	}
	var got []string
	for _, problem := range problems {
		got = append(got, problem.String())
	}
	slices.Sort(got)
	want := []string{
		`cluster_typ: unknown attribute; did you mean "cluster_type"?`,
		`cluster_type: is required`,
		`credentials.tokn: unknown attribute; did you mean "token"?`,
		`gitops_repo.branch: is required`,
		`gitops_repo.brnch: unknown attribute; did you mean "branch"?`,
		`install[1]: must be a text of YAML documents`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(
		`{"cluster": "a", "cluster_type": "b", "reconciler": "argocd-hub", "environment": "dev", "gitops_repo": {"url": "git@h:a/b", "branch": "dev"},
		"credentials": {"ssh_private_key": "PRIVATE KEY-----"}, "registration": {"server": "https://a", "exec": {"command": "b", "env": {"a": "b"}}, "labels": {"a": "b"}}}`,
	)
	f.Add(
		`{"cluster": "a", "cluster_type": "b", "gitops_repo": {"url": "https://h/a/b", "branch": "dev", "path": ".."}, "interval": "1h", "install": {"a": "{}"},
		"feedback": {"forge": "gitlab", "token": "x", "context": "{cluster}/{host}"}}`,
	)
	f.Add(`{"feedback": 1, "registration": [], "install": 1, "credentials": {"github_app": {"id": 1}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		value, err := fleet.ParseJSON(text)
		if err != nil {
			return
		}
		settings, known, problems := agent.Decode(value)
		if !known {
			t.Error("known settings count as unknown")
		}
		objects, more := agent.Render(settings)
		if len(objects) == 0 != agent.Failed(more) {
			t.Errorf("got %d objects and the problems %v", len(objects), more)
		}
		for _, problem := range append(problems, more...) {
			if problem.Message == "" {
				t.Errorf("the problem at %q has no message", problem.Path)
			}
		}
		if _, err := agent.Texts(objects); err != nil {
			t.Error(err)
		}
	})
}

func FuzzInstall(f *testing.F) {
	f.Add("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n{}")
	f.Add("{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Namespace, metadata: {name: flux-system}}]}")
	f.Add("a: &a [1, 2.5, 1e400, null]\nb: *a")
	f.Fuzz(func(t *testing.T, text string) {
		settings := smallSettings("flux")
		settings.Install = []agent.Text{{Path: "install", Text: text}}
		objects, problems := agent.Render(settings)
		again, _ := agent.Render(settings)
		if listNames(objects) != listNames(again) {
			t.Error("the same settings render different objects")
		}
		if len(objects) == 0 != agent.Failed(problems) {
			t.Errorf("got %d objects and the problems %v", len(objects), problems)
		}
		for i := range objects {
			if objects[i].GetName() == "" || objects[i].GetKind() == "" {
				t.Errorf("an object has no name or kind: %v", objects[i].Object)
			}
			if _, err := objects[i].MarshalJSON(); err != nil {
				t.Error(err)
			}
		}
	})
}
