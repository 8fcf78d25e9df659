package provider_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// checkedRings has the reports of agents, and a check of errors, as evidence.
type checkedRings struct {
	*rings
	runner     providertest.Runner
	check      evidence.Check
	checkDelay time.Duration // time between the reports and the check
}

// newCheckedRings applies version 1.
func newCheckedRings(t *testing.T, runner providertest.Runner) *checkedRings {
	t.Helper()
	l := &checkedRings{
		rings: &rings{
			t: t, url: bare(t), now: time.Now().UTC().Truncate(time.Second), verdicts: map[string]verdict.Verdict{}, commits: map[string]string{},
			since: map[string]time.Time{}, rollout: ringRollout(nil),
		},
		runner: runner,
		check:  evidence.Check{Name: "errors", Of: evidence.OfCluster, Unit: "%", Pass: "value < 0.4", Fail: "value > 5.0"},
	}
	apply(t, runner, assigned(l.url, providertest.Call{Function: "fleet", Arguments: []any{ringFleet("1", nil)}}, nil))
	l.setFigures(map[string]float64{"canary": 0.2, "region": 0.2, "rest": 0.2})
	return l
}

func (l *checkedRings) setFigures(values map[string]float64) {
	l.check.Figures = map[string]evidence.Figure{}
	for cluster, value := range values {
		l.check.Figures[cluster] = evidence.Figure{Value: value}
	}
}

// measurements returns the results of the check, checkDelay after the last reports.
func (l *checkedRings) measurements() *evidence.Measurements {
	return &evidence.Measurements{Environment: "dev", Time: l.now.Add(l.checkDelay), Checks: []evidence.Check{l.check}}
}

// checkedConfiguration returns the configuration of a version, with the reports and the check as evidence.
func (l *checkedRings) checkedConfiguration(version string) providertest.Configuration {
	configuration := l.configuration(version)
	attributes := configuration.Resources[assignment].Attributes
	if _, isSet := l.further["evidence"]; !isSet {
		attributes["evidence"] = []any{attributes["evidence"], string(l.measurements().Marshal())}
	}
	return configuration
}

// applyChecked expects the deployed versions and returns the plan with all messages.
func (l *checkedRings) applyChecked(version, want string) (*providertest.Plan, string) {
	l.t.Helper()
	plan, diags := l.runner.Apply(l.t.Context(), l.checkedConfiguration(version))
	if diags.Err() != nil {
		l.t.Fatal(diags.Err())
	}
	if got := l.versions(); got != want {
		l.t.Fatalf("deployed %q, want %q: %v", got, want, diags)
	}
	text := fmt.Sprint(diags)
	if plan.Change(assignment) != nil {
		text += rolloutText(plan)
	}
	return plan, strings.Join(strings.Fields(text), " ")
}

func (l *checkedRings) applyAndExpect(version, want string, wants ...string) *providertest.Plan {
	l.t.Helper()
	plan, text := l.applyChecked(version, want)
	for _, one := range wants {
		if !strings.Contains(text, one) {
			l.t.Errorf("the plan does not say %q: %s", one, text)
		}
	}
	return plan
}

// withAllTools runs a test with the stand-in and, in `make acceptance`, with Terraform and OpenTofu.
func withAllTools(t *testing.T, test func(t *testing.T, runner providertest.Runner)) {
	t.Helper()
	t.Run("stand-in", func(t *testing.T) {
		t.Parallel()
		test(t, providertest.New(startProvider))
	})
	if !simulated() {
		withTools(t, test)
	}
}

func TestAMeasurementHoldsAndReleasesARollout(t *testing.T) {
	t.Parallel()
	withAllTools(t, func(t *testing.T, runner providertest.Runner) {
		l := newCheckedRings(t, runner)
		l.applyAndExpect("2", "2 1 1")
		l.report("canary", verdict.Ready)
		l.setFigures(map[string]float64{"canary": 0.9, "region": 0.2, "rest": 0.2})
		if plan := l.applyAndExpect("2", "2 1 1", "Rollout waits", "on 1 of 3 hosts: waits for errors: 0.9 % against 0.2 % on 2 clusters (passes where value < 0.4); 0 of 1 cluster is ready, 1 not ready yet"); !plan.Empty() {
			t.Error("another figure makes the plan non-empty")
		}
		l.setFigures(map[string]float64{"canary": 0.3})
		l.applyAndExpect("2", "2 2 1")
		l.report("region", verdict.Ready)
		l.setFigures(map[string]float64{"canary": 9, "region": 0.1}) // the proven canary gets worse
		l.applyAndExpect(
			"2",
			"2 2 1",
			"waits for newer content, since this one failed: 1 cluster has failed at stage 1 of 3 \"canary\": errors: 9 % (fails where value > 5.0)",
			"state:failed",
		)
		l.setFigures(map[string]float64{"canary": 9, "region": 0.1})
		if plan := l.applyAndExpect("2", "2 2 1", "Rollout has failed", "errors: 9 %"); !plan.Empty() {
			t.Error("a lasting halt makes the plan non-empty")
		}
		l.setFigures(map[string]float64{"canary": 3, "region": 0.1})
		l.applyAndExpect("2", "2 2 2")
		l.report("rest", verdict.Ready)
		l.setFigures(map[string]float64{"canary": 0.1, "region": 0.1, "rest": 0.1})
		if plan := l.applyAndExpect("2", "2 2 2"); assignmentAfter(plan)["rolled_out"] != true {
			t.Errorf("the rollout does not end: %s", rolloutText(plan))
		}
		if plan := l.applyAndExpect("2", "2 2 2"); !plan.Empty() {
			t.Error("after the rollout, the plan is not empty")
		}
	})
}

func TestAMeasurementThatFailsRollsBack(t *testing.T) {
	t.Parallel()
	withAllTools(t, func(t *testing.T, runner providertest.Runner) {
		l := newCheckedRings(t, runner)
		l.rollout = ringRollout(map[string]any{"on_failure": "roll_back", "failed_for": "0s"})
		l.applyAndExpect("2", "2 1 1")
		l.report("canary", verdict.Ready)
		l.setFigures(map[string]float64{"canary": 9, "region": 0.2, "rest": 0.2})
		l.applyAndExpect(
			"2",
			"1 1 1",
			"errors: 9 % against 0.2 % on 2 clusters (fails where value > 5.0); it was rolled back; add",
			"failed and was rolled back",
		)
		l.setFigures(map[string]float64{"canary": 0.2, "region": 0.2, "rest": 0.2})
		if plan := l.applyAndExpect("2", "1 1 1"); !plan.Empty() {
			t.Error("failed content is tried again")
		}
		l.applyAndExpect("3", "3 1 1")
	})
}

func TestAMeasurementWithoutAFigureNeverPasses(t *testing.T) {
	t.Parallel()
	for name, silence := range map[string]func(*evidence.Check){
		"no server": func(check *evidence.Check) { check.Message = "https://prometheus.example.com: connection refused" },
		"no figure": func(check *evidence.Check) { check.Figures = map[string]evidence.Figure{} },
		"not a number": func(check *evidence.Check) {
			check.Figures = map[string]evidence.Figure{"canary": {Message: "the value is not a number"}}
		},
		"an expression without a result": func(check *evidence.Check) {
			check.Pass, check.Figures = "value < samples", map[string]evidence.Figure{"canary": {}}
		},
	} {
		for _, unknown := range []string{"wait", "skip"} {
			t.Run(name+"/"+unknown, func(t *testing.T) {
				playAlways(t, name+"/"+unknown, "no server/wait", "no figure/skip")
				t.Parallel()
				l := newCheckedRings(t, providertest.New(startProvider))
				l.rollout = ringRollout(map[string]any{"unknown": unknown})
				l.applyAndExpect("2", "2 1 1")
				l.report("canary", verdict.Ready)
				silence(&l.check)
				for range 3 {
					l.applyAndExpect("2", "2 1 1", "Rollout waits", "waits for errors: ")
				}
				l.check.Message, l.check.Pass = "", "value < 0.4"
				l.setFigures(map[string]float64{"canary": 0.1})
				l.applyAndExpect("2", "2 2 1")
			})
		}
	}
}

// unknown = "skip" skips a cluster without reports, but waits for a missing figure of a living cluster.
func TestADeadClusterIsSkippedWithSeveralDocuments(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]evidence.SubjectKind{"a check of clusters": evidence.OfCluster, "a check of hosts": evidence.OfHost, "a check of the fleet": evidence.OfFleet} {
		t.Run(name, func(t *testing.T) {
			playAlways(t, name, "a check of clusters", "a check of the fleet")
			t.Parallel()
			l := newCheckedRings(t, providertest.New(startProvider))
			l.rollout = ringRollout(map[string]any{"unknown": "skip"})
			l.check.Of, l.check.Figures = of, map[string]evidence.Figure{}
			if of == evidence.OfFleet {
				l.check.Figures[""] = evidence.Figure{Value: 0.1}
			}
			l.applyAndExpect("2", "2 1 1")
			l.applyAndExpect("2", "2 2 1", "passes stage 1 of 3 \"canary\" without 1 cluster: 1 unknown")
		})
	}
}

func TestMeasurementsOrFactsAloneProveContent(t *testing.T) {
	t.Parallel()
	for name, document := range map[string]func(*checkedRings) string{
		"measurements": func(l *checkedRings) string { return string(l.measurements().Marshal()) },
		"facts": func(l *checkedRings) string {
			facts := evidence.Facts{Time: l.now.Add(l.checkDelay), Clusters: map[string]evidence.ClusterFacts{}}
			for _, name := range []string{"canary", "region", "rest"} {
				facts.Clusters[name] = evidence.ClusterFacts{Status: verdict.Status{Verdict: verdict.Ready, Since: l.now.Add(-48 * time.Hour)}}
			}
			return string(facts.Marshal())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newCheckedRings(t, providertest.New(startProvider))
			applyAlone := func(version, want string, wants ...string) *providertest.Plan {
				t.Helper()
				l.now = l.now.Add(time.Hour)
				l.further = map[string]any{"evidence": []any{document(l)}}
				return l.applyAndExpect(version, want, wants...)
			}
			l.checkDelay = -10 * time.Hour // older than the content
			applyAlone("2", "2 1 1")
			applyAlone("2", "2 1 1", "Evidence is older than the deployed content")
			l.checkDelay = 0
			applyAlone("2", "2 2 1")
			applyAlone("2", "2 2 2")
			if plan := applyAlone("2", "2 2 2"); assignmentAfter(plan)["rolled_out"] != true {
				t.Errorf("the rollout does not end: %s", rolloutText(plan))
			}
			runner := l.runner.(*providertest.Workspace)
			runner.Lose(assignment) // without a state, the content counts from this apply
			applyAlone("2", "2 2 2")
			applyAlone("3", "3 2 2")
			applyAlone("3", "3 3 2")
		})
	}
}

func TestARolloutUsesTheTimeOfTheOldestDocument(t *testing.T) {
	t.Parallel()
	l := newCheckedRings(t, providertest.New(startProvider))
	l.rollout = ringRollout(nil)
	l.rollout["stages"].([]any)[0].(map[string]any)["soak"] = "3h"
	l.applyAndExpect("2", "2 1 1")
	l.report("canary", verdict.Ready)
	l.now = l.now.Add(10 * time.Hour) // agents report long after the soak time
	l.checkDelay = -9 * time.Hour     // the check is from before its end
	l.applyAndExpect("2", "2 1 1")
	l.checkDelay = -time.Hour
	l.applyAndExpect("2", "2 2 1")
}

func TestAListOfEvidenceIsCheckedElementByElement(t *testing.T) {
	t.Parallel()
	withAllTools(t, func(t *testing.T, runner providertest.Runner) {
		l := newCheckedRings(t, runner)
		other := l.measurements()
		other.Environment = "prod"
		facts := evidence.Facts{
			Time:     l.now,
			Clusters: map[string]evidence.ClusterFacts{"elsewhere": {Status: verdict.Status{Verdict: verdict.Ready}}},
		}
		foreign := strings.Replace(l.evidence(), `"owner":"dev"`, `"owner":"other"`, 1)
		for name, c := range map[string]struct {
			list  []any
			wants []string
			at    []string
		}{
			"an empty list":       {[]any{}, []string{"A rollout needs evidence"}, []string{""}},
			"null alone":          {[]any{nil}, []string{"A rollout needs evidence"}, []string{""}},
			"several mistakes":    {[]any{l.evidence(), "{}", true}, []string{"evidence[1]: the evidence is not what flotilla_compliance gives", "evidence[2]: the evidence is a text"}, []string{"1", "2"}},
			"another kind":        {[]any{`{"kind":"figures"}`}, []string{`evidence[0]: the evidence has the kind "figures"`}, []string{"0"}},
			"another environment": {[]any{l.evidence(), string(other.Marshal())}, []string{`The measurements are of environment "prod"`}, []string{"1"}},
			"facts of others":     {[]any{l.evidence(), string(facts.Marshal())}, []string{"None of the clusters in the facts is a cluster of this fleet: a cluster has the same name in the fleet and in the provider's clusters"}, []string{"1"}},
			"another assignment":  {[]any{l.evidence(), foreign}, []string{`The evidence is about the assignment "other"`}, []string{"1"}},
		} {
			l.further = map[string]any{"evidence": c.list}
			_, diags := runner.Plan(t.Context(), l.checkedConfiguration("2"))
			var errors []providertest.Diagnostic
			for _, d := range diags {
				if d.Error {
					errors = append(errors, d)
				}
			}
			if len(errors) != len(c.wants) {
				t.Errorf("%s: the plan says %v", name, diags)
				continue
			}
			text := strings.Join(strings.Fields(fmt.Sprint(errors)), " ")
			for i, want := range c.wants {
				if !strings.Contains(text, want) {
					t.Errorf("%s: the errors lack %q: %s", name, want, text)
				}
				if at := errors[i].At; at != "" &&
					(!strings.Contains(at, "evidence") || c.at[i] != "" && !strings.Contains(at, "ElementKeyInt("+c.at[i]+")")) {
					t.Errorf("%s: an error is at %s", name, at)
				}
			}
		}
	})
}

func TestAListWithUnknownEvidenceMakesThePlanUnknown(t *testing.T) {
	t.Parallel()
	l := newCheckedRings(t, providertest.New(startProvider))
	l.applyAndExpect("2", "2 1 1")
	l.report("canary", verdict.Ready)
	reported := l.evidence()
	for name, list := range map[string]any{
		"an element": []any{reported, providertest.Unknown{Then: string(l.measurements().Marshal())}},
		"the list":   providertest.Unknown{Then: []any{reported, string(l.measurements().Marshal())}},
	} {
		l.further = map[string]any{"evidence": list}
		plan, diags := l.runner.Plan(t.Context(), l.checkedConfiguration("2"))
		if diags.Err() != nil || assignmentAfter(plan)["content"] != (providertest.Unknown{}) ||
			assignmentAfter(plan)["rolling_out"] != (providertest.Unknown{}) {
			t.Errorf("%s: the plan says %v, %v", name, assignmentAfter(plan), diags)
		}
	}
	if plan, diags := l.runner.Apply(t.Context(), l.checkedConfiguration("2")); diags.Err() != nil || l.versions() != "2 2 1" {
		t.Errorf("the apply deployed %s: %v, %v", l.versions(), assignmentAfter(plan), diags)
	}
}

func TestASavedPlanOfAListIsAppliedLateAsItWasPlanned(t *testing.T) {
	t.Parallel()
	withAllTools(t, func(t *testing.T, runner providertest.Runner) {
		l := newCheckedRings(t, runner)
		l.applyAndExpect("2", "2 1 1")
		l.report("canary", verdict.Ready)
		plan, diags := runner.Plan(t.Context(), l.checkedConfiguration("2"))
		if diags.Err() != nil {
			t.Fatal(diags)
		}
		l.now = l.now.Add(24 * time.Hour)
		if diags := runner.ApplyPlan(t.Context(), plan); diags.Err() != nil || l.versions() != "2 2 1" {
			t.Errorf("the late apply deployed %s: %v", l.versions(), diags)
		}
		l.report("region", verdict.Ready)
		if plan, diags := runner.Plan(t.Context(), l.checkedConfiguration("2"), providertest.RefreshOnly()); diags.Err() != nil || !plan.Empty() ||
			l.versions() != "2 2 1" {
			t.Errorf("the refresh-only plan says %v", diags)
		}
		l.applyAndExpect("2", "2 2 2")
	})
}

func TestProvenNeedsAllDocuments(t *testing.T) {
	t.Parallel()
	l := newCheckedRings(t, providertest.New(startProvider))
	l.rollout = nil
	expectProven := func(proven any) {
		t.Helper()
		l.further = map[string]any{"candidate": "2"}
		if plan, _ := l.applyChecked("2", "2 2 2"); assignmentAfter(plan)["proven"] != proven {
			t.Errorf("proven is %v, want %v", assignmentAfter(plan)["proven"], proven)
		}
	}
	expectProven(nil)
	for _, cluster := range []string{"canary", "region", "rest"} {
		l.report(cluster, verdict.Ready)
	}
	l.setFigures(map[string]float64{"canary": 0.1, "region": 0.9, "rest": 0.1})
	expectProven(nil)
	l.setFigures(map[string]float64{"canary": 0.1, "region": 0.1})
	expectProven(nil)
	l.setFigures(map[string]float64{"canary": 0.1, "region": 0.1, "rest": 0.1})
	l.checkDelay = -100 * time.Hour
	expectProven(nil) // the check is older than the content
	l.checkDelay = 0
	expectProven("2")
}

func TestPagesAcceptOnlyEvidenceOfClusters(t *testing.T) {
	t.Parallel()
	l := newCheckedRings(t, providertest.New(startProvider))
	at := map[string]any{"url": l.url, "branch": "dev", "path": "clusters/all"}
	measured := string(l.measurements().Marshal())
	for name, c := range map[string]struct {
		attributes map[string]any
		at         string
	}{
		"flotilla_overview": {map[string]any{
			"name": "dev", "gitops_repo": at, "evidence": measured, "fleet": providertest.Call{Function: "fleet", Arguments: []any{ringFleet("1", nil)}},
		}, "evidence"},
		"flotilla_inventory": {map[string]any{"gitops_repo": at, "evidences": []any{l.evidence(), measured}}, "ElementKeyInt(1)"},
	} {
		_, diags := l.runner.(*providertest.Workspace).ReadData(t.Context(), l.checkedConfiguration("1"), name, c.attributes)
		if len(diags) != 1 || !strings.Contains(diags[0].At, c.at) ||
			!strings.Contains(
				diags[0].Detail,
				`The evidence has the kind "measurements": only evidence of flotilla_compliance belongs here.`,
			) {
			t.Errorf("%s: the plan says %v", name, diags)
		}
	}
}

// The tests of flotilla_measurements use a real Prometheus. This one is unreachable, answers, gives no series, and recovers.
func TestARolloutWaitsForAnUnreachablePrometheus(t *testing.T) {
	t.Parallel()
	clock := &stoppedClock{now: time.Now().UTC().Truncate(time.Second)}
	runner := providertest.New(provider.StartAt(clock))
	l := newCheckedRings(t, runner)
	answer := vectorResult(`"cluster":"canary"`, "0.9", `"cluster":"rest"`, "0.2")
	server := newPrometheusStandIn(t, func(string) string { return answer })
	measureAndApply := func(url, want string, wants ...string) {
		t.Helper()
		report := l.evidence()
		clock.now = l.now
		measured, diags := runner.ReadData(
			t.Context(),
			providertest.Configuration{Provider: map[string]any{}},
			"flotilla_measurements",
			map[string]any{
				"fleet":  providertest.Call{Function: "fleet", Arguments: []any{ringFleet("2", nil)}},
				"checks": []any{newCheck(url, map[string]any{"unit": "%", "pass": "rest == null || value <= rest * 1.5"})},
			},
		)
		if diags.Err() != nil {
			t.Fatal(diags)
		}
		l.further = map[string]any{"evidence": []any{report, measured["evidence"]}}
		l.applyAndExpect("2", want, wants...)
	}
	measureAndApply("http://127.0.0.1:1", "2 1 1")
	l.report("canary", verdict.Ready)
	measureAndApply("http://127.0.0.1:1", "2 1 1", "waits for errors: http://127.0.0.1:1 could not be asked")
	measureAndApply(server.URL, "2 1 1", "waits for errors: 0.9 % against 0.2 % on 1 cluster (passes where rest == null || value <= rest * 1.5)")
	answer = vectorResult()
	measureAndApply(server.URL, "2 1 1", "waits for errors: the query gives no series")
	answer = vectorResult(`"cluster":"canary"`, "NaN")
	measureAndApply(server.URL, "2 1 1", "waits for errors: ")
	answer = vectorResult(`"cluster":"canary"`, "0.3", `"cluster":"rest"`, "0.2")
	measureAndApply(server.URL, "2 2 1")
}
