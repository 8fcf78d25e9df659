package fleet_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

func TestEveryAttributeOfEveryKindIsRead(t *testing.T) {
	decoded, findings := fleet.Decode(input(t, everything))
	wantFindings(t, findings)
	if !decoded.Known || !decoded.EnvironmentKnown || !decoded.ContainersKnown {
		t.Error("not everything is known")
	}
	if got, want := slices.Sorted(maps.Keys(decoded.Config)), []string{"platform", "secrets/platform"}; !slices.Equal(got, want) {
		t.Errorf("got config of containers %q, want %q", got, want)
	}
	if got, want := decoded.Config["secrets/platform"], `{"secrets":{"DATABASE_PASSWORD":{"store":"vault","key":"dev/db","property":"password","version":"3"},"TOKEN":null},"encrypted":[`+strconv.Quote(fleettest.Sealed("tls", "shop"))+`]}`; got != want {
		t.Errorf("got secrets %s, want %s", got, want)
	}
	if got, want := decoded.Config["platform"], `{"DATABASE_URL":"postgres://db","NESTED":{"list":[1,{"a":null}]},"REPLICAS":3}`; got != want {
		t.Errorf("got config %s, want %s", got, want)
	}
	if got := len(decoded.Fleet.ClusterTypes); got != 1 {
		t.Errorf("got %d cluster types, want only the one of dev", got)
	}
	if got := len(decoded.Fleet.Workloads[1].DeploymentTargets); got != 1 {
		t.Errorf("got %d deployment targets, want only the one of dev", got)
	}
}

// freeMaps are attributes with keys of the user.
var freeMaps = []string{
	".labels", ".match_labels", ".resource_quota", ".parameters", ".data", ".schema", ".deployment_targets",
	".default", ".default_request", ".max", ".min", ".max_limit_request_ratio", ".secrets", ".secret_stores",
}

// mapsOfObjects are free maps with objects of known attributes.
var mapsOfObjects = []string{".deployment_targets", ".secrets", ".secret_stores"}

func TestFindingsOfMisspeltKeysSuggestTheRightKey(t *testing.T) {
	original, checked := input(t, everything), 0
	var paths []string
	walk("", original, func(path string, value any, _ func(any)) {
		if _, isObject := value.(map[string]any); !isObject {
			return
		}
		for _, free := range freeMaps {
			if strings.HasSuffix(path, free) || strings.Contains(path, free+".") && !slices.Contains(mapsOfObjects, free) ||
				strings.Contains(path, free+"[") {
				return
			}
		}
		paths = append(paths, path)
	})
	for _, path := range slices.Compact(paths) {
		changed := clone(original)
		var right, wrong []string
		walk("", changed, func(current string, value any, _ func(any)) {
			object, isObject := value.(map[string]any)
			if current != path || !isObject || len(right) > 0 {
				return
			}
			for _, key := range slices.Sorted(maps.Keys(object)) {
				if len(key) < 3 || key == "json" || key == "environments" { // json is computed; environments resembles environment
					continue
				}
				misspelt := key[:len(key)-2] + key[len(key)-1:] + key[len(key)-2:len(key)-1]
				if misspelt == key {
					misspelt = key + "x"
				}
				right, wrong = append(right, key), append(wrong, misspelt)
				object[misspelt] = object[key]
			}
		})
		_, findings := fleet.Decode(changed)
		for i := range right {
			checked++
			message := fmt.Sprintf("unknown attribute; did you mean %q?", right[i])
			if !slices.ContainsFunc(findings, func(f fleet.Finding) bool {
				return strings.HasSuffix("."+f.Path, "."+wrong[i]) && f.Message == message
			}) {
				t.Errorf("%s: no finding of %q for %q:\n%s", path, wrong[i], right[i], findings.Error())
			}
		}
	}
	if checked < 80 {
		t.Errorf("only %d keys were misspelt", checked)
	}
}

func TestUnknownKeysAreFindings(t *testing.T) {
	for name, test := range map[string]struct {
		input string
		want  []string
	}{
		"a label's attribute":          {"environment: dev\ncluster_types: [{name: a, lables: {}}]", []string{`cluster_types["a"].lables: did you mean "labels"?`}},
		"a collection":                 {"environment: dev\ncluster_type: []", []string{`cluster_type: did you mean "cluster_types"?`}},
		"no similar key":               {"environment: dev\nxyzzy: []", []string{"xyzzy: unknown attribute"}},
		"a key in a map of objects":    {"environment: dev\nclusters: {a: {name: a, cluster_type: b, label: {}}}\ncluster_types: [{name: b}]", []string{`clusters["a"].label: did you mean "labels"?`}},
		"a key in another environment": {"environment: dev\ncluster_types: [{name: a, environment: prod, lables: {}}]", []string{`cluster_types["a"].lables: did you mean "labels"?`}},
		"a key with an unknown value":  {"environment: dev\ncluster_types: [{name: a, lables: (known after apply)}]", []string{`cluster_types["a"].lables: did you mean "labels"?`}},
		"an object in place of a list": {"environment: dev\ncluster_types: {name: a, labels: {}}", []string{"cluster_types: write [...] around it"}},
		"a null attribute":             {"environment: dev\ncluster_types: [{name: a, id: null}]", []string{"cluster_types[\"a\"].id: unknown attribute"}},
		"a computed attribute":         {"environment: dev\nconfig_containers: [{name: a, data: {}, json: (known after apply)}]", nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := fleet.Decode(input(t, test.input))
			wantFindings(t, findings, test.want...)
		})
	}
}

func TestAllFindingsAreReportedAtOnceWithTheirPaths(t *testing.T) {
	_, findings := fleet.Decode(input(t, `
environment: Dev
workspaces: [{name: -team, resource_quota: {limits.cpu: much, 'a b': '1'}, network_policy: isolate}]
cluster_types:
- {name: clusters, reconciler: fluks, config_type: flux, namespace_service: none, labels: {'a b': c, d: 'e f'}}
- {name: drone, taints: [{key: 'a b', effect: NoExecute}, {value: x}, null]}
clusters: [{name: c, cluster_type: dron}, {name: d}, 7]
workloads: wrong
target_policies: [{name: p, workspace: teem, effect: exlude}]
config_containers: [{name: Container, data: [1]}, {name: c, priority: high}]
config_schemas: [{name: s, schema: '{'}, {name: t}]
templates: [{name: t, manifests: ['']}, {name: u, type: reconciler, content_type: xml}]
hydration: {precedence: nme}
`))
	wantFindings(t, findings,
		`environment: "Dev" is not a DNS label`,
		`workspaces["-team"].name: "-team" is not a DNS label`,
		`workspaces["-team"].resource_quota["limits.cpu"]: "much" is not a quantity`,
		`workspaces["-team"].resource_quota["a b"]: "a b" is not a resource`,
		`workspaces["-team"].network_policy: must be one of none, isolated, not "isolate"; did you mean "isolated"?`,
		`cluster_types["clusters"].name: is the folder of all clusters`,
		`cluster_types["clusters"].reconciler: no template of type reconciler is called "fluks"; did you mean "flux"?`,
		`cluster_types["clusters"].config_type: template "flux" is of type reconciler, not config`,
		`cluster_types["clusters"].namespace_service: no template of type namespace is called "none"`,
		`cluster_types["clusters"].labels["a b"]: "a b" is not the key of a label`,
		`cluster_types["clusters"].labels["d"]: "e f" is not the value of a label`,
		`cluster_types["drone"].taints[0].key: "a b" is not the key of a label`,
		`cluster_types["drone"].taints[0].effect: must be one of NoSchedule, not "NoExecute"`,
		`cluster_types["drone"].taints[1].key: is required`,
		`cluster_types["drone"].taints[2]: must be an object, not null`,
		`clusters["c"].cluster_type: no cluster type of environment "Dev" is called "dron"; did you mean "drone"?`,
		`clusters["d"].cluster_type: is required`,
		`clusters[2]: must be an object, not a number`,
		`workloads: must be a list, tuple, set or map of objects, not a string`,
		`target_policies["p"].workspace: no workspace of environment "Dev" is called "teem"`,
		`target_policies["p"].effect: must be one of schedule, exclude, not "exlude"; did you mean "exclude"?`,
		`target_policies["p"].cluster_type_selector: a target policy without a host selector selects no host`,
		`config_containers["Container"].name: "Container" is not a DNS subdomain`,
		`config_containers["Container"].data: must be an object, not a list`,
		`config_containers["c"].priority: must be a number, not a string`,
		`config_containers["c"].data: is required`,
		`config_schemas["s"].schema: is not JSON`,
		`config_schemas["t"].schema: is required`,
		`templates["t"].type: is required`,
		`templates["t"].manifests[0]: must be a string, neither null nor empty`,
		`templates["u"].content_type: must be one of yaml, json`,
		`templates["u"].manifests: is required`,
		`hydration.precedence: must be one of specificity, name, not "nme"; did you mean "name"?`,
	)
	if !slices.IsSortedFunc(findings, func(a, b fleet.Finding) int { return strings.Compare(a.Path, b.Path) }) {
		t.Error("findings are not sorted by path")
	}
}

func TestTheWholeInputMustBeAnObject(t *testing.T) {
	for name, test := range map[string]struct {
		input any
		want  string
	}{
		"a list":  {[]any{}, "must be an object, not a list"},
		"null":    {nil, "must be an object, not null"},
		"nothing": {map[string]any{}, "is required"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, findings := fleet.Decode(test.input); len(findings) != 1 || findings[0].Message != test.want {
				t.Errorf("findings %v, want %q", findings, test.want)
			}
		})
	}
}

// smallInput is the common part of the inputs in tables.
const smallInput = `
environment: dev
workspaces: [{name: team}]
cluster_types: [{name: drone}, {name: large}]
clusters: [{name: drone-7, cluster_type: drone}]
`

// workload returns a workload with one deployment target, "live" in dev, and the manifests.
func workload(name, manifests string) string {
	return fmt.Sprintf("{name: %s, workspace: team, deployment_targets: {live: {environment: dev, manifests: %s}}}", name, manifests)
}

const gitManifests = "{repo: 'https://git.example.com/a'}"

func TestManifestsFitTheirStorage(t *testing.T) {
	prefix := `workloads["a"].deployment_targets["live"].manifests.`
	for manifests, want := range map[string][]string{
		"{repo: 'https://git.example.com/a', branch: main, commit: abc, path: ./a}":     nil,
		"{repo: 'git@git.example.com:a.git', tag: v1}":                                  nil,
		"{repo: 'ssh://git@git.example.com/a'}":                                         nil,
		"{storage: helm, repo: 'https://charts.example.com', chart: a, version: 1.2.3}": nil,
		"{storage: oci, repo: 'oci://registry.example.com/a', tag: v1, path: ./a}":      nil,
		"{}":                                {prefix + "repo: is required"},
		"{storage: svn, repo: 'https://x'}": {prefix + `storage: must be one of git, helm, oci, not "svn"`},
		"{repo: 'https://x', chart: a}":     {prefix + `chart: does not fit storage "git", which takes branch, tag, commit, path`},
		"{repo: 'https://x', tag: v1, branch: main}":                               {prefix + "tag: cannot be set together with branch"},
		"{repo: 'https://x', tag: v1, commit: abc}":                                {prefix + "tag: cannot be set together with commit"},
		"{repo: 'https://x', tag: v1, branch: (known after apply)}":                nil,
		"{storage: helm, repo: 'https://x'}":                                       {prefix + `chart: is required with storage "helm"`},
		"{storage: helm, repo: 'https://x', chart: a, path: b}":                    {prefix + `path: does not fit storage "helm"`},
		"{storage: helm, repo: 'https://x', chart: (known after apply)}":           nil,
		"{storage: helm, repo: 'https://x', chart: a, path: (known after apply)}":  nil,
		"{storage: (known after apply), repo: 'https://x', chart: a, path: b}":     nil,
		"{storage: oci, repo: 'https://registry.example.com/a'}":                   {prefix + `repo: must start with "oci://"`},
		"{storage: oci, repo: 'oci://registry.example.com/a', tag: a, version: b}": {prefix + "tag: cannot be set together with version"},
		"{repo: 'https://token@git.example.com/a'}":                                {prefix + "repo: has credentials"},
		"{repo: 'HTTPS://token@git.example.com/a'}":                                {prefix + "repo: has credentials"},
		"{repo: 'ssh://git:secret@git.example.com/a'}":                             {prefix + "repo: has credentials"},
		"{repo: \"https://git.example.com/a\\nb\"}":                                {prefix + "repo: holds a control character"},
		"{repo: 'https://git.example.com/" + strings.Repeat("a", 1024) + "'}":      {prefix + "repo: has a character that is not shown, or is longer than 1024 bytes"},
		"{repo: 'https://x', path: \"a\\u200Bb\"}":                                 {prefix + "path: \"a\\u200bb\" has a character that is not shown"},
		"{repo: 'https://x', commit: \"a\\u202Eb\"}":                               {prefix + "commit: \"a\\u202eb\" has a character that is not shown"},
		"{repo: 'https://x', parameters: 7}":                                       {prefix + "parameters: must be an object, not a number"},
		"{repo: [x]}":                                                              {prefix + "repo: must be a string, not a list"},
		"{repo: \"a\\0b\"}":                                                        {prefix + "repo: must be a string, not a string that holds a NUL character"},
	} {
		t.Run(manifests, func(t *testing.T) {
			_, findings := fleet.Decode(input(t, smallInput+"workloads: ["+workload("a", manifests)+"]"))
			wantFindings(t, findings, want...)
			if strings.Contains(findings.Error(), "token") || strings.Contains(findings.Error(), "secret") {
				t.Errorf("a finding contains a secret: %v", findings)
			}
		})
	}
}

func TestMistakesInReferencesNamesAndRequirementsAreFindings(t *testing.T) {
	for name, test := range map[string]struct {
		input string
		want  []string
	}{
		"unknown workspace": {
			"workloads: [{name: a, workspace: taem, deployment_targets: {live: {environment: dev, manifests: {repo: 'https://x'}}}}]",
			[]string{`workloads["a"].workspace: no workspace of environment "dev" is called "taem"; did you mean "team"?`},
		},
		"unknown workspace elsewhere": {
			"workloads: [{name: a, workspace: taem, deployment_targets: {live: {environment: prod, manifests: {repo: 'https://x'}}}}]", nil,
		},
		"unknown environment": {
			"environments: [dev, prod]\nconfig_containers: [{name: a, environment: prd, data: {}}]",
			[]string{`config_containers["a"].environment: no environment is called "prd"; did you mean "prod"?`},
		},
		"unknown own environment": {
			"environments: [prod]", []string{`environment: no environment is called "dev"`},
		},
		"invalid environments": {
			"environments: [dev, 7, {label: a}]",
			[]string{
				"environments[1]: must be the name of an environment", "environments[2].name: is required",
				`environments[2].label: did you mean "labels"?`,
			},
		},
		"unknown template of a type": {
			"templates: [{name: mine, type: config, manifests: [a]}]\ncluster_types: [{name: x, reconciler: mine, config_type: mine}]\nclusters: []",
			[]string{`cluster_types["x"].reconciler: template "mine" is of type config, not reconciler`},
		},
		"unknown template, of an unknown environment": {
			"environment: (known after apply)\ntemplates: [{name: mine, type: config, manifests: [a]}]\n" +
				"cluster_types: [{name: x, reconciler: flex, config_type: mine}]\nclusters: []",
			[]string{`cluster_types["x"].reconciler: no template of type reconciler is called "flex"; did you mean "flux"?`},
		},
		"a template that replaces a built-in one": {
			"templates: [{name: flux, type: reconciler, manifests: [a]}]", nil,
		},
		"duplicates": {
			"cluster_types: [{name: drone}, {name: drone}]\ntemplates: [{name: a, type: config, manifests: [a]}, {name: a, type: policy, manifests: [a]}, {name: a, type: config, manifests: [b]}]",
			[]string{
				`cluster_types[1].name: "drone" is also the name of cluster_types[0]`,
				`templates[2].name: "a" is also the name of templates[0]`,
			},
		},
		"the same name in another environment": {
			"cluster_types: [{name: drone, environment: dev}, {name: drone, environment: prod}]", nil,
		},
		"colliding full names": {
			"workloads:\n- {name: a-b, workspace: team, deployment_targets: {c: {environment: dev, manifests: {repo: 'https://x'}}}}\n" +
				"- {name: a, workspace: team, deployment_targets: {b-c: {environment: dev, manifests: {repo: 'https://x'}}}}",
			[]string{`workloads["a-b"].deployment_targets["c"]: a deployment target of workload "a" has the same full name "a-b-c"`},
		},
		"a full name too long": {
			"workloads: [" + workload(strings.Repeat("a", 59), gitManifests) + "]",
			[]string{`workloads["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"].deployment_targets["live"]: has 64 characters, and a Kubernetes label may have 63`},
		},
		"a target's name": {
			"workloads: [{name: a, workspace: team, deployment_targets: {A: {environment: dev, manifests: {repo: 'https://x'}}, b: null}}]",
			[]string{
				`workloads["a"].deployment_targets["A"]: "A" is not a DNS label`,
				`workloads["a"].deployment_targets["b"]: must be an object, not null`,
			},
		},
		"a target's namespace": {
			"workloads: [{name: a, workspace: team, deployment_targets: {b: {environment: dev, namespace: Kube, manifests: {repo: 'https://x'}}}}]",
			[]string{`workloads["a"].deployment_targets["b"].namespace: "Kube" is not a DNS label`},
		},
		"the namespace of an agent, or of Kubernetes": {
			"workloads: [{name: a, workspace: team, deployment_targets: {" +
				"b: {environment: dev, namespace: flux-system, manifests: {repo: 'https://x'}}, c: {environment: dev, namespace: kube-system, manifests: {repo: 'https://x'}}, " +
				"d: {environment: dev, namespace: default, manifests: {repo: 'https://x'}}, e: {environment: dev, namespace: argocd, manifests: {repo: 'https://x'}}}}]",
			[]string{
				`workloads["a"].deployment_targets["b"].namespace: "flux-system" is the namespace of Flux itself, which`,
				`workloads["a"].deployment_targets["c"].namespace: "kube-system" is a namespace of Kubernetes itself, which`,
				`workloads["a"].deployment_targets["e"].namespace: "argocd" is the namespace of Argo CD itself`,
			},
		},
		"a target without environment and manifests": {
			"workloads: [{name: a, workspace: team, deployment_targets: {b: {}}}]",
			[]string{
				`workloads["a"].deployment_targets["b"].environment: is required`,
				`workloads["a"].deployment_targets["b"].manifests: is required`,
			},
		},
		"requirements": {
			"workloads:\n- {name: a, workspace: team, requires: [a, bb], deployment_targets: {t: {environment: dev, manifests: {repo: 'https://x'}}}}\n" +
				"- {name: b, workspace: team, requires: [c], deployment_targets: {t: {environment: dev, manifests: {repo: 'https://x'}}}}\n" +
				"- {name: c, workspace: team, requires: [d], deployment_targets: {t: {environment: dev, manifests: {repo: 'https://x'}}}}\n" +
				"- {name: d, workspace: team, requires: [b], deployment_targets: {t: {environment: dev, manifests: {repo: 'https://x'}}}}",
			[]string{
				`workloads["a"].requires: workload "a" requires itself`,
				`workloads["a"].requires: no workload is called "bb"`,
				`workloads["b"].requires: workloads require each other in a circle: b → c → d → b`,
			},
		},
		"a workspace without permission for the environment": {
			"workspaces: [{name: team, environments: [prod, stage]}]\nworkloads: [" + workload("a", gitManifests) + "]",
			[]string{`workloads["a"].workspace: workspace "team" may not deploy to environment "dev", only to prod, stage`},
		},
		"assignments that refer to nothing": {
			"workloads: [" + workload("a", gitManifests) + "]\nassignments:\n- {cluster_type: dron, deployment_target: a-live}\n" +
				"- {cluster: drone-8, deployment_target: a-liv}\n- {deployment_target: a-live}\n" +
				"- {cluster: drone-7, cluster_type: drone, deployment_target: a-live}\n- {cluster: drone-7}",
			[]string{
				`assignments[0].cluster_type: no cluster type of environment "dev" is called "dron"`,
				`assignments[1].cluster: no cluster of environment "dev" is called "drone-8"`,
				`assignments[1].deployment_target: no deployment target of environment "dev" is called "a-liv"`,
				"assignments[2].cluster_type: give either cluster_type or cluster",
				"assignments[3].cluster_type: give either cluster_type or cluster",
				"assignments[4].deployment_target: is required",
			},
		},
		"an assignment twice": {
			"workloads: [" + workload("a", gitManifests) + "]\nassignments:\n- {cluster_type: drone, deployment_target: a-live}\n- {cluster_type: drone, deployment_target: a-live}",
			[]string{`assignments[1]: "drone/a-live" is also the name of assignments[0]`},
		},
		"assignments and policies": {
			"assignments: []\ntarget_policies: []", []string{"assignments: replaces target_policies"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			value := input(t, smallInput).(map[string]any)
			maps.Copy(value, input(t, test.input).(map[string]any))
			_, findings := fleet.Decode(value)
			wantFindings(t, findings, test.want...)
		})
	}
}

func TestTolerationsFollowTheRulesOfKubernetes(t *testing.T) {
	prefix := `target_policies["p"].tolerations[0].`
	for toleration, want := range map[string][]string{
		"{key: a}":                             nil,
		"{key: a, value: b}":                   nil,
		"{operator: Exists}":                   nil,
		"{key: a, operator: Exists, value: b}": {prefix + "value: must be empty with operator Exists"},
		"{value: b}":                           {prefix + "operator: must be Exists where there is no key"},
		"{key: 'a b'}":                         {prefix + `key: "a b" is not the key of a label`},
		"{key: a, value: 'b c'}":               {prefix + `value: "b c" is not the value of a label`},
		"{key: a, operator: Gt}":               {prefix + `operator: must be one of Equal, Exists, not "Gt"`},
		"{key: a, effect: PreferNoSchedule}":   {prefix + `effect: must be one of NoSchedule, not "PreferNoSchedule"`},
		"{key: a, operator: Exists, value: (known after apply)}":              nil,
		"{key: (known after apply), operator: (known after apply), value: b}": nil,
	} {
		t.Run(toleration, func(t *testing.T) {
			_, findings := fleet.Decode(input(t, smallInput+"target_policies: [{name: p, cluster_selector: {}, tolerations: ["+toleration+"]}]"))
			wantFindings(t, findings, want...)
		})
	}
}

func TestOnlyInvalidLabelsAllocateAPath(t *testing.T) {
	labels := map[string]any{}
	for i := range 1000 {
		labels["key-"+strconv.Itoa(i)] = "value"
	}
	value := map[string]any{"environment": "dev", "cluster_types": []any{map[string]any{"name": "a", "labels": labels}}}
	if allocations := testing.AllocsPerRun(5, func() { _, _ = fleet.Decode(value) }); allocations > float64(len(labels)) {
		t.Errorf("got %v allocations for %d labels", allocations, len(labels))
	}
}

func TestCollectionsAreListsOrMaps(t *testing.T) {
	list, findings := fleet.Decode(input(t, "environment: dev\ncluster_types: [{name: a}, {name: b}]"))
	wantFindings(t, findings)
	mapped, findings := fleet.Decode(input(t, "environment: dev\ncluster_types: {x: {name: b}, y: {name: a}}"))
	wantFindings(t, findings)
	if model(t, list.Fleet) != model(t, mapped.Fleet) {
		t.Errorf("got model %s from a list and %s from a map", model(t, list.Fleet), model(t, mapped.Fleet))
	}
}

func model(t testing.TB, f *fleet.Fleet) string {
	t.Helper()
	text, err := f.Model()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
