package overview_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/audit"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/overview"
)

// tally holds the results of a rule, counted without package constraint.
type tally struct{ Looked, Passed, Violated, Failed int }

func (c *tally) add(holds bool) {
	c.Looked++
	if holds {
		c.Passed++
	} else {
		c.Violated++
	}
}

// countedRule is a rule in CEL, and a count of its results in Go.
type countedRule struct {
	fleet.Constraint
	count func(*tally)
}

// randomRules returns rules with random parameters, about all kinds of subjects.
func randomRules(t *testing.T, random *rand.Rand, in *overview.Input) []countedRule {
	t.Helper()
	result := in.Result
	objects := func(do func(assignment *schedule.Assignment, object map[string]any)) {
		for i, assignment := range result.Schedule.Assignments {
			for _, object := range documents(t, in, i) {
				do(assignment, object)
			}
		}
	}
	kinds := []string{"Namespace", "ConfigMap", "Kustomization", "GitRepository", "HelmRelease", "LimitRange"}
	kind, other := kinds[random.IntN(len(kinds))], kinds[random.IntN(len(kinds))]
	number := random.IntN(4)
	digit := strconv.Itoa(random.IntN(10))
	team := result.Fleet.Workspaces[random.IntN(len(result.Fleet.Workspaces))].Name
	keys := map[string]bool{}
	for _, snapshot := range result.Snapshots.All {
		for key := range snapshot.Values() {
			keys[key] = true
		}
	}
	key := slices.Sorted(maps.Keys(keys))[random.IntN(len(keys))]
	region := []string{"east", "west", "north"}[random.IntN(3)]
	return []countedRule{
		{fleet.Constraint{Expression: fmt.Sprintf("object.kind != %q", kind)}, func(c *tally) {
			objects(func(_ *schedule.Assignment, object map[string]any) { c.add(object["kind"] != kind) })
		}},
		{fleet.Constraint{
			Expression: fmt.Sprintf("object.metadata.name.contains(%q)", digit), Match: fleet.ConstraintMatch{Kinds: []string{other}},
		}, func(c *tally) {
			objects(func(_ *schedule.Assignment, object map[string]any) {
				if object["kind"] == other {
					c.add(strings.Contains(object["metadata"].(map[string]any)["name"].(string), digit))
				}
			})
		}},
		{fleet.Constraint{
			Expression: fmt.Sprintf(
				`!has(object.metadata.labels) || size(object.metadata.labels) <= %d`,
				number,
			), Match: fleet.ConstraintMatch{Workspace: team},
		}, func(c *tally) {
			objects(func(assignment *schedule.Assignment, object map[string]any) {
				if assignment.Target.Workload.Workspace == team {
					labels, _ := object["metadata"].(map[string]any)["labels"].(map[string]any)
					c.add(len(labels) <= number)
				}
			})
		}},
		{fleet.Constraint{Expression: fmt.Sprintf("size(assignment.policies) <= %d", number)}, func(c *tally) {
			for _, assignment := range result.Schedule.Assignments {
				c.add(len(assignment.Policies) <= number)
			}
		}},
		{fleet.Constraint{Expression: fmt.Sprintf("!(%q in config)", key)}, func(c *tally) {
			for _, snapshot := range result.Snapshots.All {
				_, has := snapshot.Values()[key]
				c.add(!has)
			}
		}},
		{fleet.Constraint{Expression: fmt.Sprintf("string(config[%q]) != %q", key, digit)}, func(c *tally) {
			for _, snapshot := range result.Snapshots.All {
				value, has := snapshot.Values()[key]
				switch value := value.(type) {
				case string:
					c.add(value != digit)
				case json.Number:
					c.add(value.String() != digit)
				case bool:
					c.add(true)
				default: // absent, or not convertible to a text
					_ = has
					c.Looked++
					c.Failed++
				}
			}
		}},
		{fleet.Constraint{Expression: fmt.Sprintf(`host.labels[?"region"].orValue("") == %q`, region)}, func(c *tally) {
			for _, host := range result.Schedule.Hosts {
				c.add(host.Labels["region"] == region)
			}
		}},
		{fleet.Constraint{Expression: fmt.Sprintf(`target.workspace == %q || target.manifests.tag != ""`, team)}, func(c *tally) {
			for _, target := range result.Schedule.Targets {
				c.add(target.Workload.Workspace == team || target.Target.Manifests.Tag != "")
			}
		}},
		{fleet.Constraint{Expression: fmt.Sprintf(`!workspace.name.endsWith(%q)`, digit)}, func(c *tally) {
			for i := range result.Fleet.Workspaces {
				c.add(!strings.HasSuffix(result.Fleet.Workspaces[i].Name, digit))
			}
		}},
		{fleet.Constraint{Expression: `environment != "dev"`}, func(c *tally) { c.add(result.Fleet.Environment != "dev") }},
	}
}

// documents returns the rendered objects of an assignment.
func documents(t *testing.T, in *overview.Input, i int) []map[string]any {
	t.Helper()
	files, err := in.Rendering.Files(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	for _, file := range files {
		if !strings.HasSuffix(file.Name, ".yaml") {
			continue
		}
		decoder := yaml.NewDecoder(bytes.NewReader(file.Content))
		for {
			var object map[string]any
			err := decoder.Decode(&object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if object["kind"] != nil {
				all = append(all, object)
			}
		}
	}
	return all
}

var markdownRow = regexp.MustCompile(
	"(?m)^\\| `(rule-\\d+)` \\| `(enforce|inform)` \\| (yes|\\*\\*no\\*\\*) \\| (\\d+) [^|]*\\| (\\d+) \\| (\\d+) \\| (\\d+) \\| (\\d+) \\|$",
)

// TestAuditHasTheCountedNumbers compares random rules over random fleets with a count in Go.
func TestAuditHasTheCountedNumbers(t *testing.T) {
	t.Parallel()
	violated, failed := 0, 0
	for seed := range uint64(acceptancetest.Count(6, 15)) {
		random := rand.New(rand.NewPCG(seed, 9)) //nolint:gosec // the same each time
		in := randomInput(t, 40+random.IntN(120), seed)
		all := randomRules(t, random, &in)
		var constraints []fleet.Constraint
		in.Expressions = map[string]string{}
		for i := range all {
			all[i].Name, all[i].Mode = fmt.Sprintf("rule-%02d", i), []string{fleet.Enforce, fleet.Inform}[random.IntN(2)]
			constraints = append(constraints, all[i].Constraint)
			in.Expressions[all[i].Name] = all[i].Expression
		}
		in.Rules = checkRules(t, &in, constraints)
		text, err := audit.New(overview.Build(in)).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		var read audit.Report
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&read); err != nil {
			t.Fatal(err)
		}
		if len(read.Rules) != len(all) || read.Format != audit.Format || *read.Commit != in.Seen.Written.Tip || !read.Time.Equal(reportTime) {
			t.Fatalf("seed %d: %s", seed, text)
		}
		rows := map[string][]string{}
		for _, row := range markdownRow.FindAllStringSubmatch(read.Markdown(), -1) {
			rows[row[1]] = row[2:]
		}
		var sum audit.Summary
		for i := range all {
			var want tally
			all[i].count(&want)
			rule := read.Rules[i]
			got := tally{rule.Looked, rule.Passed, rule.Violated, rule.Failed}
			holds := want.Violated+want.Failed == 0
			if got != want || rule.Holds != holds || rule.Undecided != 0 || rule.Expression != all[i].Expression ||
				len(rule.Violations)+rule.Omitted != want.Violated+want.Failed {
				t.Errorf("seed %d: %s: got %+v, want %+v", seed, all[i].Expression, rule, want)
			}
			holdsText := map[bool]string{true: "yes", false: "**no**"}[holds]
			if row := fmt.Sprint(rows[rule.Name]); row != fmt.Sprint([]string{
				all[i].Mode, holdsText, strconv.Itoa(want.Looked), strconv.Itoa(want.Passed), strconv.Itoa(want.Violated), strconv.Itoa(want.Failed), "0",
			}) {
				t.Errorf("seed %d: the Markdown has row %s for %s, want %+v", seed, row, all[i].Expression, want)
			}
			sum.Rules++
			sum.Looked, sum.Passed, sum.Violated, sum.Failed = sum.Looked+want.Looked, sum.Passed+want.Passed, sum.Violated+want.Violated, sum.Failed+want.Failed
			switch {
			case holds:
				sum.Holding++
			case all[i].Mode == "enforce":
				sum.BrokenEnforced++
				fallthrough
			default:
				sum.Broken++
			}
			violated, failed = violated+want.Violated, failed+want.Failed
		}
		if read.Summary != sum {
			t.Errorf("seed %d: the summary is %+v, want %+v", seed, read.Summary, sum)
		}
		if got, want := read.Fleet.Assignments, len(in.Result.Schedule.Assignments); got != want ||
			read.Fleet.Clusters != len(in.Result.Fleet.Clusters) {
			t.Errorf("seed %d: the fleet is %+v", seed, read.Fleet)
		}
		d := read.Deployed
		if d.UpToDate+d.New+d.Changed+d.Unknown != read.Fleet.Assignments {
			t.Errorf("seed %d: deployed are %+v of %d", seed, d, read.Fleet.Assignments)
		}
	}
	if violated == 0 || failed == 0 {
		t.Errorf("%d violated, %d failed, want some of each", violated, failed)
	}
}

func checkRules(t *testing.T, in *overview.Input, constraints []fleet.Constraint) []constraint.RuleResult {
	t.Helper()
	entries := map[string]string{}
	for _, rule := range constraints {
		text, err := json.Marshal(rule)
		if err != nil {
			t.Fatal(err)
		}
		entries[rule.Name] = string(text)
	}
	results, found := in.Result.Constraints(t.Context(), entries, in.Rendering.Destination)
	if len(found) > 0 {
		t.Fatal(found)
	}
	return results.Rules
}
