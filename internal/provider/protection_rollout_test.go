package provider_test

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// additionRollout is an assignment on twelve cluster types. type-0 is the canary. A rollout adds the workload agent.
type additionRollout struct {
	t       *testing.T
	url     string
	w       *providertest.Workspace
	now     time.Time
	failed  map[string]bool   // clusters with a failed agent
	tags    map[string]string // tags of workloads, by default "v1"
	check   *evidence.Check   // further evidence, or nil
	rollout map[string]any
	further map[string]any
}

func newAdditionRollout(t *testing.T) *additionRollout {
	t.Helper()
	a := &additionRollout{
		t:      t,
		url:    bare(t),
		w:      providertest.New(startProvider),
		now:    time.Now().UTC().Truncate(time.Second),
		failed: map[string]bool{},
	}
	apply(t, a.w, a.configuration("a", "b"))
	a.rollout = ringRollout(map[string]any{"on_failure": "roll_back", "failed_for": "1s"})
	return a
}

func (a *additionRollout) fleet(workloads ...string) providertest.Call {
	argument := map[string]any{
		"environment": "dev", "workspaces": []any{map[string]any{"name": "team"}}, "cluster_types": []any{}, "clusters": []any{}, "workloads": []any{},
		"target_policies": []any{policy("everywhere", map[string]any{}, map[string]any{})},
	}
	add := func(key string, value map[string]any) { argument[key] = append(argument[key].([]any), value) }
	for i := range 12 {
		name := fmt.Sprint("type-", i)
		ring := "rest"
		if i == 0 {
			ring = "canary"
		}
		add("cluster_types", map[string]any{"name": name, "labels": map[string]any{"ring": ring}})
		add("clusters", map[string]any{"name": "c-" + name, "cluster_type": name})
	}
	for _, name := range workloads {
		add("workloads", map[string]any{"name": name, "workspace": "team", "deployment_targets": map[string]any{
			"live": map[string]any{
				"environment": "dev",
				"manifests":   map[string]any{"repo": "https://git.example.com/" + name, "tag": cmp.Or(a.tags[name], "v1")},
			},
		}})
	}
	return providertest.Call{Function: "fleet", Arguments: []any{argument}}
}

// evidence reports all clusters ready at the tip, except for failed agents.
func (a *additionRollout) evidence() string {
	a.now = a.now.Add(time.Hour)
	e := &observe.Evidence{
		About: ringsAbout, Time: a.now, Tip: git(a.t, a.url, "rev-parse", "dev"), Clusters: map[string]observe.ClusterEvidence{}, Trees: map[string]map[string]string{},
	}
	for i := range 12 {
		cluster := observe.ClusterEvidence{
			Type:   fmt.Sprint("type-", i),
			Commit: e.Tip,
			Status: verdict.Status{Verdict: verdict.Ready, Since: a.now.Add(-time.Minute)},
		}
		if name := "c-" + cluster.Type; a.failed[name] && a.hasFolder(cluster.Type+"/agent-live") {
			cluster.Assignments = map[string]observe.AssignmentStatus{cluster.Type + "/agent-live": {
				Commit: e.Tip, Status: verdict.Status{Verdict: verdict.Failed, Since: a.now.Add(-time.Minute), Message: "ImagePullBackOff"},
			}}
		}
		e.Clusters["c-"+cluster.Type] = cluster
	}
	return string(e.Marshal())
}

func (a *additionRollout) configuration(workloads ...string) providertest.Configuration {
	further := map[string]any{"protection": map[string]any{"max_removed_percent": 10}}
	if a.rollout != nil {
		documents := []any{a.evidence()}
		if a.check != nil {
			documents = append(
				documents,
				string((&evidence.Measurements{Environment: "dev", Time: a.now, Checks: []evidence.Check{*a.check}}).Marshal()),
			)
		}
		further["rollout"], further["evidence"] = a.rollout, documents
	}
	maps.Copy(further, a.further)
	return assigned(a.url, a.fleet(workloads...), further)
}

func (a *additionRollout) hasFolder(folder string) bool {
	return git(a.t, a.url, "ls-tree", "dev", "clusters/all/"+folder) != ""
}

func (a *additionRollout) countAgentFolders() int {
	a.t.Helper()
	return strings.Count(git(a.t, a.url, "ls-tree", "-d", "-r", "--name-only", "dev"), "/agent-live")
}

func (a *additionRollout) rollOutAgent() {
	a.t.Helper()
	for _, want := range []int{1, 12} {
		apply(a.t, a.w, a.configuration("a", "b", "agent"))
		if got := a.countAgentFolders(); got != want {
			a.t.Fatalf("the agent is on %d hosts, want %d", got, want)
		}
	}
}

func TestProtectionLetsARolloutRemoveItsAdditions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rollout   map[string]any
		workloads []string
		further   func(*additionRollout) map[string]any
	}{
		"rollback":               {workloads: []string{"a", "b", "agent"}},
		"halt and revert":        {rollout: ringRollout(nil), workloads: []string{"a", "b"}},
		"revert without rollout": {workloads: []string{"a", "b"}},
		"halt and rollback_to": {rollout: ringRollout(nil), workloads: []string{"a", "b", "agent"}, further: func(a *additionRollout) map[string]any {
			return map[string]any{"rollback_to": git(a.t, a.url, "rev-list", "--max-parents=0", "dev")}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			playAlways(t, name, "rollback", "halt and rollback_to")
			t.Parallel()
			a := newAdditionRollout(t)
			if test.rollout != nil {
				a.rollout = test.rollout
			}
			a.rollOutAgent()
			a.failed["c-type-0"] = true
			if name == "revert without rollout" {
				a.rollout = nil
			}
			if test.further != nil {
				a.further = test.further(a)
			}
			for range 6 {
				apply(t, a.w, a.configuration(test.workloads...))
			}
			if got := a.countAgentFolders(); got != 0 {
				t.Errorf("the agent stays on %d hosts", got)
			}
		})
	}
}

func TestProtectionNamesTheCauseOfARemoval(t *testing.T) {
	t.Parallel()
	taintType3 := func(argument map[string]any) {
		argument["cluster_types"].([]any)[3].(map[string]any)["taints"] = []any{map[string]any{"key": "edge"}}
	}
	for name, test := range map[string]struct {
		change  func(argument map[string]any)
		further func(*additionRollout) map[string]any
		want    string
	}{
		"a host":     {change: taintType3, want: moveLine(changes.RemovalLine, "type-3/a-live, type-3/b-live", causeBy(changes.ByClusterType, "type-3"))},
		"a workload": {change: func(argument map[string]any) { argument["workloads"] = argument["workloads"].([]any)[:1] }, want: causeText(changes.Cause{Kind: changes.ByWorkload, Name: "b", How: changes.Removed})},
		"a policy": {change: func(argument map[string]any) {
			argument["target_policies"] = []any{policy("everywhere", map[string]any{}, map[string]any{"match_labels": map[string]any{"ring": "canary"}})}
		}, want: "22 assignments" + causeText(causeBy(changes.ByPolicy, "everywhere"))},
		"a roll back": {further: func(a *additionRollout) map[string]any {
			first := git(a.t, a.url, "rev-list", "--max-parents=0", "dev")
			apply(a.t, a.w, a.configuration("a", "b", "agent"))
			return map[string]any{"rollback_to": first}
		}, want: "12 assignments" + causeText(causeBy(changes.ByRollback, ""))},
		"a move": {further: func(*additionRollout) map[string]any {
			return map[string]any{"gitops_repo": map[string]any{"url": bare(t), "branch": "dev", "path": "clusters/all"}}
		}, want: `gitops_repo is now branch "dev" at path "clusters/all" of `},
	} {
		t.Run(name, func(t *testing.T) {
			playAlways(t, name, "a host", "a roll back", "a move")
			t.Parallel()
			a := newAdditionRollout(t)
			a.rollout, a.further = nil, nil
			if test.further != nil {
				a.further = test.further(a)
			}
			configuration := a.configuration("a", "b")
			attributes := configuration.Resources[assignment].Attributes
			attributes["protection"] = map[string]any{"max_removed": 0}
			fleet := a.fleet("a", "b")
			if test.change != nil {
				test.change(fleet.Arguments[0].(map[string]any))
			}
			attributes["fleet"] = fleet
			if _, diags := a.w.Plan(t.Context(), configuration); !strings.Contains(diags.String(), "The cause:\n") ||
				!strings.Contains(diags.String(), test.want) {
				t.Errorf("got %s, want %q", diags, test.want)
			}
		})
	}
}

func TestPlanRefusedByProtectionReportsTheFailedRollout(t *testing.T) {
	t.Parallel()
	a := newAdditionRollout(t)
	a.rollout = ringRollout(nil)
	a.rollOutAgent()
	a.failed["c-type-0"], a.further = true, map[string]any{"protection": map[string]any{"max_removed": 0}}
	_, diags := a.w.Plan(t.Context(), a.configuration("a", "agent"))
	if !diags.Has("Rollout has failed") || !strings.Contains(diags.String(), "The cause:\n"+moveLine(changes.RemovalLine, "type-0/b-live", changes.Cause{Kind: changes.ByWorkload, Name: "b", How: changes.Removed})) {
		t.Errorf("the plan does not report the failure and the cause: %s", diags)
	}
}

// A figure of a cluster identifies a change only if it is the only change in progress there.
func TestMeasurementsRollBackOnlyIdentifiedChanges(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		of    evidence.SubjectKind
		fails string // the subject of the figure
		tags  map[string]string
		want  string
	}{
		"a cluster, two changes":    {evidence.OfCluster, "c-type-0", map[string]string{"a": "v2", "b": "v2"}, ""},
		"a cluster, one change":     {evidence.OfCluster, "c-type-0", map[string]string{"a": "v2"}, "a"},
		"a host, two changes":       {evidence.OfHost, "type-0", map[string]string{"a": "v2", "b": "v2"}, ""},
		"the fleet, two changes":    {evidence.OfFleet, "", map[string]string{"a": "v2", "b": "v2"}, ""},
		"an assignment, of two":     {evidence.OfAssignment, "type-0/b-live", map[string]string{"a": "v2", "b": "v2"}, "b"},
		"the fleet, and one change": {evidence.OfFleet, "", map[string]string{"b": "v2"}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			playAlways(t, name, "a cluster, two changes", "an assignment, of two")
			t.Parallel()
			a := newAdditionRollout(t)
			a.tags = test.tags
			apply(t, a.w, a.configuration("a", "b"))
			written := git(t, a.url, "rev-parse", "dev")
			a.check = &evidence.Check{
				Name:    "errors",
				Of:      test.of,
				Pass:    "value < 1.0",
				Fail:    "value > 5.0",
				Figures: map[string]evidence.Figure{test.fails: {Value: 9}},
			}
			if test.of == evidence.OfAssignment {
				a.check.Figures["type-0/a-live"] = evidence.Figure{Value: 3}
			}
			var diags providertest.Diagnostics
			for range 3 {
				_, diags = a.w.Apply(t.Context(), a.configuration("a", "b"))
			}
			for workload := range test.tags {
				folder := "clusters/all/type-0/" + workload + "-live"
				isRolledBack := git(t, a.url, "rev-parse", "dev:"+folder) != git(t, a.url, "rev-parse", written+":"+folder)
				if isRolledBack != (workload == test.want) {
					t.Errorf("rolled back %s: got %v, want %v: %s", workload, isRolledBack, workload == test.want, diags)
				}
				if otherFolder := "clusters/all/type-1/" + workload + "-live"; git(
					t,
					a.url,
					"rev-parse",
					"dev:"+otherFolder,
				) != git(
					t,
					a.url,
					"rev-parse",
					written+":"+otherFolder,
				) {
					t.Errorf("the rollout of %s continues", workload)
				}
			}
			if want := "said of no assignment in particular, so it is not rolled back"; test.want == "" && !strings.Contains(diags.String(), want) {
				t.Errorf("got %s, want %q", diags, want)
			}
		})
	}
}
