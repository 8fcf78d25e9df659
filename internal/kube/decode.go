package kube

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// maxName bounds the parts of an object's identity. Kubernetes bounds names at 253 bytes.
const maxName = 512

// decodeObject decodes an object of a cluster, which may not mean well: all of its texts are [wording.Visible], so that
// they can do nothing to a terminal, and what identifies it is short and of one line.
func decodeObject(raw []byte) (*unstructured.Unstructured, error) {
	var content map[string]any
	if utiljson.Unmarshal(raw, &content) != nil {
		return nil, errNoObjects
	}
	content, _ = visible(content).(map[string]any)
	object := &unstructured.Unstructured{Object: content}
	for _, text := range []string{
		object.GetAPIVersion(), object.GetKind(), object.GetName(), object.GetNamespace(), string(object.GetUID()), object.GetResourceVersion(),
	} {
		if !isName(text) {
			return nil, errNoObjects
		}
	}
	return object, nil
}

// isName says whether a text may identify something.
func isName(text string) bool {
	return len(text) <= maxName && wording.IsLine(text)
}

// visible is a value whose texts are visible. It is changed in place. Of keys that look alike then, the last one in the
// order of the keys stays.
func visible(value any) any {
	switch value := value.(type) {
	case string:
		return visibleText(value)
	case []any:
		for i := range value {
			value[i] = visible(value[i])
		}
	case map[string]any:
		var renamed []string
		for key, inner := range value {
			value[key] = visible(inner)
			if visibleText(key) != key {
				renamed = append(renamed, key)
			}
		}
		slices.Sort(renamed)
		for _, key := range renamed {
			value[visibleText(key)] = value[key]
			delete(value, key)
		}
	}
	return value
}

// visibleText is [wording.Visible] of a text, without work for one of plain ASCII.
func visibleText(text string) string {
	for i := range len(text) {
		if c := text[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return wording.Visible(text)
		}
	}
	return text
}

// weight is about how many bytes a value takes in memory.
func weight(value any) int {
	switch value := value.(type) {
	case string:
		return 16 + len(value)
	case []any:
		sum := 24
		for i := range value {
			sum += 16 + weight(value[i])
		}
		return sum
	case map[string]any:
		sum := 48
		for key, inner := range value {
			sum += 40 + len(key) + weight(inner)
		}
		return sum
	}
	return 16
}
