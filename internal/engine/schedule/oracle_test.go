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

// oracle schedules a fleet by trying everything. It returns each assignment's policies, and which
// assignments are excluded, by key.
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
				ofWorkload := with(workload.Labels, "environment", f.Environment, "workspace", workload.Workspace, "workload", workload.Name)
				ofTarget := with(with(workload.Labels, pairs(target.Labels)...), "environment", f.Environment,
					"workspace", workload.Workspace, "workload", workload.Name, "deployment-target", name)
				if policy.Workspace != "" && policy.Workspace != workload.Workspace ||
					!selects(policy.WorkloadSelector, ofWorkload) || !selects(policy.DeploymentTargetSelector, ofTarget) {
					continue
				}
				add := func(host string, ofHost map[string]string, taints []fleet.Taint) {
					switch key := host + "/" + name; {
					case !selects(policy.ClusterTypeSelector, ofHost) || !selects(policy.ClusterSelector, ofHost):
					case policy.Effect == "exclude":
						excluded[key] = append(excluded[key], policy.Name)
					case tolerated(taints, policy.Tolerations):
						assigned[key] = append(assigned[key], policy.Name)
					}
				}
				if policy.ClusterSelector == nil {
					for _, ofType := range f.ClusterTypes {
						add(ofType.Name, with(ofType.Labels, "environment", f.Environment, "cluster-type", ofType.Name), ofType.Taints)
					}
					continue
				}
				for _, cluster := range f.Clusters {
					ofType := types[cluster.ClusterType]
					own := with(with(ofType.Labels, pairs(cluster.Labels)...), "environment", f.Environment,
						"cluster-type", ofType.Name, "cluster", cluster.Name)
					taints := map[string]fleet.Taint{}
					for _, taint := range slices.Concat(ofType.Taints, cluster.Taints) {
						taints[taint.Key] = taint
					}
					add("clusters/"+cluster.Name, own, slices.Collect(maps.Values(taints)))
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

func with(set map[string]string, pairs ...string) map[string]string {
	copied := maps.Clone(set)
	if copied == nil {
		copied = map[string]string{}
	}
	for i := 0; i < len(pairs); i += 2 {
		copied[pairs[i]] = pairs[i+1]
	}
	return copied
}

func pairs(set map[string]string) []string {
	var pairs []string
	for key, value := range set {
		pairs = append(pairs, key, value)
	}
	return pairs
}

// selects takes each form of the selector by itself.
func selects(selector *fleet.Selector, set map[string]string) bool {
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
	byText, err := labels.Parse(selector.Expression)
	if err != nil {
		panic(err)
	}
	return byText.Matches(labels.Set(set))
}

func tolerated(taints []fleet.Taint, tolerations []fleet.Toleration) bool {
	for _, taint := range taints {
		some := false
		for _, t := range tolerations {
			keys := t.Key == taint.Key || t.Key == "" && t.Operator == "Exists"
			values := t.Operator == "Exists" || t.Value == taint.Value
			some = some || keys && values && (t.Effect == "" || t.Effect == taint.Effect)
		}
		if !some {
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
		t.Errorf("%d assignments and %d excluded: too few to mean anything", total, totalExcluded)
	}
}

func TestTheOrderOfTheInputDoesNotMatter(t *testing.T) {
	for seed := range uint64(acceptancetest.Count(100, 500)) {
		f, config := fleettest.Small(seed)
		want := everyDecision(t, fleettest.Input(f, config))
		shuffled := fleettest.Input(f, config)
		random := rand.New(rand.NewPCG(seed, 3))
		for _, name := range slices.Sorted(maps.Keys(shuffled)) {
			if list, ok := shuffled[name].([]any); ok {
				random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			}
		}
		if got := everyDecision(t, shuffled); got != want {
			t.Fatalf("seed %d:\n%s\nshuffled:\n%s", seed, want, got)
		}
	}
}

// everyDecision writes a schedule out.
func everyDecision(t *testing.T, input map[string]any) string {
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
