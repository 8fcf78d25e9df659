package scheduling

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
)

// maxListed bounds the violations of a rule in the state.
const maxListed = 100

func scheduledFleetAttribute() schema.SingleNestedAttribute {
	attribute := fleetvalue.ModelAttribute(" The state keeps its hash; the state of an assignment has the text.")
	attribute.Attributes["constraints"] = fleetvalue.EntriesAttribute(false, "The constraints. The state does without.")
	return attribute
}

func contentsAttribute() schema.SingleNestedAttribute {
	attribute := fleetvalue.RenderedAttribute()
	attribute.Required, attribute.Optional = false, true
	attribute.MarkdownDescription = "The fleet once more, for constraints over `config`, over `manifests` of a `target`, or over " +
		"`object`: without it, their subjects are pending. While a value in it is not known yet, the data source is read at apply. The " +
		"state does without. Documents are rendered as for a `flotilla_assignment` that has the name of the environment, and without the " +
		"location in the GitOps repository."
	return attribute
}

func constraintResultsAttribute() schema.MapNestedAttribute {
	return results.MapAttribute(
		"The results of the fleet's constraints, by name. `looked_at` is the sum of `passed`, `violated`, `failed` and `pending`.",
	)
}

type rule = *constraint.RuleResult

var results = table.Definition[rule]{
	table.Text("mode", "`enforce` or `inform`.", func(r rule) string { return r.Mode }),
	table.Text(
		"over",
		"The objects that the rule is evaluated over: `objects`, `assignments`, `hosts`, `deployment_targets`, `workspaces` or `fleet`.",
		func(r rule) string { return string(r.Over) },
	),
	table.Number("looked_at", "How many of these the rule looks at.", func(r rule) int { return r.Looked }),
	table.Number("passed", "How many keep the rule.", func(r rule) int { return r.Passed }),
	table.Number("violated", "How many break the rule.", func(r rule) int { return r.Violated }),
	table.Number("failed", "For how many the rule could not be evaluated.", func(r rule) int { return r.Failed }),
	table.Number("pending", "For how many it cannot be decided yet.", func(r rule) int { return r.Undecided }),
	table.TextOrNull("error", "Why the rule as a whole could not be evaluated; null where it was.", func(r rule) string { return r.Error }),
	table.Objects(
		"violations",
		"The first 100 subjects that break the rule, or whose evaluation failed. Attributes that do not apply are null.",
		violations,
		func(r rule) []constraint.RuleViolation { return r.Violations[:min(maxListed, len(r.Violations))] },
	),
}

var violations = table.Definition[constraint.RuleViolation]{
	table.TextOrNull("assignment", "Key of the assignment.", func(v constraint.RuleViolation) string { return v.Subject.Assignment }),
	table.TextOrNull("host", "The host, as in an assignment's key.", func(v constraint.RuleViolation) string { return v.Subject.Host }),
	table.TextOrNull(
		"deployment_target",
		"Full name of the deployment target.",
		func(v constraint.RuleViolation) string { return v.Subject.DeploymentTarget },
	),
	table.TextOrNull("workspace", "Name of the workspace.", func(v constraint.RuleViolation) string { return v.Subject.Workspace }),
	table.TextOrNull("object", "Kind and name of the rendered document.", func(v constraint.RuleViolation) string { return v.Subject.Object }),
	table.TextOrNull("file", "File of the rendered document.", func(v constraint.RuleViolation) string { return v.Subject.File }),
	table.TextOrNull(
		"made_by",
		"The maker of the object: `flotilla`, or of final objects, which are in no file, `chart`, `kustomization` or `manifest`.",
		func(v constraint.RuleViolation) string { return v.Subject.MadeBy },
	),
	table.Text("message", "The message of the rule.", func(v constraint.RuleViolation) string { return v.Message }),
}

func (m *schedulingModel) evaluate(
	ctx context.Context, c *connection.Connection, value fleet.Value, scheduled *schedule.Decisions, diagnostics *diag.Diagnostics,
) types.Map {
	none := results.MapOf(nil)
	if len(value.Constraints) == 0 {
		return none
	}
	program, found := pipeline.CompileConstraints(value.Constraints)
	if fleetvalue.AddErrors(diagnostics, found); program == nil {
		return none
	}
	var evaluated *constraint.Results
	if m.Contents.IsNull() || !program.NeedsContents() {
		evaluated, found = pipeline.ScheduledConstraints(ctx, value, scheduled)
	} else {
		contents := fleetvalue.DecodeObject(m.Contents, diagnostics)
		if contents.Model != value.Model {
			diagnostics.AddAttributeError(path.Root("contents"), "Another fleet", "This must be the same fleet as the attribute fleet has.")
			return none
		}
		result := c.Compute(contents, diagnostics)
		if result == nil {
			return none
		}
		evaluated, found = result.Constraints(ctx, value.Constraints, pipeline.Destination{Owner: value.Environment})
	}
	if fleetvalue.AddErrors(diagnostics, found); evaluated == nil {
		return none
	}
	rules := make(map[string]rule, len(evaluated.Rules))
	for i := range evaluated.Rules {
		rules[evaluated.Rules[i].Name] = &evaluated.Rules[i]
	}
	return results.MapOf(rules)
}
