package overview

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/promotion"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/audit"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/comparison"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/overview"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

type overviewModel struct {
	Name          types.String  `tfsdk:"name"`
	Fleet         types.Object  `tfsdk:"fleet"`
	GitopsRepo    types.Dynamic `tfsdk:"gitops_repo"`
	Evidence      types.String  `tfsdk:"evidence"`
	Evidences     types.List    `tfsdk:"evidences"`
	Progress      types.String  `tfsdk:"progress"`
	Promotions    types.Dynamic `tfsdk:"promotions"`
	Comparisons   types.Map     `tfsdk:"comparisons"`
	ShowValues    types.Bool    `tfsdk:"show_values"`
	Health        types.Dynamic `tfsdk:"health"`
	Links         types.Dynamic `tfsdk:"links"`
	RegionLabel   types.String  `tfsdk:"region_label"`
	History       types.Int64   `tfsdk:"history"`
	MarkdownLimit types.Int64   `tfsdk:"markdown_limit"`
	Timeouts      types.Dynamic `tfsdk:"timeouts"`
	HTML          types.String  `tfsdk:"html"`
	Markdown      types.String  `tfsdk:"markdown"`
	HealthScore   types.Int64   `tfsdk:"health_score"`
	HealthGrade   types.String  `tfsdk:"health_grade"`
	HealthScores  types.Map     `tfsdk:"health_scores"`
	Summary       types.Object  `tfsdk:"summary"`
	Audit         types.Object  `tfsdk:"audit"`
}

type numbers = *audit.Report

var summary = table.Definition[numbers]{
	table.Number("hosts", "Hosts that have a folder.", func(n numbers) int { return n.Fleet.Hosts }),
	table.Number("clusters", "Clusters of the fleet.", func(n numbers) int { return n.Fleet.Clusters }),
	table.Number("deployment_targets", "Deployment targets of the environment.", func(n numbers) int { return n.Fleet.DeploymentTargets }),
	table.Number("assignments", "Assignments of the fleet.", func(n numbers) int { return n.Fleet.Assignments }),
	table.Number("ready", "Assignments that are ready on every cluster.", func(n numbers) int { return n.Verdicts.Ready }),
	table.Number("progressing", "Assignments whose worst verdict is `progressing`.", func(n numbers) int { return n.Verdicts.Progressing }),
	table.Number("behind", "Assignments whose worst verdict is `behind`.", func(n numbers) int { return n.Verdicts.Behind }),
	table.Number("failed", "Assignments whose worst verdict is `failed`.", func(n numbers) int { return n.Verdicts.Failed }),
	table.Number("unknown", "Assignments whose worst verdict is `unknown`.", func(n numbers) int { return n.Verdicts.Unknown }),
	table.Number("not_asked", "Assignments without a verdict.", func(n numbers) int { return n.Verdicts.NotAsked }),
	table.Number("up_to_date", "Assignments that the branch has as they are wanted.", func(n numbers) int { return n.Deployed.UpToDate }),
	table.Number("new", "Assignments that the branch does not have yet.", func(n numbers) int { return n.Deployed.New }),
	table.Number("changed", "Assignments that the branch has with other content.", func(n numbers) int { return n.Deployed.Changed }),
	table.Number("removed", "Folders of the assignment on the branch that the fleet does not want any more.",
		func(n numbers) int { return n.Deployed.Removed }),
	table.Number("unscheduled", "Deployment targets that have no host.", func(n numbers) int { return n.Fleet.Unscheduled }),
	table.Number("rules", "Constraints of the fleet.", func(n numbers) int { return n.Summary.Rules }),
	table.Number("rules_broken", "Constraints that do not hold.", func(n numbers) int { return n.Summary.Broken }),
}

type reports struct{ json, markdown string }

var auditors = table.Definition[reports]{
	table.Text("json", "The report as JSON, of the format `\"1\"`: see [The audit report](../guides/reference-observing.md#the-audit-report).",
		func(r reports) string { return r.json }),
	table.Text("markdown", "The report as Markdown.", func(r reports) string { return r.markdown }),
}

type question struct {
	in            overview.Input
	history       int
	markdownLimit int
}

func (m *overviewModel) decode(diagnostics *diag.Diagnostics) question {
	repository.CheckOwnerName(m.Name, diagnostics)
	q := m.decodeNumbers(diagnostics)
	q.in.Owner.Name = m.Name.ValueString()
	q.in.Owner.Location, _ = repository.DecodeLocation(m.GitopsRepo, diagnostics)
	q.in.ShowValues = m.ShowValues.ValueBool()
	q.in.RegionLabel = cmp.Or(m.RegionLabel.ValueString(), defaultRegionLabel)
	q.in.Progress = repository.DecodeProgress(m.Progress, diagnostics)
	q.in.Comparisons = m.decodeComparisons(diagnostics)
	if !m.Evidence.IsNull() {
		parsed, err := evidence.ParseCompliance([]byte(m.Evidence.ValueString()))
		if err != nil {
			diagnostics.AddAttributeError(path.Root("evidence"), "Invalid evidence", tfvalue.Sentence(err.Error()))
		}
		q.in.Evidence = parsed
	}
	return q
}

// decodeComparisons removes values that are not to be shown.
func (m *overviewModel) decodeComparisons(diagnostics *diag.Diagnostics) []report.Comparison {
	var comparisons []report.Comparison
	given := tfvalue.PlainMap(m.Comparisons.Elements())
	if len(given) > report.MaxComparisons {
		tfvalue.AddErrorf(diagnostics, path.Root("comparisons"), "Too many comparisons",
			"A page has at most %d comparisons, not %d.", report.MaxComparisons, len(given))
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		text, _ := given[name].(string)
		result, err := comparison.Parse([]byte(text))
		if err != nil {
			diagnostics.AddAttributeError(path.Root("comparisons").AtMapKey(name), "Invalid comparison",
				tfvalue.Sentence(err.Error())+" Set it to json of a flotilla_comparison.")
			continue
		}
		if !m.ShowValues.ValueBool() {
			result = result.WithoutValues()
		}
		comparisons = append(comparisons, report.Comparison{Name: name, Result: result})
	}
	return comparisons
}

// decodeNumbers reads the attributes that are checked before all others are known.
func (m *overviewModel) decodeNumbers(diagnostics *diag.Diagnostics) (q question) {
	q.in.Bounds, q.in.Promotions = decodeBounds(m.Health, diagnostics), decodePromotions(m.Promotions, diagnostics)
	q.in.Links = decodeLinks(m.Links, diagnostics)
	q.history = tfvalue.WholeWithin("history", m.History, defaultOverviewHistory, 0, maxOverviewHistory, diagnostics)
	q.markdownLimit = schemas.MarkdownLimit(m.MarkdownLimit, diagnostics)
	return q
}

func decodeBounds(value types.Dynamic, diagnostics *diag.Diagnostics) health.Bounds {
	bounds := health.DefaultBounds()
	tfvalue.ReadStrictly("health", HealthTable, value, diagnostics, func(o *fleet.ObjectReader) {
		bounds.Good, bounds.Poor = o.Int("good"), o.Int("poor")
		good, _ := o.Value("good")
		poor, _ := o.Value("poor")
		if tfvalue.IsItselfKnown(good) && tfvalue.IsItselfKnown(poor) && bounds.Poor > bounds.Good {
			o.Report("poor", "must not be above good, which is %d", bounds.Good)
		}
	})
	return bounds
}

func decodeLinks(value types.Dynamic, diagnostics *diag.Diagnostics) (links report.Links) {
	tfvalue.ReadStrictly("links", LinksTable, value, diagnostics, func(o *fleet.ObjectReader) {
		patterns := func(name string, placeholders []string) map[string]string {
			given := o.TextMap(name)
			if len(given) > report.MaxLinks {
				o.Report(name, "has %d links; the most is %d", len(given), report.MaxLinks)
			}
			entries, _ := o.Value(name)
			all, _ := entries.(map[string]any)
			for _, title := range slices.Sorted(maps.Keys(given)) {
				if err := report.CheckLink(given[title], placeholders); err != nil && fleet.IsKnown(all[title]) {
					o.Report(name, "link %q %s", title, err)
				}
			}
			return given
		}
		links = report.Links{Assignments: patterns("assignments", report.OfAssignment), Clusters: patterns("clusters", report.OfCluster)}
	})
	return links
}

// decodePromotions reads resources, or objects with the same attributes.
func decodePromotions(value types.Dynamic, diagnostics *diag.Diagnostics) []report.Promotion {
	given := tfvalue.Plain(value)
	entries, ok := given.(map[string]any)
	if given != nil && tfvalue.IsItselfKnown(given) && !ok {
		diagnostics.AddAttributeError(path.Root("promotions"), "Invalid promotions",
			"This must be a map of promotions, by a name for each of them.")
	}
	reader := &fleet.Reader{}
	var promotions []report.Promotion
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		object := reader.Object(PromotionTable, (*fleet.Path)(nil).Key(name), entries[name])
		if object == nil {
			continue
		}
		p := report.Promotion{
			Name: name, Candidate: promotedText(object, "candidate"), Promoted: promotedText(object, "promoted"),
			WaitsFor: object.Text("waiting_for"), Since: fleet.ReadTime(object, "opened_at").UTC(),
		}
		if at := fleet.ReadTime(object, "promoted_at").UTC(); p.WaitsFor == "" {
			p.Since = at
		}
		object.Finish()
		promotions = append(promotions, p)
	}
	tfvalue.AddFindings(diagnostics, path.Root("promotions"), "Invalid promotions", tfvalue.Inner(reader.Findings))
	return promotions
}

// promotedText returns a text, or JSON.
func promotedText(o *fleet.ObjectReader, name string) string {
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

// set sets the computed attributes. The state does not keep the input, which is large and may have values.
func (m *overviewModel) set(page *report.Page, q *question) error {
	audited := audit.New(page)
	m.Summary, m.Audit = summary.Value(audited), types.ObjectNull(auditors.Type().AttrTypes)
	if !page.Recorded {
		text, err := audited.Marshal()
		if err != nil {
			return err
		}
		m.Audit, m.Fleet = auditors.Value(reports{string(text), audited.Markdown()}), fleetvalue.Hashed(m.Fleet)
	}
	html, err := report.HTML(page)
	if err != nil {
		return err
	}
	m.HTML, m.Markdown = types.StringValue(string(html)), types.StringValue(report.Markdown(page, q.markdownLimit))
	m.HealthScore, m.HealthGrade = types.Int64Null(), types.StringNull()
	if score := page.Health; score != nil {
		m.HealthScore, m.HealthGrade = types.Int64Value(int64(score.Value)), types.StringValue(string(page.Grade(score)))
	}
	scores := make(map[string]attr.Value, len(page.Hosts))
	for _, host := range page.Hosts {
		scores[host.Name] = types.Int64Null()
		if host.Health != nil {
			scores[host.Name] = types.Int64Value(int64(host.Health.Value))
		}
	}
	m.HealthScores = types.MapValueMust(types.Int64Type, scores)
	if !m.Comparisons.IsNull() {
		hashes := make(map[string]string, len(m.Comparisons.Elements()))
		for name, text := range m.Comparisons.Elements() {
			hashes[name] = tfvalue.Hash(text.(types.String).ValueString())
		}
		m.Comparisons = tfvalue.TextMap(hashes)
	}
	if !m.Evidence.IsNull() {
		m.Evidence = types.StringValue(tfvalue.Hash(m.Evidence.ValueString()))
	}
	m.Evidences = repository.HashedEvidences(m.Evidences)
	return nil
}

// HealthTable describes the attribute health.
var HealthTable = &fleet.Table{
	Name:    "health",
	Meaning: "The attribute `health` of `flotilla_overview`: bounds of the health score. A score between them is `fair`.",
	Attributes: []fleet.Attribute{
		{Name: "good", Type: fleet.WholeType, Default: health.DefaultBounds().Good, Most: 100, Meaning: "A score that reaches it is `good`."},
		{Name: "poor", Type: fleet.WholeType, Default: health.DefaultBounds().Poor, Most: 100, Meaning: "A score below it is `poor`."},
	},
}

// LinksTable describes the attribute links.
var LinksTable = &fleet.Table{
	Name: "links",
	Meaning: "The attribute `links` of `flotilla_overview`: links of the page to an agent's UI, to logs or to the Git host, by their " +
		"titles. Each is an https URL with placeholders, whose values are escaped. A link with a placeholder without a value, such as " +
		"`{cluster}` of an assignment to a cluster type, is left out.",
	Attributes: []fleet.Attribute{
		{Name: "assignments", Type: fleet.TextMapType, NullElements: true,
			Meaning: "Links of each assignment, with the placeholders " + placeholders(report.OfAssignment) + "."},
		{Name: "clusters", Type: fleet.TextMapType, NullElements: true,
			Meaning: "Links of each cluster, with the placeholders " + placeholders(report.OfCluster) + "."},
	},
}

func placeholders(names []string) string { return "`{" + strings.Join(names, "}`, `{") + "}`" }

// PromotionTable describes an element of promotions. A resource has more attributes.
var PromotionTable = withOthers(&fleet.Table{
	Name:    "promotion of an overview",
	Meaning: "One of `promotions` of `flotilla_overview`: a resource `flotilla_promotion`, or an object with some of its attributes.",
	Attributes: []fleet.Attribute{
		{Name: "candidate", Type: fleet.AnyType, Meaning: "The value that is to be let through."},
		{Name: "promoted", Type: fleet.AnyType, Meaning: "The value that was let through last."},
		{Name: "waiting_for", Meaning: "The reason why the candidate waits."},
		{Name: "opened_at", Type: fleet.TimeType, Meaning: "When the gate opened for the candidate."},
		{Name: "promoted_at", Type: fleet.TimeType, Meaning: "When the value was let through."},
	},
})

func withOthers(table *fleet.Table) *fleet.Table {
	for _, name := range slices.Sorted(maps.Keys(promotion.Schema.Attributes)) {
		if table.Find(name) == nil {
			table.Attributes = append(table.Attributes, fleet.Attribute{Name: name, Computed: true})
		}
	}
	return table
}
