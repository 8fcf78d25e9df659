package provider_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// constraintCounts returns the counts of a constraint: looked at, passed, violated, failed, pending.
func constraintCounts(t *testing.T, read map[string]any, name string) [5]int {
	t.Helper()
	text, err := json.Marshal(field(read, "constraints", name))
	if err != nil {
		t.Fatal(err)
	}
	result := struct {
		Looked   int `json:"looked_at"`
		Passed   int `json:"passed"`
		Violated int `json:"violated"`
		Failed   int `json:"failed"`
		Pending  int `json:"pending"`
	}{-1, -1, -1, -1, -1}
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	return [5]int{result.Looked, result.Passed, result.Violated, result.Failed, result.Pending}
}

func TestSchedulingHasTheResultsOfConstraints(t *testing.T) {
	t.Parallel()
	call := fleetOf(withConstraints(
		rule("hosts", "host.name != 'spare'", "mode", "inform", "message", "spare is not for use"),
		rule("branches", "target.manifests.branch != 'main'", "message_expression", "target.name + ' follows a branch'"),
		rule("values", "config.DATABASE_URL != ''"),
		rule("documents", "object.kind != 'Namespace'", "match", map[string]any{"kinds": []any{"Namespace"}}),
	))
	for name, test := range map[string]struct {
		contents bool
		want     map[string][5]int
	}{
		"by the schedule alone": {false, map[string][5]int{
			"hosts": {3, 2, 1, 0, 0}, "branches": {2, 0, 0, 0, 2}, "values": {3, 0, 0, 0, 3}, "documents": {3, 0, 0, 0, 3},
		}},
		"by the whole fleet": {true, map[string][5]int{
			"hosts": {3, 2, 1, 0, 0}, "branches": {2, 0, 2, 0, 0}, "values": {3, 1, 0, 2, 0}, "documents": {3, 0, 3, 0, 0},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arguments := map[string]any{"fleet": call}
			if test.contents {
				arguments["contents"] = call
			}
			read, diags := providertest.New(startProvider).ReadData(t.Context(), providertest.Configuration{}, "flotilla_scheduling", arguments)
			if diags.Err() != nil {
				t.Fatal(diags.Err())
			}
			for name, want := range test.want {
				if got := constraintCounts(t, read, name); got != want {
					t.Errorf("%s: got %v, want %v: %v", name, got, want, field(read, "constraints", name))
				}
			}
			violations, _ := field(read, "constraints", "hosts", "violations").([]any)
			want := []any{map[string]any{
				"assignment": nil, "host": "spare", "deployment_target": nil, "workspace": nil, "object": nil, "file": nil, "made_by": nil, "message": "spare is not for use",
			}}
			if !reflect.DeepEqual(violations, want) || field(read, "constraints", "hosts", "mode") != fleet.Inform ||
				field(read, "constraints", "hosts", "over") != "hosts" {
				t.Errorf("hosts: %v", field(read, "constraints", "hosts"))
			}
			state := fmt.Sprint(read)
			for _, secret := range []string{"mysql://one", "target.manifests.branch", "LOG_LEVEL"} {
				if strings.Contains(state, secret) {
					t.Errorf("the state has %q: %s", secret, state)
				}
			}
		})
	}
}

func TestSchedulingLists100ViolationsAtMost(t *testing.T) {
	t.Parallel()
	clusters := make([]any, 150)
	for i := range clusters {
		clusters[i] = map[string]any{"name": fmt.Sprintf("c-%d", i), "cluster_type": "drone"}
	}
	everywhere := policy("all", map[string]any{}, map[string]any{})
	delete(everywhere, "cluster_type_selector")
	everywhere["cluster_selector"] = map[string]any{}
	call := fleetOf(
		mergeMaps(withConstraints(rule("none", "host.cluster == ''")), map[string]any{"clusters": clusters, "target_policies": []any{everywhere}}),
	)
	read, diags := providertest.New(startProvider).
		ReadData(t.Context(), providertest.Configuration{}, "flotilla_scheduling", map[string]any{"fleet": call})
	if diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	violations, _ := field(read, "constraints", "none", "violations").([]any)
	if got := constraintCounts(t, read, "none"); got[2] != 150 || len(violations) != 100 {
		t.Errorf("got %v, and %d listed violations", got, len(violations))
	}
}

func TestSchedulingRefusesTheContentsOfAnotherFleet(t *testing.T) {
	t.Parallel()
	one, other := fleetOf(withConstraints(rule("values", "size(config) > 0"))), fleetOf(map[string]any{"environment": "prod"})
	_, diags := providertest.New(startProvider).
		ReadData(t.Context(), providertest.Configuration{}, "flotilla_scheduling", map[string]any{"fleet": one, "contents": other})
	if !strings.Contains(diags.String(), "same fleet") {
		t.Errorf("the error is %s", diags)
	}
}
