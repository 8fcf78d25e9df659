package providertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Unknown is unknown in the plan. Then is its value at apply.
type Unknown struct{ Then any }

// Call is the result of a provider function in a configuration.
type Call struct {
	Function  string
	Arguments []any
}

// toValue converts a value to a type like core: without a type it becomes an object, a tuple or a primitive; an absent
// attribute is null; an attribute that the type lacks is dropped silently; primitives are converted.
func toValue(typ tftypes.Type, plain any) (tftypes.Value, error) {
	switch plain := plain.(type) {
	case nil:
		return tftypes.NewValue(typ, nil), nil
	case Unknown:
		return tftypes.NewValue(typ, tftypes.UnknownValue), nil
	case tftypes.Value:
		return convert(typ, plain)
	}
	if typ.Is(tftypes.DynamicPseudoType) {
		return infer(plain)
	}
	switch typ := typ.(type) {
	case tftypes.Object:
		return toObject(typ, plain)
	case tftypes.Map:
		items, err := members(plain)
		if err != nil {
			return tftypes.Value{}, err
		}
		elements := make(map[string]tftypes.Value, len(items))
		for key, value := range items {
			if elements[key], err = toValue(typ.ElementType, value); err != nil {
				return tftypes.Value{}, fmt.Errorf("element %q: %w", key, err)
			}
		}
		return tftypes.NewValue(typ, elements), nil
	case tftypes.List:
		return toSequence(typ, typ.ElementType, plain)
	case tftypes.Set:
		return toSequence(typ, typ.ElementType, plain)
	}
	return toPrimitive(typ, plain)
}

func toObject(typ tftypes.Object, plain any) (tftypes.Value, error) {
	items, err := members(plain)
	if err != nil {
		return tftypes.Value{}, err
	}
	attributes := make(map[string]tftypes.Value, len(typ.AttributeTypes))
	for name, attribute := range typ.AttributeTypes {
		if attributes[name], err = toValue(attribute, items[name]); err != nil {
			return tftypes.Value{}, fmt.Errorf("attribute %q: %w", name, err)
		}
	}
	return tftypes.NewValue(typ, attributes), nil
}

func toSequence(typ, element tftypes.Type, plain any) (tftypes.Value, error) {
	items, ok := plain.([]any)
	if !ok {
		return tftypes.Value{}, fmt.Errorf("a list is required, not %T", plain)
	}
	elements := make([]tftypes.Value, len(items))
	for i, value := range items {
		var err error
		if elements[i], err = toValue(element, value); err != nil {
			return tftypes.Value{}, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return tftypes.NewValue(typ, elements), nil
}

func toPrimitive(typ tftypes.Type, plain any) (tftypes.Value, error) {
	inferred, err := infer(plain)
	if err != nil {
		return tftypes.Value{}, err
	}
	return convert(typ, inferred)
}

func members(plain any) (map[string]any, error) {
	items, ok := plain.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("an object is required, not %T", plain)
	}
	return items, nil
}

// infer returns the value of an expression without a wanted type.
func infer(plain any) (tftypes.Value, error) {
	switch plain := plain.(type) {
	case nil:
		return tftypes.NewValue(tftypes.DynamicPseudoType, nil), nil
	case Unknown:
		return tftypes.NewValue(tftypes.DynamicPseudoType, tftypes.UnknownValue), nil
	case tftypes.Value:
		return plain, nil
	case bool:
		return tftypes.NewValue(tftypes.Bool, plain), nil
	case string:
		return tftypes.NewValue(tftypes.String, plain), nil
	case int:
		return tftypes.NewValue(tftypes.Number, plain), nil
	case float64:
		return inferNumber(strconv.FormatFloat(plain, 'g', -1, 64))
	case json.Number:
		return inferNumber(plain.String())
	case []any:
		types, values := make([]tftypes.Type, len(plain)), make([]tftypes.Value, len(plain))
		for i, element := range plain {
			value, err := infer(element)
			if err != nil {
				return tftypes.Value{}, fmt.Errorf("element %d: %w", i, err)
			}
			types[i], values[i] = value.Type(), value
		}
		return tftypes.NewValue(tftypes.Tuple{ElementTypes: types}, values), nil
	case map[string]any:
		types, values := make(map[string]tftypes.Type, len(plain)), make(map[string]tftypes.Value, len(plain))
		for name, attribute := range plain {
			value, err := infer(attribute)
			if err != nil {
				return tftypes.Value{}, fmt.Errorf("attribute %q: %w", name, err)
			}
			types[name], values[name] = value.Type(), value
		}
		return tftypes.NewValue(tftypes.Object{AttributeTypes: types}, values), nil
	}
	return tftypes.Value{}, fmt.Errorf("a configuration has no values of type %T", plain)
}

func inferNumber(text string) (tftypes.Value, error) {
	number, _, err := big.ParseFloat(text, 10, 512, big.ToNearestEven)
	if err != nil {
		return tftypes.Value{}, err
	}
	return tftypes.NewValue(tftypes.Number, number), nil
}

// convert gives a value another type, like core for an assigned attribute.
func convert(typ tftypes.Type, value tftypes.Value) (tftypes.Value, error) {
	switch {
	case typ.Is(tftypes.DynamicPseudoType):
		return value, nil
	case !value.IsKnown():
		return tftypes.NewValue(typ, tftypes.UnknownValue), nil
	case value.IsNull():
		return tftypes.NewValue(typ, nil), nil
	}
	plain := FromValue(value)
	if typ.Is(tftypes.String) || typ.Is(tftypes.Number) || typ.Is(tftypes.Bool) {
		switch {
		case value.Type().Is(typ):
			return value, nil
		case typ.Is(tftypes.String) && value.Type().Is(tftypes.Bool):
			return tftypes.NewValue(typ, strconv.FormatBool(plain.(bool))), nil
		case typ.Is(tftypes.String) && value.Type().Is(tftypes.Number):
			return tftypes.NewValue(typ, plain.(json.Number).String()), nil
		case typ.Is(tftypes.Number) && value.Type().Is(tftypes.String):
			return inferNumber(plain.(string))
		case typ.Is(tftypes.Bool) && (plain == "true" || plain == "false"):
			return tftypes.NewValue(typ, plain == "true"), nil
		}
		return tftypes.Value{}, fmt.Errorf("%s is required, not %s", typ, value.Type())
	}
	return toValue(typ, plain)
}

// FromValue reverses toValue. It returns nil, bool, string, json.Number, []any, map[string]any, or Unknown.
func FromValue(value tftypes.Value) any {
	if !value.IsKnown() {
		return Unknown{}
	}
	if value.IsNull() {
		return nil
	}
	switch {
	case value.Type().Is(tftypes.Bool):
		var is bool
		must(value.As(&is))
		return is
	case value.Type().Is(tftypes.String):
		var text string
		must(value.As(&text))
		return text
	case value.Type().Is(tftypes.Number):
		number := &big.Float{}
		must(value.As(&number))
		return json.Number(number.Text('g', -1))
	case isMapping(value.Type()):
		plain := map[string]any{}
		for name, element := range mapping(value) {
			plain[name] = FromValue(element)
		}
		return plain
	}
	list := sequence(value)
	plain := make([]any, len(list))
	for i, element := range list {
		plain[i] = FromValue(element)
	}
	return plain
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func isMapping(typ tftypes.Type) bool {
	return typ.Is(tftypes.Object{}) || typ.Is(tftypes.Map{})
}

func isPrimitive(typ tftypes.Type) bool {
	return typ.Is(tftypes.String) || typ.Is(tftypes.Number) || typ.Is(tftypes.Bool)
}

// mapping returns the attributes of an object, or the elements of a map.
func mapping(value tftypes.Value) map[string]tftypes.Value {
	elements := map[string]tftypes.Value{}
	if value.IsKnown() && !value.IsNull() {
		must(value.As(&elements))
	}
	return elements
}

func sequence(value tftypes.Value) []tftypes.Value {
	var elements []tftypes.Value
	if value.IsKnown() && !value.IsNull() {
		must(value.As(&elements))
	}
	return elements
}

// same reports whether two values are known to be equal.
func same(a, b tftypes.Value) bool {
	return a.IsFullyKnown() && b.IsFullyKnown() && identical(a, b)
}

// identical is same, with unknown values equal.
func identical(a, b tftypes.Value) bool {
	switch {
	case a.IsKnown() != b.IsKnown():
		return false
	case !a.IsKnown():
		return true
	case a.IsNull() || b.IsNull():
		return a.IsNull() == b.IsNull()
	case !sameKind(a.Type(), b.Type()):
		return false
	case isMapping(a.Type()):
		of, with := mapping(a), mapping(b)
		if len(of) != len(with) {
			return false
		}
		for name, element := range of {
			other, ok := with[name]
			if !ok || !identical(element, other) {
				return false
			}
		}
		return true
	case isPrimitive(a.Type()):
		return a.Equal(b)
	case a.Type().Is(tftypes.Set{}):
		return len(sequence(a)) == len(sequence(b)) && correlate(a, b, identical)
	}
	return slices.EqualFunc(sequence(a), sequence(b), identical)
}

// correlate reports whether each element of two sets fits one in the other.
func correlate(a, b tftypes.Value, fits func(a, b tftypes.Value) bool) bool {
	of, with := sequence(a), sequence(b)
	for _, element := range of {
		if !slices.ContainsFunc(with, func(other tftypes.Value) bool { return fits(element, other) }) {
			return false
		}
	}
	for _, other := range with {
		if !slices.ContainsFunc(of, func(element tftypes.Value) bool { return fits(element, other) }) {
			return false
		}
	}
	return true
}

// sameKind reports whether two types are of one kind, ignoring elements.
func sameKind(a, b tftypes.Type) bool {
	for _, kind := range []tftypes.Type{
		tftypes.Object{}, tftypes.Map{}, tftypes.List{}, tftypes.Set{}, tftypes.Tuple{}, tftypes.String, tftypes.Number, tftypes.Bool,
	} {
		if a.Is(kind) {
			return b.Is(kind)
		}
	}
	return false
}

// toJSON returns the form of a state file: a value without a type in the schema has its type beside it.
func toJSON(typ tftypes.Type, value tftypes.Value) (any, error) {
	if !value.IsKnown() {
		return nil, errors.New("a state holds no unknown values")
	}
	if value.IsNull() {
		return nil, nil
	}
	if typ.Is(tftypes.DynamicPseudoType) {
		inner, err := toJSON(value.Type(), value)
		if err != nil {
			return nil, err
		}
		of, err := json.Marshal(value.Type())
		return map[string]any{"value": inner, "type": json.RawMessage(of)}, err
	}
	var err error
	switch typ := typ.(type) {
	case tftypes.Object:
		object := map[string]any{}
		for name, attribute := range mapping(value) {
			if object[name], err = toJSON(typ.AttributeTypes[name], attribute); err != nil {
				return nil, fmt.Errorf("attribute %q: %w", name, err)
			}
		}
		return object, nil
	case tftypes.Map:
		object := map[string]any{}
		for name, element := range mapping(value) {
			if object[name], err = toJSON(typ.ElementType, element); err != nil {
				return nil, fmt.Errorf("element %q: %w", name, err)
			}
		}
		return object, nil
	}
	if isPrimitive(typ) {
		return FromValue(value), nil
	}
	list := sequence(value)
	array := make([]any, len(list))
	for i, element := range list {
		if array[i], err = toJSON(elementType(typ, i), element); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return array, nil
}

func elementType(typ tftypes.Type, i int) tftypes.Type {
	switch typ := typ.(type) {
	case tftypes.List:
		return typ.ElementType
	case tftypes.Set:
		return typ.ElementType
	case tftypes.Tuple:
		return typ.ElementTypes[i]
	}
	panic(fmt.Sprintf("%s has no elements", typ))
}

func names[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
