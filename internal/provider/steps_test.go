package provider_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// testSteps plays the steps of a test case with the stand-in for Terraform, or with Terraform in `make acceptance`. The stand-in needs a
// tenth of the time of Terraform, which runs six times for each step.
func testSteps(t *testing.T, test resource.TestCase) {
	t.Helper()
	if simulated() {
		p := &stepPlayer{t: t, workspace: providertest.New(startProvider)}
		for i, step := range test.Steps {
			if err := p.play(step); err != nil {
				if test.ErrorCheck != nil {
					err = test.ErrorCheck(err)
				}
				t.Fatalf("step %d of %d: %v", i+1, len(test.Steps), err)
			}
		}
		p.destroyAll()
		return
	}
	test.ProtoV6ProviderFactories = factories()
	resource.Test(t, test)
}

func simulated() bool { return !acceptancetest.All() }

// moduleOf parses a configuration as before an apply.
func moduleOf(t *testing.T, config string) *providertest.Module {
	t.Helper()
	module, err := providertest.ParseModule(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

type stepPlayer struct {
	t         *testing.T
	workspace *providertest.Workspace
	applied   map[string]any // inputs of terraform_data
	last      *providertest.Module
}

// play plays a step in the order of terraform-plugin-testing.
func (p *stepPlayer) play(step resource.TestStep) error {
	if step.PreConfig != nil {
		step.PreConfig()
	}
	module, err := providertest.ParseModule(step.Config, p.applied)
	if err != nil {
		return err
	}
	p.last = module
	failed, err := p.apply(step, module)
	if err != nil {
		return err
	}
	switch {
	case step.ExpectError != nil && failed == nil:
		return fmt.Errorf("got no error, want one that matches %q", step.ExpectError)
	case step.ExpectError != nil && !step.ExpectError.MatchString(failed.Error()):
		return fmt.Errorf("want an error that matches %q, got: %w", step.ExpectError, failed)
	case step.ExpectError == nil:
		return failed
	}
	return nil
}

// apply applies and plans again. It returns errors of the provider and of checks separately.
func (p *stepPlayer) apply(step resource.TestStep, module *providertest.Module) (failed, checkErr error) {
	var options []providertest.Option
	if step.Destroy {
		options = append(options, providertest.Destroy())
	}
	for address, id := range module.Imports {
		if p.workspace.State[address].Current == nil {
			options = append(options, providertest.ImportBlock(address, id))
		}
	}
	for _, address := range module.Removed {
		p.workspace.Lose(address)
	}
	data := map[string]map[string]any{}
	if step.PlanOnly {
		for _, address := range slices.Sorted(maps.Keys(module.Data)) {
			typeName, _, _ := strings.Cut(strings.TrimPrefix(address, "data."), ".")
			if _, diags := p.workspace.PlanData(p.t.Context(), module.Configuration, typeName, module.Data[address]); diags.Err() != nil {
				return diags.Err(), nil
			}
		}
	} else {
		plan, diags := p.plan(module, options...)
		if diags.Err() != nil {
			return diags.Err(), nil
		}
		if err := p.checkPlan(plan, step.ConfigPlanChecks.PreApply); err != nil {
			return nil, err
		}
		if diags := p.workspace.ApplyPlan(p.t.Context(), plan); diags.Err() != nil {
			return diags.Err(), nil
		}
		p.applied = module.Later
		if module, checkErr = providertest.ParseModule(step.Config, p.applied); checkErr != nil {
			return nil, checkErr
		}
		p.last = module
		for _, address := range slices.Sorted(maps.Keys(module.Data)) {
			typeName, _, _ := strings.Cut(strings.TrimPrefix(address, "data."), ".")
			read, diags := p.workspace.ReadData(p.t.Context(), module.Configuration, typeName, module.Data[address])
			if diags.Err() != nil {
				return diags.Err(), nil
			}
			data[address] = read
		}
		if step.Check != nil {
			if err := step.Check(stateOf(p.values(data))); err != nil {
				return nil, err
			}
		}
		if err := p.checkState(data, step.ConfigStateChecks); err != nil {
			return nil, err
		}
	}
	plan, diags := p.plan(module, options...)
	if diags.Err() != nil {
		return diags.Err(), nil
	}
	if err := p.checkPlan(plan, step.ConfigPlanChecks.PostApplyPostRefresh); err != nil {
		return nil, err
	}
	if plan.Empty() == step.ExpectNonEmptyPlan {
		return nil, fmt.Errorf("the plan after the step is empty: %t", plan.Empty())
	}
	return nil, nil
}

func (p *stepPlayer) plan(module *providertest.Module, options ...providertest.Option) (*providertest.Plan, providertest.Diagnostics) {
	for _, name := range slices.Sorted(maps.Keys(module.Outputs)) {
		if _, err := p.workspace.Evaluate(p.t.Context(), module.Outputs[name]); err != nil {
			return nil, providertest.Diagnostics{{Error: true, Core: true, Summary: "Error in function call", Detail: err.Error()}}
		}
	}
	return p.workspace.Plan(p.t.Context(), module.Configuration, options...)
}

func (p *stepPlayer) destroyAll() {
	if len(p.workspace.State) == 0 {
		return
	}
	_, diags := p.workspace.Apply(p.t.Context(), p.last.Configuration, providertest.Destroy(), providertest.SkipRefresh())
	if diags.Err() != nil {
		p.t.Errorf("the destroy at the end fails: %s", diags.Err())
	}
}

func (p *stepPlayer) checkPlan(plan *providertest.Plan, checks []plancheck.PlanCheck) error {
	if len(checks) == 0 {
		return nil
	}
	shown := &tfjson.Plan{}
	for _, change := range plan.Changes {
		after, unknown := splitUnknown(untyped(change.After))
		shown.ResourceChanges = append(shown.ResourceChanges, &tfjson.ResourceChange{Address: change.Address, Change: &tfjson.Change{
			Actions: actionsOf(change.Action), Before: untyped(change.Before), After: after, AfterUnknown: unknown,
		}})
	}
	var problems []error
	for _, check := range checks {
		var response plancheck.CheckPlanResponse
		check.CheckPlan(p.t.Context(), plancheck.CheckPlanRequest{Plan: shown}, &response)
		problems = append(problems, response.Error)
	}
	return errors.Join(problems...)
}

func actionsOf(action providertest.Action) tfjson.Actions {
	var actions tfjson.Actions
	for _, one := range strings.Split(string(action), ", ") {
		actions = append(actions, tfjson.Action(one))
	}
	return actions
}

// untyped returns an untyped nil for a nil map.
func untyped(object map[string]any) any {
	if object == nil {
		return nil
	}
	return object
}

// splitUnknown splits a value as Terraform's JSON does: known lacks the unknown parts, and unknown has true for them.
func splitUnknown(value any) (known, unknown any) {
	switch value := value.(type) {
	case providertest.Unknown:
		return nil, true
	case map[string]any:
		knowns, unknowns := map[string]any{}, map[string]any{}
		for name, element := range value {
			known, unknown := splitUnknown(element)
			if unknown != true {
				knowns[name] = known
			}
			if unknown != nil {
				unknowns[name] = unknown
			}
		}
		return knowns, unknowns
	case []any:
		knowns, unknowns := make([]any, len(value)), make([]any, len(value))
		for i, element := range value {
			knowns[i], unknowns[i] = splitUnknown(element)
		}
		return knowns, unknowns
	}
	return value, nil
}

func (p *stepPlayer) values(data map[string]map[string]any) map[string]map[string]any {
	values := maps.Clone(data)
	for address := range p.workspace.State {
		values[address] = p.workspace.State.Values(address)
	}
	return values
}

func stateOf(values map[string]map[string]any) *terraform.State {
	root := &terraform.ModuleState{Path: []string{"root"}, Resources: map[string]*terraform.ResourceState{}}
	for address, attributes := range values {
		flat := map[string]string{}
		for name, value := range attributes {
			flatten(flat, name, value)
		}
		root.Resources[address] = &terraform.ResourceState{Primary: &terraform.InstanceState{Attributes: flat}}
	}
	return &terraform.State{Modules: []*terraform.ModuleState{root}}
}

func flatten(flat map[string]string, name string, value any) {
	switch value := value.(type) {
	case nil:
	case map[string]any:
		flat[name+".%"] = strconv.Itoa(len(value))
		for key, element := range value {
			flatten(flat, name+"."+key, element)
		}
	case []any:
		flat[name+".#"] = strconv.Itoa(len(value))
		for i, element := range value {
			flatten(flat, name+"."+strconv.Itoa(i), element)
		}
	default:
		flat[name] = fmt.Sprint(value)
	}
}

func (p *stepPlayer) checkState(data map[string]map[string]any, checks []statecheck.StateCheck) error {
	if len(checks) == 0 {
		return nil
	}
	values := p.values(data)
	root := &tfjson.StateModule{}
	for _, address := range slices.Sorted(maps.Keys(values)) {
		text, err := json.Marshal(values[address])
		if err != nil {
			return err
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		var attributes map[string]any
		if err := decoder.Decode(&attributes); err != nil {
			return err
		}
		root.Resources = append(root.Resources, &tfjson.StateResource{Address: address, AttributeValues: attributes})
	}
	var problems []error
	for _, check := range checks {
		var response statecheck.CheckStateResponse
		check.CheckState(
			p.t.Context(),
			statecheck.CheckStateRequest{State: &tfjson.State{Values: &tfjson.StateValues{RootModule: root}}},
			&response,
		)
		problems = append(problems, response.Error)
	}
	return errors.Join(problems...)
}
