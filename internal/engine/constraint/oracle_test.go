package constraint_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// TestCountsEqualAnOracleInPlainGo compares the counts over random fleets with counts made in plain Go.
func TestCountsEqualAnOracleInPlainGo(t *testing.T) {
	t.Parallel()
	type counts struct{ looked, passed, violated, failed int }
	east := &fleet.Selector{Expression: "region"}
	evaluations := 0
	for seed := range uint64(60) {
		f, config := fleettest.Small(seed)
		scheduled, findings := schedule.Schedule(f)
		if len(findings) > 0 {
			continue
		}
		hydrated, err := hydrate.Hydrate(f, config, scheduled.Assignments)
		if err != nil || len(hydrated.Findings) > 0 {
			continue
		}
		subjects := constraint.Subjects{Fleet: f, Schedule: scheduled, Snapshots: hydrated.All, Config: config}
		results := checkRules(
			t,
			subjects,
			fleet.Constraint{Name: "a-host", Expression: `host.labels["region"] != "east"`},
			fleet.Constraint{Name: "b-target", Expression: `size(target.hosts) > 1`},
			fleet.Constraint{
				Name:       "c-assignment",
				Expression: `size(assignment.policies) < 2`,
				Match:      fleet.ConstraintMatch{ClusterTypeSelector: east},
			},
			fleet.Constraint{Name: "d-config", Expression: `config.size() % 2 == 0`},
			fleet.Constraint{Name: "e-both", Expression: `target.name < host.name || config.exists(k, k.contains("a"))`},
		)
		want := make([]counts, 5)
		add := func(rule int, holds, fails bool) {
			want[rule].looked++
			switch {
			case fails:
				want[rule].failed++
			case holds:
				want[rule].passed++
			default:
				want[rule].violated++
			}
		}
		for _, host := range scheduled.Hosts {
			region, ok := host.Labels["region"]
			add(0, region != "east", !ok)
		}
		for _, target := range scheduled.Targets {
			hosts := 0
			for _, assignment := range scheduled.Assignments {
				if assignment.Target == target {
					hosts++
				}
			}
			add(1, hosts > 1, false)
		}
		for i, assignment := range scheduled.Assignments {
			if _, ok := assignment.Host.Labels["region"]; ok {
				add(2, len(assignment.Policies) < 2, false)
			}
			values, hasKeyWithA := hydrated.All[i].Values(), false
			for key := range values {
				hasKeyWithA = hasKeyWithA || strings.Contains(key, "a")
			}
			add(3, len(values)%2 == 0, false)
			add(4, assignment.Target.Name < assignment.Host.Name || hasKeyWithA, false)
		}
		for i, result := range results.Rules {
			got := counts{result.Looked, result.Passed, result.Violated, result.Failed}
			if got != want[i] || result.Undecided != 0 || len(result.Violations) != min(result.Violated+result.Failed, constraint.MaxListed) {
				t.Errorf("seed %d, rule %s: %+v, want %+v", seed, result.Name, got, want[i])
			}
			evaluations += result.Looked
		}
	}
	if evaluations < 500 {
		t.Errorf("rules were evaluated over %d subjects, want at least 500", evaluations)
	}
}

// TestFirstViolationsAreListedAndAllCounted checks that the list is bounded and follows the order of the assignments.
func TestFirstViolationsAreListedAndAllCounted(t *testing.T) {
	t.Parallel()
	decoded, findings := fleet.Decode(fleettest.Input(fleettest.Reference(1_000, 1)))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	value, err := decoded.Value()
	if err != nil {
		t.Fatal(err)
	}
	result, wrong := pipeline.Compute(value)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	subjects := subjectsOf(result)
	var first *constraint.Results
	for range 3 {
		results := checkRules(t, subjects, fleet.Constraint{Name: "none", Expression: `assignment.key == ""`, MessageExpression: `assignment.key`},
			fleet.Constraint{Name: "some", Expression: `config.size() % 3 == 0 || object.kind == "Namespace"`})
		if first == nil {
			first = results
		}
		if !reflect.DeepEqual(first, results) {
			t.Fatal("the same subjects gave different results")
		}
	}
	none := first.Rules[0]
	if none.Violated != len(subjects.Schedule.Assignments) || len(none.Violations) != constraint.MaxListed {
		t.Errorf("%d of %d assignments violate the rule, %d are listed", none.Violated, len(subjects.Schedule.Assignments), len(none.Violations))
	}
	for i, violation := range none.Violations {
		if want := subjects.Schedule.Assignments[i].Key(); violation.Message != want || violation.Subject.Assignment != want {
			t.Fatalf("violation %d is of %s, want %s", i, violation.Subject.Assignment, want)
		}
	}
}

// FuzzExpression compiles and evaluates any text. Nothing panics, and no message reveals a configuration value.
func FuzzExpression(f *testing.F) {
	for _, group := range groups {
		for _, expression := range group.expressions {
			f.Add(expression)
		}
	}
	for _, expression := range []string{
		`host.name == ""`, `target.hosts.all(h, h.labels.exists(k, k == "a"))`, `config[config.secret] == 1`, `int(config.secret) == 1`, `object.kind == "Pod"`,
		`config.map(k, config[k]).distinct() == []`, `[[1]].map(x, [x, x]).flatten() == [1]`, `quantity(string(config.replicas)).asInteger() > 0`,
	} {
		f.Add(expression)
	}
	text := replace(f, shop, "LOG_LEVEL: info", "LOG_LEVEL: info, secret: hunter2")
	subjects := subjectsOf(computeFleet(f, text))
	pending := subjectsOf(
		computeFleet(f, replace(f, text, `data: {LOG_LEVEL: debug, EAST: "yes"}`, `data: UNKNOWN`, `tag: latest}`, `tag: UNKNOWN}`)),
	)
	f.Fuzz(func(t *testing.T, expression string) {
		program, findings := constraint.Compile([]fleet.Constraint{{Name: "rule", Expression: expression}})
		if len(findings) > 0 {
			return
		}
		for _, subjects := range []constraint.Subjects{subjects, pending} {
			results, err := program.Check(context.Background(), subjects)
			if err != nil {
				t.Fatal(err)
			}
			result := results.Rules[0]
			if result.Looked != result.Passed+result.Violated+result.Failed+result.Undecided || result.Error == "" && result.Looked == 0 {
				t.Errorf("%q: %+v", expression, result)
			}
			for _, violation := range result.Violations {
				if violation.Message == "" || strings.Contains(violation.Message, "hunter2") && !strings.Contains(expression, "hunter2") {
					t.Errorf("%q: %+v", expression, violation)
				}
			}
		}
	})
}
