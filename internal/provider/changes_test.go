package provider_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// linesOf returns the assignment's changes in a plan.
func linesOf(plan *providertest.Plan) []string {
	change := plan.Change(assignment)
	if change == nil {
		return nil
	}
	values, _ := field(change.After, "changes").([]any)
	lines := make([]string, len(values))
	for i, value := range values {
		lines[i] = fmt.Sprint(value)
	}
	return lines
}

func TestChangesNameTheirCauseInTheFleet(t *testing.T) {
	t.Parallel()
	containers := func(url, level string) map[string]any {
		return map[string]any{"config_containers": []any{
			map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": level}},
			map[string]any{"name": "large", "labels": map[string]any{"cluster-type": "large"}, "data": map[string]any{"DATABASE_URL": url}},
		}}
	}
	for name, test := range map[string]struct {
		// change returns the fleet and the attributes of the second plan.
		change func(t *testing.T, url string) (fleet any, further map[string]any)
		want   []string
	}{
		"no change": {
			func(*testing.T, string) (any, map[string]any) { return fleetOf(nil), nil }, nil,
		},
		"a value on one host": {
			func(*testing.T, string) (any, map[string]any) { return fleetOf(containers("mysql://two", "info")), nil },
			[]string{
				countLine(changes.Counts{Hosts: 1, Changed: 1, Total: 3}),
				fileLine("platform-config.yaml", "data.DATABASE_URL", "large/app-core", causeBy(changes.ByContainer, "large")),
			},
		},
		"two values, each of its own container": {
			func(*testing.T, string) (any, map[string]any) {
				return fleetOf(containers("mysql://two", "debug")), nil
			},
			[]string{
				countLine(changes.Counts{Hosts: 2, Changed: 3, Total: 3}),
				fileLine("platform-config.yaml", "data.LOG_LEVEL", "drone/app-core, drone/app-edge, large/app-core", causeBy(changes.ByContainer, "all")),
				fileLine("platform-config.yaml", "data.DATABASE_URL", "large/app-core", causeBy(changes.ByContainer, "large")),
			},
		},
		"a removed policy": {
			func(*testing.T, string) (any, map[string]any) {
				return fleetOf(map[string]any{"target_policies": []any{
					policy("core", map[string]any{"expression": "!edge"}, map[string]any{"expression": "edge=true"}),
					policy("core-on-large", map[string]any{"expression": "!edge"}, map[string]any{"match_labels": map[string]any{"size": "large"}}),
				}}), nil
			},
			[]string{
				countLine(changes.Counts{Hosts: 1, Removed: 1, Total: 2}),
				moveLine(changes.RemovalLine, "drone/app-edge", changes.Cause{Kind: changes.ByPolicy, Name: "edge", How: changes.Removed}),
			},
		},
		"a change by hand": {
			func(t *testing.T, url string) (any, map[string]any) {
				clone := repository{cloneURL: url}.clone(t, "dev")
				git(t, clone, "rm", "-q", "clusters/all/large/app-core/namespace.yaml")
				git(t, clone, "commit", "-qm", "by hand")
				git(t, clone, "push", "-q")
				return fleetOf(nil), nil
			},
			[]string{
				countLine(changes.Counts{Hosts: 1, Changed: 1, Total: 3}),
				lineText(changes.Line{
					Kind: changes.FileLine, Files: []string{"namespace.yaml"}, Keys: []changes.Key{{How: changes.NewFile}},
					Assignments: assignmentKeys("large/app-core"), Causes: []changes.Cause{causeByDrift("")},
				}),
			},
		},
		"another name": {
			func(*testing.T, string) (any, map[string]any) { return fleetOf(nil), map[string]any{"name": "dev-eu"} },
			[]string{
				countLine(changes.Counts{Total: 3}),
				lineText(changes.Line{Kind: changes.HandoverLine, Names: []string{"dev"}}),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := bare(t)
			w := providertest.New(startProvider)
			first := apply(t, w, assigned(url, fleetOf(nil), nil))
			if lines := linesOf(first); len(lines) > 0 && !strings.HasPrefix(lines[0], countLine(changes.Counts{Hosts: 2, Added: 3})) {
				t.Errorf("at first the lines are %q", lines)
			}
			fleet, further := test.change(t, url)
			plan, diags := w.Plan(t.Context(), assigned(url, fleet, further))
			if diags.Err() != nil {
				t.Fatal(diags.Err())
			}
			lines := linesOf(plan)
			if plan.Empty() {
				lines = nil
			}
			same := slices.EqualFunc(lines, test.want, func(got, want string) bool {
				return got == want || strings.HasSuffix(want, "since commit ") && strings.HasPrefix(got, want)
			})
			if !same {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestChangesOfAMoveShowRemovals(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	apply(t, w, assigned(url, fleetOf(nil), nil))
	elsewhere := filepath.ToSlash(filepath.Join(t.TempDir(), "elsewhere.git"))
	plan, diags := w.Plan(t.Context(), assigned(elsewhere, fleetOf(nil), map[string]any{"protection": map[string]any{"max_removed": 3}}))
	if diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	// Only a look at both repositories shows whether it is a move. The changes are therefore unknown, and a warning has the
	// lines.
	text := diags.String()
	if plan.Change(assignment).After["changes"] != (providertest.Unknown{}) {
		t.Errorf("changes: %v", plan.Change(assignment).After["changes"])
	}
	for _, want := range []string{"3 added, 3 removed", "\n- ", ", at " + url[:40], "\n+ "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
