package functions

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
)

// Merge is provider::flotilla::merge.
var Merge = frame.Function{Name: "merge", Run: runMerge, Definition: function.Definition{
	Summary: "Merges objects deeply",
	MarkdownDescription: "Merges a list of objects as config containers are merged: objects deeply, the later winning, `null` removing a " +
		"key. Options are `{lists, list_key}`: lists are replaced (`lists = \"replace\"`, the default), appended (`append`), or merged " +
		"(`merge`) by the objects in them that have the same `list_key`, which is `name` by default.",
	Parameters: []function.Parameter{
		function.DynamicParameter{Name: "objects", AllowUnknownValues: true, MarkdownDescription: "List of objects, in the order of merging."},
	},
	VariadicParameter: options("`{lists, list_key}`; may be left out."),
	Return:            function.DynamicReturn{},
}}

// runMerge returns unknown while a value is: it could be an object or null.
func runMerge(_ context.Context, arguments []any) (any, error) {
	options, known, findings := fleet.DecodeMerge(arguments[1])
	if len(findings) > 0 {
		return nil, function.NewArgumentFuncError(1, "\n"+findings.Error())
	}
	if !known || !fleet.IsKnown(arguments[0]) {
		return types.DynamicUnknown(), nil
	}
	list, ok := arguments[0].([]any)
	if !ok {
		return nil, function.NewArgumentFuncError(0, "must be a list of objects")
	}
	objects := make([]map[string]any, len(list))
	for i := range list {
		if objects[i], ok = list[i].(map[string]any); !ok {
			return nil, function.NewArgumentFuncError(0, fmt.Sprintf("element %d must be an object", i))
		}
	}
	merged, err := hydrate.Merge(objects, options)
	if err != nil {
		return nil, function.NewArgumentFuncError(0, err.Error())
	}
	return dynamic(merged)
}

// SelectorMatches is provider::flotilla::selector_matches.
var SelectorMatches = frame.Function{Name: "selector_matches", Run: runSelectorMatches, Definition: function.Definition{
	Summary:             "Says whether a selector matches labels",
	MarkdownDescription: "Says whether a selector matches labels, by the rules of target policies." + schemas.SelectorDescription,
	Parameters: []function.Parameter{
		function.DynamicParameter{Name: "selector", AllowUnknownValues: true, MarkdownDescription: "The selector."},
		function.DynamicParameter{Name: "labels", AllowUnknownValues: true, MarkdownDescription: "Map of labels."},
	},
	Return: function.BoolReturn{},
}}

func runSelectorMatches(_ context.Context, arguments []any) (any, error) {
	selector, selectorKnown, findings := fleet.DecodeSelector(arguments[0])
	if len(findings) > 0 {
		return nil, function.NewArgumentFuncError(0, "\n"+findings.Error())
	}
	labels, labelsKnown, findings := fleet.DecodeLabels(arguments[1])
	if len(findings) > 0 {
		return nil, function.NewArgumentFuncError(1, "\n"+findings.Error())
	}
	if !selectorKnown || !labelsKnown {
		return types.BoolUnknown(), nil
	}
	if selector == nil {
		return nil, function.NewArgumentFuncError(0, "an absent selector is not a selector: {} matches everything")
	}
	requirements, _ := selector.Compile() // findings are reported already
	return types.BoolValue(requirements.Matches(labels)), nil
}
