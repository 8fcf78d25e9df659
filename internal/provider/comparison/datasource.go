// Package comparison implements flotilla_comparison, which puts two owners or two commits side by side.
package comparison

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/comparison"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

// New returns the data source.
func New() datasource.DataSource {
	return frame.DataSource[comparisonModel]{Name: "comparison", Schema: definition(), Validate: validate, Read: read}.New()
}

// defaultLimit is more than the targets of the reference fleet.
const defaultLimit = 2_500

const maxLimit = 100_000

func definition() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "Two sides next to each other, each an assignment on its branch, now or at a commit: stage and prod, today and " +
			"last Tuesday, two commits " +
			"of a rollout. It lists by deployment target additions of one side, and different versions, values, hosts or target policies: " +
			"as data, as Markdown for a " +
			"pull request, and for the page of `flotilla_overview`. It reads the records of both sides, no fleet and no cluster, and for values " +
			"the files of " +
			fmt.Sprintf(
				"at most %d folders that may differ. A side whose branch or assignment does not exist yet has "+
					"nothing, and `notes` mentions it.",
				comparison.MaxFolders,
			),
		Attributes: map[string]schema.Attribute{
			"left":  schemas.RequiredDynamic(schemas.Setting("The one side.", fleet.ObjectType, SideTable)),
			"right": schemas.RequiredDynamic(schemas.Setting("The other side, which may be in another repository.", fleet.ObjectType, SideTable)),
			"pairs": schemas.OptionalDynamic(
				schemas.Setting("Names of the same object on the two sides. Other names are the same on both sides.", fleet.ObjectType, PairsTable),
			),
			"show_values": schemas.OptionalBool(
				"Whether the values that differ are shown (default `false`), in `deployment_targets`, `markdown` and `json`. Without it they " +
					"have the keys, and the state holds no value.",
			),
			"limit":              schemas.OptionalWhole(fmt.Sprintf("How many deployment targets are listed at most. Default %d.", defaultLimit)),
			"markdown_limit":     schemas.MarkdownLimitAttribute(),
			"timeouts":           timeouts.ReadAttribute(),
			"summary":            summary.Attribute("The comparison in numbers, and its scope."),
			"notes":              schemas.ComputedTexts("Gaps of the comparison, in sentences; empty where it lacks nothing."),
			"complete":           schemas.ComputedBool("Whether `deployment_targets` is complete, or was cut at `limit`."),
			"deployment_targets": targets.ListAttribute("Deployment targets that are not the same on both sides, in the order of their names."),
			"markdown":           schemas.ComputedText("The comparison as Markdown, for a comment on a pull request."),
			"json":               schemas.ComputedText("The comparison as JSON, for `comparisons` of `flotilla_overview`, of 128 KiB at most."),
		},
	}
}

func validate(m *comparisonModel, diagnostics *diag.Diagnostics) { m.decode(diagnostics) }

func read(ctx context.Context, c *connection.Connection, m *comparisonModel, diagnostics *diag.Diagnostics) {
	q := m.decode(diagnostics)
	if q.left == q.right && !diagnostics.HasError() {
		tfvalue.AddErrorf(diagnostics, path.Root("right"), "Both sides are the same",
			"Both are the assignment %q on branch %q. Give one of them another commit, name or gitops_repo.",
			q.left.Owner.Name, q.left.Owner.Location.Branch)
	}
	if diagnostics.HasError() {
		return
	}
	result, err := comparison.Read(ctx, c.Delivery, q.left, q.right, q.pairs)
	if err != nil {
		addError(ctx, diagnostics, err)
		return
	}
	for _, problem := range result.Unpaired {
		diagnostics.AddAttributeWarning(path.Root("pairs"), "Pair matches nothing", tfvalue.Sentence(problem))
	}
	document, err := result.Marshal(q.showValues)
	if err != nil {
		diagnostics.AddError("Cannot write the comparison", tfvalue.Sentence(err.Error()))
		return
	}
	shown := result.Within(
		comparison.Bounds{Targets: q.limit, Hosts: maxHosts, Keys: maxKeys, Values: maxValues, Runes: maxRunes, ShowValues: q.showValues},
	)
	m.Summary = summary.Value(result)
	m.Notes, m.Complete = tfvalue.Texts(result.Notes), types.BoolValue(shown.MoreTargets == 0)
	m.DeploymentTargets = targets.List(table.Pointers(shown.Targets))
	m.Markdown = types.StringValue(report.ComparisonMarkdown(shown, q.markdownLimit))
	m.JSON = types.StringValue(string(document))
}

const (
	maxHosts  = 10_000
	maxKeys   = 200
	maxValues = 10
	maxRunes  = 1_000
)

func addError(ctx context.Context, diagnostics *diag.Diagnostics, err error) {
	var side *comparison.SideError
	attribute := "left"
	if errors.As(err, &side) && side.Right {
		attribute = "right"
	}
	if timeouts.AddEndedOf(ctx, diagnostics, err, attribute, "Nothing was written.") {
		return
	}
	kind := repository.KindOf(err, "Repository cannot be used")
	switch {
	case errors.Is(err, comparison.ErrOwner):
		kind.Summary = "No such assignment"
	case errors.Is(err, git.ErrCommit):
		kind.Summary, kind.Advice = "No such commit", " The data source flotilla_history lists the commits of a branch."
	}
	diagnostics.AddAttributeError(path.Root(attribute), kind.Summary, tfvalue.Sentence(err.Error())+kind.Advice)
}
