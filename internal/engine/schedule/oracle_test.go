package schedule_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// oracle schedules a fleet by trying every combination. It returns the policies of each assigned and each excluded assignment, by key.
func oracle(f *fleet.Fleet) (assigned, excluded map[string][]string) {
	assigned, excluded = map[string][]string{}, map[string][]string{}
	types := map[string]fleet.ClusterType{}
	for _, clusterType := range f.ClusterTypes {
		types[clusterType.Name] = clusterType
	}
	for _, policy := range f.TargetPolicies {
		for _, workload := range f.Workloads {
			for _, target := range workload.DeploymentTargets {
				name := workload.Name + "-" + target.Name
				workloadLabels := withLabels(workload.Labels, "environment", f.Environment, "workspace", workload.Workspace, "workload", workload.Name)
				targetLabels := withLabels(withLabels(workload.Labels, flatten(target.Labels)...), "environment", f.Environment,
					"workspace", workload.Workspace, "workload", workload.Name, "deployment-target", name)
				if policy.Workspace != "" && policy.Workspace != workload.Workspace ||
					!matchesSelector(policy.WorkloadSelector, workloadLabels) || !matchesSelector(policy.DeploymentTargetSelector, targetLabels) {
					continue
				}
				add := func(host string, hostLabels map[string]string, taints []fleet.Taint) {
					switch key := host + "/" + name; {
					case !matchesSelector(policy.ClusterTypeSelector, hostLabels) || !matchesSelector(policy.ClusterSelector, hostLabels):
					case policy.Effect == "exclude":
						excluded[key] = append(excluded[key], policy.Name)
					case isTolerated(taints, policy.Tolerations):
						assigned[key] = append(assigned[key], policy.Name)
					}
				}
				if policy.ClusterSelector == nil {
					for _, clusterType := range f.ClusterTypes {
						add(clusterType.Name, withLabels(clusterType.Labels, "environment", f.Environment, "cluster-type", clusterType.Name), clusterType.Taints)
					}
					continue
				}
				for _, cluster := range f.Clusters {
					clusterType := types[cluster.ClusterType]
					clusterLabels := withLabels(withLabels(clusterType.Labels, flatten(cluster.Labels)...), "environment", f.Environment,
						"cluster-type", clusterType.Name, "cluster", cluster.Name)
					taints := map[string]fleet.Taint{}
					for _, taint := range slices.Concat(clusterType.Taints, cluster.Taints) {
						taints[taint.Key] = taint
					}
					add("clusters/"+cluster.Name, clusterLabels, slices.Collect(maps.Values(taints)))
				}
			}
		}
	}
	for key := range excluded {
		if assigned[key] == nil {
			delete(excluded, key)
		}
		delete(assigned, key)
	}
	return assigned, excluded
}

func withLabels(set map[string]string, pairs ...string) map[string]string {
	copied := maps.Clone(set)
	if copied == nil {
		copied = map[string]string{}
	}
	for i := 0; i < len(pairs); i += 2 {
		copied[pairs[i]] = pairs[i+1]
	}
	return copied
}

func flatten(set map[string]string) []string {
	var pairs []string
	for key, value := range set {
		pairs = append(pairs, key, value)
	}
	return pairs
}

// matchesSelector evaluates each form of a selector separately.
func matchesSelector(selector *fleet.Selector, set map[string]string) bool {
	if selector == nil {
		return true
	}
	for key, value := range selector.MatchLabels {
		if actual, has := set[key]; !has || actual != value {
			return false
		}
	}
	for _, e := range selector.MatchExpressions {
		actual, has := set[e.Key]
		if !map[string]bool{
			"In": has && slices.Contains(e.Values, actual), "NotIn": !has || !slices.Contains(e.Values, actual),
			"Exists": has, "DoesNotExist": !has,
		}[e.Operator] {
			return false
		}
	}
	expression, err := labels.Parse(selector.Expression)
	if err != nil {
		panic(err)
	}
	return expression.Matches(labels.Set(set))
}

func isTolerated(taints []fleet.Taint, tolerations []fleet.Toleration) bool {
	for _, taint := range taints {
		isMatched := false
		for _, t := range tolerations {
			keys := t.Key == taint.Key || t.Key == "" && t.Operator == "Exists"
			values := t.Operator == "Exists" || t.Value == taint.Value
			isMatched = isMatched || keys && values && (t.Effect == "" || t.Effect == taint.Effect)
		}
		if !isMatched {
			return false
		}
	}
	return true
}

func TestOracleAgreesOnRandomFleets(t *testing.T) {
	fleets, total, totalExcluded := acceptancetest.Count(2_000, 10_000), 0, 0
	for seed := range uint64(fleets) {
		f, _ := fleettest.Small(seed)
		if f.Explicit {
			continue
		}
		result, _ := schedule.Schedule(f)
		wantAssigned, wantExcluded := oracle(f)
		assigned, excluded := map[string][]string{}, map[string][]string{}
		running := map[string]bool{}
		for _, a := range result.Assignments {
			assigned[a.Key()] = a.Policies
			running[a.Target.Name] = true
		}
		for _, e := range result.Excluded {
			excluded[e.Host+"/"+e.DeploymentTarget] = e.Policies
		}
		if !maps.EqualFunc(assigned, wantAssigned, slices.Equal) {
			t.Fatalf("seed %d: assigned %v, want %v", seed, assigned, wantAssigned)
		}
		if !maps.EqualFunc(excluded, wantExcluded, slices.Equal) {
			t.Fatalf("seed %d: excluded %v, want %v", seed, excluded, wantExcluded)
		}
		if len(running)+len(result.Unscheduled) != len(result.Targets) {
			t.Fatalf("seed %d: of %d targets %d run and %d are unscheduled", seed, len(result.Targets), len(running), len(result.Unscheduled))
		}
		for _, u := range result.Unscheduled {
			if running[u.DeploymentTarget] || u.Reason == "" {
				t.Fatalf("seed %d: unscheduled %+v", seed, u)
			}
		}
		total, totalExcluded = total+len(assigned), totalExcluded+len(excluded)
	}
	if total < fleets || totalExcluded < fleets/10 {
		t.Errorf("%d assignments and %d excluded ones are too few", total, totalExcluded)
	}
}

func TestOrderOfTheFleetDoesNotMatter(t *testing.T) {
	for seed := range uint64(acceptancetest.Count(100, 500)) {
		f, config := fleettest.Small(seed)
		want := scheduleText(t, fleettest.Input(f, config))
		shuffled := fleettest.Input(f, config)
		random := rand.New(rand.NewPCG(seed, 3))
		for _, name := range slices.Sorted(maps.Keys(shuffled)) {
			if list, ok := shuffled[name].([]any); ok {
				random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			}
		}
		if got := scheduleText(t, shuffled); got != want {
			t.Fatalf("seed %d:\n%s\nshuffled:\n%s", seed, want, got)
		}
	}
}

// scheduleText returns all decisions of a schedule as text.
func scheduleText(t *testing.T, input map[string]any) string {
	decoded, findings := fleet.Decode(input)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	result, findings := schedule.Schedule(decoded.Fleet)
	var text strings.Builder
	for _, a := range result.Assignments {
		fmt.Fprintln(&text, a.Key(), a.Namespace, a.Policies, a.Requires)
	}
	fmt.Fprintln(&text, result.Unscheduled, result.Excluded, result.IdlePolicies, findings)
	return text.String()
}
