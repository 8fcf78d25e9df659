package provider_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const kubernetes = "flotilla_rollout.kubernetes"

func TestAVersionIsRolledOutOverClusters(t *testing.T) {
	t.Parallel()
	v := newVersions(t)
	if state := v.applyAndExpect("1.30", "1.30", "1.30", "1.30"); state["rolled_out"] != false || state["proven"] != nil {
		t.Errorf("without evidence the state is %v", state)
	}
	v.passHour()
	v.reportVersion("1.30", v.clusters...)
	v.passHour()
	if state := v.applyAndExpect("1.30", "1.30", "1.30", "1.30"); state["rolled_out"] != true || state["proven"] != "1.30" ||
		state["rolling_out"] != nil {
		t.Errorf("with the version on all clusters the state is %v", state)
	}
	state := v.applyAndExpect("1.31", "1.31", "1.30", "1.30")
	if changes := fmt.Sprint(state["changes"]); !strings.Contains(changes, "canary: 1.30 -> 1.31") ||
		!strings.Contains(changes, `at stage 1 of 2 "canary", on 1 of 3 hosts: waits for`) {
		t.Errorf("got changes %s", changes)
	}
	v.passHour()
	if state := v.applyAndExpect("1.31", "1.31", "1.30", "1.30"); !strings.Contains(rollingOut(state), `stage 1 of 2 "canary", 1 of 3 hosts`) {
		t.Errorf("got rolling_out %v", state["rolling_out"])
	}
	v.reportVersion("1.31", "canary")
	v.passHour()
	state = v.applyAndExpect("1.31", "1.31", "1.31", "1.31")
	if !strings.Contains(fmt.Sprint(state["changes"]), "prod-1, prod-2: 1.30 -> 1.31") || state["proven"] != "1.30" {
		t.Errorf("after the canary the state is %v", state)
	}
	v.reportVersion("1.31", v.clusters...)
	v.passHour()
	if state := v.applyAndExpect("1.31", "1.31", "1.31", "1.31"); state["proven"] != "1.31" || state["rolled_out"] != true {
		t.Errorf("at the end the state is %v", state)
	}
	v.clusters = append(v.clusters, "prod-3") // a new cluster
	v.reportVersion("1.29", "prod-3")
	if _, diags := v.w.Plan(t.Context(), v.configuration("1.31")); !diags.Has("New clusters have another value") ||
		!strings.Contains(diags.String(), "existed before: prod-3.") {
		t.Errorf("the diagnostics are %s", diags)
	}
	delete(v.facts, "prod-3")
	if _, diags := v.w.Plan(t.Context(), v.configuration("1.31")); diags.Has("New clusters have another value") {
		t.Errorf("the diagnostics are %s", diags)
	}
	v.applyAndExpect("1.31", "1.31", "1.31", "1.31", "1.31")
	v.clusters = v.clusters[:2]
	if state := v.applyAndExpect("1.31", "1.31", "1.31"); !strings.Contains(
		fmt.Sprint(state["changes"]),
		"no value any more, since not in the fleet: prod-2, prod-3",
	) {
		t.Errorf("got changes %v", state["changes"])
	}
}

func TestAVersionThatFailsIsRolledBack(t *testing.T) {
	t.Parallel()
	for onFailure, want := range map[string]string{"halt": "1.31", "roll_back": "1.30"} {
		v := newVersions(t)
		v.overrides["on_failure"], v.overrides["released"] = onFailure, "1.30"
		v.reportVersion("1.30", v.clusters...)
		v.applyAndExpect("1.31", "1.31", "1.30", "1.30")
		v.passHour()
		v.reportVersion("1.31", "canary")
		failed := v.facts["canary"]
		failed.Verdict, failed.Message = verdict.Failed, "2 of 3 nodes are not ready"
		v.facts["canary"] = failed
		v.passHour()
		state := v.applyAndExpect("1.31", want, "1.30", "1.30")
		if !strings.Contains(rollingOut(state), "failed") {
			t.Errorf("%s: got rolling_out %v and changes %v", onFailure, state["rolling_out"], state["changes"])
		}
		if _, diags := v.w.Plan(t.Context(), v.configuration("1.31")); !diags.Has("Rollout has failed") {
			t.Errorf("%s: the next plan reports %v", onFailure, diags)
		}
		v.applyAndExpect("1.31.1", "1.31.1", "1.30", "1.30") // a fix starts at once
	}
}

func TestExistingClustersAreNotUpgradedAtOnce(t *testing.T) {
	t.Parallel()
	v := newVersions(t)
	v.reportVersion("1.30", "prod-1", "prod-2")
	_, diags := v.w.Plan(t.Context(), v.configuration("1.31"))
	if text := diags.String(); !diags.Has("Clusters have another value") || !strings.Contains(text, "2 clusters exist already") ||
		!strings.Contains(text, "prod-1, prod-2") {
		t.Errorf("the diagnostics are %s", text)
	}
	v.overrides["released"] = map[string]any{"by_cluster": map[string]any{"prod-1": "1.30", "prod-2": "1.30"}}
	v.applyAndExpect("1.31", "1.31", "1.30", "1.30")
	v = newVersions(t)
	v.overrides = map[string]any{"evidence": string((&evidence.Measurements{Environment: "prod", Time: v.now, Checks: []evidence.Check{{
		Name: "errors", Of: evidence.OfCluster, Pass: "value < 1.0", Figures: map[string]evidence.Figure{"canary": {Message: "it has no value"}, "prod-1": {Value: 0.1}},
	}}}).Marshal())}
	if _, diags := v.w.Plan(t.Context(), v.configuration("1.31")); !strings.Contains(diags.String(), "1 cluster exists already") {
		t.Errorf("with one measured cluster the diagnostics are %s", diags)
	}
	v = newVersions(t)
	v.overrides = map[string]any{"released": "1.30"} // trusted without a proof
	v.reportVersion("1.29", v.clusters...)
	v.applyAndExpect("1.31", "1.31", "1.30", "1.30")
	v = newVersions(t)
	v.overrides = map[string]any{}
	if _, diags := v.w.Plan(t.Context(), v.configuration("1.31")); !strings.Contains(diags.String(), "The plan treats 3 clusters without evidence as new") {
		t.Errorf("the diagnostics are %s", diags)
	}
}

func TestALostStateOfARolloutUpgradesNothing(t *testing.T) {
	t.Parallel()
	v := newVersions(t)
	v.overrides["released"] = "1.30"
	v.reportVersion("1.30", v.clusters...)
	v.applyAndExpect("1.31", "1.31", "1.30", "1.30")
	v.passHour()
	v.reportVersion("1.31", "canary")
	for _, lose := range []func(*providertest.Workspace){
		func(w *providertest.Workspace) { w.State = providertest.State{} },
		func(w *providertest.Workspace) {
			w.State = providertest.State{}
			id, _ := json.Marshal(map[string]any{"canary": "1.31", "prod-1": "1.30", "prod-2": "1.30"})
			if diags := w.Import(t.Context(), v.configuration("1.31"), kubernetes, string(id)); diags.Err() != nil {
				t.Fatal(diags)
			}
		},
	} {
		v.facts["canary"] = evidence.ClusterFacts{Status: verdict.Status{Verdict: verdict.Progressing}, Facts: v.facts["canary"].Facts}
		lose(v.w.(*providertest.Workspace))
		v.applyAndExpect("1.31", "1.31", "1.30", "1.30")
		delete(v.overrides, "released") // the import has it
	}
	v.reportVersion("1.31", "canary")
	v.passHour()
	v.applyAndExpect("1.31", "1.31", "1.31", "1.31")
	plan, diags := v.w.Plan(t.Context(), v.configuration("1.31"), providertest.Replace(kubernetes))
	if !diags.Has("Clusters have another value") {
		t.Errorf("a replacement reports %s: %v", diags, plan)
	}
	// A replacement would forget values: without facts, with an old released, and with an unknown wanted value.
	v.overrides, v.facts = map[string]any{"released": "1.30"}, map[string]evidence.ClusterFacts{}
	for _, wanted := range []any{"1.31", tftypes.NewValue(tftypes.String, tftypes.UnknownValue)} {
		_, diags := v.w.Plan(t.Context(), v.configuration(wanted), providertest.Replace(kubernetes))
		if !diags.Has("A replacement forgets the values of clusters") || !strings.Contains(diags.String(), "3 clusters have another value") {
			t.Errorf("a replacement reports %s", diags)
		}
		delete(v.overrides, "released")
	}
	if _, diags := v.w.Plan(t.Context(), v.configuration("1.31"), providertest.Replace(kubernetes)); !diags.Has(
		"A replacement forgets the values of clusters",
	) {
		t.Errorf("a replacement reports %s", diags)
	}
	for id, want := range map[string]string{
		"1.30": "it is no object", `{"canary":null}`: `the value of "canary" is null`, `{"canary":1e99999999999}`: "is not a number", "{": "JSON", "": "JSON", "null": "it is no object",
	} {
		if diags := v.w.Import(t.Context(), v.configuration("1.31"), kubernetes, id); !diags.Has("Invalid import of rollout") ||
			!strings.Contains(diags.String(), want) {
			t.Errorf("the import of %q reports %s", id, diags)
		}
	}
}

func TestAValueMayBeOfAnyType(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][2]any{
		"number": {json.Number("1"), json.Number("2")}, "bool": {true, false}, "list": {[]any{"a"}, []any{"a", "b"}},
		"rule":    {map[string]any{"ports": []any{"443"}, "deny": true}, map[string]any{"ports": []any{"443", "8443"}, "deny": true}},
		"another": {"a", map[string]any{"commit": "a"}},
	} {
		v := newVersions(t)
		v.overrides = map[string]any{"released": values[0]}
		state := v.applyAndExpect(values[1], values[1], values[0], values[0])
		if changes := fmt.Sprint(state["changes"]); !strings.Contains(changes, "[canary: ") || !strings.Contains(changes, " -> ") ||
			strings.Contains(changes, "prod-1") {
			t.Errorf("%s: got changes %s", name, changes)
		}
		v.passHour()
		v.applyAndExpect(values[1], values[1], values[1], values[1])
		v.passHour()
		if state := v.applyAndExpect(values[1], values[1], values[1], values[1]); !reflect.DeepEqual(state["proven"], values[1]) {
			t.Errorf("%s: got proven %v, want %v", name, state["proven"], values[1])
		}
	}
}

func TestClustersWantValuesOfTheirOwn(t *testing.T) {
	t.Parallel()
	v := newVersions(t)
	v.overrides = map[string]any{}
	byCluster := func(a, b, c any) any {
		return map[string]any{"by_cluster": map[string]any{"canary": a, "prod-1": b, "prod-2": c}}
	}
	v.applyAndExpect(byCluster("1.30", "1.29", "1.30"), "1.30", "1.29", "1.30")
	v.passHour()
	v.applyAndExpect(byCluster("1.30", "1.29", "1.30"), "1.30", "1.29", "1.30")
	v.applyAndExpect(byCluster("1.31", "1.29", "1.31"), "1.31", "1.29", "1.30")
	for wanted, text := range map[any]string{
		"prod-1": `the fleet has no cluster "prod-9"; did you mean "prod-1"?`, "prod-2": `by_cluster has no value for prod-1`,
	} {
		by := map[string]any{"canary": "1", "prod-1": "1", "prod-2": "1", "prod-9": "1"}
		if wanted == "prod-2" {
			by = map[string]any{"canary": "1", "prod-2": "1"}
		}
		if _, diags := v.w.Plan(t.Context(), v.configuration(map[string]any{"by_cluster": by})); !strings.Contains(diags.String(), text) {
			t.Errorf("the diagnostics are %s", diags)
		}
	}
}

func TestUnknownArgumentsKeepHeldValues(t *testing.T) {
	t.Parallel()
	v := newVersions(t)
	v.overrides["holds"] = []any{map[string]any{"hosts": []any{"prod-1"}, "reason": "audit"}}
	v.reportVersion("1.30", v.clusters...)
	v.applyAndExpect("1.30", "1.30", "1.30", "1.30")
	v.passHour()
	v.applyAndExpect("1.30", "1.30", "1.30", "1.30")
	plan, diags := v.w.Plan(t.Context(), v.configuration(tftypes.NewValue(tftypes.String, tftypes.UnknownValue)))
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	if after, _ := plan.Change(kubernetes).After["values"].(map[string]any); after["prod-1"] != "1.30" || after["canary"] == "1.30" ||
		len(after) != 3 {
		t.Errorf("got values %v", plan.Change(kubernetes).After)
	}
	if _, diags := v.w.Apply(t.Context(), v.configuration(providertest.Unknown{Then: "1.31"})); diags.Err() != nil {
		t.Fatal(diags)
	}
	v.applyAndExpect("1.31", "1.31", "1.30", "1.30")
	for _, attribute := range []string{"fleet", "evidence", "stages", "proof", "released", "on_failure", "failed_for", "progress_deadline", "unknown", "windows", "approvals", "expedite", "holds", "name", "wanted"} {
		v := newVersions(t)
		v.overrides["released"] = "1.30"
		configuration := v.configuration("1.31")
		attributes := configuration.Resources[kubernetes].Attributes
		laterValue := attributes[attribute]
		switch attribute {
		case "failed_for", "progress_deadline":
			laterValue = "1h"
		}
		attributes[attribute] = providertest.Unknown{Then: laterValue}
		if _, diags := v.w.Apply(t.Context(), configuration); diags.Err() != nil {
			t.Errorf("with unknown %s the apply reports %s", attribute, diags)
		}
		v.applyAndExpect("1.31", "1.31", "1.30", "1.30")
	}
}

func TestMistakesInARolloutAreFoundAtPlan(t *testing.T) {
	t.Parallel()
	measured := func(kinds ...evidence.SubjectKind) string {
		all := &evidence.Measurements{Environment: "prod", Time: time.Now()}
		for _, kind := range kinds {
			name := "errors"
			if kind == evidence.OfFleet {
				name = "orders"
			}
			all.Checks = append(all.Checks, evidence.Check{Name: name, Of: kind, Pass: "value < 1.0"})
		}
		return string(all.Marshal())
	}
	for name, c := range map[string]struct {
		overrides map[string]any
		want      string
	}{
		"a misspelt attribute of a stage": {map[string]any{"stages": []any{map[string]any{"nme": "x"}}}, `unknown attribute; did you mean "name"?`},
		"no stages":                       {map[string]any{"stages": "all"}, "must be a list of objects, not a string"},
		"a stage without clusters":        {map[string]any{"stages": []any{map[string]any{"name": "x", "hosts": []any{"prod-7"}}}}, `there is no host "prod-7"; did you mean "prod-1"?`},
		"on_failure":                      {map[string]any{"on_failure": "rollback"}, `did you mean "roll_back"?`},
		"failed_for":                      {map[string]any{"failed_for": "soon"}, "is not a duration such as"},
		"progress_deadline":               {map[string]any{"progress_deadline": "-1h"}, `"-1h" is negative`},
		"unknown":                         {map[string]any{"unknown": "ignore"}, "ignore"},
		"windows":                         {map[string]any{"windows": []any{map[string]any{"kind": "open"}}}, "windows[0].kind"},
		"approvals":                       {map[string]any{"approvals": []any{"1.31"}}, "must be <name>@<content>"},
		"expedite":                        {map[string]any{"expedite": []any{"kubernets"}}, `there is no deployment target "kubernets"; did you mean "kubernetes"?`},
		"holds":                           {map[string]any{"holds": []any{map[string]any{"host": "prod-1"}}}, `did you mean "hosts"?`},
		"name":                            {map[string]any{"name": "Kubernetes versions"}, "Invalid name"},
		"an invalid proof":                {map[string]any{"proof": "fact.version == value"}, `line 1, column 1: there is no variable or function "fact"; did you mean "facts"?`},
		"a proof without a bool":          {map[string]any{"proof": "value + '1'"}, "must give a bool"},
		"a proof without facts":           {map[string]any{"evidence": `{"format":"1","kind":"measurements","time":"2026-11-23T12:00:00Z","environment":"prod","checks":[]}`}, "No facts"},
		"evidence":                        {map[string]any{"evidence": "ready"}, "Invalid evidence"},
		"no evidence":                     {map[string]any{"evidence": []any{}}, "No evidence"},
		"a cluster without a value":       {map[string]any{"wanted": map[string]any{"by_cluster": map[string]any{"prod-1": nil}}}, `by_cluster["prod-1"] is null`},
		"by_cluster without a map":        {map[string]any{"released": map[string]any{"by_cluster": "1.30"}}, "by_cluster must be a map of values"},
		"an unknown released cluster":     {map[string]any{"released": map[string]any{"by_cluster": map[string]any{"prod-0": "1.30"}}}, `the fleet has no cluster "prod-0"`},
		"facts of another fleet":          {map[string]any{"evidence": string((&evidence.Facts{Time: time.Now(), Clusters: map[string]evidence.ClusterFacts{"other": {Status: verdict.Status{Verdict: verdict.Unknown}}}}).Marshal())}, "Evidence of another fleet"},
		"reports of dev": {map[string]any{"proof": nil, "evidence": string((&observe.Evidence{
			About: observe.About{Owner: "apps", Environment: "dev", Branch: "dev"}, Time: time.Now(), Clusters: map[string]observe.ClusterEvidence{"canary": {Status: verdict.Status{Verdict: verdict.Ready}}},
		}).Marshal())}, `this fleet is of "prod"`},
		"measurements of hosts":       {map[string]any{"proof": nil, "evidence": measured(evidence.OfHost)}, `evidence: the check "errors" is of = "host": a rollout of values knows clusters, no hosts or assignments: use of = "cluster" or "fleet"`},
		"measurements of assignments": {map[string]any{"proof": nil, "evidence": []any{measured(evidence.OfCluster), measured(evidence.OfFleet, evidence.OfAssignment)}}, `evidence[1]: the check "errors" is of = "assignment": a rollout`},
		"no fleet":                    {map[string]any{"fleet": map[string]any{"model": "x"}}, "Invalid fleet"},
	} {
		v := newVersions(t)
		maps.Copy(v.overrides, c.overrides)
		if _, diags := v.w.Plan(t.Context(), v.configuration("1.31")); !strings.Contains(diags.String(), c.want) || diags.Err() == nil {
			t.Errorf("%s: got diagnostics %s, want %q", name, diags, c.want)
		}
	}
}

func TestWindowClosedSinceThePlanStopsTheApply(t *testing.T) {
	t.Parallel()
	v := newVersions(t)
	w := v.w.(*providertest.Workspace)
	v.overrides["released"] = "1.30"
	v.overrides["windows"] = []any{map[string]any{"kind": "allow", "schedule": "0 12 * * *", "duration": "30m"}}
	plan, diags := w.Plan(t.Context(), v.configuration("1.31"))
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	v.clock.now = v.now.Add(time.Hour)
	if diags := w.ApplyPlan(t.Context(), plan); !diags.Has("Windows have closed") || len(w.State) > 0 {
		t.Errorf("the diagnostics are %s", diags)
	}
	v.now = v.now.Add(2 * time.Hour) // closed: the plan waits
	if state := v.applyAndExpect("1.31", "1.30", "1.30", "1.30"); !strings.Contains(rollingOut(state), "waits for a window") {
		t.Errorf("got rolling_out %v", state["rolling_out"])
	}
}

// Scheduled runs have empty plans while a rollout waits.
func TestEmptyPlansSayWhyARolloutWaits(t *testing.T) {
	t.Parallel()
	v := newVersions(t)
	v.overrides["released"] = "1.30"
	v.reportVersion("1.30", v.clusters...)
	v.applyAndExpect("1.31", "1.31", "1.30", "1.30")
	v.passHour()
	plan, diags := v.w.Plan(t.Context(), v.configuration("1.31"))
	if !plan.Empty() || !diags.Has("Rollout waits") || !strings.Contains(diags.String(), "proof: it is not true of the facts") {
		t.Errorf("the diagnostics are %s", diags)
	}
	v.overrides["proof"] = "facts.labels.version == value"
	if _, diags := v.w.Plan(t.Context(), v.configuration("1.31")); !strings.Contains(diags.String(), `there is no key`) {
		t.Errorf("the diagnostics are %s", diags)
	}
}

// A value is proven only if measurements, reports of agents and facts agree.
func TestAllEvidenceOfAValueHasToAgree(t *testing.T) {
	t.Parallel()
	v := newVersions(t)
	v.overrides["released"], v.overrides["on_failure"], v.overrides["failed_for"] = "1.30", "roll_back", "0s"
	v.reportVersion("1.30", v.clusters...)
	v.applyAndExpect("1.31", "1.31", "1.30", "1.30")
	v.passHour()
	v.reportVersion("1.31", "canary")
	v.passHour()
	measured := func(canary float64) string {
		return string((&evidence.Measurements{Environment: "prod", Time: v.now, Checks: []evidence.Check{{
			Name: "errors", Of: evidence.OfCluster, Unit: "%", Pass: "value <= rest * 2.0", Fail: "value > 5.0",
			Figures: map[string]evidence.Figure{"canary": {Value: canary}, "prod-1": {Value: 0.1}, "prod-2": {Value: 0.3}},
		}}}).Marshal())
	}
	reported := func(status verdict.Verdict) string {
		return string((&observe.Evidence{
			About: observe.About{Owner: "apps", Environment: "prod", Branch: "prod"}, Time: v.now, Trees: map[string]map[string]string{},
			Clusters: map[string]observe.ClusterEvidence{"canary": {Type: "edge", Status: verdict.Status{Verdict: status}}},
		}).Marshal())
	}
	for i, c := range []struct {
		measured float64
		reported verdict.Verdict
		want     string
	}{
		{0.9, verdict.Ready, "waits for errors: 0.9 % against 0.2 % on 2 clusters"}, {0.3, verdict.Progressing, ""},
	} {
		v.overrides["evidence"] = []any{v.evidence(), measured(c.measured), reported(c.reported)}
		_, diags := v.w.Plan(t.Context(), v.configuration("1.31"))
		if !strings.Contains(diags.String(), c.want) {
			t.Errorf("the diagnostics are %s", diags)
		}
		if state := v.applyAndExpect("1.31", "1.31", "1.30", "1.30"); state["rolled_out"] != false {
			t.Errorf("case %d: the state is %v", i, state)
		}
	}
	v.overrides["evidence"] = []any{v.evidence(), measured(0.3), reported(verdict.Ready)}
	v.applyAndExpect("1.31", "1.31", "1.31", "1.31")
	v.passHour()
	v.overrides["evidence"] = []any{v.evidence(), measured(6), reported(verdict.Ready)}
	v.applyAndExpect("1.31", "1.30", "1.30", "1.30")
}
