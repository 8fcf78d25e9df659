// Package overview implements flotilla_overview, the overview page for people.
package overview

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/once"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/overview"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

// New returns the data source.
func New() datasource.DataSource {
	return frame.DataSource[overviewModel]{
		Name: "overview", Validate: validate, Read: read,
		Description: "One page of a fleet: each assignment with its cause, values, commit and health, " +
			"waiting changes, and results of rules. As one file of HTML, as Markdown for a pull request, as numbers for " +
			"pipelines, and as a report for auditors. It changes nothing. A repository that cannot be read is a warning: the page then says " +
			"what the fleet alone tells.",
		Attributes: map[string]schema.Attribute{
			"name": schemas.OptionalText("Name of the assignment. Without `name` and `fleet`, the page shows all owners of the branch from " +
				"their records: deployed assignments, their commits, and the reports of clusters, by owner. It does not know the wanted content."),
			"fleet": overviewFleetAttribute(),
			"gitops_repo": schemas.RequiredDynamic(
				schemas.Location("The location, as the assignment has it; for all owners, where to look, as for `flotilla_inventory`."),
			),
			"evidence": schemas.OptionalText("Reports of clusters: `evidence` of a `flotilla_compliance` with the same name, fleet and " +
				"repository. Without it no cluster was asked: there are no verdicts and no scores, and the page still shows all assignments. The " +
				"state keeps its hash."),
			"evidences": repository.EvidencesAttribute("Reports of clusters, on a page of all owners"),
			"progress": schemas.OptionalText(
				"`progress` of the assignment: the changes that are under way. An attribute of a resource defers the page to the apply.",
			),
			"promotions": schemas.OptionalDynamic(schemas.Setting("Promotions to show, by a name such as `\"dev to stage\"`: resources "+
				"`flotilla_promotion`, or objects with some of their attributes. Their values are shown regardless of `show_values`.",
				fleet.ObjectMapType, PromotionTable)),
			"comparisons": schemas.OptionalTextMap(fmt.Sprintf("Comparisons to show, at most %d: `json` of each `flotilla_comparison`, by a "+
				"name such as `\"stage and prod\"`. Their values are shown where `show_values` is `true` here and there. The state keeps their "+
				"hashes.", report.MaxComparisons)),
			"show_values": schemas.OptionalBool("Whether the page shows the values of the configuration (default `false`). Without it the " +
				"page says which config containers each value comes from, and neither the page nor the state holds a value."),
			"health": schemas.OptionalDynamic(schemas.Setting("Bounds of the health score.", fleet.ObjectType, HealthTable)),
			"links": schemas.OptionalDynamic(
				schemas.Setting("Links of the page to an agent's UI, to logs or to the Git host, by their titles.", fleet.ObjectType, LinksTable),
			),
			"region_label": schemas.OptionalText("Label of cluster types and clusters by whose value they are grouped. Default `region`."),
			"history": schemas.OptionalWhole(
				fmt.Sprintf("How many commits of the history are shown, at most %d. Default %d; 0 reads none, and asks the repository "+
					"once less.", maxOverviewHistory, defaultOverviewHistory),
			),
			"markdown_limit": schemas.MarkdownLimitAttribute(),
			"timeouts":       timeouts.ReadAttribute(),
			"html":           schemas.ComputedText("The page: one file that makes no request."),
			"markdown":       schemas.ComputedText("The page in short, for a comment on a pull request: the counts, then problems."),
			"health_score": schemas.ComputedWhole("Health of the fleet, from 0 to 100; null where no cluster was asked or nothing is deployed. " +
				"See [The health score](../guides/observe.md#the-health-score)."),
			"health_grade": schemas.ComputedText("The health score in a word: `good`, `fair` or `poor`; null where there is no score."),
			"health_scores": schema.MapAttribute{
				Computed: true, ElementType: types.Int64Type,
				MarkdownDescription: "Health of each host, by its name; null where no cluster was asked or nothing is deployed.",
			},
			"summary": summary.Attribute("The page in numbers."),
			"audit":   auditors.Attribute("Report for auditors: for each rule the checked, passed and violating subjects, with time and commit."),
		},
	}.New()
}

func overviewFleetAttribute() schema.SingleNestedAttribute {
	attribute := fleetvalue.RenderedAttribute()
	attribute.Required, attribute.Optional = false, true
	attribute.MarkdownDescription += " The state keeps the hash of the model, and nothing of the values."
	attribute.Attributes["constraints"] = fleetvalue.EntriesAttribute(false, "The constraints.")
	return attribute
}

const (
	defaultOverviewHistory = 20
	maxOverviewHistory     = 1000
	defaultRegionLabel     = "region"
)

func read(ctx context.Context, c *connection.Connection, m *overviewModel, diagnostics *diag.Diagnostics) {
	if m.checkOwners(diagnostics); diagnostics.HasError() {
		return
	}
	if m.ofOwners() {
		m.readOwners(ctx, c, diagnostics)
		return
	}
	question, value := m.decode(diagnostics), fleetvalue.DecodeObject(m.Fleet, diagnostics)
	question.in.Owner.Environment = value.Environment
	computed := c.Compute(value, diagnostics)
	if computed == nil || diagnostics.HasError() {
		return
	}
	question.in.Result = computed
	if repository.CheckAbout(question.in.Evidence, question.in.Owner, nil, path.Root("evidence"), diagnostics); question.in.Evidence != nil &&
		!diagnostics.HasError() {
		repository.CheckClusters(question.in.Evidence, computed.Fleet, path.Root("evidence"), diagnostics)
	}
	if diagnostics.HasError() {
		return
	}
	if question.lookAtBranch(ctx, c, diagnostics); diagnostics.HasError() {
		return
	}
	if question.rules(ctx, value, diagnostics); diagnostics.HasError() {
		return
	}
	warnOfRegionLabel(m.RegionLabel.ValueString(), question.in.Result, diagnostics)
	if err := m.set(overview.Build(question.in), &question); err != nil {
		diagnostics.AddError("Cannot write the page", tfvalue.Sentence(err.Error()))
	}
}

func validate(m *overviewModel, diagnostics *diag.Diagnostics) {
	repository.CheckOwnerName(m.Name, diagnostics)
	m.checkOwners(diagnostics)
	m.decodeNumbers(diagnostics)
}

// lookAtBranch renders the fleet to compare it with the branch. An unreadable branch is only a warning: a page should not fail a
// plan.
func (q *question) lookAtBranch(ctx context.Context, c *connection.Connection, diagnostics *diag.Diagnostics) {
	warn := func(why string) {
		once.Warning(diagnostics, path.Root("gitops_repo"), "Repository cannot be read", tfvalue.Sentence(why)+
			" The page shows the assignments of the fleet without the deployed content.")
	}
	if !c.CanAsk() {
		warn("the credentials of the GitOps repository are not known yet")
		return
	}
	seen, err := overview.Look(ctx, c.Delivery, q.in.Owner, q.in.Evidence, q.history)
	switch {
	case err != nil && ctx.Err() != nil:
		repository.AddError(ctx, diagnostics, err, false)
		return
	case err != nil:
		warn(err.Error())
		return
	}
	if q.checkTip(seen, diagnostics); diagnostics.HasError() {
		return
	}
	q.in.Seen = seen
	q.in.Rendering = q.in.Result.Render(ctx, q.destination(), seen.Written.Trees)
	fleetvalue.AddErrors(diagnostics, q.in.Rendering.Findings)
}

// destination equals the assignment's, for one rendering of both.
func (q *question) destination() pipeline.Destination {
	to := pipeline.Destination{Repo: repository.ForTemplates(q.in.Owner.Location, true), Owner: q.in.Owner.Name}
	if q.in.Seen != nil {
		to.Owner = q.in.Seen.Label(to.Owner)
	}
	return to
}

// rules evaluates the constraints. Violations are no errors here.
func (q *question) rules(ctx context.Context, value fleet.Value, diagnostics *diag.Diagnostics) {
	rules, err := value.ParseConstraints()
	if err != nil {
		diagnostics.AddAttributeError(fleetvalue.Path, "Invalid constraint", tfvalue.Sentence(err.Error()))
		return
	}
	q.in.Expressions = make(map[string]string, len(rules))
	for i := range rules {
		q.in.Expressions[rules[i].Name] = rules[i].Expression
	}
	results, found := q.in.Result.Constraints(ctx, value.Constraints, q.destination())
	if fleetvalue.AddErrors(diagnostics, found); results != nil {
		q.in.Rules = results.Rules
	}
}

// checkTip refuses evidence gathered at a commit that the branch lacks.
func (q *question) checkTip(seen *overview.Seen, diagnostics *diag.Diagnostics) {
	evidence := q.in.Evidence
	if evidence == nil || len(evidence.Clusters) == 0 || evidence.Tip == "" || seen.Written.Tip == "" {
		return
	}
	repository.CheckTip(seen.Past[evidence.Tip], q.in.Owner.Location.Branch, path.Root("evidence"), diagnostics)
}

func warnOfRegionLabel(label string, result *pipeline.Computation, diagnostics *diag.Diagnostics) {
	keys := map[string]bool{}
	for i := range result.Fleet.ClusterTypes {
		for key := range result.Fleet.ClusterTypes[i].Labels {
			keys[key] = true
		}
	}
	for i := range result.Fleet.Clusters {
		for key := range result.Fleet.Clusters[i].Labels {
			keys[key] = true
		}
	}
	if label != "" && !keys[label] {
		tfvalue.AddWarningf(diagnostics, path.Root("region_label"), "Nothing has the label",
			"no cluster type and no cluster of the fleet has a label %q%s",
			label, fleet.DidYouMean(label, slices.Sorted(maps.Keys(keys))))
	}
}

func (m *overviewModel) ofOwners() bool { return m.Name.IsNull() && m.Fleet.IsNull() }

func (m *overviewModel) checkOwners(diagnostics *diag.Diagnostics) {
	refuse := func(attribute, why string) {
		diagnostics.AddAttributeError(path.Root(attribute), "Attribute does not fit", why)
	}
	if m.Name.IsNull() && tfvalue.IsGiven(m.Fleet) || m.Fleet.IsNull() && tfvalue.IsGiven(m.Name) {
		missing := map[bool]string{true: "name", false: "fleet"}[m.Name.IsNull()]
		diagnostics.AddAttributeError(path.Root(missing), "Attribute is missing",
			"The page of an assignment needs its name and its fleet. For a page of all owners of the branch, leave both out.")
		return
	}
	if !m.ofOwners() {
		if tfvalue.IsGiven(m.Evidences) {
			refuse("evidences", "It is for a page of all owners, which has neither name nor fleet. Set evidence.")
		}
		return
	}
	const why = "A page of all owners is made of their records, without name and fleet. "
	for attribute, given := range map[string]bool{
		"evidence": tfvalue.IsGiven(m.Evidence), "progress": tfvalue.IsGiven(m.Progress),
		"show_values": tfvalue.IsGiven(m.ShowValues), "region_label": tfvalue.IsGiven(m.RegionLabel),
	} {
		switch {
		case given && attribute == "evidence":
			refuse(attribute, why+"Set evidences.")
		case given:
			refuse(attribute, why+"They do not have that.")
		}
	}
}

func (m *overviewModel) readOwners(ctx context.Context, c *connection.Connection, diagnostics *diag.Diagnostics) {
	q := m.decode(diagnostics)
	if diagnostics.HasError() {
		return
	}
	if !c.CanAsk() {
		diagnostics.AddAttributeError(path.Root("gitops_repo"), "Repository cannot be read",
			"The credentials of the GitOps repository are not known yet.")
		return
	}
	at := q.in.Owner.Location
	owners := repository.OwnersAt(ctx, c.Delivery, at, m.Evidences, diagnostics)
	if diagnostics.HasError() {
		return
	}
	history, err := overview.OwnersHistory(ctx, c.Delivery, at, owners, q.history)
	if err != nil {
		repository.AddError(ctx, diagnostics, err, false)
		return
	}
	if err := m.set(overview.BuildOwners(q.in, owners, history), &q); err != nil {
		diagnostics.AddError("Cannot write the page", tfvalue.Sentence(err.Error()))
	}
}
