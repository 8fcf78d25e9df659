package provider_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/troubleshooting"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// bothServers returns the provider as served, and on the framework alone.
func bothServers() (served, framework tfprotov6.ProviderServer) {
	return provider.Server(provider.ForTest()), troubleshooting.Explain(providerserver.NewProtocol6(provider.ForTest())(), "dev")
}

func TestTheFleetFunctionAgreesWithTheFramework(t *testing.T) {
	served, framework := bothServers()
	call := func(server tfprotov6.ProviderServer, arguments ...*tfprotov6.DynamicValue) (tftypes.Value, *tfprotov6.FunctionError) {
		response, err := server.CallFunction(t.Context(), &tfprotov6.CallFunctionRequest{Name: "fleet", Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		if response.Error != nil {
			return tftypes.Value{}, response.Error
		}
		result, err := response.Result.Unmarshal(fleetType)
		if err != nil {
			t.Fatal(err)
		}
		return result, nil
	}
	compare := func(name string, arguments ...*tfprotov6.DynamicValue) (failed bool) {
		got, wrong := call(served, arguments...)
		want, wanted := call(framework, arguments...)
		if !reflect.DeepEqual(wrong, wanted) {
			t.Errorf("%s: got error %v, want %v", name, wrong, wanted)
		}
		if wanted == nil && !got.Equal(want) {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		return wanted != nil
	}

	whole := terraformValue(fleettest.Input(fleettest.Reference(60, 1)))
	random := rand.New(rand.NewPCG(1, 2))
	failed := 0
	for i := range 120 {
		value := whole
		for range random.IntN(3) {
			value = mutate(random, value)
		}
		if compare(fmt.Sprintf("fleet %d", i), dynamicValue(t, value)) {
			failed++
		}
	}
	if failed == 0 || failed == 120 {
		t.Errorf("got %d of 120 fleets with errors, want some of each", failed)
	}

	compare("unknown", dynamicValue(t, tftypes.NewValue(tftypes.DynamicPseudoType, tftypes.UnknownValue)))
	compare("unknown object", dynamicValue(t, tftypes.NewValue(whole.Type(), tftypes.UnknownValue)))
	compare("null", dynamicValue(t, tftypes.NewValue(tftypes.DynamicPseudoType, nil)))
	compare("null object", dynamicValue(t, tftypes.NewValue(whole.Type(), nil)))
	compare("text", dynamicValue(t, tftypes.NewValue(tftypes.String, "dev")))
	compare("as JSON", &tfprotov6.DynamicValue{JSON: []byte(`{"type":"string","value":"dev"}`)})
	compare("cut off", &tfprotov6.DynamicValue{MsgPack: dynamicValue(t, whole).MsgPack[:100]})
	compare("no argument")
	compare("two arguments", dynamicValue(t, whole), dynamicValue(t, whole))
}

func TestSchedulingAgreesWithTheFramework(t *testing.T) {
	served, framework := bothServers()
	schemas, err := framework.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	typ := schemas.DataSourceSchemas["flotilla_scheduling"].ValueType().(tftypes.Object)
	read := func(server tfprotov6.ProviderServer, config tftypes.Value) (tftypes.Value, []*tfprotov6.Diagnostic) {
		message, err := tfprotov6.NewDynamicValue(typ, config)
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{TypeName: "flotilla_scheduling", Config: &message})
		if err != nil {
			t.Fatal(err)
		}
		state, err := response.State.Unmarshal(typ)
		if err != nil {
			t.Fatal(err)
		}
		return state, response.Diagnostics
	}
	fleetOf := func(assignments int, seed uint64) map[string]tftypes.Value {
		response, err := framework.CallFunction(t.Context(), &tfprotov6.CallFunctionRequest{Name: "fleet", Arguments: []*tfprotov6.DynamicValue{
			dynamicValue(t, terraformValue(fleettest.Input(fleettest.Reference(assignments, seed)))),
		}})
		if err != nil || response.Error != nil {
			t.Fatal(err, response.Error)
		}
		result, err := response.Result.Unmarshal(fleetType)
		if err != nil {
			t.Fatal(err)
		}
		attributes := map[string]tftypes.Value{}
		if err := result.As(&attributes); err != nil {
			t.Fatal(err)
		}
		return attributes
	}
	for name, fleet := range map[string]map[string]tftypes.Value{
		"small": fleetOf(20, 1), "of hundreds": fleetOf(900, 2),
		"of another format": {"format": stringValue("0")}, "that is none": {"model": stringValue("{")},
	} {
		for attribute, value := range fleetOf(1, 3) {
			if _, ok := fleet[attribute]; !ok {
				fleet[attribute] = value
			}
		}
		inner := typ.AttributeTypes["fleet"].(tftypes.Object)
		maps.DeleteFunc(fleet, func(attribute string, _ tftypes.Value) bool { _, ok := inner.AttributeTypes[attribute]; return !ok })
		attributes := map[string]tftypes.Value{}
		for attribute, typ := range typ.AttributeTypes {
			attributes[attribute] = tftypes.NewValue(typ, nil)
		}
		attributes["fleet"] = tftypes.NewValue(inner, fleet)
		config := tftypes.NewValue(typ, attributes)
		got, wrong := read(served, config)
		want, wanted := read(framework, config)
		if !reflect.DeepEqual(wrong, wanted) {
			t.Errorf("fleet %s: got %v, want %v", name, wrong, wanted)
		}
		if !got.Equal(want) {
			t.Errorf("fleet %s: got %s, want %s", name, got, want)
		}
	}
}

var fleetType = tftypes.Object{AttributeTypes: map[string]tftypes.Type{
	"format": tftypes.String, "environment": tftypes.String, "model": tftypes.String,
	"config": entriesType, "constraints": entriesType, "manifests": entriesType,
}}

var entriesType = tftypes.Object{
	AttributeTypes: map[string]tftypes.Type{"known": tftypes.String, "pending": tftypes.Map{ElementType: tftypes.String}},
}

func stringValue(value string) tftypes.Value { return tftypes.NewValue(tftypes.String, value) }

func dynamicValue(t *testing.T, value tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()
	message, err := tfprotov6.NewDynamicValue(tftypes.DynamicPseudoType, value)
	if err != nil {
		t.Fatal(err)
	}
	return &message
}

// mutate replaces a random part by an unknown or null value, by one of another type, or by a list or map.
func mutate(random *rand.Rand, value tftypes.Value) tftypes.Value {
	var list []tftypes.Value
	var object map[string]tftypes.Value
	inside := random.IntN(8) > 0
	switch {
	case inside && value.As(&list) == nil && len(list) > 0:
		list = slices.Clone(list)
		i := random.IntN(len(list))
		list[i] = mutate(random, list[i])
		return tupleOf(list)
	case inside && value.As(&object) == nil && len(object) > 0:
		object = maps.Clone(object)
		names := slices.Sorted(maps.Keys(object))
		name := names[random.IntN(len(names))]
		object[name] = mutate(random, object[name])
		return objectOf(object)
	}
	switch random.IntN(8) {
	case 0:
		return tftypes.NewValue(tftypes.DynamicPseudoType, nil)
	case 1:
		return tftypes.NewValue(value.Type(), nil)
	case 2:
		return terraformValue(json.Number([]string{"7", "-1.5", "0.1", "1e40", "255"}[random.IntN(5)]))
	case 3:
		return terraformValue(true)
	case 4:
		return tftypes.NewValue(tftypes.List{ElementType: value.Type()}, []tftypes.Value{value})
	case 5:
		return tftypes.NewValue(tftypes.Map{ElementType: value.Type()}, map[string]tftypes.Value{"größe <&>": value})
	}
	return tftypes.NewValue(value.Type(), tftypes.UnknownValue)
}

func tupleOf(elements []tftypes.Value) tftypes.Value {
	types := make([]tftypes.Type, len(elements))
	for i := range elements {
		types[i] = elements[i].Type()
	}
	return tftypes.NewValue(tftypes.Tuple{ElementTypes: types}, elements)
}

func objectOf(attributes map[string]tftypes.Value) tftypes.Value {
	types := make(map[string]tftypes.Type, len(attributes))
	for name := range attributes {
		types[name] = attributes[name].Type()
	}
	return tftypes.NewValue(tftypes.Object{AttributeTypes: types}, attributes)
}
