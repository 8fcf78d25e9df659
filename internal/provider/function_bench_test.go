package provider_test

import (
	"encoding/json"
	"math/big"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// BenchmarkFleetFunction calls provider::flotilla::fleet with the reference fleet, as each plan does several times.
func BenchmarkFleetFunction(b *testing.B) {
	factory := factories()["flotilla"]
	server, err := factory()
	if err != nil {
		b.Fatal(err)
	}
	value := terraformValue(fleettest.Input(fleettest.Reference(fleettest.ReferenceAssignments, 1)))
	argument, err := tfprotov6.NewDynamicValue(tftypes.DynamicPseudoType, value)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		response, err := server.CallFunction(b.Context(), &tfprotov6.CallFunctionRequest{
			Name: "fleet", Arguments: []*tfprotov6.DynamicValue{&argument},
		})
		if err != nil || response.Error != nil {
			b.Fatal(err, response.Error)
		}
	}
}

// terraformValue converts a value like Terraform: to objects, and to tuples with a type per element.
func terraformValue(value any) tftypes.Value {
	switch value := value.(type) {
	case nil:
		return tftypes.NewValue(tftypes.DynamicPseudoType, nil)
	case bool:
		return tftypes.NewValue(tftypes.Bool, value)
	case string:
		return tftypes.NewValue(tftypes.String, value)
	case json.Number:
		number, _, _ := big.ParseFloat(string(value), 10, 512, big.ToNearestEven)
		return tftypes.NewValue(tftypes.Number, number)
	case []any:
		elements, types := make([]tftypes.Value, len(value)), make([]tftypes.Type, len(value))
		for i, element := range value {
			elements[i] = terraformValue(element)
			types[i] = elements[i].Type()
		}
		return tftypes.NewValue(tftypes.Tuple{ElementTypes: types}, elements)
	case map[string]any:
		attributes, types := make(map[string]tftypes.Value, len(value)), make(map[string]tftypes.Type, len(value))
		for name, element := range value {
			attributes[name] = terraformValue(element)
			types[name] = attributes[name].Type()
		}
		return tftypes.NewValue(tftypes.Object{AttributeTypes: types}, attributes)
	}
	panic("no value of HCL")
}
