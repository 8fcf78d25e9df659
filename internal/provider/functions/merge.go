package functions

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
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
func runMerge(ctx context.Context, req function.RunRequest) (any, *function.FuncError) {
	var objectsArgument types.Dynamic
	var optionsArguments []types.Dynamic
	if err := req.Arguments.Get(ctx, &objectsArgument, &optionsArguments); err != nil {
		return nil, err
	}
	given, twice := optional(optionsArguments, 1)
	if twice != nil {
		return nil, twice
	}
	options, known, findings := fleet.DecodeMerge(given)
	if len(findings) > 0 {
		return nil, function.NewArgumentFuncError(1, "\n"+findings.Error())
	}
	values := tfvalue.Plain(objectsArgument)
	if !known || !fleet.IsKnown(values) {
		return types.DynamicUnknown(), nil
	}
	list, ok := values.([]any)
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
	value, err := tfvalue.Infer(merged)
	if err != nil {
		return nil, function.NewFuncError(err.Error())
	}
	return types.DynamicValue(value), nil
}
