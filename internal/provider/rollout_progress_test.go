package provider_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

var crowdSize = acceptancetest.Count(30, 100)

// crowdFleet returns a fleet whose workloads are on one host in the first of five stages, and on two hosts in each other stage.
func crowdFleet(version string) map[string]any {
	var types, workloads []any
	for i := range 9 {
		types = append(types, map[string]any{"name": fmt.Sprintf("type-%d", i), "labels": map[string]any{"ring": fmt.Sprint((i + 1) / 2)}})
	}
	for i := range crowdSize {
		workloads = append(workloads, map[string]any{
			"name": fmt.Sprintf("w%03d", i), "workspace": "team", "deployment_targets": map[string]any{"live": map[string]any{
				"environment": "dev", "manifests": map[string]any{"repo": "https://git.example.com/w", "branch": "main", "path": "deploy"},
			}},
		})
	}
	return map[string]any{
		"environment": "dev", "workspaces": []any{map[string]any{"name": "team"}}, "cluster_types": types, "workloads": workloads,
		"target_policies":   []any{map[string]any{"name": "all", "workload_selector": map[string]any{}, "cluster_type_selector": map[string]any{}}},
		"config_containers": []any{map[string]any{"name": "all", "data": map[string]any{"VERSION": version}}},
	}
}

// The plan summarizes many deployment targets in a few lines. flotilla_compliance returns the progress of each in rollouts.
func TestAPlanOfALargeRolloutIsShort(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	fleet := func(version string) providertest.Call {
		return providertest.Call{Function: "fleet", Arguments: []any{crowdFleet(version)}}
	}
	apply(t, w, assigned(url, fleet("1"), nil))
	var stages []any
	for i := range 4 {
		stages = append(stages, map[string]any{
			"name": fmt.Sprintf("ring-%d", i), "cluster_type_selector": map[string]any{"match_labels": map[string]any{"ring": fmt.Sprint(i)}},
		})
	}
	evidence := mustReadCompliance(t, url, map[string]any{"fleet": fleet("2"), "feedback": map[string]any{}})["evidence"]
	plan := apply(t, w, assigned(url, fleet("2"), map[string]any{"evidence": evidence, "rollout": map[string]any{"stages": stages}}))

	summaries := assignmentAfter(plan)["rolling_out"].(map[string]any)
	text, err := json.MarshalIndent(summaries, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); len(summaries) != 1 || lines > 20 || len(text) > 2<<10 {
		t.Errorf("rolling_out has %d entries and %d lines: %.2000s", len(summaries), lines, text)
	}
	first, _ := summaries["w000-live"].(map[string]any)
	summary, _ := first["summary"].(string)
	begin := fmt.Sprintf(`%d deployment targets: stage 1 of 5 "ring-0", %d of %d hosts, since `, crowdSize, crowdSize, 9*crowdSize)
	if !strings.HasPrefix(summary, begin) ||
		!strings.HasSuffix(summary, "wait for the soak time, since only time counts") {
		t.Errorf("the summary is %q", summary)
	}
	delete(first, "summary")
	if got := fmt.Sprint(first); got != fmt.Sprintf("map[approval:<nil> others:%d state:waiting waits_for:soak]", crowdSize-1) {
		t.Errorf("the other attributes are %s", got)
	}

	values := mustReadCompliance(t, url, map[string]any{"fleet": fleet("2"), "feedback": map[string]any{}, "progress": assignmentAfter(plan)["progress"]})
	rollouts, _ := values["rollouts"].(map[string]any)
	one, _ := rollouts["w023-live"].(map[string]any)
	if len(rollouts) != crowdSize || !strings.HasPrefix(fmt.Sprint(one["approval"]), "w023-live@") {
		t.Fatalf("got %d rollouts, and w023-live is %v", len(rollouts), one)
	}
	delete(one, "approval")
	delete(one, "since")
	delete(one, "summary")
	if got := fmt.Sprint(one); got != "map[hosts:9 hosts_done:1 removes:false stage:1 stage_name:ring-0 stages:5 state:waiting waits_for:soak]" {
		t.Errorf("w023-live is %s", got)
	}
}

// Hosts without a stage form a last stage. A plan does not count that stage if it is empty.
func TestAPlanCountsOnlyStagesWithHosts(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	r.rollout["stages"] = append(r.rollout["stages"].([]any),
		map[string]any{"name": "nowhere", "hosts": []any{}}, map[string]any{"name": "everything else"})
	if plan := r.applyVersion("2", "2 1 1"); !strings.Contains(rolloutText(plan), `stage 1 of 3 "canary", 1 of 3 hosts`) {
		t.Errorf("the plan says %s", rolloutText(plan))
	}
}
