package adopt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/adopt"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// FuzzAdopt adopts any documents within the bounds of memory. provider::flotilla::fleet must accept the adopted fleet.
func FuzzAdopt(f *testing.F) {
	f.Add("clusters/a/flux-system/gotk-sync.yaml", fmt.Sprintf(bootstrap, "a"), "clusters/a/apps.yaml", fmt.Sprintf(kustomization, "apps", "./apps"))
	f.Add("a.yaml", fmt.Sprintf(application, "web", "shop", "v1.2.0", "name: eu-1, namespace: web"), "kustomization.yaml", "resources: [a.yaml]\nnamespace: x\n")
	f.Add("a.yaml", "apiVersion: v1\nkind: List\nitems: [{apiVersion: fleet.cattle.io/v1alpha1, kind: GitRepo, metadata: {name: a}, spec: {repo: 'https://e.com/a', paths: [b]}}]\n", "b/fleet.yaml", "a: &a [*a]\n")
	f.Add("a.yaml", "apiVersion: configsync.gke.io/v1beta1\nkind: RootSync\nmetadata: {name: a}\nspec: {git: {repo: 'git@e.com:a', revision: main, dir: a}}\n", "", "")
	f.Add("a.yaml", clustersOfAHub, "b.yaml", fmt.Sprintf(applicationSet, "generators: [{clusters: {selector: {matchLabels: {env: prod}}}}, {list: {elements: [{name: a, x: b}]}}]", "{{name}}-web", "x", "name: '{{name}}'"))
	f.Add("a/b.json", `{"a": [1, "b"]}`, "b.yaml", fmt.Sprintf(applicationSet, `goTemplate: true
  generators: [{matrix: {generators: [{git: {repoURL: https://example.com/fleet, files: [{path: '*.json'}]}}, {list: {elementsYaml: '{{ .a | toYaml }}'}}]}}]`, "{{ .path.basename | normalize }}", "x", "name: x"))
	f.Fuzz(func(t *testing.T, name, text, otherName, otherText string) {
		for _, options := range []any{nil, map[string]any{"hosts": "{region}/{cluster_type}", "repository": map[string]any{"url": "https://example.com/fleet"}}} {
			fleettest.Bounded(t, name+text+otherName+otherText, func() {
				result, known, findings := adopt.Adopt("prod", map[string]any{name: text, otherName: otherText}, options, func(map[string]string, *objects.Request) (*objects.Rendering, error) {
					return &objects.Rendering{Objects: []objects.FinalObject{{Group: "argoproj.io", Kind: "Application", Name: "a", YAML: []byte(otherText)}}}, nil
				})
				if known && len(findings) == 1 && strings.HasPrefix(findings[0].Path, "options.hosts") {
					return // no folder matches the pattern
				}
				if !known || len(findings) > 0 {
					t.Fatal(known, findings)
				}
				if _, findings := fleet.Decode(result.Fleet); len(findings) > 0 {
					t.Fatalf("provider::flotilla::fleet refuses the fleet: %s", findings)
				}
			})
		}
	})
}
