package fleet_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

func TestInvalidSourcesOfManifestsAreFindings(t *testing.T) {
	prefix := `workloads["a"].deployment_targets["live"].manifests.`
	for manifests, want := range map[string]string{
		"repo: https://git.example.com/team/app":                         "",
		"repo: 'http://gitea.gitea.svc:3000/team/app.git'":               "",
		"repo: 'ssh://git@git.example.com:2222/team/app'":                "",
		"repo: 'git@git.example.com:team/app.git'":                       "",
		"repo: 'git.example.com:/srv/app.git'":                           "",
		"repo: 'git://git.example.com/app'":                              `repo: must start with https://, http://, ssh://, with storage "git"`,
		"repo: 'git+ssh://git@git.example.com/app'":                      `repo: must start with https://, http://, ssh://, with storage "git"`,
		"{storage: helm, chart: c, repo: 'https://charts.example.com'}":  "",
		"{storage: helm, chart: c, repo: 'oci://registry.example.com'}":  "",
		"{storage: oci, repo: 'oci://registry.example.com/app', tag: a}": "",

		"repo: x":                                                       `repo: is not the URL of a Git repository, such as "https://git.example.com/team/app"`,
		"repo: git.example.com/team/app":                                "repo: is not the URL of a Git repository",
		"repo: ./app":                                                   "repo: is not the URL of a Git repository",
		"repo: 'C:/app'":                                                "repo: is not the URL of a Git repository",
		"repo: 'https://'":                                              "repo: is not a URL with a host",
		"repo: 'https:///team/app'":                                     "repo: is not a URL with a host",
		"repo: 'https://git.example.com:port/app'":                      "repo: is not a URL with a host",
		"repo: 'htps://git.example.com/app'":                            `repo: must start with https://, http://, ssh://, with storage "git"`,
		"repo: 'file:///srv/app'":                                       "repo: must start with https://",
		"repo: 'oci://registry.example.com/app'":                        "repo: must start with https://",
		"repo: 'https://git.example.com/my app'":                        "repo: has a space or a backslash",
		"{repo: 'https://x', type: helm}":                               "",
		"{repo: 'https://x', type: kustomize}":                          "",
		"{repo: 'https://x', type: Helm}":                               `type: must be one of helm, kustomize, not "Helm"; did you mean "helm"?`,
		"{repo: 'https://x', type: chart}":                              `type: must be one of helm, kustomize, not "chart"`,
		"{repo: 'https://x', type: kustomise}":                          `type: must be one of helm, kustomize, not "kustomise"; did you mean "kustomize"?`,
		"{storage: helm, chart: c, repo: 'https://x', type: kustomize}": `type: "kustomize" does not fit a chart`,
		"{storage: helm, chart: c, repo: stable}":                       "repo: is not the URL of a chart repository",
		"{storage: helm, chart: c, repo: 'ssh://a/b'}":                  `repo: must start with https://, http://, oci://, with storage "helm"`,
		"{storage: oci, repo: 'oci://'}":                                "repo: is not a URL with a host",
		"{repo: 'https://x', branch: main}":                             "",
		"{repo: 'https://x', branch: feature/x.y_z-1}":                  "",
		"{repo: 'https://x', branch: 'a b'}":                            "branch: \"a b\" has a space",
		"{repo: 'https://x', branch: 'a..b'}":                           `branch: "a..b" has ".."`,
		"{repo: 'https://x', branch: '-a'}":                             "branch: begins with",
		"{repo: 'https://x', branch: 'a/'}":                             "branch: ends with",
		"{repo: 'https://x', branch: 'a/.b'}":                           "branch: has a part that begins with",
		"{repo: 'https://x', branch: 'a.lock'}":                         "branch: has a part",
		"{repo: 'https://x', branch: '@'}":                              `branch: is "@"`,
		"{repo: 'https://x', branch: 'refs/heads/a'}":                   "branch: begins with",
		"{repo: 'https://x', tag: 'v1^{}'}":                             "tag: has a space or one of",
		"{storage: oci, repo: 'oci://x/y', tag: 'a/b'}":                 "tag: is not the tag of an image",
		"{repo: 'https://x', path: ./deploy/prod}":                      "",
		"{repo: 'https://x', path: .}":                                  "",
		"{repo: 'https://x', path: a..b/c}":                             "",
		"{repo: 'https://x', path: /deploy}":                            `path: must be relative to the root of the source`,
		"{repo: 'https://x', path: ../deploy}":                          `path: leads out of the source`,
		"{repo: 'https://x', path: a/../../b}":                          `path: leads out of the source`,
		"{repo: 'https://x', path: 'a\\b'}":                             `path: holds a backslash`,
		"{repo: 'https://x', path: 'https://x/y'}":                      `path: is a URL`,
	} {
		t.Run(manifests, func(t *testing.T) {
			if !strings.HasPrefix(manifests, "{") {
				manifests = "{" + manifests + "}"
			}
			_, findings := fleet.Decode(
				input(
					t,
					fmt.Sprintf(
						`{environment: dev, workspaces: [{name: team}], workloads: [{name: a, workspace: team, deployment_targets: {live: {environment: dev, manifests: %s}}}]}`,
						manifests,
					),
				),
			)
			if want == "" {
				wantFindings(t, findings)
				return
			}
			attribute, message, _ := strings.Cut(want, ": ")
			wantFindings(t, findings, prefix+attribute+": "+message)
		})
	}
}

func TestAChartWithoutAVersionIsAWarning(t *testing.T) {
	decoded, findings := fleet.Decode(input(t, `
environment: dev
workspaces: [{name: team}]
workloads:
- name: a
  workspace: team
  deployment_targets:
    any: {environment: dev, manifests: {storage: helm, repo: 'https://x', chart: c}}
    fixed: {environment: dev, manifests: {storage: helm, repo: 'https://x', chart: c, version: 1.2.x}}
    image: {environment: dev, manifests: {storage: oci, repo: 'oci://x/y', type: helm}}
    tagged: {environment: dev, manifests: {storage: oci, repo: 'oci://x/y', type: helm, tag: '1'}}
    plain: {environment: dev, manifests: {storage: oci, repo: 'oci://x/y'}}
    git: {environment: dev, manifests: {repo: 'https://x', type: helm}}
    later: {environment: dev, manifests: {storage: helm, repo: 'https://x', chart: c, version: (known after apply)}}
`))
	wantFindings(t, findings)
	wantFindings(t, fleet.FindWarnings(decoded.Fleet),
		`workloads["a"].deployment_targets["any"].manifests.version: the chart has no version`,
		`workloads["a"].deployment_targets["image"].manifests.version: the chart has no version`,
	)
}

func TestFindingsNameObjectsOfLists(t *testing.T) {
	for text, want := range map[string]string{
		"cluster_types: [{name: a, lables: {}}]":                                         `cluster_types["a"].lables: unknown attribute`,
		"cluster_types: [{lables: {}, name: (known after apply)}]":                       `cluster_types[0].lables: unknown attribute`,
		"cluster_types: {x: {name: a, lables: {}}}":                                      `cluster_types["x"].lables: unknown attribute`,
		"cluster_types: [{name: a}, {name: a}]":                                          `cluster_types[1].name: "a" is also the name of cluster_types[0]`,
		"cluster_types: [{name: " + strings.Repeat("a", 300) + "}]":                      `cluster_types[0].name: is not a DNS label`,
		"environments: [dev, {name: prod, lables: {}}]":                                  `environments["prod"].lables: unknown attribute`,
		"cluster_types: [{name: a, taints: [{key: b, efect: x}]}]":                       `cluster_types["a"].taints[0].efect: unknown attribute`,
		"environments: [dev, 7]":                                                         `environments[1]: not a number: put it in quotes`,
		"environments: [prod, stage]":                                                    `environment: no environment is called "dev"`,
		"cluster_types: [{name: a}]\nclusters: [{name: b, cluster_type: c}]":             `clusters["b"].cluster_type: no cluster type of environment "dev" is called "c"; did you mean "a"?`,
		"workspaces: [{name: a, environments: [dev, stag]}]\nenvironments: [dev, stage]": `workspaces["a"].environments[1]: no environment is called "stag"; did you mean "stage"?`,
	} {
		t.Run(text, func(t *testing.T) {
			_, findings := fleet.Decode(input(t, "environment: dev\n"+text))
			wantFindings(t, findings, want)
		})
	}
}

// FuzzManifests decodes any source without a panic. Findings about a URL do not contain the URL, because it may have a secret.
func FuzzManifests(f *testing.F) {
	for _, text := range []string{"https://user:secret@git.example.com/app", "secret://secret@secret/secret", "ssh://secret:secret@[secret]:secret/secret?secret#secret", "git@git.example.com:app", "oci://x", "a..b", "../x", "refs/heads/x", "https://[::1", "\x7f", "ssh://a b", "ssh://secretHsecret\xffm", "ssh://secret/\u200b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, storage := range []string{"git", "helm", "oci"} {
			for _, attribute := range []string{"repo", "branch", "tag", "path", "version", "chart"} {
				manifests := map[string]any{"storage": storage, "repo": "https://git.example.com/app"}
				manifests[attribute] = text
				_, findings := fleet.Decode(map[string]any{
					"environment": "dev", "workspaces": []any{map[string]any{"name": "team"}},
					"workloads": []any{map[string]any{"name": "a", "workspace": "team", "deployment_targets": map[string]any{
						"t": map[string]any{"environment": "dev", "manifests": manifests},
					}}},
				})
				for _, finding := range findings {
					if attribute == "repo" && strings.Contains(text, "//") && strings.Contains(finding.Message, "secret") {
						t.Errorf("%q is repeated: %s", text, finding)
					}
				}
			}
		}
	})
}
