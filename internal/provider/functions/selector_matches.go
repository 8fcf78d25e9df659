package functions

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

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

func runSelectorMatches(ctx context.Context, req function.RunRequest) (any, *function.FuncError) {
	var selectorArgument, labelsArgument types.Dynamic
	if err := req.Arguments.Get(ctx, &selectorArgument, &labelsArgument); err != nil {
		return nil, err
	}
	selector, selectorKnown, findings := fleet.DecodeSelector(tfvalue.Plain(selectorArgument))
	if len(findings) > 0 {
		return nil, function.NewArgumentFuncError(0, "\n"+findings.Error())
	}
	labels, labelsKnown, findings := fleet.DecodeLabels(tfvalue.Plain(labelsArgument))
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
