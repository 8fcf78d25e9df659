package scheduling

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// The results of constraints in flotilla_scheduling. Rules about assignments need only the model. What other rules need
// is in an attribute of its own, so that a configuration value that is not known yet does not defer the data source.

// maxListed is how many violations of a rule are in the state.
const maxListed = 100

func scheduledFleetAttribute() schema.SingleNestedAttribute {
	attribute := fleetvalue.ModelAttribute(": that of an assignment has the text")
	attribute.Attributes["constraints"] = fleetvalue.EntriesAttribute(false, "The constraints. The state does without.")
	return attribute
}

func contentsAttribute() schema.SingleNestedAttribute {
	attribute := fleetvalue.RenderedAttribute()
	attribute.Required, attribute.Optional = false, true
	attribute.MarkdownDescription = "The fleet once more, for constraints over `config`, over `manifests` of a `target`, or over `object`: without it what " +
		"these look at is pending. While a value in it is not known yet, the data source is read at apply. The state does without. Documents " +
		"are rendered as for a `flotilla_assignment` that has the name of the environment, and without the location in the GitOps repository."
	return attribute
}

func constraintResultsAttribute() schema.MapNestedAttribute {
	number := func(what string) schema.Int64Attribute {
		return schema.Int64Attribute{Computed: true, MarkdownDescription: what}
	}
	return schema.MapNestedAttribute{
		Computed:            true,
		MarkdownDescription: "By name, what the fleet's constraints come to. `looked_at` is the sum of `passed`, `violated`, `failed` and `pending`.",
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"mode": schemas.ComputedText("`enforce` or `inform`."),
			"over": schemas.ComputedText("What the rule is evaluated over: `objects`, `assignments`, `hosts`, `deployment_targets`, `workspaces` or `fleet`."),

			"looked_at": number("How many of these the rule looks at."),
			"passed":    number("How many keep the rule."),
			"violated":  number("How many break the rule."),
			"failed":    number("For how many the rule could not be evaluated."),
			"pending":   number("For how many it cannot be decided yet."),
			"error":     schemas.ComputedText("Why the rule as a whole could not be evaluated; null where it was."),
			"violations": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The first 100 that break the rule, or for which it could not be evaluated. What does not apply is null.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"assignment":        schemas.ComputedText("Key of the assignment."),
					"host":              schemas.ComputedText("The host, as in an assignment's key."),
					"deployment_target": schemas.ComputedText("Full name of the deployment target."),
					"workspace":         schemas.ComputedText("Name of the workspace."),
					"object":            schemas.ComputedText("Kind and name of the rendered document."),
					"file":              schemas.ComputedText("File of the rendered document."),
					"message":           schemas.ComputedText("What the rule says of it."),
				}},
			},
		}},
	}
}

var (
	contentsTypes = map[string]attr.Type{
		"format": types.StringType, "environment": types.StringType, "model": types.StringType,
		"config": types.ObjectType{AttrTypes: fleetvalue.EntriesTypes}, "manifests": types.ObjectType{AttrTypes: fleetvalue.EntriesTypes},
	}
	violationTypes = map[string]attr.Type{
		"assignment": types.StringType, "host": types.StringType, "deployment_target": types.StringType, "workspace": types.StringType,
		"object": types.StringType, "file": types.StringType, "message": types.StringType,
	}
	resultTypes = map[string]attr.Type{
		"mode": types.StringType, "over": types.StringType, "looked_at": types.Int64Type, "passed": types.Int64Type,
		"violated": types.Int64Type, "failed": types.Int64Type, "pending": types.Int64Type, "error": types.StringType,
		"violations": types.ListType{ElemType: types.ObjectType{AttrTypes: violationTypes}},
	}
)

// constraints evaluates the rules of a fleet that is scheduled.
func (d *schedulingDataSource) constraints(
	ctx context.Context, req datasource.ReadRequest, value fleet.Value, scheduled *schedule.Result, diagnostics *diag.Diagnostics,
) types.Map {
	none := types.MapValueMust(types.ObjectType{AttrTypes: resultTypes}, nil)
	if len(value.Constraints) == 0 {
		return none
	}
	program, found := pipeline.CompileConstraints(value.Constraints)
	if fleetvalue.AddErrors(diagnostics, found); program == nil {
		return none
	}
	var results *constraint.Results
	var contents *fleetvalue.Rendered
	if program.Needs() != (constraint.Needs{}) {
		diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("contents"), &contents)...)
	}
	if contents == nil {
		results, found = pipeline.ScheduledConstraints(ctx, value, scheduled)
	} else {
		if contents.Model.ValueString() != value.Model {
			diagnostics.AddAttributeError(path.Root("contents"), "Another fleet", "This must be the same fleet as the attribute fleet has.")
			return none
		}
		result := d.Connection.Compute(contents.Value(diagnostics), diagnostics)
		if result == nil {
			return none
		}
		results, found = result.Constraints(ctx, value.Constraints, pipeline.Destination{Owner: value.Environment})
	}
	if fleetvalue.AddErrors(diagnostics, found); results == nil {
		return none
	}
	return resultsValue(results)
}

func resultsValue(results *constraint.Results) types.Map {
	values := make(map[string]attr.Value, len(results.Rules))
	for i := range results.Rules {
		rule := &results.Rules[i]
		listed := rule.Violations[:min(maxListed, len(rule.Violations))]
		violations := make([]attr.Value, len(listed))
		for k, violation := range listed {
			text := func(text string) types.String { return types.StringPointerValue(wording.OrNil(text)) }
			subject := violation.Subject
			violations[k] = types.ObjectValueMust(violationTypes, map[string]attr.Value{
				"assignment": text(subject.Assignment), "host": text(subject.Host), "deployment_target": text(subject.DeploymentTarget),
				"workspace": text(subject.Workspace), "object": text(subject.Object), "file": text(subject.File),
				"message": types.StringValue(violation.Message),
			})
		}
		number := func(number int) types.Int64 { return types.Int64Value(int64(number)) }
		values[rule.Name] = types.ObjectValueMust(resultTypes, map[string]attr.Value{
			"mode": types.StringValue(rule.Mode), "over": types.StringValue(string(rule.Over)),
			"looked_at": number(rule.Looked), "passed": number(rule.Passed), "violated": number(rule.Violated), "failed": number(rule.Failed),
			"pending": number(rule.Undecided), "error": types.StringPointerValue(wording.OrNil(rule.Error)),
			"violations": types.ListValueMust(types.ObjectType{AttrTypes: violationTypes}, violations),
		})
	}
	return types.MapValueMust(types.ObjectType{AttrTypes: resultTypes}, values)
}
