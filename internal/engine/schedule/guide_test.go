package schedule_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

var update = flag.Bool("update", false, "rewrite the tables of the guide")

// guideFleet is the fleet of templates/guides/how-it-works.md.tmpl.
const guideFleet = `
cluster_types:
- {name: drone, labels: {region: east, edge: 'true'}}
- {name: kiosk, labels: {region: west, edge: 'true'}}
- {name: large, labels: {region: west, size: large}}
- {name: vault, labels: {region: east, size: large}, taints: [{key: restricted}]}
clusters:
- {name: drone-1, cluster_type: drone, labels: {site: harbour}}
- {name: large-1, cluster_type: large, labels: {site: station}}
workloads:
- name: app
  deployment_targets:
    edge:     {labels: {tier: edge}}
    core:     {labels: {tier: core}}
    audit:    {labels: {tier: audit}}
    harbour:  {labels: {tier: harbour}}
    one-edge: {labels: {tier: one-edge}}
    legacy:   {labels: {tier: legacy}}
    south:    {labels: {tier: south}}
    typo:     {labels: {tier: cor}}
target_policies:
- {name: edge, deployment_target_selector: {match_labels: {tier: edge}}, cluster_type_selector: {match_labels: {edge: 'true'}}}
- {name: east, deployment_target_selector: {match_labels: {tier: edge}}, cluster_type_selector: {match_labels: {region: east}}}
- {name: core, deployment_target_selector: {match_labels: {tier: core}}, cluster_type_selector: {match_labels: {size: large}}}
- {name: audit, deployment_target_selector: {match_labels: {tier: audit}}, cluster_type_selector: {match_labels: {size: large}}, tolerations: [{key: restricted, operator: Exists}]}
- {name: harbour, deployment_target_selector: {match_labels: {tier: harbour}}, cluster_selector: {match_labels: {site: harbour}}}
- {name: one-edge, deployment_target_selector: {match_labels: {tier: one-edge}}, cluster_type_selector: {match_labels: {edge: 'true'}}, placement: {number_of_hosts: 1}}
- {name: legacy, deployment_target_selector: {match_labels: {tier: legacy}}, cluster_type_selector: {match_labels: {size: large}}}
- {name: no-legacy, effect: exclude, deployment_target_selector: {match_labels: {tier: legacy}}, cluster_type_selector: {}}
- {name: south, deployment_target_selector: {match_labels: {tier: south}}, cluster_type_selector: {match_labels: {edge: 'true', region: south}}}
`

// TestGuideShowsEachDecisionAndItsReason compares the guide's tables with the decisions of the scheduler.
func TestGuideShowsEachDecisionAndItsReason(t *testing.T) {
	f := decode(t, guideFleet)
	result, findings := schedule.Schedule(f)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	path := filepath.Join("..", "..", "..", "templates", "guides", "how-it-works.md.tmpl")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(content)
	for name, rows := range map[string][]string{
		"hosts":     append([]string{"| host | labels | taints |", "|---|---|---|"}, hostRows(result)...),
		"policies":  append([]string{"| target policy | selects | goes to |", "|---|---|---|"}, policyRows(t, f)...),
		"decisions": append([]string{"| deployment target | decision | why |", "|---|---|---|"}, decisionRows(result)...),
	} {
		begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
		before, rest, found := strings.Cut(want, begin)
		_, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			t.Fatalf("%s has no place for the table of %s", path, name)
		}
		want = before + begin + strings.Join(rows, "\n") + "\n" + end + after
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if want != string(content) {
		t.Errorf("%s is out of date: run go test ./internal/engine/schedule -update, and make docs", path)
	}
}

func hostRows(result *schedule.Decisions) []string {
	rows := make([]string, len(result.Hosts))
	for i, host := range result.Hosts {
		var taints []string
		for _, taint := range host.Taints {
			taints = append(taints, "`"+taint.String()+"`")
		}
		rows[i] = fmt.Sprintf("| `%s` | %s | %s |", host.Name, labelCell(host.Labels), strings.Join(taints, " "))
	}
	return rows
}

func labelCell(labels fleet.Labels) string {
	var cells []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		cells = append(cells, "`"+key+"="+labels[key]+"`")
	}
	return strings.Join(cells, " ")
}

func policyRows(t *testing.T, f *fleet.Fleet) []string {
	t.Helper()
	text := func(selector *fleet.Selector) string {
		if selector == nil {
			return ""
		}
		requirements, findings := selector.Compile()
		if len(findings) > 0 {
			t.Fatal(findings)
		}
		if requirements.String() == "" {
			return "every one"
		}
		return "`" + requirements.String() + "`"
	}
	rows := make([]string, len(f.TargetPolicies))
	for i, policy := range f.TargetPolicies {
		destination := "cluster types with " + text(policy.ClusterTypeSelector)
		if policy.ClusterSelector != nil {
			destination = "clusters with " + text(policy.ClusterSelector)
		} else if destination == "cluster types with every one" {
			destination = "every cluster type"
		}
		if len(policy.Tolerations) > 0 {
			destination += ", tolerates `" + policy.Tolerations[0].Key + "`"
		}
		if policy.Placement != nil {
			destination += fmt.Sprintf(", %d of them", policy.Placement.NumberOfHosts)
		}
		if policy.Effect == "exclude" {
			destination = "**not** to " + destination
		}
		rows[i] = fmt.Sprintf("| `%s` | %s | %s |", policy.Name, text(policy.DeploymentTargetSelector), destination)
	}
	return rows
}

func decisionRows(result *schedule.Decisions) []string {
	rows := map[string][]string{}
	for _, assignment := range result.Assignments {
		name := assignment.Target.Name
		rows[name] = append(rows[name], fmt.Sprintf("| `%s` | goes to `%s` | target policy `%s` |",
			name, assignment.Host.Name, strings.Join(assignment.Policies, "`, `")))
	}
	for _, unscheduled := range result.Unscheduled {
		why := unscheduled.Reason
		if unscheduled.FailedRequirement != "" && unscheduled.NearestHost != "" {
			why += fmt.Sprintf("; nearest is `%s`, which lacks `%s`", unscheduled.NearestHost, unscheduled.FailedRequirement)
		}
		rows[unscheduled.DeploymentTarget] = []string{fmt.Sprintf("| `%s` | has no host | %s |", unscheduled.DeploymentTarget, why)}
	}
	var sorted []string
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		sorted = append(sorted, rows[name]...)
	}
	return sorted
}
