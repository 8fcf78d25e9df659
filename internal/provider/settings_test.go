package provider_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reference/settings"
)

// withoutTable maps the ends of names of dynamic attributes without a table to their forms.
var withoutTable = map[string]string{
	".labels":                               "a map of texts",
	".parameters":                           "an object of any shape",
	"flotilla_config_container.data":        "an object of any shape",
	".fleet":                                "the value that provider::flotilla::fleet returned",
	".evidence":                             "a text, or a list of texts",
	"flotilla_assignment.candidate":         "a value of any type",
	"flotilla_promotion.candidate":          "a value of any type",
	"flotilla_promotion.pin":                "a value of any type",
	"flotilla_rollout.wanted":               "a value of any type",
	"flotilla_rollout.released":             "a value of any type",
	"flotilla_rollout.approvals":            "a list of texts",
	"flotilla_rollout.expedite":             "a list of texts",
	"flotilla_agent.install":                "a text, or a list or map of texts",
	"flotilla_config_container.encrypted":   "a list of texts",
	"flotilla_config_container.allow_plain": "a list of texts",
	"provider.custom_resource_definitions":  "a text, or a list or map of texts",
}

// dynamicAttribute is a configurable attribute without a type for Terraform.
type dynamicAttribute struct {
	name        string // "flotilla_assignment.rollout", "provider.git"
	description string
	// validate has the provider check a configuration with this attribute as the only known one.
	validate func(value tftypes.Value) ([]*tfprotov6.Diagnostic, error)
}

var settingsLink = regexp.MustCompile(`guides/reference-(settings|fleet)\.md#([a-z0-9_-]+)`)

// dynamicAttributes returns the dynamic attributes of all resources, data sources and the provider, and parameters of functions.
func dynamicAttributes(t *testing.T) []dynamicAttribute {
	t.Helper()
	server, err := startProvider()
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var found []dynamicAttribute
	add := func(owner string, schema *tfprotov6.Schema, validate func(config *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error)) {
		for _, attribute := range schema.Block.Attributes {
			if attribute.Type == nil || !attribute.Type.Is(tftypes.DynamicPseudoType) || attribute.Computed && !attribute.Optional {
				continue
			}
			found = append(
				found,
				dynamicAttribute{owner + "." + attribute.Name, attribute.Description, func(value tftypes.Value) ([]*tfprotov6.Diagnostic, error) {
					config, err := tfprotov6.NewDynamicValue(schema.ValueType(), configurationWith(schema, attribute.Name, value))
					if err != nil {
						return nil, err
					}
					return validate(&config)
				}},
			)
		}
	}
	add("provider", schemas.Provider, func(config *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
		resp, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: config})
		if err != nil {
			return nil, err
		}
		return resp.Diagnostics, nil
	})
	for _, name := range slices.Sorted(maps.Keys(schemas.ResourceSchemas)) {
		add(name, schemas.ResourceSchemas[name], func(config *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
			resp, err := server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
				TypeName: name, Config: config, ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
			})
			if err != nil {
				return nil, err
			}
			return resp.Diagnostics, nil
		})
	}
	for _, name := range slices.Sorted(maps.Keys(schemas.DataSourceSchemas)) {
		add(name, schemas.DataSourceSchemas[name], func(config *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
			resp, err := server.ValidateDataResourceConfig(t.Context(), &tfprotov6.ValidateDataResourceConfigRequest{TypeName: name, Config: config})
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(resp.Diagnostics, func(one *tfprotov6.Diagnostic) bool { return strings.Contains(one.Detail, extraKey) }) {
				return resp.Diagnostics, nil
			}
			return readWithDefaults(t, name, config) // which checks the rest
		})
	}
	for _, name := range slices.Sorted(maps.Keys(schemas.Functions)) {
		function := schemas.Functions[name]
		parameters := function.Parameters
		if function.VariadicParameter != nil {
			parameters = append(slices.Clone(parameters), function.VariadicParameter)
		}
		for i, parameter := range parameters {
			if !settingsLink.MatchString(parameter.Description) {
				continue
			}
			found = append(
				found,
				dynamicAttribute{name + "." + parameter.Name, parameter.Description, func(value tftypes.Value) ([]*tfprotov6.Diagnostic, error) {
					return callWithOneArgument(t, server, name, parameters, i, value)
				}},
			)
		}
	}
	return found
}

// readWithDefaults returns the diagnostics of a data source with a provider without configuration.
func readWithDefaults(t *testing.T, name string, config *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
	t.Helper()
	server, err := startProvider()
	if err != nil {
		return nil, err
	}
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, err
	}
	empty, err := tfprotov6.NewDynamicValue(schemas.Provider.ValueType(), configurationWith(schemas.Provider, "", tftypes.Value{}))
	if err != nil {
		return nil, err
	}
	if _, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: &empty}); err != nil {
		return nil, err
	}
	resp, err := server.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{TypeName: name, Config: config})
	if err != nil {
		return nil, err
	}
	return resp.Diagnostics, nil
}

// callWithOneArgument returns the error of a function with one known argument.
func callWithOneArgument(
	t *testing.T,
	server tfprotov6.ProviderServer,
	name string,
	parameters []*tfprotov6.FunctionParameter,
	index int,
	value tftypes.Value,
) ([]*tfprotov6.Diagnostic, error) {
	t.Helper()
	var arguments []*tfprotov6.DynamicValue
	for i, parameter := range parameters {
		argument := tftypes.NewValue(parameter.Type, tftypes.UnknownValue)
		if i == index {
			argument = value
		}
		encoded, err := tfprotov6.NewDynamicValue(parameter.Type, argument)
		if err != nil {
			return nil, err
		}
		arguments = append(arguments, &encoded)
	}
	resp, err := server.CallFunction(t.Context(), &tfprotov6.CallFunctionRequest{Name: name, Arguments: arguments})
	if err != nil || resp.Error == nil {
		return nil, err
	}
	return []*tfprotov6.Diagnostic{{Detail: resp.Error.Text}}, nil
}

// configurationWith sets one attribute. Other required attributes are unknown, and optional ones are not set.
func configurationWith(schema *tfprotov6.Schema, name string, value tftypes.Value) tftypes.Value {
	attributes := map[string]tftypes.Value{}
	for _, attribute := range schema.Block.Attributes {
		switch {
		case attribute.Name == name:
			attributes[name] = value
		case attribute.Required:
			attributes[attribute.Name] = tftypes.NewValue(attribute.ValueType(), tftypes.UnknownValue)
		default:
			attributes[attribute.Name] = tftypes.NewValue(attribute.ValueType(), nil)
		}
	}
	return tftypes.NewValue(schema.ValueType(), attributes)
}

const extraKey = "unheard_of"

// filledObject returns an object with each attribute of a table, and extraKey in each object. It counts the objects.
func filledObject(table *fleet.Table, objects *int) tftypes.Value {
	*objects++
	members := map[string]tftypes.Value{extraKey: tftypes.NewValue(tftypes.String, "x")}
	for _, name := range table.Keys() {
		members[name] = filledAttribute(table.Find(name), objects)
	}
	return objectOf(members)
}

func filledAttribute(attribute *fleet.Attribute, objects *int) tftypes.Value {
	switch attribute.Type {
	case fleet.BoolType:
		return tftypes.NewValue(tftypes.Bool, true)
	case fleet.WholeType, fleet.NumberType:
		return tftypes.NewValue(tftypes.Number, max(attribute.Least, 1))
	case fleet.TextsType:
		return tupleOf([]tftypes.Value{tftypes.NewValue(tftypes.String, "x")})
	case fleet.TextMapType, fleet.QuantitiesType, fleet.TextOrTextMapType:
		return objectOf(map[string]tftypes.Value{"x": tftypes.NewValue(tftypes.String, "x")})
	case fleet.AnyObjectType:
		return objectOf(nil)
	case fleet.ObjectType, fleet.TextOrObjectType, fleet.BoolOrObjectType:
		return filledObject(attribute.Of, objects)
	case fleet.ObjectsType, fleet.CollectionType, fleet.NamesOrObjectsType:
		return tupleOf([]tftypes.Value{filledObject(attribute.Of, objects)})
	case fleet.ObjectMapType:
		return objectOf(map[string]tftypes.Value{"x": filledObject(attribute.Of, objects)})
	case fleet.DurationType:
		return tftypes.NewValue(tftypes.String, "90s")
	case fleet.TimeType:
		return tftypes.NewValue(tftypes.String, "2026-01-31T18:00:00Z")
	}
	if len(attribute.Allowed) > 0 {
		return tftypes.NewValue(tftypes.String, attribute.Allowed[0])
	}
	return tftypes.NewValue(tftypes.String, "x")
}

func settingsTables() map[string]*fleet.Table {
	tables := map[string]*fleet.Table{}
	var add func(guide string, table *fleet.Table)
	add = func(guide string, table *fleet.Table) {
		if table == nil || tables["fleet#"+table.Anchor()] == table || tables[guide+"#"+table.Anchor()] == table {
			return
		}
		tables[guide+"#"+table.Anchor()] = table
		for i := range table.Attributes {
			add(guide, table.Attributes[i].Of)
		}
	}
	add("fleet", fleet.RootTable())
	for _, table := range settings.Tables() {
		add("settings", table)
	}
	return tables
}

// TestEachSettingIsReadByItsTable checks that the provider reads each attribute with objects by the table that its description links:
// every attribute of the table and its inner tables, and no other. Readers of an attribute outside the table panic.
func TestEachSettingIsReadByItsTable(t *testing.T) {
	t.Parallel()
	tables, used := settingsTables(), map[string]bool{}
	for _, attribute := range dynamicAttributes(t) {
		link := settingsLink.FindStringSubmatch(attribute.description)
		if link == nil {
			if _, name, _ := strings.Cut(attribute.name, "."); withoutTable[attribute.name] == "" && withoutTable["."+name] == "" {
				t.Errorf("the description of %s links no table", attribute.name)
			}
			continue
		}
		anchor := link[1] + "#" + link[2]
		table := tables[anchor]
		if table == nil {
			t.Errorf("the description of %s links table %s, which does not exist", attribute.name, anchor)
			continue
		}
		used[anchor] = true
		t.Run(attribute.name, func(t *testing.T) {
			t.Parallel()
			objects := 0
			value := filledObject(table, &objects)
			switch description := attribute.description; {
			case strings.Contains(description, "List of objects with the keys"),
				strings.Contains(description, "List or map of objects with the keys"):
				value = tupleOf([]tftypes.Value{value})
			case strings.Contains(description, "Map of objects with the keys"):
				value = objectOf(map[string]tftypes.Value{"x": value})
			}
			diags, err := attribute.validate(value)
			if err != nil {
				t.Fatal(err)
			}
			var details []string
			for _, one := range diags {
				details = append(details, one.Detail)
			}
			all := strings.Join(details, "\n")
			if got := strings.Count(all, extraKey+": unknown attribute") + strings.Count(all, extraKey+" is an unknown attribute"); got != objects {
				t.Errorf("%d of %d objects are read strictly:\n%s", got, objects, all)
			}
			if others := strings.Count(all, "unknown attribute") - objects; others != 0 {
				t.Errorf("%d attributes of the tables are not read:\n%s", others, all)
			}
		})
	}
	for _, table := range settings.Tables() {
		if !used["settings#"+table.Anchor()] {
			t.Errorf("no description links the table of a %s", table.Name)
		}
	}
	if len(used) < 25 {
		t.Errorf("only %d tables are used", len(used))
	}
}
