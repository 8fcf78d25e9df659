package provider_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
)

// expectReadAtPlan expects a data source to be read at plan, not deferred to the apply.
type expectReadAtPlan struct{ address string }

// CheckPlan implements plancheck.PlanCheck.
func (c expectReadAtPlan) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	for _, change := range req.Plan.ResourceChanges {
		if change.Address == c.address {
			resp.Error = fmt.Errorf("%s is deferred to apply", c.address)
			return
		}
	}
	if req.Plan.PriorState != nil && req.Plan.PriorState.Values != nil {
		for _, resource := range req.Plan.PriorState.Values.RootModule.Resources {
			if resource.Address == c.address {
				return
			}
		}
	}
	resp.Error = fmt.Errorf("%s was not read", c.address)
}

// expectOnlyChanges expects the plan to change only these places of one resource: "attribute" or "attribute.key…".
type expectOnlyChanges struct {
	address string
	places  []string
}

// CheckPlan implements plancheck.PlanCheck.
func (c expectOnlyChanges) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	var changed []string
	for _, change := range req.Plan.ResourceChanges {
		if change.Change.Actions.NoOp() {
			continue
		}
		if change.Address != c.address || !change.Change.Actions.Update() {
			resp.Error = fmt.Errorf("the plan of %s is %v", change.Address, change.Change.Actions)
			return
		}
		changed = append(changed, plannedChanges(change.Change)...)
	}
	slices.Sort(changed)
	if !slices.Equal(changed, c.places) {
		resp.Error = fmt.Errorf("the plan changes %q, want %q", changed, c.places)
	}
}

func plannedChanges(change *tfjson.Change) []string {
	return changedPaths("", change.Before, change.After, change.AfterUnknown)
}

func changedPaths(path string, before, after, unknown any) []string {
	if unknown == true {
		return []string{strings.TrimPrefix(path, ".")}
	}
	former, wasMap := before.(map[string]any)
	current, isMap := after.(map[string]any)
	if !wasMap || !isMap {
		if reflect.DeepEqual(before, after) {
			return nil
		}
		return []string{strings.TrimPrefix(path, ".")}
	}
	unknowns, _ := unknown.(map[string]any)
	keys := map[string]bool{}
	for key := range former {
		keys[key] = true
	}
	for key := range current {
		keys[key] = true
	}
	for key := range unknowns {
		keys[key] = true
	}
	var places []string
	for key := range keys {
		places = append(places, changedPaths(path+"."+key, former[key], current[key], unknowns[key])...)
	}
	return places
}
