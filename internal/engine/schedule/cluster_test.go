package schedule_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// droneHosts declares clusters named after their types.
const droneHosts = `
cluster_types: [{name: drone}, {name: large}]
clusters: [{name: drone-a, cluster_type: drone}, {name: drone-b, cluster_type: drone}, {name: large-1, cluster_type: large}]
`

// explicitFleet decodes a fleet with explicit assignments, written "<host>: <deployment target>, …".
func explicitFleet(t *testing.T, text, assignments string) *fleet.Fleet {
	t.Helper()
	text += "assignments:\n"
	for assignment := range strings.SplitSeq(assignments, ", ") {
		host, target, _ := strings.Cut(assignment, ": ")
		if cluster, ok := strings.CutPrefix(host, "clusters/"); ok {
			text += fmt.Sprintf("- {cluster: %s, deployment_target: %s}\n", cluster, target)
		} else {
			text += fmt.Sprintf("- {cluster_type: %s, deployment_target: %s}\n", host, target)
		}
	}
	return decode(t, text)
}

func findingTexts(findings fleet.Findings) []string {
	var texts []string
	for _, finding := range findings {
		texts = append(texts, finding.String())
	}
	return texts
}

func TestAccidentallySharedNamespaceIsAFinding(t *testing.T) {
	for name, test := range map[string]struct {
		namespaces, assignments string
		want                    []string
	}{
		"equal derived namespaces": {
			"", "drone: a-b-c, clusters/drone-a: b-c",
			[]string{`workloads["b"].deployment_targets["c"].namespace: deployment target "b-c" on cluster "drone-a" would share namespace ` +
				`"dev-drone-a-b-c" with "a-b-c" on cluster type "drone" by accident: set namespace on one of them, or the same on both`},
		},
		"on a cluster of another type": {"", "large: a-b-c, clusters/drone-a: b-c", nil},
		"on two clusters":              {"", "clusters/drone-a: b-c, clusters/drone-b: b-c", nil},
		"one namespace set":            {"b: own", "drone: a-b-c, clusters/drone-a: b-c", nil},
		"shared on purpose":            {"a: shared, b: shared", "drone: a-b-c, drone: b-c", nil},
		"shared with the type":         {"a: shared, b: shared", "drone: a-b-c, clusters/drone-a: b-c", nil},
		"a namespace equal to the derived one of another target": {
			"b: dev-drone-a-b-c", "drone: a-b-c, drone: b-c",
			[]string{`workloads["b"].deployment_targets["c"].namespace: deployment target "b-c" on cluster type "drone" would share namespace ` +
				`"dev-drone-a-b-c" with "a-b-c" on cluster type "drone" by accident: set namespace on one of them, or the same on both`},
		},
		"one clash on several clusters": {
			"b: dev-drone-a-b-c", "drone: a-b-c, clusters/drone-a: b-c, clusters/drone-b: b-c",
			[]string{`workloads["b"].deployment_targets["c"].namespace: deployment target "b-c" on cluster "drone-a" (and 1 more) would share namespace ` +
				`"dev-drone-a-b-c" with "a-b-c" on cluster type "drone" by accident: set namespace on one of them, or the same on both`},
		},
		"a cluster of a type without assignments": {
			"b: dev-large-1-a-b-c", "clusters/large-1: a-b-c, clusters/large-1: b-c",
			[]string{`workloads["b"].deployment_targets["c"].namespace: deployment target "b-c" on cluster "large-1" would share namespace ` +
				`"dev-large-1-a-b-c" with "a-b-c" on cluster "large-1" by accident: set namespace on one of them, or the same on both`},
		},
		"a target on a cluster and its type": {
			"", "drone: b-c, clusters/drone-a: b-c, clusters/drone-b: b-c, clusters/large-1: b-c",
			[]string{`workloads["b"].deployment_targets["c"]: deployment target "b-c" is assigned to cluster type "drone" and to ` +
				`cluster "drone-a" (and 1 more), where it would run twice: assign it to one of them`},
		},
		"a target with a set namespace on a cluster and its type": {
			"b: shared", "drone: b-c, clusters/drone-a: b-c",
			[]string{`workloads["b"].deployment_targets["c"]: deployment target "b-c" is assigned to cluster type "drone" and to ` +
				`cluster "drone-a", where it would run twice: assign it to one of them`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := map[string]string{}
			for pair := range strings.SplitSeq(test.namespaces, ", ") {
				workload, namespace, _ := strings.Cut(pair, ": ")
				set[workload] = namespace
			}
			text := droneHosts + fmt.Sprintf(`
workloads:
- {name: a, deployment_targets: {b-c: {namespace: %q}}}
- {name: b, deployment_targets: {c: {namespace: %q}}}
`, set["a"], set["b"])
			_, findings := schedule.Schedule(explicitFleet(t, text, test.assignments))
			if got := findingTexts(findings); !slices.Equal(got, test.want) {
				t.Errorf("findings\n%q, want\n%q", got, test.want)
			}
		})
	}
}

func TestNamespaceOfATargetReplacesTheDerivedOne(t *testing.T) {
	result, findings := schedule.Schedule(explicitFleet(t, droneHosts+`
workloads:
- {name: app, deployment_targets: {live: {namespace: apps}, test: {}}}
`, "drone: app-live, drone: app-test, clusters/large-1: app-live"))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	var got []string
	for _, assignment := range result.Assignments {
		got = append(got, assignment.Namespace)
	}
	if want := []string{"apps", "apps", "dev-drone-app-test"}; !slices.Equal(got, want) {
		t.Errorf("namespaces %q, want %q", got, want)
	}
}

func TestDependenciesHaveTheirHostAndNamespace(t *testing.T) {
	result, findings := schedule.Schedule(explicitFleet(t, droneHosts+`
workloads:
- {name: app, requires: [cache, database], deployment_targets: {live: {}}}
- {name: cache, deployment_targets: {live: {}}}
- {name: database, deployment_targets: {live: {namespace: data}, replica: {}}}
`, "clusters/drone-a: app-live, drone: cache-live, clusters/drone-a: database-live, drone: database-replica"))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	for _, assignment := range result.Assignments {
		var got []string
		for _, dependency := range assignment.Dependencies {
			got = append(got, dependency.Host.Name+"/"+dependency.Target.Name+" in "+dependency.Namespace)
		}
		var want []string
		if assignment.Target.Name == "app-live" {
			want = []string{
				"drone/cache-live in dev-drone-cache-live", "clusters/drone-a/database-live in data",
				"drone/database-replica in dev-drone-database-replica",
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s depends on %q, want %q", assignment, got, want)
		}
	}
}

func TestDependencyOnAClusterOverridesItsType(t *testing.T) {
	result, findings := schedule.Schedule(explicitFleet(t, droneHosts+`
workloads:
- {name: app, requires: [cache], deployment_targets: {live: {}}}
- {name: cache, deployment_targets: {live: {}}}
`, "clusters/drone-a: app-live, clusters/drone-a: cache-live, drone: cache-live"))
	if len(findings) != 1 {
		t.Errorf("findings %v, want one", findings)
	}
	dependencies := result.Assignments[0].Dependencies
	if len(dependencies) != 1 || dependencies[0].Host.Name != "clusters/drone-a" || dependencies[0].Namespace != "dev-drone-a-cache-live" {
		t.Errorf("dependencies %+v, want the one on the cluster", dependencies)
	}
}

// TestOracleFindsEveryClash compares the findings with all pairs of assignments of each cluster.
func TestOracleFindsEveryClash(t *testing.T) {
	clashing, free := 0, 0
	for seed := range uint64(3_000) {
		random := rand.New(rand.NewPCG(seed, 7))
		f := clashingFleet(random)
		result, findings := schedule.Schedule(f)
		want := map[string]bool{}
		for _, host := range result.Hosts {
			if host.Cluster == nil && slices.ContainsFunc(f.Clusters, func(c fleet.Cluster) bool { return c.ClusterType == host.Name }) {
				continue // its clusters cover it
			}
			var onHost []*schedule.Assignment
			for _, assignment := range result.Assignments {
				if assignment.Host == host || assignment.Host.Name == host.ClusterType.Name {
					onHost = append(onHost, assignment)
				}
			}
			for _, pair := range pairsOf(onHost) {
				if pair[0].Target == pair[1].Target {
					want[pair[0].Target.Name] = true
				} else if pair[0].Namespace == pair[1].Namespace && (pair[0].Target.Target.Namespace == "" || pair[1].Target.Target.Namespace == "") {
					want[pair[0].Namespace] = true
				}
			}
		}
		got := map[string]bool{}
		for _, finding := range findings {
			_, namespace, isNamespace := strings.Cut(finding.Message, "namespace \"")
			if !isNamespace {
				_, namespace, _ = strings.Cut(finding.Message, "deployment target \"")
			}
			namespace, _, _ = strings.Cut(namespace, `"`)
			got[namespace] = true
		}
		if !maps.Equal(got, want) {
			model, _ := f.Model()
			t.Fatalf("seed %d: clashes %v, want %v\n%s", seed, got, want, model)
		}
		if len(want) > 0 {
			clashing++
		} else {
			free++
		}
	}
	if clashing < 300 || free < 300 {
		t.Errorf("%d fleets with clashes and %d without, want at least 300 of each", clashing, free)
	}
}

func pairsOf(all []*schedule.Assignment) [][2]*schedule.Assignment {
	var pairs [][2]*schedule.Assignment
	for i, a := range all {
		for _, b := range all[i+1:] {
			pairs = append(pairs, [2]*schedule.Assignment{a, b})
		}
	}
	return pairs
}

// clashingFleet returns a random fleet, often with equal derived names.
func clashingFleet(random *rand.Rand) *fleet.Fleet {
	f := &fleet.Fleet{Environment: "e", Explicit: true, Workspaces: []fleet.Workspace{{Name: "team"}}}
	for _, name := range []string{"a", "a-b"} {
		f.ClusterTypes = append(f.ClusterTypes, fleet.ClusterType{Name: name})
	}
	for _, name := range []string{"a", "a-b", "a-b-a", "b"} {
		if random.IntN(2) == 0 {
			f.Clusters = append(f.Clusters, fleet.Cluster{Name: name, ClusterType: f.ClusterTypes[random.IntN(2)].Name})
		}
	}
	for _, workload := range []string{"a", "b", "b-b"} {
		one := fleet.Workload{Name: workload, Workspace: "team"}
		for _, target := range []string{"a", "b-c"} {
			namespace := ""
			if random.IntN(4) == 0 {
				namespace = []string{"shared", "e-a-b-a", "e-a-b-b-c"}[random.IntN(3)]
			}
			one.DeploymentTargets = append(one.DeploymentTargets, fleet.DeploymentTarget{Name: target, Namespace: namespace})
			name := fleet.FullName(workload, target)
			for _, clusterType := range f.ClusterTypes {
				if random.IntN(6) == 0 {
					f.Assignments = append(f.Assignments, fleet.ExplicitAssignment{ClusterType: clusterType.Name, DeploymentTarget: name})
				}
			}
			for _, cluster := range f.Clusters {
				if random.IntN(6) == 0 {
					f.Assignments = append(f.Assignments, fleet.ExplicitAssignment{Cluster: cluster.Name, DeploymentTarget: name})
				}
			}
		}
		f.Workloads = append(f.Workloads, one)
	}
	return f
}
