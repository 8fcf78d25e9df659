package tfvalue

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
)

// Infer returns what jsondecode would.
func Infer(value any) (attr.Value, error) {
	switch value := value.(type) {
	case nil:
		return basetypes.NewDynamicNull(), nil
	case bool:
		return basetypes.NewBoolValue(value), nil
	case string:
		return basetypes.NewStringValue(value), nil
	case json.Number:
		return numberValue(value)
	case []any:
		types, values := make([]attr.Type, len(value)), make([]attr.Value, len(value))
		for i := range value {
			element, err := Infer(value[i])
			if err != nil {
				return nil, err
			}
			types[i], values[i] = element.Type(nil), element //nolint:staticcheck // types ignore the context
		}
		return basetypes.NewTupleValueMust(types, values), nil
	case map[string]any:
		types, values := make(map[string]attr.Type, len(value)), make(map[string]attr.Value, len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			element, err := Infer(value[key])
			if err != nil {
				return nil, err
			}
			types[key], values[key] = element.Type(nil), element //nolint:staticcheck // likewise
		}
		return basetypes.NewObjectValueMust(types, values), nil
	}
	return nil, fmt.Errorf("a value of type %T has no Terraform form", value)
}

func numberValue(number json.Number) (attr.Value, error) {
	parsed, _, err := big.ParseFloat(string(number), 10, 512, big.ToNearestEven)
	if err != nil {
		return nil, fmt.Errorf("%q is not a number", string(number))
	}
	return basetypes.NewNumberValue(parsed), nil
}
