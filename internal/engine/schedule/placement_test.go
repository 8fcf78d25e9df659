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

// placementFleet returns a fleet with a cluster type for each host, some targets, and one policy with a placement. label
// returns the labels of a cluster type.
func placementFleet(hosts []string, targets int, placement fleet.Placement, label func(string) fleet.Labels) *fleet.Fleet {
	f := &fleet.Fleet{Environment: "dev"}
	for _, host := range hosts {
		f.ClusterTypes = append(f.ClusterTypes, fleet.ClusterType{Name: host, Labels: label(host)})
	}
	workload := fleet.Workload{Name: "app"}
	for i := range targets {
		workload.DeploymentTargets = append(workload.DeploymentTargets, fleet.DeploymentTarget{Name: fmt.Sprintf("t%03d", i)})
	}
	f.Workloads = []fleet.Workload{workload}
	f.TargetPolicies = []fleet.TargetPolicy{{
		Name: "some", Effect: "schedule", ClusterTypeSelector: &fleet.Selector{}, Placement: &placement,
	}}
	return f
}

func noLabels(string) fleet.Labels { return nil }

// hostsByTarget returns the hosts of each deployment target.
func hostsByTarget(t *testing.T, f *fleet.Fleet) map[string][]string {
	t.Helper()
	result, findings := schedule.Schedule(f)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	byTarget := map[string][]string{}
	for _, assignment := range result.Assignments {
		byTarget[assignment.Target.Name] = append(byTarget[assignment.Target.Name], assignment.Host.Name)
	}
	return byTarget
}

func hostNames(count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("host-%02d", i)
	}
	return names
}

func TestPlacementTakesTheNumberOfHosts(t *testing.T) {
	for target, hosts := range hostsByTarget(t, placementFleet(hostNames(9), 50, fleet.Placement{NumberOfHosts: 3}, noLabels)) {
		if len(hosts) != 3 || len(slices.Compact(hosts)) != 3 {
			t.Errorf("%s is on %q, want three hosts", target, hosts)
		}
	}
}

func TestPlacementWarnsOfTooFewHosts(t *testing.T) {
	f := placementFleet(hostNames(2), 1, fleet.Placement{NumberOfHosts: 3}, noLabels)
	if got := hostsByTarget(t, f)["app-t000"]; len(got) != 2 {
		t.Errorf("on %q, want both hosts", got)
	}
	result, _ := schedule.Schedule(f)
	want := `target_policies["some"].placement.number_of_hosts: wants 3 hosts, but the policy selects 2: all of them are used`
	if len(result.Warnings) != 1 || result.Warnings[0].String() != want {
		t.Errorf("warnings %v, want %s", result.Warnings, want)
	}
}

func TestPlacementWarnsOfLabelsWithoutHosts(t *testing.T) {
	const policy = "number_of_hosts: 1, spread: [{key: regoin}, {key: size}], " +
		"prefer: [{selector: {match_labels: {size: large}}, weight: 1}, {selector: {match_labels: {size: huge}}, weight: 1}, {selector: {}, weight: 1}]"
	for name, test := range map[string]struct {
		selector string
		want     []string
	}{
		"hosts without them": {"{}", []string{
			`target_policies["p"].placement.prefer[1].selector: none of the hosts that the policy selects has size=huge: the weight has no effect`,
			`target_policies["p"].placement.spread[0].key: none of the hosts that the policy selects has label "regoin": ` +
				`the spread has no effect; did you mean "region"?`,
		}},
		"no hosts at all": {"{match_labels: {size: tiny}}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			result, findings := schedule.Schedule(decode(t, hosts+workloads+
				"target_policies: [{name: p, cluster_type_selector: "+test.selector+", placement: {"+policy+"}}]"))
			if len(findings) > 0 {
				t.Fatal(findings)
			}
			if got := findingTexts(result.Warnings); !slices.Equal(got, test.want) {
				t.Errorf("warnings %q, want %q", got, test.want)
			}
		})
	}
}

// Nothing moves between the other hosts.
func TestAddingAHostMovesAtMostItsShare(t *testing.T) {
	const targets, wanted = 400, 3
	for count := 4; count < 30; count += 5 {
		hosts := hostNames(count + 1)
		before := hostsByTarget(t, placementFleet(hosts[:count], targets, fleet.Placement{NumberOfHosts: wanted}, noLabels))
		after := hostsByTarget(t, placementFleet(hosts, targets, fleet.Placement{NumberOfHosts: wanted}, noLabels))
		moved := 0
		for target := range after {
			for _, host := range after[target] {
				if !slices.Contains(before[target], host) {
					moved++
					if host != hosts[count] {
						t.Fatalf("%s moved to %s, which was there before", target, host)
					}
				}
			}
		}
		// The share is a mean. Four standard deviations allow for chance.
		share := float64(targets*wanted) / float64(count+1)
		if float64(moved) > share+4*sqrt(share) {
			t.Errorf("the host added to %d took %d assignments, want at most about %.0f", count, moved, share)
		}
		if moved == 0 {
			t.Errorf("the host added to %d took nothing", count)
		}
	}
}

func sqrt(x float64) float64 {
	root := x
	for range 40 {
		root = (root + x/root) / 2
	}
	return root
}

func TestRemovingAHostMovesOnlyItsAssignments(t *testing.T) {
	hosts := hostNames(12)
	for removed := range hosts {
		remaining := slices.Delete(slices.Clone(hosts), removed, removed+1)
		before := hostsByTarget(t, placementFleet(hosts, 100, fleet.Placement{NumberOfHosts: 4}, noLabels))
		after := hostsByTarget(t, placementFleet(remaining, 100, fleet.Placement{NumberOfHosts: 4}, noLabels))
		for target := range before {
			for _, host := range before[target] {
				if host != hosts[removed] && !slices.Contains(after[target], host) {
					t.Fatalf("%s left %s, but only %s was removed", target, host, hosts[removed])
				}
			}
		}
	}
}

func TestPreferredHostsComeFirst(t *testing.T) {
	label := func(host string) fleet.Labels {
		switch host {
		case "host-01", "host-02":
			return fleet.Labels{"disk": "ssd", "size": "large"}
		case "host-05":
			return fleet.Labels{"disk": "ssd"}
		case "host-07":
			return fleet.Labels{"old": "true"}
		}
		return nil
	}
	placement := fleet.Placement{NumberOfHosts: 3, Prefer: []fleet.Preference{
		{Selector: &fleet.Selector{MatchLabels: map[string]string{"disk": "ssd"}}, Weight: 10},
		{Selector: &fleet.Selector{MatchLabels: map[string]string{"size": "large"}}, Weight: 1},
		{Selector: &fleet.Selector{MatchLabels: map[string]string{"old": "true"}}, Weight: -5},
	}}
	for target, hosts := range hostsByTarget(t, placementFleet(hostNames(9), 20, placement, label)) {
		if !slices.Equal(hosts, []string{"host-01", "host-02", "host-05"}) {
			t.Errorf("%s is on %q, want the hosts with an SSD", target, hosts)
		}
	}
	placement.NumberOfHosts = 8
	for target, hosts := range hostsByTarget(t, placementFleet(hostNames(9), 20, placement, label)) {
		if slices.Contains(hosts, "host-07") {
			t.Errorf("%s is on host-07, which is the last choice", target)
		}
	}
}

func TestSpreadKeepsZonesEven(t *testing.T) {
	zone := func(host string) fleet.Labels { return fleet.Labels{"zone": string("abc"[host[len(host)-1]%3])} }
	for skew := 1; skew <= 3; skew++ {
		placement := fleet.Placement{NumberOfHosts: 7, Spread: []fleet.Spread{{Key: "zone", MaxSkew: skew}}}
		for target, hosts := range hostsByTarget(t, placementFleet(hostNames(30), 60, placement, zone)) {
			counts := map[string]int{"a": 0, "b": 0, "c": 0}
			for _, host := range hosts {
				counts[zone(host)["zone"]]++
			}
			values := slices.Collect(maps.Values(counts))
			if len(hosts) != 7 || slices.Max(values)-slices.Min(values) > skew {
				t.Errorf("%s is on %d hosts, by zone %v, want 7 and a skew of at most %d", target, len(hosts), counts, skew)
			}
		}
	}
}

func TestSpreadYieldsIfAZoneHasNoHostsLeft(t *testing.T) {
	zone := func(host string) fleet.Labels {
		if host == "host-00" {
			return fleet.Labels{"zone": "small"}
		}
		return fleet.Labels{"zone": "large"}
	}
	placement := fleet.Placement{NumberOfHosts: 5, Spread: []fleet.Spread{{Key: "zone", MaxSkew: 1}}}
	for target, hosts := range hostsByTarget(t, placementFleet(hostNames(8), 10, placement, zone)) {
		if len(hosts) != 5 || !slices.Contains(hosts, "host-00") {
			t.Errorf("%s is on %q, want five hosts, with the one of zone small", target, hosts)
		}
	}
}

func TestExcludedHostsAreNotChosen(t *testing.T) {
	f := placementFleet(hostNames(5), 20, fleet.Placement{NumberOfHosts: 3}, noLabels)
	f.TargetPolicies = append(f.TargetPolicies, fleet.TargetPolicy{
		Name: "without", Effect: "exclude", ClusterTypeSelector: &fleet.Selector{Expression: "cluster-type in (host-00, host-01)"},
	})
	for target, hosts := range hostsByTarget(t, f) {
		if !slices.Equal(hosts, []string{"host-02", "host-03", "host-04"}) {
			t.Errorf("%s is on %q, want the three that are not excluded", target, hosts)
		}
	}
}

func TestPlacementDoesNotDependOnTheOrderOfTheFleet(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	hosts := hostNames(20)
	zone := func(host string) fleet.Labels { return fleet.Labels{"zone": host[len(host)-1:]} }
	placement := fleet.Placement{NumberOfHosts: 6, Spread: []fleet.Spread{{Key: "zone", MaxSkew: 1}}}
	want := fmt.Sprint(hostsByTarget(t, placementFleet(hosts, 30, placement, zone)))
	for range 20 {
		random.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
		if got := fmt.Sprint(hostsByTarget(t, placementFleet(hosts, 30, placement, zone))); got != want {
			t.Fatalf("another order of hosts gives\n%s\nwant\n%s", got, want)
		}
	}
}

func TestBadPlacementIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		placement map[string]any
		want      string
	}{
		"no number":       {map[string]any{}, `placement.number_of_hosts: is required`},
		"misspelt":        {map[string]any{"number_of_host": 1}, `placement.number_of_host: unknown attribute; did you mean "number_of_hosts"?`},
		"no selector":     {map[string]any{"prefer": []any{map[string]any{}}}, `placement.prefer[0].selector: is required`},
		"label":           {map[string]any{"spread": []any{map[string]any{"key": "a b"}}}, `placement.spread[0].key: "a b" is not the key of a label`},
		"absent":          {map[string]any{"spread": []any{map[string]any{}}}, `placement.spread[0].key: is required`},
		"not an object":   {map[string]any{"spread": []any{"zone"}}, `placement.spread[0]: must be an object, not a string`},
		"text for number": {map[string]any{"number_of_hosts": "three"}, `placement.number_of_hosts: must be a whole number, not a string`},
	} {
		t.Run(name, func(t *testing.T) {
			findings := fleet.CheckObject("target_policies", map[string]any{
				"name": "p", "environment": "dev", "cluster_type_selector": map[string]any{}, "placement": test.placement,
			})
			if !strings.Contains(findings.Error(), test.want) {
				t.Errorf("findings\n%s\nwant\n%s", findings, test.want)
			}
		})
	}
}
