package changes_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// object is a final object of a group, kind, namespace and name; fields is the rest of it in YAML.
func object(group, kind, namespace, name, fields string) objects.FinalObject {
	return objects.FinalObject{Group: group, Kind: kind, Namespace: namespace, Name: name, YAML: []byte("kind: " + kind + "\n" + fields)}
}

// nightly are the lines about reports-nightly, whose reconciler.yaml has another tag, with these finals.
func nightly(t *testing.T, finals *changes.Finals) []string {
	t.Helper()
	before, after := sampleWithTag(t)
	folders := foldersOf(before, after)
	folders[0].Finals = finals
	return changes.Summarize(before.version, after.version, folders, changes.Notes{})[1:]
}

// sampleWithTag is the sample before and after reports has another tag.
func sampleWithTag(t *testing.T) (before, after rendered) {
	t.Helper()
	f, config := sample()
	before = mustRender(t, f, config)
	f, config = sample()
	f.Workloads[1].DeploymentTargets[0].Manifests.Tag = "v1.1.0"
	return before, mustRender(t, f, config)
}

func TestAFinalObjectIsNamedWithItsFields(t *testing.T) {
	containers := func(all ...string) string {
		return "spec:\n  containers: [" + strings.Join(all, ", ") + "]\n"
	}
	for name, test := range map[string]struct {
		before, after []objects.FinalObject
		want          []string // without where and by which
	}{
		"an image": {
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: log, image: a}", "{name: till, image: a}"))},
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: log, image: a}", "{name: till, image: b}"))},
			[]string{"Pod till: spec.containers[till].image"},
		},
		"a container more, which is first": {
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: till, image: a}"))},
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: log, image: a}", "{name: till, image: a}"))},
			[]string{"Pod till: spec.containers[log] (new)"},
		},
		"another order of containers": {
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: log}", "{name: till}"))},
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: till}", "{name: log}"))},
			[]string{"Pod till: spec.containers[0].name, spec.containers[1].name"},
		},
		"two of one name": {
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: log, image: a}", "{name: log, image: b}"))},
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: log, image: a}", "{name: log, image: c}"))},
			[]string{"Pod till: spec.containers[1].image"},
		},
		"a name that is none": {
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: a b, image: a}"))},
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: a b, image: b}"))},
			[]string{"Pod till: spec.containers[0].image"},
		},
		"an object more, and one less": {
			[]objects.FinalObject{object("", "ConfigMap", "a", "x", ""), object("", "ConfigMap", "a", "y", "")},
			[]objects.FinalObject{object("", "ConfigMap", "a", "y", ""), object("apps", "Deployment", "a", "till", "")},
			[]string{"+ Deployment till", "- ConfigMap x"},
		},
		"another namespace": {
			[]objects.FinalObject{object("", "ConfigMap", "a", "x", "")},
			[]objects.FinalObject{object("", "ConfigMap", "b", "x", "")},
			[]string{"+ ConfigMap b/x", "- ConfigMap a/x"},
		},
		"another group": {
			[]objects.FinalObject{object("extensions", "Ingress", "a", "web", "apiVersion: extensions/v1beta1\n")},
			[]objects.FinalObject{object("networking.k8s.io", "Ingress", "a", "web", "apiVersion: networking.k8s.io/v1\n")},
			[]string{"Ingress.networking.k8s.io web: apiVersion"},
		},
		"two groups": {
			[]objects.FinalObject{object("a.example.com", "Gateway", "a", "web", "a: 1\n"), object("b.example.com", "Gateway", "a", "web", "a: 1\n")},
			[]objects.FinalObject{object("a.example.com", "Gateway", "a", "web", "a: 1\n"), object("b.example.com", "Gateway", "a", "web", "a: 2\n")},
			[]string{"Gateway.b.example.com web: a"},
		},
		"equal changes of two objects, and of many": {
			[]objects.FinalObject{object("", "A", "", "a", "x: 1\nall: 1\n"), object("", "B", "", "b", "x: 1\nall: 1\n"), object("", "C", "", "c", "all: 1\n"), object("", "D", "", "d", "all: 1\n")},
			[]objects.FinalObject{object("", "A", "", "a", "x: 2\nall: 2\n"), object("", "B", "", "b", "x: 2\nall: 2\n"), object("", "C", "", "c", "all: 2\n"), object("", "D", "", "d", "all: 2\n")},
			[]string{"A a, B b and 2 more objects: all", "A a, B b: x"},
		},
		"what cannot be read": {
			[]objects.FinalObject{object("", "A", "", "a", "x: [\n")}, []objects.FinalObject{object("", "A", "", "a", "x: {\n")}, []string{"A a: further fields"},
		},
		"nothing": {nil, nil, []string{"final objects: no change"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := nightly(t, &changes.Finals{Changes: changes.CompareObjects(test.before, test.after), Moved: "chart 1.0.0 -> 1.1.0"})
			want := slices.Clone(test.want)
			for i := range want {
				want[i] += `, on large: reports-nightly, by workload "reports" (chart 1.0.0 -> 1.1.0)`
			}
			if !slices.Equal(got, want) {
				t.Errorf("lines are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

func TestWhatFilesSayStaysWhereFinalObjectsDoNotTellIt(t *testing.T) {
	const tag = `reconciler.yaml: GitRepository spec.ref.tag, on large: reports-nightly, by workload "reports"`
	for name, test := range map[string]struct {
		finals *changes.Finals
		want   []string
	}{
		"not rendered": {nil, []string{tag}},
		"the former ones are not known": {
			&changes.Finals{Unknown: "they are gone", Moved: "commit a -> b"},
			[]string{`final objects: the former ones are not known: they are gone, on large: reports-nightly, by workload "reports" (commit a -> b)`, tag},
		},
		"the artifact stays": {
			&changes.Finals{}, []string{`final objects: no change, on large: reports-nightly, by workload "reports"`, tag},
		},
	} {
		if got := nightly(t, test.finals); !slices.Equal(got, test.want) {
			t.Errorf("%s: lines are\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

func TestHowAnArtifactMoves(t *testing.T) {
	commit := func(digit string) folder.Pin { return folder.Pin{Commit: strings.Repeat(digit, 40)} }
	digest := func(digit string) folder.Pin { return folder.Pin{Digest: "sha256:" + strings.Repeat(digit, 64)} }
	for want, pair := range map[string][2]*folder.Manifests{
		"commit aaaaaaa -> bbbbbbb":               {{Storage: "git", Branch: "main", Pin: commit("a")}, {Storage: "git", Branch: "main", Pin: commit("b")}},
		"commit ccccccc -> ddddddd":               {{Storage: "git", Commit: strings.Repeat("c", 40)}, {Storage: "git", Commit: strings.Repeat("d", 40)}},
		"chart 1.0.0 -> 1.1.0":                    {{Storage: "helm", Chart: "till", Version: "1.x", Pin: folder.Pin{Version: "1.0.0"}}, {Storage: "helm", Chart: "till", Version: "1.x", Pin: folder.Pin{Version: "1.1.0"}}},
		"version v1 -> v2":                        {{Storage: "oci", Tag: "v1", Pin: digest("a")}, {Storage: "oci", Tag: "v2", Pin: digest("b")}},
		"digest sha256:aaaaaaa -> sha256:bbbbbbb": {{Storage: "oci", Tag: "v1", Pin: digest("a")}, {Storage: "oci", Tag: "v1", Pin: digest("b")}},
		"": {{Storage: "oci", Tag: "v1", Pin: digest("a")}, {Storage: "git", Pin: commit("b")}},
	} {
		if got := changes.MovedFrom(pair[0], pair[1]); got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
	}
	if got := changes.MovedFrom(nil, &folder.Manifests{}); got != "" {
		t.Errorf("of what is not known it is %q", got)
	}
}

// One chart's bump over 500 hosts, of 30 objects that all change in other fields, and some of which come and go, is less than 20 lines.
func TestABumpOverAllHostsIsLessThan20Lines(t *testing.T) {
	f, config := sample()
	f.Clusters, f.TargetPolicies = nil, f.TargetPolicies[2:]
	f.TargetPolicies[0].ClusterTypeSelector = &fleet.Selector{}
	for i := range 498 {
		one := f.ClusterTypes[0]
		one.Name = fmt.Sprintf("store-%03d", i)
		f.ClusterTypes = append(f.ClusterTypes, one)
	}
	before := mustRender(t, f, config)
	after := *f
	after.Workloads = slices.Clone(f.Workloads)
	after.Workloads[1].DeploymentTargets = slices.Clone(f.Workloads[1].DeploymentTargets)
	after.Workloads[1].DeploymentTargets[0].Manifests.Tag = "v1.1.0"
	changed := mustRender(t, &after, maps.Clone(config))
	folders := foldersOf(before, changed)
	for i := range folders {
		var old, wanted []objects.FinalObject
		for j := range 30 {
			fields := "metadata:\n  labels:\n    helm.sh/chart: %s\n    version: %s\nspec:\n  f%02d: %d\n  own:\n  - name: n%02d\n    value: %d\n"
			namespace := "dev-" + folders[i].Host
			old = append(old, object("apps", "Deployment", namespace, fmt.Sprintf("d%02d", j), fmt.Sprintf(fields, "a", "a", j, 1, j, 1)))
			wanted = append(wanted, object("apps", "Deployment", namespace, fmt.Sprintf("d%02d", j), fmt.Sprintf(fields, "b", "b", j, 2, j, 2+i%3)))
			old = append(old, object("", "ConfigMap", namespace, fmt.Sprintf("old%02d", j), ""))
			wanted = append(wanted, object("", "ConfigMap", namespace, fmt.Sprintf("new%02d", j), ""))
			if j%2 == i%2 { // on every other host
				wanted = append(wanted, object("", "Service", namespace, fmt.Sprintf("s%02d", j), ""))
			}
		}
		folders[i].Finals = &changes.Finals{Changes: changes.CompareObjects(old, wanted), Moved: "chart 3.2.0 -> 3.2.1"}
	}
	lines := changes.Summarize(before.version, changed.version, folders, changes.Notes{})
	if len(lines) >= 20 {
		t.Errorf("there are %d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	const first = `Deployment d00, Deployment d01 and 28 more objects: metadata.labels.version, metadata.labels["helm.sh/chart"], on large, small and 498 more hosts: 500 assignments, by workload "reports" (chart 3.2.0 -> 3.2.1)`
	if !slices.Contains(lines, first) {
		t.Errorf("lines are\n%s\nwant\n%s", strings.Join(lines, "\n"), first)
	}
}

// Another version of Kubernetes on many cluster types is one line for each change.
func TestAnUpgradeOfManyClusterTypesIsAFewLines(t *testing.T) {
	f, config := sample()
	f.Clusters, f.TargetPolicies = nil, f.TargetPolicies[2:]
	f.TargetPolicies[0].ClusterTypeSelector = &fleet.Selector{}
	for i := range 98 {
		one := f.ClusterTypes[0]
		one.Name = fmt.Sprintf("store-%03d", i)
		f.ClusterTypes = append(f.ClusterTypes, one)
	}
	before := mustRender(t, f, config)
	after := *f
	after.ClusterTypes = slices.Clone(f.ClusterTypes)
	for i := range after.ClusterTypes {
		after.ClusterTypes[i].KubernetesVersion = "1.34"
	}
	finals := &changes.Finals{Changes: changes.CompareObjects(
		[]objects.FinalObject{object("policy", "PodDisruptionBudget", "a", "till", "apiVersion: policy/v1beta1\n")},
		[]objects.FinalObject{object("policy", "PodDisruptionBudget", "a", "till", "apiVersion: policy/v1\n")},
	)}
	var folders []changes.FolderChange
	for key := range before.files {
		folders = append(
			folders,
			changes.FolderChange{Key: folder.Key{Host: before.hosts[key].Host.Name, DeploymentTarget: "reports-nightly"}, Finals: finals},
		)
	}
	for i, want := range map[int]string{
		1:   `PodDisruptionBudget till: apiVersion, on large: reports-nightly, by cluster type "large"`,
		100: `PodDisruptionBudget till: apiVersion, on large, small and 98 more hosts: 100 assignments, by cluster types "large", "small", "store-000" and 97 more`,
	} {
		slices.SortFunc(folders, func(a, b changes.FolderChange) int { return strings.Compare(a.Host, b.Host) })
		got := changes.SummarizeFinals(before.version, mustRender(t, &after, config).version, folders[:i])
		if !slices.Equal(got, []string{want}) {
			t.Errorf("lines are\n%s\nwant\n%s", strings.Join(got, "\n"), want)
		}
	}
}
