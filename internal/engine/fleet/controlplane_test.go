package fleet_test

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// kalypsoDocument returns a document of one of Kalypso's kinds.
func kalypsoDocument(kind, name, spec string) string {
	return "---\napiVersion: scheduler.kalypso.io/v1alpha1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
}

func decodeDocuments(t *testing.T, text string) *fleet.Fleet {
	t.Helper()
	decoded, findings := fleet.DecodeControlPlane("dev", []any{text})
	wantFindings(t, findings)
	return decoded.Fleet
}

func TestKalypsoKinds(t *testing.T) {
	decoded, findings := fleet.DecodeControlPlane("dev", []any{
		kalypsoDocument("Environment", "dev", "{anything: goes}") +
			kalypsoDocument("GitOpsRepo", "repo", "{}") +
			kalypsoDocument("BaseRepo", "repo", "{}") +
			kalypsoDocument("Template", "arc-flux", "{type: reconciler, manifests: ['a', 'b']}") +
			kalypsoDocument("Template", "settings", "{type: config, contentType: env, manifests: ['a']}") +
			kalypsoDocument("ClusterType", "drone", "{reconciler: arc-flux, namespaceService: default, configType: settings}") +
			kalypsoDocument("ClusterType", "large", "{}") +
			kalypsoDocument("WorkloadRegistration", "hello", "{workload: {repo: 'https://x', branch: y, path: z}, workspace: kaizen}") +
			kalypsoDocument("Workload", "hello", "{configSchemas: ['{}'], deploymentTargets: ["+
				"{name: live, environment: dev, labels: {a: b}, configSchemas: ['{\"type\":\"object\"}'], manifests: {storage: git, type: kustomize, repo: 'https://x', branch: dev, path: ./p, extra: more}},"+
				"{name: live, environment: prod, manifests: {repo: 'https://x'}}]}") +
			kalypsoDocument("SchedulingPolicy", "policy", "{deploymentTargetSelector: {workspace: later, labelSelector: {matchLabels: {a: b}}}, "+
				"clusterTypeSelector: {labelSelector: {matchExpressions: [{key: c, operator: In, values: [e, d]}]}}}") +
			kalypsoDocument("ConfigSchema", "shape", "{schema: '{}'}"),
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: values\n  labels: {platform-config: 'true', region: east, kustomize.toolkit.fluxcd.io/name: x, kustomize.toolkit.fluxcd.io/namespace: flux}\n" +
			"  annotations: {a: b}\ndata: {A: '1', B: \"[x]\"}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: passed-over}\ndata: {A: 1}\n",
	})
	wantFindings(t, findings)
	want := `{"environment":"dev",` +
		`"workspaces":[{"name":"kaizen"},{"name":"later"}],` +
		`"cluster_types":[{"name":"drone","reconciler":"arc-flux","namespace_service":"default","config_type":"settings"},` +
		`{"name":"large","reconciler":"flux","namespace_service":"default","config_type":"configmap"}],` +
		`"workloads":[{"name":"hello","workspace":"kaizen","deployment_targets":[{"name":"live","labels":{"a":"b"},` +
		`"config_schemas":["{\"type\":\"object\"}","{}"]}]}],` +
		`"target_policies":[{"name":"policy","workspace":"later","deployment_target_selector":{"match_labels":{"a":"b"}},` +
		`"cluster_type_selector":{"match_expressions":[{"key":"c","operator":"In","values":["d","e"]}]},"effect":"schedule"}],` +
		`"config_containers":[{"name":"values","labels":{"region":"east"},"from_config_map":true}],` +
		`"config_schemas":[{"name":"shape","schema":"{}"}],` +
		`"templates":[{"name":"settings","type":"config","content_type":"sh","manifests":["a"]},{"name":"arc-flux","type":"reconciler","manifests":["a","b"]}],` +
		`"hydration":{"precedence":"name","lists":"merge"}}`
	if got := model(t, decoded.Fleet); got != want {
		t.Errorf("model\n%s, want\n%s", got, want)
	}
	if got, want := manifestsOf(t, decoded)["hello-live"], `{"storage":"git","repo":"https://x","branch":"dev","path":"./p","type":"kustomize","parameters":{"extra":"more"}}`; got != want {
		t.Errorf("manifests %s, want %s", got, want)
	}
	if got, want := decoded.Config["values"], `{"A":"1","B":"[x]"}`; got != want {
		t.Errorf("config %s, want %s", got, want)
	}
	if !decoded.Known || !decoded.ContainersKnown {
		t.Error("not everything is known")
	}
}

func TestKeysOfAppConfigurationCarryLabels(t *testing.T) {
	const documents = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: azure-app-config-b, labels: {platform-config: 'true'}}\n" +
		"data: {region.east.A: '1', region.east.size.large.A: '2', B: '3'}\n" +
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: azure-app-config-a}\ndata: {region.east.A: '4', odd.B: '5'}\n"
	decoded, findings := fleet.DecodeControlPlane("dev", []any{documents})
	wantFindings(t, findings)
	got := map[string]string{}
	for _, c := range decoded.Fleet.ConfigContainers {
		got[c.Name] = fmt.Sprint(map[string]string(c.Labels), " ", c.Priority, " ", decoded.Config[c.Name])
	}
	want := map[string]string{
		"azure-app-config-b":                        `map[]  {"B":"3","region.east.A":"1","region.east.size.large.A":"2"}`,
		"azure-app-config-a/odd":                    `map[] 4 {"B":"5"}`,
		"azure-app-config-a/region.east":            `map[region:east] 12 {"A":"4"}`,
		"azure-app-config-b/*":                      `map[] 255 {"B":"3"}`,
		"azure-app-config-b/region.east":            `map[region:east] 266 {"A":"1"}`,
		"azure-app-config-b/region.east.size.large": `map[region:east size:large] 277 {"A":"2"}`,
	}
	if !maps.Equal(got, want) {
		t.Errorf("containers\n%v, want\n%v", got, want)
	}

	again, findings := fleet.Decode(map[string]any{"environment": "dev", "base": valueOf(decoded)})
	wantFindings(t, findings)
	if got := model(t, again.Fleet); got != model(t, decoded.Fleet) {
		t.Errorf("as a base: got %s, want %s", got, model(t, decoded.Fleet))
	}
}

func TestKalypsoSpecsAreStrict(t *testing.T) {
	for name, test := range map[string]struct {
		documents string
		want      []string // without the document in the path
	}{
		"an unknown kind":         {kalypsoDocument("Assignment", "a", "{}"), []string{": kind Assignment of scheduler.kalypso.io/v1alpha1 is not allowed in a control plane"}},
		"a kind of another group": {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}", []string{": kind Deployment of apps/v1 is not allowed in a control plane"}},
		"a list":                  {"apiVersion: v1\nkind: List\nitems: []", []string{": kind List of v1 is not allowed"}},
		"an unknown model":        {"kind: Deployment\nname: a", []string{": kind Deployment is not allowed in a control plane; without apiVersion the kinds are Application, Cluster, Namespace and TargetPolicy"}},
		"no kind":                 {"apiVersion: v1\nname: a", []string{": has no kind"}},
		"no metadata":             {"apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ClusterType\nspec: {}", []string{".metadata: is required"}},
		"no spec":                 {"apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ClusterType\nmetadata: {name: a}\nspecs: {}", []string{".spec: is required", `.specs: did you mean "spec"?`}},
		"a misspelt attribute":    {kalypsoDocument("ClusterType", "a", "{reconcile: flux}"), []string{`.spec.reconcile: did you mean "reconciler"?`}},
		"an unknown template":     {kalypsoDocument("ClusterType", "a", "{reconciler: arc-flux}"), []string{`.spec.reconciler: no template of type reconciler is called "arc-flux"`}},
		"a label without quotes":  {"apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ClusterType\nmetadata: {name: a, labels: {version: 1.10, gpu: true}}\nspec: {}", []string{`.metadata.labels["version"]: must be a string, not a number: put it in quotes`, `.metadata.labels["gpu"]: must be a string, not a bool: put it in quotes`}},
		"duplicate names":         {kalypsoDocument("ClusterType", "a", "{}") + kalypsoDocument("ClusterType", "a", "{}"), []string{`.metadata.name: "a" is also the name of documents[0] document 1 (line 2, ClusterType "a")`}},
		"a workload": {
			kalypsoDocument("Workload", "a", "{target: x, deploymentTargets: [{name: t, environment: dev}, {name: t, environment: dev, label: {}, manifests: {repo: 'https://x', version: 1.10}}, {environment: dev, manifests: {repo: 'https://x'}}]}"),
			[]string{
				`.spec.target: unknown attribute`, `.spec.deploymentTargets[0].manifests: is required`, `.spec.deploymentTargets[1].label: did you mean "labels"?`,
				`.spec.deploymentTargets[1].name: "t" is the name of two deployment targets of environment "dev"`,
				`.spec.deploymentTargets[1].manifests.version: must be a string, not a number: put it in quotes`,
				`.spec.deploymentTargets[2].name: is required`,
			},
		},
		"a policy without hosts": {kalypsoDocument("SchedulingPolicy", "a", "{deploymentTargetSelector: {}}"), []string{`.spec.clusterTypeSelector: is required`}},
		"a policy's selectors": {
			kalypsoDocument("SchedulingPolicy", "a", "{deploymentTargetSelector: {labelSelector: {matchLabels: {'a b': c}}}, clusterTypeSelector: {labelSelector: {matchExpression: [], matchExpressions: [{key: a, operator: Is}]}}}"),
			[]string{
				`.spec.deploymentTargetSelector.labelSelector.matchLabels["a b"]: `,
				`.spec.clusterTypeSelector.labelSelector.matchExpression: did you mean "matchExpressions"?`,
				`.spec.clusterTypeSelector.labelSelector.matchExpressions[0].operator: operator "Is" is not one of`,
			},
		},
		"a template": {kalypsoDocument("Template", "a", "{type: policy, contentType: xml, manifests: []}"), []string{`.spec.type: must be one of reconciler, namespace, config, not "policy"`, `.spec.contentType: must be one of yaml, json`}},
		"a schema":   {kalypsoDocument("ConfigSchema", "a", "{schema: '{'}"), []string{".spec.schema: is not JSON"}},
		"a key without valid labels": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: azure-app-config}\ndata: {-.b.A: u, a.-.B: v, a..C: w}", []string{
			`.data: labels "-.b" of a key: "-" is not the key of a label`, `.data: labels "a.-" of a key: "-" is not the value of a label`}},
		"a value without quotes":  {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {platform-config: 'true'}}\ndata: {A: 1, B: null}", []string{`.data["A"]: must be a string, not a number: put it in quotes`, `.data["B"]: must be a string, not null`}},
		"a registration":          {kalypsoDocument("WorkloadRegistration", "a", "{workspace: 'A b'}"), []string{`.spec.workspace: "A b" is not a DNS label`}},
		"a model's attribute":     {"kind: Application\nname: a\nrepo_url: https://x\nmetadat: {}", []string{`.metadat: did you mean "metadata"?`}},
		"a model without a repo":  {"kind: Application\nname: a", []string{".repo_url: is required"}},
		"a model's policy":        {"kind: TargetPolicy\nname: a", []string{".app_selector: is required", ".cluster_selector: is required"}},
		"a model's null selector": {"kind: TargetPolicy\nname: a\napp_selector: {x: null}\ncluster_selector: {'a b': c}", []string{`.app_selector["x"]: must be a string, not null`, `.cluster_selector["a b"]: "a b" is not the key of a label`}},
		"a model's cluster type":  {"kind: Cluster\nname: a\ncluster_type: none", []string{`.cluster_type: no cluster type of environment "dev" is called "none"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := fleet.DecodeControlPlane("dev", []any{test.documents})
			for i, finding := range findings {
				if _, after, ok := strings.Cut(finding.Path, ")"); ok {
					findings[i].Path = after
				}
			}
			wantFindings(t, findings, test.want...)
		})
	}
}

func TestWorkloadsHaveTheirWorkspace(t *testing.T) {
	const spec = "{deploymentTargets: [{name: t, environment: dev, manifests: {repo: 'https://x'}}]}"
	workload := func(labels string) string {
		return "---\napiVersion: scheduler.kalypso.io/v1alpha1\nkind: Workload\nmetadata: {name: hello, labels: " + labels + "}\nspec: " + spec + "\n"
	}
	for name, test := range map[string]struct{ documents, want string }{
		"a registration with the name of the workload": {workload("{workspace: c, kustomize.toolkit.fluxcd.io/name: other}") + kalypsoDocument("WorkloadRegistration", "hello", "{workspace: a}") + kalypsoDocument("WorkloadRegistration", "other", "{workspace: b}"), "a"},
		"the registration in Flux's label":             {workload("{workspace: c, kustomize.toolkit.fluxcd.io/name: other}") + kalypsoDocument("WorkloadRegistration", "other", "{workspace: b}"), "b"},
		"the registration after the environment":       {workload("{kustomize.toolkit.fluxcd.io/name: dev-other}") + kalypsoDocument("WorkloadRegistration", "other", "{workspace: b}"), "b"},
		"the label of the workload":                    {workload("{workspace: c}") + kalypsoDocument("WorkloadRegistration", "other", "{workspace: b}"), "c"},
		"no workspace":                                 {workload("{}"), ""},
		"a registration before the workload":           {kalypsoDocument("WorkloadRegistration", "hello", "{workspace: a}") + workload("{}"), "a"},
	} {
		t.Run(name, func(t *testing.T) {
			f := decodeDocuments(t, test.documents)
			if got := f.Workloads[0].Workspace; got != test.want {
				t.Errorf("workspace %q, want %q", got, test.want)
			}
			if test.want != "" && !slices.ContainsFunc(f.Workspaces, func(w fleet.Workspace) bool { return w.Name == test.want }) {
				t.Errorf("workspace %q is not in the fleet", test.want)
			}
		})
	}
}

func TestJSONModels(t *testing.T) {
	f := decodeDocuments(t, `{"kind": "Namespace", "name": "shop", "group": ["b", "a"]}
---
{"kind": "Cluster", "name": "store-7", "short_name": "s7", "metadata": {"region": "east", "tier": "1"}, "environment": "dev", "id": 12, "created_at": "2024-01-01T00:00:00Z"}
---
{"kind": "Cluster", "name": "store-8", "environment": "prod"}
---
{"kind": "Application", "name": "till", "repo_url": "https://git.example.com/till", "repo_branch": "main", "repo_path": "deploy", "metadata": {"family": "web"}, "namespace": "shop"}
---
{"kind": "TargetPolicy", "name": "tills", "app_selector": {"name": "till", "family": "web"}, "cluster_selector": {"region": "east"}}
`)
	want := `{"environment":"dev","workspaces":[{"name":"shop","contributor_groups":["a","b"]}],` +
		`"cluster_types":[{"name":"default","reconciler":"flux","namespace_service":"default","config_type":"configmap"}],` +
		`"clusters":[{"name":"store-7","cluster_type":"default","labels":{"region":"east","tier":"1"}}],` +
		`"workloads":[{"name":"till","workspace":"shop","labels":{"family":"web"},"deployment_targets":[{"name":"default"}]}],` +
		`"target_policies":[{"name":"tills","deployment_target_selector":{"match_labels":{"family":"web","workload":"till"}},` +
		`"cluster_selector":{"match_labels":{"region":"east"}},"effect":"schedule"}],"hydration":{"precedence":"name","lists":"merge"}}`
	if got := model(t, f); got != want {
		t.Errorf("model\n%s, want\n%s", got, want)
	}
	manifests := fleet.Manifests{
		Manifests: folder.Manifests{Storage: "git", Repo: "https://git.example.com/till", Branch: "main", Path: "deploy"},
	}
	if got := f.Workloads[0].DeploymentTargets[0].Manifests; !reflect.DeepEqual(got, manifests) {
		t.Errorf("manifests %v, want %v", got, manifests)
	}
}

func TestJSONModelsWithoutKindsAreRead(t *testing.T) {
	const models = `{"kind": "Namespace", "name": "shop", "group": []}
---
{"kind": "Cluster", "name": "store-7", "short_name": "s7", "metadata": {}, "environment": "dev"}
---
{"kind": "Application", "name": "till", "repo_url": "https://x", "repo_branch": "main", "repo_path": "deploy", "metadata": {}, "namespace": "shop"}
---
{"kind": "TargetPolicy", "name": "tills", "app_selector": {}, "cluster_selector": {}}
`
	withKind := decodeDocuments(t, models)
	withoutKind := decodeDocuments(t, regexp.MustCompile(`"kind": "\w+", `).ReplaceAllString(models, ""))
	if got, want := model(t, withoutKind), model(t, withKind); got != want {
		t.Errorf("model without kinds\n%s, want\n%s", got, want)
	}
}

// The lists are in the form of the API of https://github.com/Azure-Samples/Ascent.
func TestListsOfJSONModelsAreRead(t *testing.T) {
	decoded, findings := fleet.DecodeControlPlane("nonprod", map[string]any{
		"applications": `{"items": [{"_id": "1", "name": "app1", "description": "App 1", "created_by": "me", "created_on": 1690000000, "updated_on": null, "repo_url": "https://x", ` +
			`"repo_branch": "master", "repo_path": "manifest/app1", "namespace": "ieb", "metadata": {"common": "true", "name": "app1"}, "onboard_status": "Done"}]}`,
		"clusters":   `{"items": [{"_id": "2", "name": "east-1", "short_name": null, "environment": "nonprod", "metadata": {"region": "east"}, "onboard_status": "Done"}]}`,
		"namespaces": `{"items": [{"_id": "3", "name": "ieb", "cost_center": "1", "group": ["ieb-nonprod"]}]}`,
		"policies":   `{"items": [{"_id": "4", "name": "a", "app_selector": {"common": "true"}, "cluster_selector": {"region": "west,east"}, "operation": "CREATE"}]}`,
		"nothing":    `{"items": []}`,
	})
	wantFindings(t, findings)
	want := `{"environment":"nonprod","workspaces":[{"name":"ieb","contributor_groups":["ieb-nonprod"]}],` +
		`"cluster_types":[{"name":"default","reconciler":"flux","namespace_service":"default","config_type":"configmap"}],` +
		`"clusters":[{"name":"east-1","cluster_type":"default","labels":{"region":"east"}}],` +
		`"workloads":[{"name":"app1","workspace":"ieb","labels":{"common":"true","name":"app1"},"deployment_targets":[{"name":"default"}]}],` +
		`"target_policies":[{"name":"a","deployment_target_selector":{"match_labels":{"common":"true"}},` +
		`"cluster_selector":{"match_expressions":[{"key":"region","operator":"In","values":["east","west"]}]},"effect":"schedule"}],` +
		`"hydration":{"precedence":"name","lists":"merge"}}`
	if got := model(t, decoded.Fleet); got != want {
		t.Errorf("model\n%s, want\n%s", got, want)
	}
	for text, want := range map[string]string{
		`{"items": [{"name": "x"}]}`: `["x"]: is none of Application, Cluster, Namespace and TargetPolicy`,
		`{"items": [], "next": "x"}`: `.next: unknown attribute`,
		`{"name": "a", "app_selector": {}, "cluster_selector": {}, "operation": "create"}`: `.operation: must be CREATE or PURGE, not "create"`,
		`{"items": [1]}`: `must be an object, not a number`,
		`{"items": [{"name": "a", "app_selector": {"name": "x"}, "cluster_selector": {"name": "y"}, "operation": "PURGE"}]}`: `.operation: a policy that purges`,
		`{"items": [{"name": "a", "app_selector": {"name": "x, y"}, "cluster_selector": {}}]}`:                               `app_selector["name"]: " y" is not the value of a label`,
	} {
		_, findings := fleet.DecodeControlPlane("nonprod", []any{text})
		if len(findings) != 1 || !strings.Contains(findings[0].String(), want) {
			t.Errorf("%s: got %v, want %q", text, findings, want)
		}
	}
}

func TestUnknownDocumentsLeaveTheFleetUnknown(t *testing.T) {
	for name, documents := range map[string]any{
		"all":          fleet.Unknown{},
		"one":          []any{kalypsoDocument("ClusterType", "a", "{reconciler: perhaps-there}"), fleet.Unknown{}},
		"one, by name": map[string]any{"x": fleet.Unknown{}},
	} {
		t.Run(name, func(t *testing.T) {
			decoded, findings := fleet.DecodeControlPlane("dev", documents)
			wantFindings(t, findings)
			if decoded.Known || decoded.ContainersKnown || !decoded.EnvironmentKnown {
				t.Error("something else than the environment is known")
			}
		})
	}
	decoded, findings := fleet.DecodeControlPlane(fleet.Unknown{}, []any{
		kalypsoDocument("Workload", "a-b", "{deploymentTargets: [{name: c, environment: dev, manifests: {repo: 'https://x'}}]}") +
			kalypsoDocument("Workload", "a", "{deploymentTargets: [{name: b-c, environment: prod, manifests: {repo: 'https://x'}}]}"),
	})
	wantFindings(t, findings)
	if decoded.Known || decoded.EnvironmentKnown {
		t.Error("the fleet of an unknown environment is known")
	}
	if _, findings := fleet.DecodeControlPlane("dev", "text"); len(findings) != 1 {
		t.Errorf("text as documents: got findings %v, want one", findings)
	}
}

func TestConfigMapsCanAllowPlainValues(t *testing.T) {
	const document = `documents[0] document 1 (line 1, ConfigMap "a").`
	refused := func(key string) string {
		return document + "data." + key + ": looks like a credential"
	}
	for annotation, want := range map[string][]string{
		"'A_PASSWORD, B_PASSWORD'": nil,
		"'A_PASSWORD'":             {refused("B_PASSWORD")},
		"null":                     {refused("A_PASSWORD"), refused("B_PASSWORD")},
		"true":                     {document + `metadata.annotations["flotilla.dev/allow-plain"]: must be a string, not a bool`, refused("A_PASSWORD"), refused("B_PASSWORD")},
	} {
		_, findings := fleet.DecodeControlPlane("dev", []any{
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {platform-config: 'true'}, annotations: {flotilla.dev/allow-plain: " + annotation + "}}\n" +
				"data: {A_PASSWORD: hunter2x9, B_PASSWORD: kq8Zt3wfv}\n",
		})
		wantFindings(t, findings, want...)
	}
}
