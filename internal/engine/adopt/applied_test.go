package adopt_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// rootApplication is an Application for a folder in the repository of the documents.
const rootApplication = `
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: %[1]s, namespace: argocd}
spec:
  project: default
  source: {repoURL: https://example.com/fleet.git, path: %[2]s%[3]s}
  destination: {name: in-cluster, namespace: argocd}
`

var fleetOptions = map[string]any{"repository": map[string]any{"url": "https://example.com/fleet", "branch": "main"}}

func TestAppliedObjectsAreAdopted(t *testing.T) {
	noNamespace := func(text string) string { return strings.Replace(text, ", namespace: argocd", "", 1) }
	for name, test := range map[string]struct {
		documents map[string]any
		options   map[string]any
		want      []string
		specs     map[string]string // a part of the canonical JSON, by "<host> <name>"
	}{
		"nested applications of applications": {
			documents: map[string]any{
				"root.yaml":        fmt.Sprintf(rootApplication, "root", "apps", ""),
				"apps/web.yaml":    noNamespace(fmt.Sprintf(application, "web", "default", "main", "name: berlin, namespace: web")),
				"apps/team.yaml":   fmt.Sprintf(rootApplication, "team", "team", ", directory: {recurse: true, exclude: '*left*'}"),
				"apps/old/x.yaml":  fmt.Sprintf(application, "x", "default", "main", "name: in-cluster"),
				"team/a/api.yaml":  fmt.Sprintf(application, "api", "default", "main", "name: in-cluster"),
				"team/b/left.yaml": fmt.Sprintf(application, "left", "default", "main", "name: in-cluster"),
				"team/b/more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n",
			},
			options: fleetOptions,
			want: []string{
				"cluster type berlin <nil>", "cluster type prod <nil>", "cluster berlin of berlin",
				"platform/api-default Application map[branch:main path:api repo:https://example.com/apps storage:git] prod",
				"platform/web-default Application map[branch:main path:web repo:https://example.com/apps storage:git] in web berlin",
				"policy berlin map[match_labels:map[cluster-type:berlin]]", "policy prod map[match_labels:map[cluster-type:prod]]",
				"listed apps/old/x.yaml: Application argocd/x is not among the objects that Application argocd/root makes, which are taken",
				"listed apps/team.yaml: Application argocd/team brings objects of reconcilers, which are adopted themselves: it goes on to follow its folder",
				"listed root.yaml: Application argocd/root brings objects of reconcilers, which are adopted themselves: it goes on to follow its folder",
				"listed team/b/left.yaml: Application argocd/left is not among the objects that Application argocd/team makes, which are taken",
				"listed team/b/more.yaml: ConfigMap more is no object that deploys anything: it stays where it is",
			},
		},
		"an application of applications as a chart": {
			documents: map[string]any{
				"root.yaml":                fmt.Sprintf(rootApplication, "root", "apps", ", helm: {values: 'tag: v2.0.0'}"),
				"apps/Chart.yaml":          "apiVersion: v2\nname: apps\nversion: 1.0.0\n",
				"apps/values.yaml":         "tag: v1.0.0\nnames: [one, two]\n",
				"apps/templates/web.yaml":  fmt.Sprintf(application, "web", "default", "'{{ .Values.tag }}'", "name: in-cluster"),
				"apps/templates/each.yaml": "{{- range .Values.names }}\n" + strings.TrimPrefix(fmt.Sprintf(application, "{{ . }}", "default", "main", "name: in-cluster"), "\n") + "---\n{{- end }}\n",
			},
			options: fleetOptions,
			want: []string{
				"cluster type prod <nil>",
				"platform/one-default Application map[branch:main path:one repo:https://example.com/apps storage:git] everywhere",
				"platform/two-default Application map[branch:main path:two repo:https://example.com/apps storage:git] everywhere",
				"platform/web-default Application map[path:web repo:https://example.com/apps storage:git tag:v2.0.0] everywhere",
				"policy everywhere map[]",
				"listed apps/templates: has templates of a Helm chart: they stay where they are",
				"listed root.yaml: Application argocd/root brings objects of reconcilers, which are adopted themselves: it goes on to follow its folder",
			},
		},
		"a chart that reads files": {
			documents: map[string]any{
				"root.yaml":               fmt.Sprintf(rootApplication, "root", "apps", ""),
				"apps/Chart.yaml":         "apiVersion: v2\nname: apps\nversion: 1.0.0\n",
				"apps/templates/web.yaml": fmt.Sprintf(application, "web", "default", "'{{ .Files.Get `tag` }}'", "name: in-cluster"),
			},
			options: fleetOptions,
			want: []string{
				"cluster type prod <nil>",
				"platform/root-default Application map[path:apps repo:https://example.com/fleet.git storage:git] everywhere",
				"policy everywhere map[]",
				"listed apps/templates/web.yaml: Application argocd/web comes with Application argocd/root, which brings its folder, and is not adopted itself: apps/templates/web.yaml reads files of its chart, " +
					"which may be others than the documents",
			},
		},
		"tenants of Flux, with patches for each cluster": {
			documents: map[string]any{
				"tenants/prod/old/kustomization.yaml":         "resources: [old.yaml]\n",
				"tenants/prod/old/old.yaml":                   fmt.Sprintf(kustomization, "old", "./old"),
				"clusters/prod/flux-system/gotk-sync.yaml":    fmt.Sprintf(bootstrap, "prod"),
				"clusters/staging/flux-system/gotk-sync.yaml": fmt.Sprintf(bootstrap, "staging"),
				"clusters/prod/tenants.yaml": strings.Replace(fmt.Sprintf(kustomization, "tenants", "./tenants/prod"), "prune:",
					"patches: [{patch: '[{\"op\": \"add\", \"path\": \"/spec/timeout\", \"value\": \"2m\"}]', target: {kind: Kustomization}}], prune:", 1),
				"clusters/staging/tenants.yaml":      fmt.Sprintf(kustomization, "tenants", "./tenants/staging"),
				"tenants/base/web.yaml":              fmt.Sprintf(kustomization, "web", "./web/base"),
				"tenants/base/kustomization.yaml":    "resources: [web.yaml]\n",
				"tenants/prod/kustomization.yaml":    "resources: [../base]\n",
				"tenants/staging/kustomization.yaml": "resources: [../base]\npatches: [{path: path.yaml}]\n",
				"tenants/staging/path.yaml":          "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: web, namespace: flux-system}\nspec: {path: ./web/staging}\n",
			},
			want: []string{
				"cluster type prod <nil>", "cluster type staging <nil>",
				"platform/web-prod Kustomization map[branch:main path:./web/base repo:https://example.com/fleet storage:git] prod",
				"platform/web-staging Kustomization map[branch:main path:./web/staging repo:https://example.com/fleet storage:git] staging",
				"policy prod map[match_labels:map[cluster-type:prod]]", "policy staging map[match_labels:map[cluster-type:staging]]",
				"listed clusters/prod/flux-system/gotk-sync.yaml: GitRepository flux-system/flux-system is the agent's own: it goes on to follow its folder",
				"listed clusters/prod/flux-system/gotk-sync.yaml: Kustomization flux-system/flux-system is the agent's own: it goes on to follow its folder",
				"listed clusters/prod/tenants.yaml: Kustomization flux-system/tenants brings objects of reconcilers, which are adopted themselves: it goes on to follow its folder",
				"listed clusters/staging/flux-system/gotk-sync.yaml: GitRepository flux-system/flux-system is the agent's own: it goes on to follow its folder",
				"listed clusters/staging/flux-system/gotk-sync.yaml: Kustomization flux-system/flux-system is the agent's own: it goes on to follow its folder",
				"listed clusters/staging/tenants.yaml: Kustomization flux-system/tenants brings objects of reconcilers, which are adopted themselves: it goes on to follow its folder",
				"listed tenants/prod/old/old.yaml: Kustomization flux-system/old is not among the objects that Kustomization flux-system/tenants makes, which are taken",
			},
			specs: map[string]string{"prod web": `"timeout":"2m"`, "staging web": `"path":"./web/staging"`},
		},
		"kustomizations with changes, one of them for two clusters": {
			documents: map[string]any{
				"base/kustomization.yaml":           "resources: [web.yaml]\n",
				"base/web.yaml":                     fmt.Sprintf(kustomization, "web", "./web"),
				"clusters/eu/kustomization.yaml":    "resources: [../../base]\nnameSuffix: -eu\n",
				"clusters/us/kustomization.yaml":    "resources: [../../base]\npatches: [{patch: '[{\"op\": \"replace\", \"path\": \"/spec/interval\", \"value\": \"5m\"}]', target: {kind: Kustomization}}]\n",
				"clusters/us/db/kustomization.yaml": "resources: [db.yaml]\n",
				"clusters/us/db/db.yaml":            fmt.Sprintf(kustomization, "db", "./db"),
			},
			options: fleetOptions,
			want: []string{
				"cluster type eu <nil>", "cluster type us <nil>",
				"platform/db-default Kustomization map[branch:main path:./db repo:https://example.com/fleet storage:git] us",
				"platform/web-default Kustomization map[branch:main path:./web repo:https://example.com/fleet storage:git] us",
				"platform/web-eu-default Kustomization map[branch:main path:./web repo:https://example.com/fleet storage:git] eu",
				"policy eu map[match_labels:map[cluster-type:eu]]", "policy us map[match_labels:map[cluster-type:us]]",
			},
			specs: map[string]string{"us web": `"interval":"5m"`, "eu web-eu": `"interval":"1h"`},
		},
		"objects of a generated artifact": {
			documents: map[string]any{
				"clusters/prod/flux-system/gotk-sync.yaml": fmt.Sprintf(bootstrap, "prod"),
				"clusters/prod/artifacts.yaml": `
apiVersion: source.extensions.fluxcd.io/v1beta1
kind: ArtifactGenerator
metadata: {name: flux-system, namespace: flux-system}
spec:
  sources: [{alias: all, kind: GitRepository, name: flux-system}]
  artifacts: [{name: apps, copy: [{from: "@all/apps/**", to: "@artifact/in/"}]}]
`,
				"clusters/prod/apps.yaml": strings.Replace(fmt.Sprintf(kustomization, "apps", "./in/prod"), "kind: GitRepository, name: flux-system", "kind: ExternalArtifact, name: apps", 1),
				"apps/prod/web.yaml":      fmt.Sprintf(kustomization, "web", "./web"),
			},
			want: []string{
				"cluster type prod <nil>",
				"platform/apps-default Kustomization map[path:./in/prod repo:https://example.com/fleet storage:git] everywhere",
				"policy everywhere map[]",
				"listed apps/prod/web.yaml: Kustomization flux-system/web comes with Kustomization flux-system/apps, which brings its folder, and is not adopted itself: its source is generated",
				"listed clusters/prod/apps.yaml: Kustomization flux-system/apps manifests cannot say its source: manifests.repo is the repository of the documents, and the source is in parameters.objects (taken)",
				"listed clusters/prod/artifacts.yaml: ArtifactGenerator flux-system/flux-system is no object that deploys anything: it stays where it is",
				"listed clusters/prod/flux-system/gotk-sync.yaml: GitRepository flux-system/flux-system is the agent's own: it goes on to follow its folder",
				"listed clusters/prod/flux-system/gotk-sync.yaml: Kustomization flux-system/flux-system is the agent's own: it goes on to follow its folder",
			},
		},
		"folders with errors": {
			documents: map[string]any{
				"far/kustomization.yaml":     "resources: [far.yaml, 'https://example.com/base']\nnamePrefix: a-\n",
				"far/far.yaml":               fmt.Sprintf(application, "far", "default", "main", "name: in-cluster"),
				"clusters/eu/tenants.yaml":   strings.Replace(fmt.Sprintf(kustomization, "tenants", "./tenants"), "prune:", "postBuild: {substituteFrom: [{kind: Secret, name: x}]}, prune:", 1),
				"tenants/web.yaml":           fmt.Sprintf(kustomization, "web", "./web"),
				"generated/root.yaml":        fmt.Sprintf(rootApplication, "generated", "gone", ""),
				"gone/kustomization.yaml":    "resources: [one.yaml, not-there.yaml]\n",
				"gone/one.yaml":              fmt.Sprintf(application, "one", "default", "main", "name: in-cluster"),
				"clusters/eu/deploy/fleet.x": "x",
			},
			options: fleetOptions,
			want: []string{
				"cluster type eu <nil>", "cluster type prod <nil>",
				"platform/generated-default Application map[path:gone repo:https://example.com/fleet.git storage:git] prod",
				"platform/tenants-default Kustomization map[branch:main path:./tenants repo:https://example.com/fleet storage:git] eu",
				"policy eu map[match_labels:map[cluster-type:eu]]", "policy prod map[match_labels:map[cluster-type:prod]]",
				"listed far/far.yaml: Application argocd/far may be changed by namePrefix of far/kustomization.yaml, and it is not known how it is applied: far/kustomization.yaml refers to https://example.com/base: " +
					"rendering reads nothing from the network, so take it into the repository",
				"listed gone/one.yaml: Application argocd/one comes with Application argocd/generated, which brings its folder, and is not adopted itself: gone/kustomization.yaml has \"not-there.yaml\", " +
					"which does not exist in the artifact",
				"listed tenants/web.yaml: Kustomization flux-system/web comes with Kustomization flux-system/tenants, which brings its folder, and is not adopted itself: spec.postBuild.substituteFrom " +
					"cannot be rendered: its values are on the cluster alone; use postBuild.substitute",
			},
		},
		"a cycle of roots": {
			documents: map[string]any{
				"a/kustomization.yaml": "resources: [../c/one.yaml]\n",
				"b/two.yaml":           fmt.Sprintf(rootApplication, "two", "a", ""),
				"c/one.yaml":           fmt.Sprintf(rootApplication, "one", "a", ""),
				"start.yaml":           fmt.Sprintf(rootApplication, "start", "a", ""),
			},
			options: fleetOptions,
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, all := adoptAndRender(t, test.documents, test.options)
			got := describe(result)
			for i, line := range got {
				if before, _, found := strings.Cut(line, "cannot be read, "); found {
					got[i] = before + "cannot be read"
				}
			}
			if test.want != nil && !reflect.DeepEqual(got, test.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(test.want, "\n\t"))
			}
			for location, part := range test.specs {
				if !slices.ContainsFunc(all, func(object renderedObject) bool {
					spec, err := fleet.CanonicalJSON(object.fields["spec"])
					return err == nil && location == object.host+" "+object.fields["metadata"].(map[string]any)["name"].(string) && strings.Contains(spec, part)
				}) {
					t.Errorf("%s has no %s: got %v", location, part, all)
				}
			}
		})
	}
}

// TestAFolderOfFluxIsReadAsByKustomize adopts a folder without a kustomization.yaml. Flux builds it with kustomize, and so NO, yes
// and dates are texts.
func TestAFolderOfFluxIsReadAsByKustomize(t *testing.T) {
	t.Parallel()
	_, all := adoptAndRender(t, map[string]any{"clusters/a/app.yaml": `
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: flux-system}
spec: {interval: 1h, url: https://charts.example.com}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: app, namespace: shop}
spec:
  interval: 10m
  chart: {spec: {chart: app, version: 1.2.3, sourceRef: {kind: HelmRepository, name: charts, namespace: flux-system}}}
  values: {country: NO, enabled: yes, since: 2024-01-01, axis: {x: 1, y: 2, n: 3}}
`}, fleetOptions)
	index := slices.IndexFunc(all, func(object renderedObject) bool { return object.fields["kind"] == "HelmRelease" })
	if index < 0 {
		t.Fatalf("got objects %v, want a HelmRelease", all)
	}
	const want = `map[axis:map[n:3 x:1 y:2] country:NO enabled:yes since:2024-01-01]`
	if values := fieldOf(all[index].fields["spec"], "values"); fmt.Sprint(values) != want {
		t.Errorf("got values %v, want %s", values, want)
	}
	if _, isText := fieldOf(all[index].fields["spec"], "values.enabled").(string); !isText {
		t.Error("yes is not a text")
	}
}
