package objects

import (
	"maps"
	"strings"
)

// Items returns the elements of a list: every object with `items`, even a ConfigMap, because kubectl and the reconcilers apply
// them. An element without a kind takes the list's.
func Items(object map[string]any) (items []any, isList bool) {
	given, isList := object["items"].([]any)
	if !isList {
		return nil, false
	}
	kind, _ := object["kind"].(string)
	items = make([]any, len(given))
	for i, item := range given {
		fields, isObject := item.(map[string]any)
		if isObject && fields["kind"] == nil && fields["apiVersion"] == nil {
			fields = maps.Clone(fields)
			fields["kind"], fields["apiVersion"] = strings.TrimSuffix(kind, "List"), object["apiVersion"]
			item = fields
		}
		items[i] = item
	}
	return items, true
}
