package changes_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// object returns a final object. fields is the rest of its YAML.
func object(group, kind, namespace, name, fields string) objects.FinalObject {
	return objects.FinalObject{Group: group, Kind: kind, Namespace: namespace, Name: name, YAML: []byte("kind: " + kind + "\n" + fields)}
}

// nightlyLines returns the lines about reports-nightly, after a change of its tag and with the final objects.
func nightlyLines(t *testing.T, finals *changes.Finals) []string {
	t.Helper()
	before, after := sampleWithTag(t)
	folders := foldersOf(before, after)
	folders[0].Finals = finals
	return formatLines(changes.Summarize(before.version, after.version, folders, changes.Notes{}))[1:]
}

// sampleWithTag returns the sample before and after a change of the tag of reports.
func sampleWithTag(t *testing.T) (before, after renderedFleet) {
	t.Helper()
	f, config := sample()
	before = mustRender(t, f, config)
	f, config = sample()
	f.Workloads[1].DeploymentTargets[0].Manifests.Tag = "v1.1.0"
	return before, mustRender(t, f, config)
}

func TestLineNamesFinalObjectAndFields(t *testing.T) {
	containers := func(all ...string) string {
		return "spec:\n  containers: [" + strings.Join(all, ", ") + "]\n"
	}
	for name, test := range map[string]struct {
		before, after []objects.FinalObject
		want          []string // without place and cause
	}{
		"an image": {
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: log, image: a}", "{name: till, image: a}"))},
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: log, image: a}", "{name: till, image: b}"))},
			[]string{"object files=Pod till keys=spec.containers[till].image"},
		},
		"a new first container": {
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: till, image: a}"))},
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: log, image: a}", "{name: till, image: a}"))},
			[]string{"object files=Pod till keys=spec.containers[log]:new"},
		},
		"another order of containers": {
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: log}", "{name: till}"))},
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: till}", "{name: log}"))},
			[]string{"object files=Pod till keys=spec.containers[0].name,spec.containers[1].name"},
		},
		"two containers with one name": {
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: log, image: a}", "{name: log, image: b}"))},
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: log, image: a}", "{name: log, image: c}"))},
			[]string{"object files=Pod till keys=spec.containers[1].image"},
		},
		"an invalid name": {
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: a b, image: a}"))},
			[]objects.FinalObject{object("", "Pod", "a", "till", containers("{name: a b, image: b}"))},
			[]string{"object files=Pod till keys=spec.containers[0].image"},
		},
		"a new and a removed object": {
			[]objects.FinalObject{object("", "ConfigMap", "a", "x", ""), object("", "ConfigMap", "a", "y", "")},
			[]objects.FinalObject{object("", "ConfigMap", "a", "y", ""), object("apps", "Deployment", "a", "till", "")},
			[]string{"object how=new files=Deployment till", "object how=removed files=ConfigMap x"},
		},
		"another namespace": {
			[]objects.FinalObject{object("", "ConfigMap", "a", "x", "")},
			[]objects.FinalObject{object("", "ConfigMap", "b", "x", "")},
			[]string{"object how=new files=ConfigMap b/x", "object how=removed files=ConfigMap a/x"},
		},
		"another group": {
			[]objects.FinalObject{object("extensions", "Ingress", "a", "web", "apiVersion: extensions/v1beta1\n")},
			[]objects.FinalObject{object("networking.k8s.io", "Ingress", "a", "web", "apiVersion: networking.k8s.io/v1\n")},
			[]string{"object files=Ingress.networking.k8s.io web keys=apiVersion"},
		},
		"two groups": {
			[]objects.FinalObject{object("a.example.com", "Gateway", "a", "web", "a: 1\n"), object("b.example.com", "Gateway", "a", "web", "a: 1\n")},
			[]objects.FinalObject{object("a.example.com", "Gateway", "a", "web", "a: 1\n"), object("b.example.com", "Gateway", "a", "web", "a: 2\n")},
			[]string{"object files=Gateway.b.example.com web keys=a"},
		},
		"equal changes of two and of four objects": {
			[]objects.FinalObject{object("", "A", "", "a", "x: 1\nall: 1\n"), object("", "B", "", "b", "x: 1\nall: 1\n"), object("", "C", "", "c", "all: 1\n"), object("", "D", "", "d", "all: 1\n")},
			[]objects.FinalObject{object("", "A", "", "a", "x: 2\nall: 2\n"), object("", "B", "", "b", "x: 2\nall: 2\n"), object("", "C", "", "c", "all: 2\n"), object("", "D", "", "d", "all: 2\n")},
			[]string{"object files=A a,B b,C c,D d keys=all", "object files=A a,B b keys=x"},
		},
		"invalid YAML": {
			[]objects.FinalObject{object("", "A", "", "a", "x: [\n")}, []objects.FinalObject{object("", "A", "", "a", "x: {\n")}, []string{"object files=A a keys=further"},
		},
		"nothing": {nil, nil, []string{"object keys=no_change"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := nightlyLines(t, &changes.Finals{Changes: changes.CompareObjects(test.before, test.after), Moved: changes.Move{What: "chart", From: "1.0.0", To: "1.1.0"}})
			want := slices.Clone(test.want)
			for i := range want {
				want[i] += " at=large/reports-nightly by=workload:reports:chart:1.0.0:1.1.0"
			}
			if !slices.Equal(got, want) {
				t.Errorf("lines are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

func TestFileLinesStayWithoutChangesOfFinalObjects(t *testing.T) {
	const tag = "file files=reconciler.yaml keys=GitRepository spec.ref.tag at=large/reports-nightly by=workload:reports"
	for name, test := range map[string]struct {
		finals *changes.Finals
		want   []string
	}{
		"not rendered": {nil, []string{tag}},
		"unknown former objects": {
			&changes.Finals{Unknown: "they are gone", Moved: changes.Move{What: "commit", From: "a", To: "b"}},
			[]string{"object keys=they are gone:former_unknown at=large/reports-nightly by=workload:reports:commit:a:b", tag},
		},
		"an unchanged artifact": {
			&changes.Finals{}, []string{"object keys=no_change at=large/reports-nightly by=workload:reports", tag},
		},
	} {
		if got := nightlyLines(t, test.finals); !slices.Equal(got, test.want) {
			t.Errorf("%s: lines are\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

func TestMovedFrom(t *testing.T) {
	commit := func(digit string) folder.Pin { return folder.Pin{Commit: strings.Repeat(digit, 40)} }
	digest := func(digit string) folder.Pin { return folder.Pin{Digest: "sha256:" + strings.Repeat(digit, 64)} }
	for want, pair := range map[changes.Move][2]*folder.Manifests{
		{"commit", "aaaaaaa", "bbbbbbb"}:               {{Storage: "git", Branch: "main", Pin: commit("a")}, {Storage: "git", Branch: "main", Pin: commit("b")}},
		{"commit", "ccccccc", "ddddddd"}:               {{Storage: "git", Commit: strings.Repeat("c", 40)}, {Storage: "git", Commit: strings.Repeat("d", 40)}},
		{"chart", "1.0.0", "1.1.0"}:                    {{Storage: "helm", Chart: "till", Version: "1.x", Pin: folder.Pin{Version: "1.0.0"}}, {Storage: "helm", Chart: "till", Version: "1.x", Pin: folder.Pin{Version: "1.1.0"}}},
		{"version", "v1", "v2"}:                        {{Storage: "oci", Tag: "v1", Pin: digest("a")}, {Storage: "oci", Tag: "v2", Pin: digest("b")}},
		{"digest", "sha256:aaaaaaa", "sha256:bbbbbbb"}: {{Storage: "oci", Tag: "v1", Pin: digest("a")}, {Storage: "oci", Tag: "v1", Pin: digest("b")}},
		{}: {{Storage: "oci", Tag: "v1", Pin: digest("a")}, {Storage: "git", Pin: commit("b")}},
	} {
		if got := changes.MovedFrom(pair[0], pair[1]); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if got := changes.MovedFrom(nil, &folder.Manifests{}); got != (changes.Move{}) {
		t.Errorf("got %v for unknown manifests", got)
	}
}

// The upgrade changes fields of 30 objects on up to 500 hosts, and adds and removes objects.
func TestChartUpgradeOverAllHostsIsUnder20Lines(t *testing.T) {
	f, config := sample()
	f.Clusters, f.TargetPolicies = nil, f.TargetPolicies[2:]
	f.TargetPolicies[0].ClusterTypeSelector = &fleet.Selector{}
	additional := acceptancetest.Count(98, 498)
	for i := range additional {
		clusterType := f.ClusterTypes[0]
		clusterType.Name = fmt.Sprintf("store-%03d", i)
		f.ClusterTypes = append(f.ClusterTypes, clusterType)
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
			if j%2 == i%2 { // every second host
				wanted = append(wanted, object("", "Service", namespace, fmt.Sprintf("s%02d", j), ""))
			}
		}
		folders[i].Finals = &changes.Finals{Changes: changes.CompareObjects(old, wanted), Moved: changes.Move{What: "chart", From: "3.2.0", To: "3.2.1"}}
	}
	lines := formatLines(changes.Summarize(before.version, changed.version, folders, changes.Notes{}))
	if len(lines) >= 20 {
		t.Errorf("there are %d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	first := `object files=Deployment d00,Deployment d01,Deployment d02,Deployment d03,Deployment d04,Deployment d05,Deployment d06,Deployment d07,Deployment d08,Deployment d09,Deployment d10,Deployment d11,Deployment d12,Deployment d13,Deployment d14,Deployment d15,Deployment d16,Deployment d17,Deployment d18,Deployment d19,Deployment d20,Deployment d21,Deployment d22,Deployment d23,Deployment d24,Deployment d25,Deployment d26,Deployment d27,Deployment d28,Deployment d29 keys=metadata.labels.version,metadata.labels["helm.sh/chart"] at=large/reports-nightly,small/reports-nightly,` + strconv.Itoa(additional) + ` by=workload:reports:chart:3.2.0:3.2.1`
	if !slices.Contains(lines, first) {
		t.Errorf("lines are\n%s\nwant\n%s", strings.Join(lines, "\n"), first)
	}
}

// A new version of Kubernetes is one line for each change.
func TestKubernetesUpgradeOfManyClusterTypesIsFewLines(t *testing.T) {
	f, config := sample()
	f.Clusters, f.TargetPolicies = nil, f.TargetPolicies[2:]
	f.TargetPolicies[0].ClusterTypeSelector = &fleet.Selector{}
	for i := range 98 {
		clusterType := f.ClusterTypes[0]
		clusterType.Name = fmt.Sprintf("store-%03d", i)
		f.ClusterTypes = append(f.ClusterTypes, clusterType)
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
		1:   "object files=PodDisruptionBudget till keys=apiVersion at=large/reports-nightly by=cluster_type:large",
		100: "object files=PodDisruptionBudget till keys=apiVersion at=large/reports-nightly,small/reports-nightly,98 by=cluster_type:large,cluster_type:small,cluster_type:store-000,cluster_type:store-001,cluster_type:store-002,cluster_type:store-003,cluster_type:store-004,cluster_type:store-005,cluster_type:store-006,cluster_type:store-007,cluster_type:store-008,cluster_type:store-009,cluster_type:store-010,cluster_type:store-011,cluster_type:store-012,cluster_type:store-013,cluster_type:store-014,cluster_type:store-015,cluster_type:store-016,cluster_type:store-017,cluster_type:store-018,cluster_type:store-019,cluster_type:store-020,cluster_type:store-021,cluster_type:store-022,cluster_type:store-023,cluster_type:store-024,cluster_type:store-025,cluster_type:store-026,cluster_type:store-027,cluster_type:store-028,cluster_type:store-029,cluster_type:store-030,cluster_type:store-031,cluster_type:store-032,cluster_type:store-033,cluster_type:store-034,cluster_type:store-035,cluster_type:store-036,cluster_type:store-037,cluster_type:store-038,cluster_type:store-039,cluster_type:store-040,cluster_type:store-041,cluster_type:store-042,cluster_type:store-043,cluster_type:store-044,cluster_type:store-045,cluster_type:store-046,cluster_type:store-047,cluster_type:store-048,cluster_type:store-049,cluster_type:store-050,cluster_type:store-051,cluster_type:store-052,cluster_type:store-053,cluster_type:store-054,cluster_type:store-055,cluster_type:store-056,cluster_type:store-057,cluster_type:store-058,cluster_type:store-059,cluster_type:store-060,cluster_type:store-061,cluster_type:store-062,cluster_type:store-063,cluster_type:store-064,cluster_type:store-065,cluster_type:store-066,cluster_type:store-067,cluster_type:store-068,cluster_type:store-069,cluster_type:store-070,cluster_type:store-071,cluster_type:store-072,cluster_type:store-073,cluster_type:store-074,cluster_type:store-075,cluster_type:store-076,cluster_type:store-077,cluster_type:store-078,cluster_type:store-079,cluster_type:store-080,cluster_type:store-081,cluster_type:store-082,cluster_type:store-083,cluster_type:store-084,cluster_type:store-085,cluster_type:store-086,cluster_type:store-087,cluster_type:store-088,cluster_type:store-089,cluster_type:store-090,cluster_type:store-091,cluster_type:store-092,cluster_type:store-093,cluster_type:store-094,cluster_type:store-095,cluster_type:store-096,cluster_type:store-097",
	} {
		slices.SortFunc(folders, func(a, b changes.FolderChange) int { return strings.Compare(a.Host, b.Host) })
		got := formatLines(changes.SummarizeFinals(before.version, mustRender(t, &after, config).version, folders[:i]))
		if !slices.Equal(got, []string{want}) {
			t.Errorf("lines are\n%s\nwant\n%s", strings.Join(got, "\n"), want)
		}
	}
}
