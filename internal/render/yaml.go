package render

import (
	"encoding/json"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// toYAML writes a value as block YAML with sorted keys, in the layout of Kalypso, whose texts end up
// inside of ConfigMap values and so must not differ by a space.
func toYAML(value any) (string, error) {
	text, err := marshalYAML(value)
	return strings.TrimSuffix(text, "\n"), err
}

// stringify writes what a ConfigMap's data can be: every value of a map as a string, objects and lists
// as their YAML text. What is no map is written as [toYAML] writes it, a scalar as a string.
func stringify(value any) (string, error) {
	object, ok := value.(map[string]any)
	if !ok {
		if text, isScalar := textOf(value); isScalar {
			return toYAML(text)
		}
		return toYAML(value)
	}
	strings := make(map[string]string, len(object))
	for key, element := range object {
		text, isScalar := textOf(element)
		if !isScalar {
			var err error
			if text, err = marshalYAML(element); err != nil {
				return "", err
			}
		}
		strings[key] = text
	}
	return toYAML(strings)
}

func marshalYAML(value any) (string, error) {
	node, err := exactNumbers(value)
	if err != nil {
		return "", err
	}
	text, err := yaml.Marshal(node)
	return string(text), err
}

// exactNumbers puts nodes in place of the numbers that the YAML library would write with an exponent
// or as strings, and fails on what has no YAML form.
func exactNumbers(value any) (any, error) {
	switch value := value.(type) {
	case json.Number:
		return numberNode(value.String()), nil
	case float64:
		return numberNode(numberText(value)), nil
	case map[string]any:
		if !holdsOddNumber(value) {
			return value, nil
		}
		result := make(map[string]any, len(value))
		for key, element := range value {
			exact, err := exactNumbers(element)
			if err != nil {
				return nil, err
			}
			result[key] = exact
		}
		return result, nil
	case []any:
		result := make([]any, len(value))
		for i, element := range value {
			exact, err := exactNumbers(element)
			if err != nil {
				return nil, err
			}
			result[i] = exact
		}
		return result, nil
	}
	switch reflect.ValueOf(value).Kind() {
	case reflect.Func, reflect.Chan, reflect.Struct, reflect.Pointer:
		return nil, problemf("a value of type %T has no YAML form", value)
	}
	return value, nil
}

func holdsOddNumber(value any) bool {
	switch value := value.(type) {
	case nil, string, bool, int, int64:
		return false
	case map[string]any:
		for _, element := range value {
			if holdsOddNumber(element) {
				return true
			}
		}
		return false
	case map[string]string, []string:
		return false
	}
	return true
}

func numberNode(text string) *yaml.Node {
	tag := "!!int"
	if strings.ContainsAny(text, ".eE") {
		tag = "!!float"
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
}
