package provider_test

import (
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/facts"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// versions is a rollout of Kubernetes versions over three clusters.
type versions struct {
	t         *testing.T
	w         providertest.Runner
	clock     *stoppedClock
	now       time.Time
	clusters  []string
	facts     map[string]evidence.ClusterFacts
	overrides map[string]any // of attributes
	provider  map[string]any // block
}

func newVersions(t *testing.T) *versions {
	t.Helper()
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	clock := &stoppedClock{now: noon}
	return &versions{
		t: t, w: providertest.New(provider.StartAt(clock)), clock: clock, now: noon, clusters: []string{"canary", "prod-1", "prod-2"},
		facts: map[string]evidence.ClusterFacts{}, overrides: map[string]any{"proof": "facts.kubernetes_version.startsWith(value)"},
	}
}

// reportVersion sets facts of clusters: they run a version and are ready.
func (v *versions) reportVersion(version string, clusters ...string) {
	for _, cluster := range clusters {
		v.facts[cluster] = evidence.ClusterFacts{
			Status: verdict.Status{Verdict: verdict.Ready, Since: v.now}, Facts: (&facts.OwnFacts{Version: "v" + version + ".4"}).Known(100).Facts,
		}
	}
}

// passHour moves the time of evidence by an hour.
func (v *versions) passHour() { v.now = v.now.Add(time.Hour) }

func (v *versions) evidence() string {
	return string((&evidence.Facts{Time: v.now, Clusters: v.facts}).Marshal())
}

func (v *versions) fleet() providertest.Call {
	var clusters []any
	for _, name := range v.clusters {
		ring, _, _ := strings.Cut(name, "-")
		clusters = append(clusters, map[string]any{"name": name, "cluster_type": "edge", "labels": map[string]any{"ring": ring}})
	}
	return providertest.Call{Function: "fleet", Arguments: []any{map[string]any{
		"environment": "prod", "cluster_types": []any{map[string]any{"name": "edge"}}, "clusters": clusters,
	}}}
}

func (v *versions) configuration(wanted any) providertest.Configuration {
	attributes := map[string]any{
		"name": "kubernetes", "fleet": v.fleet(), "wanted": wanted, "evidence": v.evidence(),
		"stages": []any{map[string]any{"name": "canary", "cluster_selector": map[string]any{"match_labels": map[string]any{"ring": "canary"}}}},
	}
	maps.Copy(attributes, v.overrides)
	return providertest.Configuration{Provider: v.provider, Resources: map[string]providertest.Resource{kubernetes: {Attributes: attributes}}}
}

// applyAndExpect applies, expects values in the order of clusters, and an empty next plan. It returns the planned attributes.
func (v *versions) applyAndExpect(wanted any, values ...any) map[string]any {
	v.t.Helper()
	plan := apply(v.t, v.w, v.configuration(wanted))
	again, diags := v.w.Plan(v.t.Context(), v.configuration(wanted))
	if diags.Err() != nil || !again.Empty() {
		v.t.Fatalf("the next plan reports %v: %v", diags, again)
	}
	state := v.state()
	if change := again.Change(kubernetes); change != nil {
		state = change.Before
	}
	expected := map[string]any{}
	for i, cluster := range v.clusters {
		expected[cluster] = values[i]
	}
	if !reflect.DeepEqual(state["values"], expected) {
		v.t.Errorf("got values %v, want %v: %v", state["values"], expected, state["rolling_out"])
	}
	if change := plan.Change(kubernetes); change != nil && change.Action != providertest.NoOp {
		return change.After
	}
	return state
}

// rollingOut returns the summary of the rollout; "" if no value is under way.
func rollingOut(state map[string]any) string {
	summary, _ := state["rolling_out"].(map[string]any)
	text, _ := summary["summary"].(string)
	return text
}

// state returns the attributes in the state, without types of values.
func (v *versions) state() map[string]any {
	state := v.w.Now().Values(kubernetes)
	for name, value := range state {
		if typed, isObject := value.(map[string]any); isObject && typed["type"] != nil {
			state[name] = typed["value"]
		}
	}
	return state
}
