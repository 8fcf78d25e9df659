package provider_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// dataSourceArguments has valid arguments of each data source.
var dataSourceArguments = map[string]func(m *matrix) map[string]any{
	"flotilla_artifacts":     func(m *matrix) map[string]any { return map[string]any{"workloads": []any{}} },
	"flotilla_cluster_facts": func(*matrix) map[string]any { return map[string]any{} },
	"flotilla_comparison": func(m *matrix) map[string]any {
		return map[string]any{"left": ownerArguments(m, nil), "right": map[string]any{
			"name": "dev-2", "gitops_repo": map[string]any{"url": m.url, "branch": "dev", "path": "all-2"},
		}}
	},
	"flotilla_compliance": func(m *matrix) map[string]any {
		return ownerArguments(m, map[string]any{"fleet": matrixFleet(1), "feedback": map[string]any{}})
	},
	"flotilla_config_snapshots": func(*matrix) map[string]any { return map[string]any{"fleet": matrixFleet(1)} },
	"flotilla_diff":             func(m *matrix) map[string]any { return ownerArguments(m, map[string]any{"fleet": matrixFleet(1)}) },
	"flotilla_history": func(m *matrix) map[string]any {
		return map[string]any{"gitops_repo": map[string]any{"url": m.url, "branch": "dev", "path": "all"}}
	},
	"flotilla_inventory": func(m *matrix) map[string]any {
		return map[string]any{"gitops_repo": map[string]any{"url": m.url, "branch": "dev", "path": "all"}}
	},
	"flotilla_manifests": func(*matrix) map[string]any { return map[string]any{"fleet": matrixFleet(1)} },
	"flotilla_measurements": func(*matrix) map[string]any {
		return map[string]any{"fleet": poolFleet("edge-1"), "checks": []any{map[string]any{
			"name": "up", "of": "fleet", "pass": "true", "prometheus": map[string]any{"url": "http://127.0.0.1:1", "query": "up"},
		}}}
	},
	"flotilla_overview":         func(m *matrix) map[string]any { return ownerArguments(m, map[string]any{"fleet": matrixFleet(1)}) },
	"flotilla_repository_files": func(m *matrix) map[string]any { return map[string]any{"url": m.url, "ref": "dev"} },
	"flotilla_scheduling":       func(*matrix) map[string]any { return map[string]any{"fleet": matrixFleet(1)} },
}

// ownerArguments identifies the first assignment.
func ownerArguments(m *matrix, further map[string]any) map[string]any {
	owner := map[string]any{"name": "dev", "gitops_repo": map[string]any{"url": m.url, "branch": "dev", "path": "all"}}
	maps.Copy(owner, further)
	return owner
}

// nullTypes are possible types of a variable without a value.
var nullTypes = []tftypes.Type{
	tftypes.String, tftypes.Bool, tftypes.Map{ElementType: tftypes.String}, tftypes.Object{AttributeTypes: map[string]tftypes.Type{"name": tftypes.String}},
}

// nullTypesOf returns one of nullTypes in turn, or all in `make acceptance`.
func nullTypesOf(argument int) []tftypes.Type {
	if acceptancetest.All() {
		return nullTypes
	}
	return nullTypes[argument%len(nullTypes):][:1]
}

func configurableArguments(schema *tfprotov6.Schema) []*tfprotov6.SchemaAttribute {
	return slices.DeleteFunc(
		slices.Clone(schema.Block.Attributes),
		func(a *tfprotov6.SchemaAttribute) bool { return !a.Required && !a.Optional },
	)
}

func isDynamic(a *tfprotov6.SchemaAttribute) bool {
	return a.Type != nil && a.Type.Is(tftypes.DynamicPseudoType)
}

func providerSchemas(t *testing.T) *tfprotov6.GetProviderSchemaResponse {
	t.Helper()
	server, err := startProvider()
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return schemas
}

func (m *matrix) singleResource(name string, changed map[string]any) providertest.Configuration {
	attributes := rows[name].attributes(m, m.version, "")
	maps.Copy(attributes, changed)
	return providertest.Configuration{
		Provider:  map[string]any{"clusters": m.clusters},
		Resources: map[string]providertest.Resource{m.address(name): {Attributes: attributes}},
	}
}

// planText returns a plan without one attribute, and its diagnostics.
func planText(t *testing.T, w providertest.Runner, configuration providertest.Configuration, address, without string) string {
	t.Helper()
	plan, diags := w.Plan(t.Context(), configuration)
	if plan == nil || plan.Change(address) == nil {
		return diags.String()
	}
	after := maps.Clone(plan.Change(address).After)
	delete(after, without)
	return fmt.Sprint(after, diags)
}

// Terraform 1.11 compares the paths of sensitive attributes and writes them into the state in random order: with two such
// attributes, plan -refresh-only -detailed-exitcode returns 2 at random.
func TestNoResourceHasTwoSensitiveAttributes(t *testing.T) {
	t.Parallel()
	for name, schema := range providerSchemas(t).ResourceSchemas {
		var sensitive []string
		for _, attribute := range schema.Block.Attributes {
			if attribute.Sensitive {
				sensitive = append(sensitive, attribute.Name)
			}
		}
		if len(sensitive) > 1 {
			t.Errorf("%s has the sensitive attributes %q", name, sensitive)
		}
	}
}

// A module may pass a typed variable with the value null.
func TestTypedNullArgumentsOfResourcesCountAsUnset(t *testing.T) {
	t.Parallel()
	for name, schema := range providerSchemas(t).ResourceSchemas {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newSimulatedMatrix(t)
			m.bumpVersion()
			for i, argument := range configurableArguments(schema) {
				if !isDynamic(argument) || argument.Required {
					continue
				}
				want := planText(
					t,
					providertest.New(m.world.(*memoryWorld).start),
					m.singleResource(name, map[string]any{argument.Name: nil}),
					m.address(name),
					argument.Name,
				)
				for _, typ := range nullTypesOf(i) {
					typed := m.singleResource(name, map[string]any{argument.Name: tftypes.NewValue(typ, nil)})
					w := providertest.New(m.world.(*memoryWorld).start)
					if got := planText(t, w, typed, m.address(name), argument.Name); got != want {
						t.Errorf("%s, a null %s: the plan is\n%s\nwant\n%s", argument.Name, typ, got, want)
					}
				}
			}
			// All nulls at once: create and update.
			all := map[string]any{}
			for i, argument := range slices.DeleteFunc(configurableArguments(schema), func(a *tfprotov6.SchemaAttribute) bool { return !isDynamic(a) || a.Required }) {
				if value, isGiven := rows[name].attributes(m, m.version, "")[argument.Name]; !isGiven || value == nil {
					all[argument.Name] = tftypes.NewValue(nullTypes[i%len(nullTypes)], nil)
				}
			}
			for range 2 {
				if _, diags := m.runner.Apply(t.Context(), m.singleResource(name, all)); diags.Err() != nil {
					t.Fatalf("with %d typed nulls: %s", len(all), diags)
				}
				if plan, diags := m.runner.Plan(t.Context(), m.singleResource(name, all)); diags.Err() != nil || !plan.Empty() {
					t.Errorf("with %d typed nulls the next plan is not empty: %s%s", len(all), describeChanges(plan), diags)
				}
				m.bumpVersion()
			}
		})
	}
}

func (m *matrix) readData(name string, changed map[string]any) (map[string]any, providertest.Diagnostics) {
	arguments := dataSourceArguments[name](m)
	maps.Copy(arguments, changed)
	return m.runner.(*providertest.Workspace).PlanData(
		m.t.Context(),
		providertest.Configuration{Provider: map[string]any{"clusters": m.clusters}},
		name,
		arguments,
	)
}

// newMatrixWithAssignments deploys the two assignments that dataSourceArguments refers to.
func newMatrixWithAssignments(t *testing.T) *matrix {
	t.Helper()
	m := newSimulatedMatrix(t)
	m.bumpVersion()
	configuration := m.singleResource("flotilla_assignment", nil)
	configuration.Resources["flotilla_assignment.twin"] = providertest.Resource{
		Attributes: rows["flotilla_assignment"].attributes(m, m.version, "-2"),
	}
	if _, diags := m.runner.Apply(t.Context(), configuration); diags.Err() != nil {
		t.Fatal(diags)
	}
	return m
}

func TestTypedNullArgumentsOfDataSourcesCountAsUnset(t *testing.T) {
	t.Parallel()
	m := newMatrixWithAssignments(t)
	schemas := providerSchemas(t).DataSourceSchemas
	if want, got := slices.Sorted(maps.Keys(schemas)), slices.Sorted(maps.Keys(dataSourceArguments)); !slices.Equal(want, got) {
		t.Errorf("dataSourceArguments: got %q, want %q", got, want)
	}
	for _, name := range slices.Sorted(maps.Keys(dataSourceArguments)) {
		if _, diags := m.readData(name, nil); diags.Err() != nil {
			t.Errorf("%s: %s", name, diags)
		}
		for i, argument := range configurableArguments(schemas[name]) {
			if !isDynamic(argument) || argument.Required {
				continue
			}
			_, want := m.readData(name, map[string]any{argument.Name: nil})
			for _, typ := range nullTypesOf(i) {
				if _, got := m.readData(name, map[string]any{argument.Name: tftypes.NewValue(typ, nil)}); got.String() != want.String() {
					t.Errorf("%s.%s, a null %s: got %s, want %s", name, argument.Name, typ, got, want)
				}
			}
		}
	}
}

// Before a deployment, try(var.deployed.name, null) is null.
func TestArtifactsBeforeTheFirstDeployment(t *testing.T) {
	t.Parallel()
	_, diags := providertest.New(startProvider).ReadData(t.Context(), providertest.Configuration{}, "flotilla_artifacts", map[string]any{
		"workloads": []any{}, "environment": "dev", "name": nil,
		"gitops_repo": tftypes.NewValue(
			tftypes.Object{AttributeTypes: map[string]tftypes.Type{"url": tftypes.String, "branch": tftypes.String}},
			nil,
		),
	})
	if len(diags) > 0 {
		t.Errorf("got %s", diags)
	}
}

func TestTypedNullPinAndCandidateCountAsUnset(t *testing.T) {
	t.Parallel()
	const address = "flotilla_promotion.dev"
	configuration := func(attributes map[string]any) providertest.Configuration {
		return providertest.Configuration{Resources: map[string]providertest.Resource{address: {Attributes: attributes}}}
	}
	null := tftypes.NewValue(tftypes.String, nil)
	w := providertest.New(startProvider)
	apply(t, w, configuration(map[string]any{"candidate": null, "pin": null, "hold": true}))
	apply(t, w, configuration(map[string]any{"candidate": "v1", "pin": "v1"}))
	plan := apply(t, w, configuration(map[string]any{"candidate": null, "pin": null}))
	if after := plan.Change(address).After; after["promoted"] != "v1" {
		t.Errorf("got promoted %v, want v1", after["promoted"])
	}
}

// An unknown value may become valid.
func TestEachArgumentOfAResourceMayBeUnknown(t *testing.T) {
	t.Parallel()
	for name, schema := range providerSchemas(t).ResourceSchemas {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newSimulatedMatrix(t)
			m.bumpVersion()
			arguments := rows[name].attributes(m, m.version, "")
			for _, argument := range configurableArguments(schema) {
				unknown := m.singleResource(name, map[string]any{argument.Name: providertest.Unknown{Then: arguments[argument.Name]}})
				if _, diags := m.runner.Plan(t.Context(), unknown); diags.Err() != nil {
					t.Errorf("%s: %s", argument.Name, diags)
				}
				if isDynamic(argument) {
					typed := m.singleResource(name, map[string]any{argument.Name: tftypes.NewValue(tftypes.String, tftypes.UnknownValue)})
					if _, diags := m.runner.Plan(t.Context(), typed); diags.Err() != nil {
						t.Errorf("%s, a text: %s", argument.Name, diags)
					}
				}
			}
		})
	}
}

func TestEachArgumentOfADataSourceMayBeUnknown(t *testing.T) {
	t.Parallel()
	m := newMatrixWithAssignments(t)
	for name, schema := range providerSchemas(t).DataSourceSchemas {
		for _, argument := range configurableArguments(schema) {
			if _, diags := m.readData(name, map[string]any{argument.Name: providertest.Unknown{}}); diags.Err() != nil {
				t.Errorf("%s.%s: %s", name, argument.Name, diags)
			}
		}
	}
}

// keyOfObject is the path of a key in a dynamic argument, with its attribute in the table.
type keyOfObject struct {
	keys      []string
	attribute *fleet.Attribute
	wrap      func(members map[string]tftypes.Value) tftypes.Value // returns the argument with these members in the object
}

func (p keyOfObject) String() string { return strings.Join(p.keys, ".") }

// collectKeys returns the keys of objects and nested objects, each table once.
func collectKeys(
	table *fleet.Table,
	seen map[*fleet.Table]bool,
	keys []string,
	wrap func(map[string]tftypes.Value) tftypes.Value,
) []keyOfObject {
	if seen[table] {
		return nil
	}
	seen[table] = true
	var all []keyOfObject
	for _, name := range table.Keys() {
		attribute := table.Find(name)
		at := keyOfObject{append(slices.Clone(keys), name), attribute, wrap}
		all = append(all, at)
		if attribute.Of == nil {
			continue
		}
		all = append(all, collectKeys(attribute.Of, seen, at.keys, func(members map[string]tftypes.Value) tftypes.Value {
			return wrap(map[string]tftypes.Value{name: wrapObject(attribute.Type, objectOf(members))})
		})...)
	}
	return all
}

func wrapObject(typ fleet.Type, object tftypes.Value) tftypes.Value {
	switch typ {
	case fleet.ObjectsType, fleet.CollectionType, fleet.NamesOrObjectsType:
		return tupleOf([]tftypes.Value{object})
	case fleet.ObjectMapType:
		return objectOf(map[string]tftypes.Value{"x": object})
	}
	return object
}

// keysOfArgument returns the keys in a dynamic argument, or nil if it has no table.
func keysOfArgument(argument dynamicAttribute, tables map[string]*fleet.Table) []keyOfObject {
	link := settingsLink.FindStringSubmatch(argument.description)
	if link == nil {
		return nil
	}
	wrap := objectOf
	switch {
	case strings.Contains(argument.description, "List of objects with the keys"),
		strings.Contains(argument.description, "List or map of objects with the keys"):
		wrap = func(members map[string]tftypes.Value) tftypes.Value {
			return tupleOf([]tftypes.Value{objectOf(members)})
		}
	case strings.Contains(argument.description, "Map of objects with the keys"):
		wrap = func(members map[string]tftypes.Value) tftypes.Value {
			return objectOf(map[string]tftypes.Value{"x": objectOf(members)})
		}
	}
	return collectKeys(tables[link[1]+"#"+link[2]], map[*fleet.Table]bool{}, nil, wrap)
}

// In an object, null counts as unset, and an unknown value is valid.
func TestEachKeyOfAnObjectMayBeNullTypedNullOrUnknown(t *testing.T) {
	t.Parallel()
	tables, checked := settingsTables(), 0
	for _, argument := range dynamicAttributes(t) {
		describe := func(value tftypes.Value) string {
			diags, err := argument.validate(value)
			if err != nil {
				t.Fatal(err)
			}
			var details []string
			for _, one := range diags {
				details = append(details, one.Detail)
			}
			return strings.Join(details, "\n")
		}
		for _, at := range keysOfArgument(argument, tables) {
			checked++
			absent := describe(at.wrap(nil))
			key := at.keys[len(at.keys)-1]
			for _, null := range []tftypes.Value{
				tftypes.NewValue(tftypes.DynamicPseudoType, nil), tftypes.NewValue(tftypes.String, nil), tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, nil),
			} {
				if got := describe(at.wrap(map[string]tftypes.Value{key: null})); got != absent {
					t.Errorf("%s: %s = null of type %s: got\n%s\nwant\n%s", argument.name, at, null.Type(), got, absent)
				}
			}
			got := describe(at.wrap(map[string]tftypes.Value{key: tftypes.NewValue(tftypes.DynamicPseudoType, tftypes.UnknownValue)}))
			for line := range strings.SplitSeq(got, "\n") {
				// A missing host is an error without the key, too, and Terraform reads no data source with unknown arguments.
				if !strings.Contains(absent, line) && !strings.Contains(line, "is missing") && !strings.Contains(line, `no entry ""`) {
					t.Errorf("%s: unknown %s: got %s", argument.name, at, line)
				}
			}
		}
	}
	if checked < 400 {
		t.Errorf("only %d keys were checked", checked)
	}
}
