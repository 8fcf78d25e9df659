// Package comparison implements flotilla_comparison, which puts two owners or two commits side by side.
package comparison

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

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
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/comparison"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

// New returns the data source.
func New() datasource.DataSource {
	return frame.DataSource[comparisonModel]{
		Name: "comparison", Validate: validate, Read: read,
		Description: fmt.Sprintf("Two sides next to each other, each an assignment on its branch, now or at a commit: stage and prod, today "+
			"and last Tuesday, two commits of a rollout. It lists by deployment target additions of one side, and different versions, values, "+
			"hosts or target policies: as data, as Markdown for a pull request, and for the page of `flotilla_overview`. It reads the records "+
			"of both sides, no fleet and no cluster, and for values the files of at most %d folders that may differ. A side whose branch or "+
			"assignment does not exist yet has nothing, and `notes` mentions it.", comparison.MaxFolders),
		Attributes: map[string]schema.Attribute{
			"left":  schemas.RequiredDynamic(schemas.Setting("The one side.", fleet.ObjectType, SideTable)),
			"right": schemas.RequiredDynamic(schemas.Setting("The other side, which may be in another repository.", fleet.ObjectType, SideTable)),
			"pairs": schemas.OptionalDynamic(
				schemas.Setting("Names of the same object on the two sides. Other names are the same on both sides.", fleet.ObjectType, PairsTable),
			),
			"show_values": schemas.OptionalBool("Whether the values that differ are shown (default `false`), in `deployment_targets`, " +
				"`markdown` and `json`. Without it they have the keys, and the state holds no value."),
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
	}.New()
}

// defaultLimit is more than the targets of the reference fleet.
const defaultLimit = 2_500

const maxLimit = 100_000

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

type comparisonModel struct {
	Left              types.Dynamic `tfsdk:"left"`
	Right             types.Dynamic `tfsdk:"right"`
	Pairs             types.Dynamic `tfsdk:"pairs"`
	ShowValues        types.Bool    `tfsdk:"show_values"`
	Limit             types.Int64   `tfsdk:"limit"`
	MarkdownLimit     types.Int64   `tfsdk:"markdown_limit"`
	Timeouts          types.Dynamic `tfsdk:"timeouts"`
	Summary           types.Object  `tfsdk:"summary"`
	Notes             types.List    `tfsdk:"notes"`
	Complete          types.Bool    `tfsdk:"complete"`
	DeploymentTargets types.List    `tfsdk:"deployment_targets"`
	Markdown          types.String  `tfsdk:"markdown"`
	JSON              types.String  `tfsdk:"json"`
}

var summary = table.Definition[*comparison.Result]{
	table.Number("different", "Deployment targets that both sides have and that differ.",
		func(r *comparison.Result) int { return r.Different }),
	table.Number("only_left", "Deployment targets that only the left side has.", func(r *comparison.Result) int { return r.OnlyLeft }),
	table.Number("only_right", "Deployment targets that only the right side has.", func(r *comparison.Result) int { return r.OnlyRight }),
	table.Number("same", "Deployment targets that are the same.", func(r *comparison.Result) int { return r.Same }),
	table.ObjectOrNull("left", "The place and the commit that were read on the left side.", side,
		func(r *comparison.Result) *comparison.Seen { return &r.Left }),
	table.ObjectOrNull("right", "The place and the commit that were read on the right side.", side,
		func(r *comparison.Result) *comparison.Seen { return &r.Right }),
}

var side = table.Definition[*comparison.Seen]{
	table.Bool("written", "Whether the assignment has been written there.", func(s *comparison.Seen) *bool { return &s.Written }),
	table.TextOrNull("commit", "Full id of the commit; null where there is no such branch.",
		func(s *comparison.Seen) string { return s.Commit }),
	table.Number("hosts", "Hosts that have an assignment.", func(s *comparison.Seen) int { return s.Hosts }),
	table.Number("assignments", "Assignments.", func(s *comparison.Seen) int { return s.Assignments }),
}

var targets = table.Definition[*comparison.Target]{
	table.Text("name", "Full name of the deployment target.", func(t *comparison.Target) string { return t.Name }),
	table.TextOrNull("right_name", "Its name on the right side where `pairs` says that it is another one, else null.",
		func(t *comparison.Target) string { return t.RightName }),
	table.Text("workload", "Name of the workload.", func(t *comparison.Target) string { return t.Workload }),
	table.TextOrNull("workspace", "Name of the workspace; null where the record does not say.",
		func(t *comparison.Target) string { return t.Workspace }),
	table.Text("state", "`only_left`, `only_right` or `different`.", func(t *comparison.Target) string { return string(t.State) }),
	table.Texts("differs", "The parts that differ, of `hosts`, `version`, `values`, `policies` and `files`: on a host that both sides "+
		"have, or among all hosts. `files` is set only for one assignment at two commits, if no other reason explains the different files.",
		func(t *comparison.Target) []string {
			words := make([]string, len(t.Differs))
			for i, aspect := range t.Differs {
				words[i] = string(aspect)
			}
			return words
		}),
	table.ObjectOrNull("left", "The part of the left side.", part, func(t *comparison.Target) *comparison.Part { return &t.Left }),
	table.ObjectOrNull("right", "The part of the right side.", part, func(t *comparison.Target) *comparison.Part { return &t.Right }),
	table.Objects("keys", fmt.Sprintf("Keys of the configuration whose values differ, the first %d.", maxKeys), keys,
		func(t *comparison.Target) []*comparison.Key { return table.Pointers(t.Keys) }),
	table.Bool("keys_known", "Whether all values could be read: `keys` is empty where they could not.", func(t *comparison.Target) *bool {
		known := !t.KeysUnknown
		return &known
	}),
}

var part = table.Definition[*comparison.Part]{
	table.Objects("versions", "Its manifests, each with its hosts; most hosts first.", versions,
		func(p *comparison.Part) []*comparison.Version { return table.Pointers(p.Versions) }),
	table.Texts("only_hosts", "Hosts that only this side has for it; empty where the other side does not have it.",
		func(p *comparison.Part) []string { return p.OnlyHosts }),
	table.Texts("only_policies", "Target policies that only this side has for it; empty where the other side does not have it.",
		func(p *comparison.Part) []string { return p.OnlyPolicies }),
}

var versions = table.Definition[*comparison.Version]{
	table.ObjectOrNull("manifests", "Its manifests, in the words of the deployment target; null where the records do not say.",
		repository.Manifests, func(v *comparison.Version) *folder.Manifests { return v.Manifests }),
	table.Texts("hosts", "The hosts that have these.", func(v *comparison.Version) []string { return v.Hosts }),
}

var keys = table.Definition[*comparison.Key]{
	table.Text("key", "The key, such as `DATABASE.URL`.", func(k *comparison.Key) string { return k.Key }),
	table.Text("state", "`only_left`, `only_right` or `different`.", func(k *comparison.Key) string { return string(k.State) }),
	table.Texts("left",
		fmt.Sprintf("The different values of the hosts on the left side, the first %d, with `show_values`; else empty.", maxValues),
		func(k *comparison.Key) []string { return k.Left }),
	table.Texts("right", "Those on the right side, likewise.", func(k *comparison.Key) []string { return k.Right }),
}

type question struct {
	left, right          comparison.Point
	pairs                comparison.Pairs
	showValues           bool
	limit, markdownLimit int
}

func (m *comparisonModel) decode(diagnostics *diag.Diagnostics) question {
	return question{
		left: decodeSide("left", m.Left, diagnostics), right: decodeSide("right", m.Right, diagnostics), pairs: decodePairs(m.Pairs, diagnostics),
		showValues: m.ShowValues.ValueBool(), limit: tfvalue.WholeWithin("limit", m.Limit, defaultLimit, 1, maxLimit, diagnostics),
		markdownLimit: schemas.MarkdownLimit(m.MarkdownLimit, diagnostics),
	}
}

// SideTable describes the attributes left and right.
var SideTable = &fleet.Table{
	Name:    "side of a comparison",
	Meaning: "The attributes `left` and `right` of `flotilla_comparison`: an assignment on its branch, now or at a commit.",
	Attributes: []fleet.Attribute{
		{Name: "gitops_repo", Type: fleet.ObjectType, Required: true, Of: fleet.LocationTable(),
			Meaning: "The location, as the assignment has it."},
		{Name: "name", Required: true, Meaning: "Name of the assignment."},
		{Name: "commit", Meaning: "Full id of a commit in the history of the branch, as `flotilla_history` lists them. Unset: now."},
	},
}

// PairsTable describes the attribute pairs.
var PairsTable = &fleet.Table{
	Name: "pairs of a comparison",
	Meaning: "The attribute `pairs` of `flotilla_comparison`: names of the same object on the left and on the right side. Other names " +
		"are the same on both.",
	Attributes: []fleet.Attribute{
		{Name: "deployment_targets", Type: fleet.TextMapType, NullElements: true,
			Meaning: "Full names of deployment targets on the right side, by those on the left side."},
		{Name: "hosts", Type: fleet.TextMapType, NullElements: true,
			Meaning: "Names of cluster types, or `clusters/<cluster>`, on the right side, by those on the left side."},
	},
}

func decodeSide(attribute string, value types.Dynamic, diagnostics *diag.Diagnostics) (side comparison.Point) {
	tfvalue.ReadStrictly(attribute, SideTable, value, diagnostics, func(o *fleet.ObjectReader) {
		side.Owner.Location = repository.ReadLocation(o)
		side.Owner.Name, side.Commit = o.Required("name"), o.Text("commit")
		if side.Owner.Name != "" {
			if problem := fleet.CheckLabelName(side.Owner.Name); problem != "" {
				o.Report("name", "%q %s", side.Owner.Name, problem)
			}
		}
		if side.Commit != "" && !folder.IsCommit(side.Commit) {
			o.Report("commit", "must be the full id of a commit, 40 or 64 digits in hex, or null for now")
		}
	})
	return side
}

func decodePairs(value types.Dynamic, diagnostics *diag.Diagnostics) (pairs comparison.Pairs) {
	tfvalue.ReadStrictly("pairs", PairsTable, value, diagnostics, func(o *fleet.ObjectReader) {
		pairs = comparison.Pairs{DeploymentTargets: readPairs(o, "deployment_targets"), Hosts: readPairs(o, "hosts")}
	})
	return pairs
}

func readPairs(o *fleet.ObjectReader, attribute string) map[string]string {
	names := o.TextMap(attribute)
	lefts := map[string]string{}
	for _, left := range slices.Sorted(maps.Keys(names)) {
		right := names[left]
		if other, twice := lefts[right]; twice && right != "" {
			o.Report(attribute, "pairs %q with both %q and %q", right, other, left)
		}
		lefts[right] = left
	}
	return names
}
