package clusterfacts

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/facts"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

type clusterFactsModel struct {
	Sources           types.Dynamic `tfsdk:"sources"`
	Requested         types.Bool    `tfsdk:"requested"`
	ReadyNodesPercent types.Int64   `tfsdk:"ready_nodes_percent"`
	LabelsFrom        types.Map     `tfsdk:"labels_from"`
	LabelDefaults     types.Map     `tfsdk:"label_defaults"`
	Timeouts          types.Dynamic `tfsdk:"timeouts"`
	Time              types.String  `tfsdk:"time"`
	Summary           types.Object  `tfsdk:"summary"`
	Clusters          types.Map     `tfsdk:"clusters"`
	Labels            types.Map     `tfsdk:"labels"`
	Evidence          types.String  `tfsdk:"evidence"`
}

// row is a cluster of the result.
type row struct {
	facts.KnownFacts
	without map[string]string // labels that it lacks, with the reasons
}

var clusters = table.Definition[*row]{
	table.Texts("sources", "where it was found: `cluster`, `argocd`, `cluster_profiles`.", func(r *row) []string {
		names := []string{}
		for _, source := range r.Sources {
			names = append(names, string(source))
		}
		return names
	}),
	table.Text("verdict", "`ready` where it answered and its nodes are ready, `progressing` where too many are not, `unknown` where it "+
		"did not answer or does not let its nodes be listed. Of a cluster that is not asked itself, whether its ClusterProfile says that "+
		"the control plane is healthy.", func(r *row) string { return string(r.Verdict) }),
	table.TextOrNull("since", "since when: if `ready`, since when more than half of the ready nodes have been ready, so that the `soak` "+
		"of a rollout ends although nodes come and go; else the last time that a node became not ready. Null if unknown.",
		func(r *row) string { return tfvalue.TimeText(r.Since) }),
	table.Text("message", "the reason.", func(r *row) string { return r.Message }),
	table.Texts("missing_rights", "missing permissions of the credentials, such as `list nodes`. Facts that need them are null.",
		func(r *row) []string { return r.Missing }),
	table.ObjectOrNull("facts", "an attribute for each fact, null if unknown. In brackets are its type, and the permission that it "+
		"needs at the cluster or where else it is known from:"+factsText(), factsTable(), func(r *row) *row {
		if r.Facts == nil {
			return nil
		}
		return r
	}),
	table.TextsByName("without_labels",
		"labels of `labels_from` that are not made of the cluster's facts, each with the reason; null without `labels_from`.",
		func(r *row) map[string]string { return r.without }),
}

func factsTable() (object table.Definition[*row]) {
	for _, fact := range facts.All {
		name := fact.Name
		isUnknown := func(r *row) bool { return r.Facts[name] == nil }
		switch fact.Kind {
		case facts.Text:
			object = append(object, table.Text(name, "", func(r *row) string { return asText(r.Facts[name]) }).OrNull(isUnknown))
		case facts.Number:
			object = append(object, table.Number(name, "", func(r *row) int { return int(asNumber(r.Facts[name])) }).OrNull(isUnknown))
		case facts.Texts:
			object = append(object, table.Texts(name, "", func(r *row) []string {
				texts := []string{}
				list, _ := r.Facts[name].([]any)
				for _, one := range list {
					texts = append(texts, asText(one))
				}
				return texts
			}).OrNull(isUnknown))
		case facts.TextsByName:
			object = append(object, table.TextsByName(name, "", func(r *row) map[string]string { return byName(r.Facts[name], asText) }))
		case facts.NumbersByName:
			object = append(object, table.NumbersByName(name, "", func(r *row) map[string]float64 { return byName(r.Facts[name], asNumber) }))
		}
	}
	return object
}

func asText(value any) string    { text, _ := value.(string); return text }
func asNumber(value any) float64 { number, _ := value.(float64); return number }

func byName[V any](value any, as func(any) V) map[string]V {
	given, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	found := make(map[string]V, len(given))
	for name := range given {
		found[name] = as(given[name])
	}
	return found
}

func factsText() string {
	var lines strings.Builder
	for _, fact := range facts.All {
		from := []string{}
		if fact.Right != "" {
			from = append(from, "`"+fact.Right+"`")
		}
		for _, source := range fact.From {
			if source != facts.Cluster {
				from = append(from, map[facts.Source]string{facts.ArgoCD: "Argo CD", facts.ClusterProfiles: "ClusterProfile"}[source])
			}
		}
		fmt.Fprintf(&lines, "\n  * `%s` (%s; %s): %s.", fact.Name, fact.Kind, strings.Join(from, ", "), fact.About)
	}
	return lines.String()
}

type rows map[string]*row

func (r rows) count(of verdict.Verdict) (number int) {
	for _, one := range r {
		if one.Verdict == of {
			number++
		}
	}
	return number
}

var summary = table.Definition[rows]{
	table.Number("clusters", "How many there are.", func(r rows) int { return len(r) }),
	table.Number("ready", "How many are ready.", func(r rows) int { return r.count(verdict.Ready) }),
	table.Number("progressing", "How many are progressing, for example with nodes that are not ready.", func(r rows) int {
		return r.count(verdict.Progressing)
	}),
	table.Number("unknown", "How many are unknown, for example without an answer.", func(r rows) int { return r.count(verdict.Unknown) }),
}

func (m *clusterFactsModel) set(at time.Time, known map[string]facts.KnownFacts, labels facts.Labels, diagnostics *diag.Diagnostics) {
	all, said := make(rows, len(known)), make(map[string]evidence.ClusterFacts, len(known))
	for name := range known {
		all[name] = &row{KnownFacts: known[name], without: labels.Without[name]}
		said[name] = known[name].ClusterFacts
	}
	document := evidence.Facts{Time: at, Clusters: said}
	m.Time, m.Evidence = types.StringValue(tfvalue.TimeText(at)), schemas.Evidence(document.Marshal(), "ask fewer clusters", diagnostics)
	m.Summary, m.Clusters = summary.Value(all), clusters.MapOf(all)
	rows := make(map[string]attr.Value, len(labels.Of))
	for name, of := range labels.Of {
		rows[name] = tfvalue.TextMap(of)
	}
	m.Labels = types.MapValueMust(types.MapType{ElemType: types.StringType}, rows)
}

// SourcesTable describes the attribute sources.
var SourcesTable = &fleet.Table{
	Name:    "sources",
	Meaning: "The attribute `sources` of `flotilla_cluster_facts`: where clusters are found. Unset: `{clusters = true}`.",
	Attributes: []fleet.Attribute{
		{Name: "clusters", Type: fleet.BoolOrObjectType, Of: askingTable, Default: false,
			Meaning: "Whether the provider's `clusters` are asked, and which and how."},
		{Name: "hub", Type: fleet.TextOrObjectType, Of: hubTable,
			Meaning: "The name of one of the provider's `clusters`, where others have registered clusters, and the parts to read."},
	},
}

var askingTable = &fleet.Table{
	Name:    "asking for facts",
	Meaning: "Which clusters are asked for facts, and how.",
	Attributes: append([]fleet.Attribute{
		{Name: "names", Type: fleet.TextsType, EmptyElements: true, Meaning: "Which of the provider's `clusters`. Unset: all. `[]` is none."},
	}, connection.AskingAttributes()...),
}

var hubTable = &fleet.Table{
	Name: "hub",
	Meaning: "The settings of a hub. A kind that it does not serve has no clusters. A hub that does not answer, or refuses the " +
		"list, is an error, because its clusters are not known then.",
	Attributes: []fleet.Attribute{
		{Name: "name", Required: true, Meaning: "Name of the hub, one of the provider's `clusters`."},
		{Name: "argocd", Type: fleet.BoolType, Default: true,
			Meaning: "Whether the Secrets of Argo CD's clusters are read. Name, URL and labels of each are kept, never credentials or " +
				"annotations."},
		{Name: "namespace", Default: reconciler.Hub().Namespace, Meaning: "The namespace of those Secrets."},
		{Name: "cluster_profiles", Type: fleet.BoolType, Default: true,
			Meaning: "Whether the objects `ClusterProfile` of `multicluster.x-k8s.io/v1alpha1` are read in all namespaces."},
	},
}
