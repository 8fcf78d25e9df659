package render

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// toYAML writes block YAML byte for byte as Kalypso does, because values of ConfigMaps are texts.
func (w *yamlWriter) toYAML(value any) (string, error) {
	text, err := w.marshal(value)
	return strings.TrimSuffix(text, "\n"), err
}

// stringify writes all values as strings, as in a ConfigMap. Objects and lists become YAML.
func (w *yamlWriter) stringify(value any) (string, error) {
	object, ok := value.(map[string]any)
	if !ok {
		if text, isScalar := scalarText(value); isScalar {
			return w.toYAML(text)
		}
		return w.toYAML(value)
	}
	if w.texts == nil {
		w.texts = map[string]any{}
	}
	clear(w.texts)
	for key, element := range object {
		switch element.(type) {
		case map[string]any, []any:
			text, err := w.marshal(element)
			if err != nil {
				return "", err
			}
			w.texts[key] = text
		case string:
			w.texts[key] = element
		default:
			text, isScalar := scalarText(element)
			if !isScalar {
				return "", problemf("a value of type %T has no YAML form", element)
			}
			w.texts[key] = text
		}
	}
	return w.toYAML(w.texts)
}

// marshal uses the library only for uncommon values, since it takes ten times as long.
func (w *yamlWriter) marshal(value any) (string, error) {
	w.buffer = w.buffer[:0]
	if w.write(value) {
		return string(w.buffer), nil
	}
	return libraryYAML(value)
}

func libraryYAML(value any) (string, error) {
	exact, err := exactNumbers(value)
	if err != nil {
		return "", err
	}
	text, err := yaml.Marshal(exact)
	return string(text), err
}

// exactNumbers turns numbers that the library would write as strings or with an exponent into nodes.
func exactNumbers(value any) (any, error) {
	switch value := value.(type) {
	case json.Number:
		return numberNode(value.String()), nil
	case float64:
		return numberNode(numberText(value)), nil
	case string:
		if isMerge(value) {
			return quotedNode(value), nil
		}
	case map[string]any:
		_, merges := value["<<"]
		_, isDefault := value["="]
		if merges || isDefault {
			return quotedKeys(value)
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

// isMerge reports whether YAML 1.1 gives a text a meaning that needs quotes.
func isMerge(text string) bool { return text == "<<" || text == "=" }

func quotedNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: yaml.DoubleQuotedStyle}
}

func quotedKeys(object map[string]any) (any, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, key := range slices.SortedFunc(maps.Keys(object), compareKeys) {
		exact, err := exactNumbers(object[key])
		if err != nil {
			return nil, err
		}
		name := &yaml.Node{}
		value, isNode := exact.(*yaml.Node)
		if !isNode {
			value = &yaml.Node{}
			err = value.Encode(exact)
		}
		if err := errors.Join(err, name.Encode(key)); err != nil {
			return nil, err
		}
		if isMerge(key) {
			name = quotedNode(key)
		}
		node.Content = append(node.Content, name, value)
	}
	return node, nil
}

// numberNode sets no tag, which the library would write.
func numberNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: text}
}
