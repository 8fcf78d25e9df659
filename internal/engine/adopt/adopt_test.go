package adopt_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/adopt"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// describe returns an adoption as readable lines.
func describe(result *adopt.Adoption) []string {
	var all []string
	list := func(key string) (objects []map[string]any) {
		for _, object := range result.Fleet[key].([]any) {
			objects = append(objects, object.(map[string]any))
		}
		return objects
	}
	for _, clusterType := range list("cluster_types") {
		all = append(all, fmt.Sprint("cluster type ", clusterType["name"], " ", clusterType["labels"]))
	}
	for _, cluster := range list("clusters") {
		all = append(all, fmt.Sprint("cluster ", cluster["name"], " of ", cluster["cluster_type"]))
	}
	for _, workload := range list("workloads") {
		targets := workload["deployment_targets"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(targets)) {
			target := targets[name].(map[string]any)
			manifests := maps.Clone(target["manifests"].(map[string]any))
			objects := manifests["parameters"].(map[string]any)["objects"].([]any)
			delete(manifests, "parameters")
			var kinds []string
			for _, object := range objects {
				kinds = append(kinds, object.(map[string]any)["kind"].(string))
			}
			line := fmt.Sprint(workload["workspace"], "/", workload["name"], "-", name, " ", strings.Join(kinds, "+"), " ", manifests)
			if namespace := target["namespace"]; namespace != nil {
				line += fmt.Sprint(" in ", namespace)
			}
			all = append(all, line+fmt.Sprint(" ", target["labels"].(map[string]any)["placement"]))
		}
	}
	for _, policy := range list("target_policies") {
		all = append(all, fmt.Sprint("policy ", policy["name"], " ", policy["cluster_type_selector"]))
	}
	for _, listed := range result.Listed {
		suffix := ""
		if listed.Taken {
			suffix = " (taken)"
		}
		all = append(all, "listed "+listed.File+": "+strings.TrimSpace(listed.Object+" "+listed.Reason)+suffix)
	}
	return all
}

const (
	bootstrap = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, url: https://example.com/fleet, ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 10m, path: ./clusters/%s, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
`
	kustomization = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s, namespace: flux-system}
spec: {interval: 1h, path: %s, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
`
	application = `
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: %[1]s, namespace: argocd, finalizers: [resources-finalizer.argocd.argoproj.io]}
spec:
  project: %[2]s
  source: {repoURL: https://example.com/apps, path: %[1]s, targetRevision: %[3]s}
  destination: {%[4]s}
`
)

func TestEachKindIsAdopted(t *testing.T) {
	for name, test := range map[string]struct {
		documents map[string]any
		options   map[string]any
		want      []string
	}{
		"Flux: folders of clusters, and an object in another object's folder": {
			documents: map[string]any{
				"clusters/dev/flux-system/gotk-sync.yaml":  fmt.Sprintf(bootstrap, "dev"),
				"clusters/prod/flux-system/gotk-sync.yaml": fmt.Sprintf(bootstrap, "prod"),
				"clusters/dev/apps.yaml":                   fmt.Sprintf(kustomization, "apps", "./apps/dev"),
				"clusters/prod/apps.yaml":                  fmt.Sprintf(kustomization, "apps", "./apps/prod"),
				"clusters/dev/infra.yaml":                  fmt.Sprintf(kustomization, "infra", "./infra"),
				"clusters/prod/infra.yaml":                 fmt.Sprintf(kustomization, "infra", "./infra"),
				"infra/inner.yaml":                         "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: inner, namespace: flux-system}\nspec: {interval: 1h, chart: {spec: {chart: inner}}}\n",
				"readme/notes.md":                          "not: [yaml",
				"README.md":                                "# Fleet: [of dev",
				"LICENSE":                                  "Copyright: [x",
				"clusters/CODEOWNERS":                      "* @platform: [x",
			},
			want: []string{
				"cluster type dev <nil>", "cluster type prod <nil>",
				"platform/apps-dev Kustomization map[branch:main path:./apps/dev repo:https://example.com/fleet storage:git] dev",
				"platform/apps-prod Kustomization map[branch:main path:./apps/prod repo:https://example.com/fleet storage:git] prod",
				"platform/infra-default Kustomization map[branch:main path:./infra repo:https://example.com/fleet storage:git] everywhere",
				"policy dev map[match_labels:map[cluster-type:dev]]",
				"policy everywhere map[]",
				"policy prod map[match_labels:map[cluster-type:prod]]",
				"listed clusters/dev/flux-system/gotk-sync.yaml: GitRepository flux-system/flux-system is the agent's own: it goes on to follow its folder",
				"listed clusters/dev/flux-system/gotk-sync.yaml: Kustomization flux-system/flux-system is the agent's own: it goes on to follow its folder",
				"listed clusters/prod/flux-system/gotk-sync.yaml: GitRepository flux-system/flux-system is the agent's own: it goes on to follow its folder",
				"listed clusters/prod/flux-system/gotk-sync.yaml: Kustomization flux-system/flux-system is the agent's own: it goes on to follow its folder",
				"listed infra/inner.yaml: HelmRelease flux-system/inner comes with Kustomization flux-system/infra, which brings its folder",
			},
		},
		"Flux: a source of one object, and a source of two": {
			documents: map[string]any{"clusters/edge/apps.yaml": `
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: flux-system}
spec: {interval: 5m, url: https://charts.example.com}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: one, namespace: flux-system}
spec: {interval: 5m, targetNamespace: one, chart: {spec: {chart: one, version: 1.2.3, sourceRef: {kind: HelmRepository, name: charts}}}, values: {a: 1}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: two, namespace: flux-system}
spec: {interval: 5m, targetNamespace: kube-system, chart: {spec: {chart: two, version: 2.x, sourceRef: {kind: HelmRepository, name: charts}}}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: three, namespace: flux-system}
spec: {interval: 5m, url: oci://registry.example.com/charts/three, ref: {semver: 1.x}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: three, namespace: flux-system}
spec: {interval: 5m, chartRef: {kind: OCIRepository, name: three}}
`},
			want: []string{
				"cluster type edge <nil>",
				"platform/charts-default HelmRepository map[chart:one repo:https://charts.example.com storage:helm version:1.2.3] everywhere",
				"platform/one-default HelmRelease map[chart:one repo:https://charts.example.com storage:helm version:1.2.3] in one everywhere",
				"platform/three-default HelmRelease+OCIRepository map[repo:oci://registry.example.com/charts/three storage:oci type:helm version:1.x] everywhere",
				"platform/two-default HelmRelease map[chart:two repo:https://charts.example.com storage:helm version:2.x] everywhere",
				"policy everywhere map[]",
			},
		},
		"Flux: a bucket": {
			documents: map[string]any{"apps.yaml": `
apiVersion: source.toolkit.fluxcd.io/v1
kind: Bucket
metadata: {name: store, namespace: flux-system}
spec: {interval: 5m, bucketName: manifests, endpoint: s3.example.com}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: stored, namespace: flux-system}
spec: {interval: 5m, path: ./, prune: true, sourceRef: {kind: Bucket, name: store}}
`},
			options: map[string]any{"repository": map[string]any{"url": "https://example.com/fleet"}},
			want: []string{
				"cluster type prod <nil>",
				"platform/stored-default Kustomization+Bucket map[path:./ repo:https://example.com/fleet storage:git] everywhere",
				"policy everywhere map[]",
				"listed apps.yaml: Bucket flux-system/store manifests cannot say its source: manifests.repo is the repository of the documents, and the source is in parameters.objects (taken)",
				"listed apps.yaml: Kustomization flux-system/stored manifests cannot say its source: manifests.repo is the repository of the documents, and the source is in parameters.objects (taken)",
			},
		},
		"Argo CD: clusters by their destinations, projects as workspaces": {
			documents: map[string]any{"apps.yaml": fmt.Sprintf(application, "web", "shop", "v1.2.0", "name: eu-1, namespace: web") + "---" +
				fmt.Sprintf(application, "api", "default", "main", "server: 'https://10.0.0.1:6443', namespace: kube-system") + "---" +
				fmt.Sprintf(application, "hub", "default", "HEAD", "server: 'https://kubernetes.default.svc'") + `
---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: shop, namespace: argocd}
spec: {}
`},
			want: []string{
				"cluster type 10-0-0-1-6443 <nil>", "cluster type eu-1 <nil>", "cluster type prod <nil>",
				"cluster 10-0-0-1-6443 of 10-0-0-1-6443", "cluster eu-1 of eu-1",
				"platform/api-default Application map[branch:main path:api repo:https://example.com/apps storage:git] 10-0-0-1-6443",
				"platform/hub-default Application map[path:hub repo:https://example.com/apps storage:git] prod",
				"shop/web-default Application map[path:web repo:https://example.com/apps storage:git tag:v1.2.0] in web eu-1",
				"policy 10-0-0-1-6443 map[match_labels:map[cluster-type:10-0-0-1-6443]]",
				"policy eu-1 map[match_labels:map[cluster-type:eu-1]]",
				"policy prod map[match_labels:map[cluster-type:prod]]",
				"listed apps.yaml: AppProject argocd/shop is an object of Argo CD that deploys nothing by itself: it stays where it is",
			},
		},
		"Argo CD: charts, and several sources": {
			documents: map[string]any{"apps.yaml": `
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: chart, namespace: argocd}
spec:
  project: default
  source: {repoURL: https://charts.example.com, chart: web, targetRevision: 1.2.3, helm: {valuesObject: {a: 1}}}
  destination: {name: in-cluster, namespace: web}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: several, namespace: argocd}
spec:
  project: default
  sources: [{repoURL: https://charts.example.com, chart: web, targetRevision: 1.2.3}, {repoURL: https://example.com/values, ref: values}]
  destination: {name: in-cluster, namespace: web}
`},
			options: map[string]any{"repository": map[string]any{"url": "https://example.com/fleet", "branch": "main"}},
			want: []string{
				"cluster type prod <nil>",
				"platform/chart-default Application map[chart:web repo:https://charts.example.com storage:helm version:1.2.3] in web everywhere",
				"platform/several-default Application map[branch:main repo:https://example.com/fleet storage:git] in web everywhere",
				"policy everywhere map[]",
				"listed apps.yaml: Application argocd/several manifests cannot say its source: manifests.repo is the repository of the documents, and the source is in parameters.objects (taken)",
			},
		},
		"Rancher Fleet": {
			documents: map[string]any{"repos.yaml": `
apiVersion: fleet.cattle.io/v1alpha1
kind: GitRepo
metadata: {name: web, namespace: fleet-default}
spec: {repo: https://example.com/web, branch: main, paths: [deploy], targetNamespace: web, targets: [{clusterSelector: {matchLabels: {env: prod}}}]}
---
apiVersion: fleet.cattle.io/v1alpha1
kind: GitRepo
metadata: {name: many, namespace: fleet-default}
spec: {repo: https://example.com/many, paths: [a, b]}
---
apiVersion: fleet.cattle.io/v1alpha1
kind: HelmOp
metadata: {name: chart, namespace: fleet-default}
spec: {helm: {repo: https://charts.example.com, chart: web, version: 1.2.3}, defaultNamespace: chart}
`, "deploy/fleet.yaml": "defaultNamespace: web\nhelm: {releaseName: web}\n"},
			want: []string{
				"cluster type prod <nil>",
				"platform/chart-default HelmOp map[chart:web repo:https://charts.example.com storage:helm version:1.2.3] in chart everywhere",
				"platform/many-default GitRepo map[repo:https://example.com/many storage:git] everywhere",
				"platform/web-default GitRepo map[branch:main path:deploy repo:https://example.com/web storage:git] in web everywhere",
				"policy everywhere map[]",
			},
		},
		"Config Sync": {
			documents: map[string]any{"syncs.yaml": `
apiVersion: configsync.gke.io/v1beta1
kind: RootSync
metadata: {name: root, namespace: config-management-system}
spec: {sourceFormat: unstructured, git: {repo: https://example.com/root, revision: v1.0.0, dir: root, auth: none}}
---
apiVersion: configsync.gke.io/v1beta1
kind: RepoSync
metadata: {name: team, namespace: team}
spec: {sourceFormat: unstructured, git: {repo: https://example.com/team, branch: main, dir: team, auth: none}}
`},
			want: []string{
				"cluster type prod <nil>",
				"platform/root-default RootSync map[path:root repo:https://example.com/root storage:git tag:v1.0.0] everywhere",
				"platform/team-default RepoSync map[branch:main path:team repo:https://example.com/team storage:git] everywhere",
				"policy everywhere map[]",
			},
		},
		"folders by a pattern, and the fewest labels": {
			documents: map[string]any{
				"sites/eu/one/apps.yaml":   fmt.Sprintf(kustomization, "all", "./all") + "---" + fmt.Sprintf(kustomization, "eu", "./eu"),
				"sites/eu/two/apps.yaml":   fmt.Sprintf(kustomization, "all", "./all") + "---" + fmt.Sprintf(kustomization, "eu", "./eu"),
				"sites/us/three/apps.yaml": fmt.Sprintf(kustomization, "all", "./all") + "---" + fmt.Sprintf(kustomization, "some", "./some"),
				"sites/asia/four/x.yaml":   fmt.Sprintf(kustomization, "all", "./all") + "---" + fmt.Sprintf(kustomization, "some", "./some"),
				"other/apps.yaml":          fmt.Sprintf(kustomization, "other", "./x"),
			},
			options: map[string]any{"hosts": "sites/{region}/{cluster_type}", "repository": map[string]any{"url": "https://example.com/fleet"}},
			want: []string{
				"cluster type four map[region:asia]", "cluster type one map[region:eu]", "cluster type three map[region:us]", "cluster type two map[region:eu]",
				"platform/all-default Kustomization map[path:./all repo:https://example.com/fleet storage:git] everywhere",
				"platform/eu-default Kustomization map[path:./eu repo:https://example.com/fleet storage:git] eu",
				"platform/some-default Kustomization map[path:./some repo:https://example.com/fleet storage:git] asia-us",
				"policy asia-us map[match_expressions:[map[key:region operator:In values:[asia us]]]]",
				"policy eu map[match_labels:map[region:eu]]",
				"policy everywhere map[]",
				"listed other/apps.yaml: Kustomization flux-system/other is in no folder of a host: it comes with what brings its folder, or stays where it is",
			},
		},
		"resources of kustomizations, and other files": {
			documents: map[string]any{
				"one/kustomization.yaml":    "resources: [web.yaml, ../base]\nnamespace: argocd-one\n",
				"one/web.yaml":              strings.Replace(fmt.Sprintf(application, "web", "default", "main", "name: in-cluster"), ", namespace: argocd", "", 1),
				"one/left.yaml":             fmt.Sprintf(application, "left", "default", "main", "name: in-cluster"),
				"base/base.yaml":            fmt.Sprintf(application, "base", "default", "main", "name: in-cluster"),
				"changed/kustomization.yml": "resources: [api.yaml]\npatches: [{patch: '[]', target: {kind: Application}}]\n",
				"changed/api.yaml":          fmt.Sprintf(application, "api", "default", "main", "name: in-cluster"),
			},
			want: []string{
				"cluster type prod <nil>",
				"platform/api-default Application map[branch:main path:api repo:https://example.com/apps storage:git] everywhere",
				"platform/base-default Application map[branch:main path:base repo:https://example.com/apps storage:git] everywhere",
				"platform/web-default Application map[branch:main path:web repo:https://example.com/apps storage:git] everywhere",
				"policy everywhere map[]",
				"listed one/left.yaml: Application argocd/left is not among the resources of one/kustomization.yaml: it is not known whether it is applied",
			},
		},
		"invalid documents": {
			documents: map[string]any{
				"a.yaml":                              "a: [\n---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {}\nspec: {}\n",
				"b.yaml":                              "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web, labels: {a: 1}}\nspec: {}\n",
				"c.yaml":                              "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec: 1\n",
				"d.yaml":                              "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web, namespace: 1}\nspec: {}\n",
				"e.yaml":                              "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec: {source: 1, destination: [2]}\n",
				"f.yaml":                              "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: x}\nspec: {source: {repoURL: $(repo)}}\n",
				"g.yaml":                              "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: '{{ name }}'}\nspec: {}\n",
				"h.yaml":                              "&a [&b [*a, *a]]",
				"i.yaml":                              "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n",
				"j.yaml":                              "metadata:\n  name: {{ .Values.name }}\n",
				"chart/Chart.yaml":                    "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
				"chart/templates/a.yaml":              "metadata:\n  name: {{ .Values.name }}\n---\nmetadata:\n  name: {{ .Values.name }}\n",
				"chart/templates/deep/b.yaml":         "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: '{{ .Values.name }}'}\n",
				"chart/charts/sub/Chart.yaml":         "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
				"chart/charts/sub/templates/c.yaml":   "{{- if .Values.x }}\na: b\n{{- end }}\n",
				"chart/charts/other/templates/d.yaml": "{{- if .Values.x }}\na: b\n{{- end }}\n",
			},
			want: []string{
				"listed a.yaml: document 1 cannot be read, line 1: did not find expected node content",
				"listed a.yaml: Application has no metadata.name",
				"listed b.yaml: Application web metadata.labels must be an object of strings",
				"listed c.yaml: Application web spec must be an object",
				"listed chart/charts/other/templates/d.yaml: document 1 cannot be read, from line 1: did not find expected node content",
				"listed chart/charts/sub/templates: has templates of a Helm chart: they stay where they are",
				"listed chart/templates: has templates of a Helm chart: they stay where they are",
				"listed d.yaml: Application web metadata.namespace is no name of a namespace",
				"listed e.yaml: Application web its repository is not among the documents: give the option repository, which is then its manifests.repo",
				`listed f.yaml: Application x has the text "$(repo)", which the template of adopted objects replaces`,
				"listed g.yaml: Application {{ name }} metadata.name " + fleet.CheckSubdomainName("{{ name }}"),
				"listed h.yaml: document 1 cannot be read, from line 1: anchor 'a' value contains itself",
				"listed i.yaml: Deployment web is no object that deploys anything: it stays where it is",
				"listed j.yaml: document 1 cannot be read, from line 1: a key is not a string",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, all := adoptAndRender(t, test.documents, test.options)
			if got := describe(result); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(test.want, "\n\t"))
			}
			e, _ := compareSpecs(t, test.documents, test.options)
			if len(e.differing) > 0 || e.rendered != len(all) {
				t.Errorf("got %d rendered objects, different: %s", e.rendered, e.differing)
			}
		})
	}
}

func TestChangedManifestsChangeTheRenderedObjects(t *testing.T) {
	documents := map[string]any{"apps.yaml": fmt.Sprintf(application, "web", "default", "v1.0.0", "name: in-cluster, namespace: web")}
	result, before := adoptAndRender(t, documents, nil)
	target := result.Fleet["workloads"].([]any)[0].(map[string]any)["deployment_targets"].(map[string]any)["default"].(map[string]any)
	manifests := target["manifests"].(map[string]any)
	manifests["tag"], manifests["path"], manifests["repo"], target["namespace"] = `1"0`, "true", "https://example.com/other", "other"
	after := renderAdopted(t, result.Fleet)
	want := before[0].fields["spec"].(map[string]any)
	source := want["source"].(map[string]any)
	source["targetRevision"], source["path"], source["repoURL"] = `1"0`, "true", "https://example.com/other"
	want["destination"].(map[string]any)["namespace"] = "other"
	if got := after[0].fields["spec"]; !reflect.DeepEqual(got, want) {
		t.Errorf("got spec\n%v\nwant\n%v", got, want)
	}
}

func TestMetadataIsKept(t *testing.T) {
	_, all := adoptAndRender(t, map[string]any{"apps.yaml": `
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd, labels: {team: a}, annotations: {note: b}, finalizers: [c.example.com/d], uid: e, resourceVersion: "1"}
spec: {project: default, source: {repoURL: https://example.com/apps, path: web}, destination: {name: in-cluster}}
status: {sync: {}}
`}, nil)
	want := map[string]any{
		"name": "web", "namespace": "argocd", "annotations": map[string]any{"note": "b"}, "finalizers": []any{"c.example.com/d"},
		"labels": map[string]any{
			"team":                           "a",
			"flotilla.dev/owner":             "platform",
			"flotilla.dev/host":              "prod",
			"flotilla.dev/deployment-target": "web-default",
		},
	}
	if got := all[0].fields["metadata"]; !reflect.DeepEqual(got, want) || all[0].fields["status"] != nil {
		t.Errorf("got metadata\n%v\nwant\n%v", got, want)
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	for name, test := range map[string]struct {
		environment, documents, options any
		want                            []string
	}{
		"all at once": {"Prod", map[string]any{"a": true, "b": nil}, map[string]any{"hosts": "clusters/*", "repository": map[string]any{"branch": "main", "x": "y"}}, []string{
			`environment: "Prod" ` + fleet.CheckLabelName("Prod"),
			"options.repository.url: is required",
			"options.repository.x: unknown attribute",
			`options.hosts: has "*", which is neither the name of a folder nor a label in braces, such as {region}`,
			`options.hosts: must have {cluster_type}, such as in "clusters/{cluster_type}"`,
			`documents["a"]: must be the text of YAML documents, not a bool`,
			`documents["b"]: must be the text of YAML documents, not null`,
		}},
		"no texts":     {"prod", "a: b", nil, []string{"documents: must be a list or map of YAML texts, not a string"}},
		"no name":      {1, []any{}, []any{}, []string{"environment: must be the name of an environment", "options: must be an object, not a list"}},
		"twice":        {"prod", []any{}, map[string]any{"hosts": "{a}/{a}/{cluster_type}/{b c}"}, []string{"options.hosts: has {a} twice", `options.hosts: has "b c", which is no key of a label`}},
		"reserved":     {"prod", []any{}, map[string]any{"hosts": "{environment}/{cluster_type}"}, []string{"options.hosts: has {environment}, a label that Flotilla itself gives to hosts and deployment targets: name it otherwise, such as {in-environment}"}},
		"unknown name": {"prod", []any{}, map[string]any{"host": "x"}, []string{`options.host: unknown attribute; did you mean "hosts"?`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, findings := adoptDocuments(t, test.environment, test.documents, test.options)
			if got := strings.Split(findings.Error(), "\n"); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(test.want, "\n\t"))
			}
		})
	}
}

func TestUnknownArgumentsAreNoErrors(t *testing.T) {
	unknown := fleet.Unknown{}
	for name, arguments := range map[string][3]any{
		"environment": {unknown, []any{}, nil}, "documents": {"prod", unknown, nil}, "a document": {"prod", map[string]any{"a": unknown}, nil},
		"options": {"prod", []any{}, unknown}, "an option": {"prod", []any{}, map[string]any{"hosts": unknown}},
		"the repository": {"prod", []any{}, map[string]any{"repository": map[string]any{"url": unknown}}},
	} {
		if result, known, findings := adoptDocuments(t, arguments[0], arguments[1], arguments[2]); known || result != nil || len(findings) > 0 {
			t.Errorf("%s: got known %v, findings %v", name, known, findings)
		}
	}
}

func TestTheOrderOfDocumentsDoesNotMatter(t *testing.T) {
	first := fmt.Sprintf(kustomization, "a", "./a")
	second := fmt.Sprintf(kustomization, "b", "./b")
	options := map[string]any{"repository": map[string]any{"url": "https://example.com/fleet"}}
	result, _ := adoptAndRender(t, map[string]any{"x.yaml": first + "---" + second}, options)
	swapped, _ := adoptAndRender(t, map[string]any{"x.yaml": second + "---" + first}, options)
	if !reflect.DeepEqual(result.Fleet, swapped.Fleet) {
		t.Errorf("got\n%v\nand in another order\n%v", result.Fleet, swapped.Fleet)
	}
}

// TestMarkersOfImageAutomationAreListed adopts an object with a marker, which is a comment. A second marker is in an unadopted file.
func TestMarkersOfImageAutomationAreListed(t *testing.T) {
	t.Parallel()
	const marker = " # {\"$imagepolicy\": \"flux-system:app:tag\"}"
	result, _ := adoptAndRender(t, map[string]any{
		"clusters/dev/app.yaml":    strings.Replace(fmt.Sprintf(kustomization, "apps", "./apps/dev"), "\nspec:", marker+"\nspec:", 1),
		"clusters/dev/deploy.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}" + marker + "\n",
	}, map[string]any{"repository": map[string]any{"url": "https://example.com/fleet"}})
	var found []string
	for _, listed := range result.Listed {
		if strings.Contains(listed.Reason, "image automation") && listed.Taken {
			found = append(found, listed.File)
		}
	}
	if !slices.Equal(found, []string{"clusters/dev/app.yaml"}) {
		t.Errorf("got listed objects %v", result.Listed)
	}
}
