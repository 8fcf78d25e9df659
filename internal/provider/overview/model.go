package overview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/attributes"
	"github.com/flotilla/terraform-provider-flotilla/internal/audit"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/health"
	"github.com/flotilla/terraform-provider-flotilla/internal/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/overview"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/promotion"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/report"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/verdict"
)

type overviewModel struct {
	Name          types.String          `tfsdk:"name"`
	Fleet         overviewFleetModel    `tfsdk:"fleet"`
	GitopsRepo    types.Dynamic         `tfsdk:"gitops_repo"`
	Evidence      types.String          `tfsdk:"evidence"`
	RollingOut    map[string]string     `tfsdk:"rolling_out"`
	Promotions    types.Dynamic         `tfsdk:"promotions"`
	ShowValues    types.Bool            `tfsdk:"show_values"`
	Health        types.Dynamic         `tfsdk:"health"`
	RegionLabel   types.String          `tfsdk:"region_label"`
	History       types.Int64           `tfsdk:"history"`
	MarkdownLimit types.Int64           `tfsdk:"markdown_limit"`
	Timeouts      types.Dynamic         `tfsdk:"timeouts"`
	HTML          types.String          `tfsdk:"html"`
	Markdown      types.String          `tfsdk:"markdown"`
	HealthScore   types.Int64           `tfsdk:"health_score"`
	HealthGrade   types.String          `tfsdk:"health_grade"`
	HealthScores  map[string]*int64     `tfsdk:"health_scores"`
	Summary       *overviewSummaryModel `tfsdk:"summary"`
	Audit         *overviewAuditModel   `tfsdk:"audit"`
}

type overviewSummaryModel struct {
	Hosts             int64 `tfsdk:"hosts"`
	Clusters          int64 `tfsdk:"clusters"`
	DeploymentTargets int64 `tfsdk:"deployment_targets"`
	Assignments       int64 `tfsdk:"assignments"`
	Ready             int64 `tfsdk:"ready"`
	Progressing       int64 `tfsdk:"progressing"`
	Behind            int64 `tfsdk:"behind"`
	Failed            int64 `tfsdk:"failed"`
	Unknown           int64 `tfsdk:"unknown"`
	NotAsked          int64 `tfsdk:"not_asked"`
	UpToDate          int64 `tfsdk:"up_to_date"`
	New               int64 `tfsdk:"new"`
	Changed           int64 `tfsdk:"changed"`
	Removed           int64 `tfsdk:"removed"`
	Unscheduled       int64 `tfsdk:"unscheduled"`
	Rules             int64 `tfsdk:"rules"`
	RulesBroken       int64 `tfsdk:"rules_broken"`
}

type overviewAuditModel struct {
	JSON     string `tfsdk:"json"`
	Markdown string `tfsdk:"markdown"`
}

// overviewQuestion is the decoded configuration.
type overviewQuestion struct {
	in            overview.Input
	history       int
	markdownLimit int
}

// decode reads the configuration, strictly.
func (m *overviewModel) decode(diagnostics *diag.Diagnostics) overviewQuestion {
	repository.CheckOwnerName(m.Name, diagnostics)
	var q overviewQuestion
	q.in.Owner.Name = m.Name.ValueString()
	q.in.Owner.Location, _ = repository.DecodeLocation(m.GitopsRepo, diagnostics)
	q.in.ShowValues = m.ShowValues.ValueBool()
	q.in.RegionLabel = cmp.Or(m.RegionLabel.ValueString(), defaultRegionLabel)
	q.in.Bounds = decodeBounds(m.Health, diagnostics)
	q.in.Promotions = decodePromotions(m.Promotions, diagnostics)
	for _, name := range slices.Sorted(maps.Keys(m.RollingOut)) {
		progress, err := rollout.ParseProgress(name, m.RollingOut[name])
		if err != nil {
			diagnostics.AddAttributeError(path.Root("rolling_out").AtMapKey(name), "Invalid rolling_out",
				tfvalue.Sentence(err.Error())+" Set it to rolling_out of the assignment.")
		}
		q.in.Progress = append(q.in.Progress, progress)
	}
	if !m.Evidence.IsNull() {
		evidence, err := observe.Parse([]byte(m.Evidence.ValueString()))
		if err != nil {
			diagnostics.AddAttributeError(path.Root("evidence"), "Invalid evidence", tfvalue.Sentence(err.Error()))
		}
		q.in.Evidence = evidence
	}
	q.history = wholeWithin("history", m.History, defaultOverviewHistory, 0, maxOverviewHistory, diagnostics)
	q.markdownLimit = wholeWithin("markdown_limit", m.MarkdownLimit, defaultMarkdownLimit, minMarkdownLimit, maxMarkdownLimit, diagnostics)
	return q
}

// decodeBounds reads the bounds of the health score.
func decodeBounds(value types.Dynamic, diagnostics *diag.Diagnostics) health.Bounds {
	bounds := health.DefaultBounds()
	tfvalue.ReadStrictly("health", value, diagnostics, func(o *attributes.Object) {
		bounds.Good, bounds.Poor = o.Int("good", bounds.Good, 0, 100), o.Int("poor", bounds.Poor, 0, 100)
		good, _ := o.Value("good")
		poor, _ := o.Value("poor")
		if tfvalue.IsItselfKnown(good) && tfvalue.IsItselfKnown(poor) && bounds.Poor > bounds.Good {
			o.Report("poor", "must not be above good, which is %d", bounds.Good)
		}
	})
	return bounds
}

// decodePromotions reads promotions: resources, or objects with the same attributes.
func decodePromotions(value types.Dynamic, diagnostics *diag.Diagnostics) []report.Promotion {
	given := tfvalue.Plain(value)
	entries, ok := given.(map[string]any)
	if given != nil && tfvalue.IsItselfKnown(given) && !ok {
		diagnostics.AddAttributeError(path.Root("promotions"), "Invalid promotions", "This must be a map of promotions, by a name for each of them.")
	}
	reader := &attributes.Reader{}
	var promotions []report.Promotion
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		object := reader.Object((*fleet.Path)(nil).Key(name), entries[name])
		if object == nil {
			continue
		}
		p := report.Promotion{
			Name: name, Candidate: promotedText(object, "candidate"), Promoted: promotedText(object, "promoted"),
			WaitsFor: object.Text("waiting_for"), Since: object.Time("opened_at").UTC(),
		}
		if at := object.Time("promoted_at").UTC(); p.WaitsFor == "" {
			p.Since = at
		}
		for name := range promotion.Schema.Attributes { // the others of a resource
			_, _ = object.Value(name)
		}
		object.Finish()
		promotions = append(promotions, p)
	}
	tfvalue.AddFindings(diagnostics, path.Root("promotions"), "Invalid promotions", tfvalue.Inner(reader.Findings))
	return promotions
}

// promotedText is a value of any type as a text: as JSON where it is not a text.
func promotedText(o *attributes.Object, name string) string {
	value, _ := o.Value(name)
	if value == nil || !fleet.IsKnown(value) {
		return ""
	}
	if text, ok := value.(string); ok {
		return text
	}
	text, err := fleet.CanonicalJSON(value)
	if err != nil {
		o.Report(name, "%s", err)
	}
	return text
}

// wholeWithin reads a whole number within bounds.
func wholeWithin(attribute string, value types.Int64, instead, least, most int, diagnostics *diag.Diagnostics) int {
	if value.IsNull() || value.IsUnknown() {
		return instead
	}
	if number := value.ValueInt64(); number < int64(least) || number > int64(most) {
		diagnostics.AddAttributeError(path.Root(attribute), "Invalid "+attribute, fmt.Sprintf("It must be a whole number from %d to %d, not %d.", least, most, number))
		return instead
	}
	return int(value.ValueInt64())
}

type overviewFleetModel struct {
	Format      types.String        `tfsdk:"format"`
	Environment types.String        `tfsdk:"environment"`
	Model       types.String        `tfsdk:"model"`
	Config      *fleetvalue.Entries `tfsdk:"config"`
	Manifests   *fleetvalue.Entries `tfsdk:"manifests"`
	Constraints *fleetvalue.Entries `tfsdk:"constraints"`
}

func (m overviewFleetModel) value(diagnostics *diag.Diagnostics) fleet.Value {
	return fleet.Value{
		Format: m.Format.ValueString(), Environment: m.Environment.ValueString(), Model: m.Model.ValueString(),
		Config: m.Config.Read(diagnostics), Manifests: m.Manifests.Read(diagnostics), Constraints: m.Constraints.Read(diagnostics),
	}
}

// forget keeps in the state only a hash of the fleet, so that another fleet is a difference.
func (m *overviewFleetModel) forget() {
	m.Model = types.StringValue(tfvalue.Hash(m.Model.ValueString()))
	m.Config, m.Manifests, m.Constraints = &fleetvalue.Entries{Known: types.StringValue("{}")}, nil, nil
}

// set sets the computed attributes. The input of the page is not kept: it is large, and may have values in it.
func (m *overviewModel) set(result *overview.Result, q *overviewQuestion) error {
	html, err := report.HTML(result.Page)
	if err != nil {
		return err
	}
	rules := result.Audit(&q.in)
	text, err := rules.Marshal()
	if err != nil {
		return err
	}
	m.HTML, m.Markdown = types.StringValue(string(html)), types.StringValue(report.Markdown(result.Page, q.markdownLimit))
	m.Audit = &overviewAuditModel{JSON: string(text), Markdown: rules.Markdown()}
	m.HealthScore, m.HealthGrade = types.Int64Null(), types.StringNull()
	if score, ok := result.Health.Score(); ok {
		m.HealthScore, m.HealthGrade = types.Int64Value(int64(score)), types.StringValue(string(q.in.Bounds.Grade(score)))
	}
	m.HealthScores = make(map[string]*int64, len(result.Page.Hosts))
	for i := range result.Page.Hosts {
		m.HealthScores[result.Page.Hosts[i].Name] = nil
		if score, ok := result.Hosts[result.Page.Hosts[i].Name].Score(); ok {
			number := int64(score)
			m.HealthScores[result.Page.Hosts[i].Name] = &number
		}
	}
	m.Summary = summaryOf(result.Counts, rules.Summary)
	m.Fleet.forget()
	if !m.Evidence.IsNull() {
		m.Evidence = types.StringValue(tfvalue.Hash(m.Evidence.ValueString()))
	}
	return nil
}

func summaryOf(c overview.Counts, rules audit.Summary) *overviewSummaryModel {
	of := func(verdict verdict.Verdict) int64 { return int64(c.Verdicts[verdict]) }
	return &overviewSummaryModel{
		Hosts: int64(c.Hosts), Clusters: int64(c.Clusters), DeploymentTargets: int64(c.DeploymentTargets), Assignments: int64(c.Assignments),
		Ready: of(verdict.Ready), Progressing: of(verdict.Progressing), Behind: of(verdict.Behind), Failed: of(verdict.Failed),
		Unknown: of(verdict.Unknown), NotAsked: int64(c.NotAsked), UpToDate: int64(c.UpToDate), New: int64(c.New), Changed: int64(c.Changed),
		Removed: int64(c.Removed), Unscheduled: int64(c.Unscheduled), Rules: int64(rules.Rules), RulesBroken: int64(rules.Broken),
	}
}
