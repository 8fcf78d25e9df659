// Package clusterfacts implements flotilla_cluster_facts: facts that clusters report about themselves, and clusters
// that a hub knows.
package clusterfacts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/discovery"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/facts"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// New returns the data source.
func New() datasource.DataSource {
	return frame.DataSource[clusterFactsModel]{
		Name: "cluster_facts", Validate: validate, Read: read,
		Description: "Asks clusters for facts about themselves: versions, nodes, capacity, location. It needs no fleet, " +
			"and finds clusters that others have registered with Argo CD or as a ClusterProfile. A cluster that does not answer is no " +
			"error: it is `unknown`, with a reason. This data source changes nothing.",
		Attributes: map[string]schema.Attribute{
			"sources": schemas.OptionalDynamic(
				schemas.Setting("Where clusters are found, one or both. Unset: `{clusters = true}`.", fleet.ObjectType, SourcesTable),
			),
			"requested": schemas.OptionalBool("Whether to read the requests of pods. All pods of a cluster are read for that, a few KiB each, " +
				"and only their sums are kept. Default `false`."),
			"ready_nodes_percent": schemas.OptionalWhole("How many percent of its nodes have to be ready for a cluster to be `ready`, from 0 " +
				"to 100. Default 100. A cluster without nodes is ready only with 0."),
			"labels_from": schemas.OptionalTextMap("Labels to make of facts, for scheduling: names of labels, each with the name of a fact, " +
				"such as `region`, which a dot and a key follow if the fact is a map, as in `labels.nvidia.com/gpu.present`. A list makes a " +
				"label if it has one value. A fact that cannot be the value of a label of Kubernetes, such as a version with `+`, makes none; " +
				"`without_labels` of the cluster says why."),
			"label_defaults": schema.MapAttribute{
				Optional: true, ElementType: types.MapType{ElemType: types.StringType},
				MarkdownDescription: "Labels of clusters whose facts are not known, by name of the cluster, and `\"" + facts.AllOthers +
					"\"` for all others. Where a fact that a label is made of is not known, the label is the one given here, if any. A cluster " +
					"without an entry is an error if it does not answer, or has no nodes to read the fact from: without its labels, policies would " +
					"no longer select it, and its workloads would be removed. A cluster whose connection is not known yet may be a new one: without " +
					"an entry, it has no such labels in this run, and a warning says so.",
			},
			"timeouts": timeouts.ReadAttribute(),
			"time":     schemas.ComputedText("When the clusters were asked, RFC 3339."),
			"summary":  summary.Attribute("All clusters in numbers."),
			"clusters": clusters.PlainMap("The facts of each cluster, by its name in the provider's `clusters`, in the Secret of Argo CD, or " +
				"of the ClusterProfile. Two with the same name are the same cluster. Its own facts override facts from a hub."),
			"labels": schema.MapAttribute{
				Computed: true, ElementType: types.MapType{ElemType: types.StringType},
				MarkdownDescription: "The labels of `labels_from` of each cluster, by its name. While it is not known which clusters there " +
					"are, for example while the provider's `clusters` are unknown, the clusters of `label_defaults` are included.",
			},
			"evidence": schemas.ComputedText("All of it as JSON, for rollouts: verdicts, and facts for proofs."),
		},
	}.New()
}

type settings struct {
	clusters bool
	names    []string // nil: all
	options  kube.QueryOptions
	hub      *discovery.Hub
	percent  int
	choices  []facts.Choice
	defaults map[string]map[string]string
}

func validate(m *clusterFactsModel, diagnostics *diag.Diagnostics) { m.decode(diagnostics) }

func (m *clusterFactsModel) decode(diagnostics *diag.Diagnostics) (s settings) {
	s.clusters = m.Sources.IsNull()
	tfvalue.ReadStrictly("sources", SourcesTable, m.Sources, diagnostics, func(o *fleet.ObjectReader) {
		if asking := fleet.ReadBoolOrObject(o, "clusters", &s.clusters); asking != nil {
			s.clusters = true
			if asking.Has("names") { // an empty list selects no cluster
				s.names = append([]string{}, asking.Texts("names")...)
			}
			s.options = connection.Asking(asking)
			asking.Finish()
		}
		s.hub = decodeHub(o)
		if isUnknown := o.Has("clusters") && !o.Known("clusters"); !s.clusters && s.hub == nil && !isUnknown {
			diagnostics.AddAttributeError(path.Root("sources"), "Invalid sources", "There is nothing to ask: set clusters, or hub.")
		}
	})
	s.percent = tfvalue.WholeWithin("ready_nodes_percent", m.ReadyNodesPercent, 100, 0, 100, diagnostics)
	isKnown := !m.Sources.IsUnknown() && !m.Sources.IsUnderlyingValueUnknown()
	for label, value := range m.LabelsFrom.Elements() {
		from, ok := value.(types.String)
		if at := path.Root("labels_from").AtMapKey(label); ok && !from.IsUnknown() {
			choice, err := facts.ParseChoice(label, from.ValueString())
			switch {
			case err != nil:
				diagnostics.AddAttributeError(at, "Invalid labels_from", tfvalue.Sentence(err.Error()))
			case choice.IsOfHub() && s.hub == nil && isKnown:
				tfvalue.AddErrorf(diagnostics, at, "Invalid labels_from", "Only a hub knows %q: set hub in sources.", choice)
			case choice.IsRequested() && !m.Requested.ValueBool() && !m.Requested.IsUnknown():
				tfvalue.AddErrorf(diagnostics, at, "Invalid labels_from", "%q is read only where requested is true.", choice)
			}
			s.choices = append(s.choices, choice)
		}
	}
	slices.SortFunc(s.choices, func(a, b facts.Choice) int { return strings.Compare(a.Label, b.Label) })
	s.decodeDefaults(m, diagnostics)
	return s
}

func decodeHub(o *fleet.ObjectReader) *discovery.Hub {
	hub := &discovery.Hub{ArgoCD: reconciler.Hub().Namespace, ClusterProfiles: true}
	switch given, _ := o.Value("hub"); given.(type) {
	case nil:
		return nil
	case map[string]any:
		of := o.Object("hub")
		hub.Name = of.Required("name")
		if namespace := of.Text("namespace"); namespace != "" {
			if hub.ArgoCD = namespace; fleet.CheckLabelName(namespace) != "" {
				of.Report("namespace", "%q %s", namespace, fleet.CheckLabelName(namespace))
			}
		}
		if of.Known("argocd") && !of.Bool("argocd") {
			hub.ArgoCD = ""
		}
		hub.ClusterProfiles = of.Bool("cluster_profiles")
		if hub.ArgoCD == "" && !hub.ClusterProfiles && of.Known("cluster_profiles") {
			of.Report("cluster_profiles", "is false as argocd is, so that nothing of the hub is read")
		}
		of.Finish()
	default:
		if hub.Name = o.Text("hub"); given == "" {
			o.Report("hub", "must be the name of one of the provider's clusters")
		}
	}
	return hub
}

func (s *settings) decodeDefaults(m *clusterFactsModel, diagnostics *diag.Diagnostics) {
	s.defaults = map[string]map[string]string{}
	root := path.Root("label_defaults")
	if tfvalue.IsGiven(m.LabelDefaults) && m.LabelsFrom.IsNull() {
		diagnostics.AddAttributeError(root, "Invalid label_defaults", "There are no labels_from, so that there are no labels.")
		return
	}
	for name, value := range m.LabelDefaults.Elements() {
		given, ok := value.(types.Map)
		if !ok || given.IsNull() {
			continue
		}
		labels := map[string]string{}
		for label, value := range given.Elements() {
			text, ok := value.(types.String)
			if !ok || text.IsNull() || text.IsUnknown() {
				continue
			}
			at := root.AtMapKey(name).AtMapKey(label)
			if _, has := m.LabelsFrom.Elements()[label]; !has && !m.LabelsFrom.IsUnknown() {
				similar := fleet.DidYouMean(label, slices.Sorted(maps.Keys(m.LabelsFrom.Elements())))
				tfvalue.AddErrorf(diagnostics, at, "Invalid label_defaults",
					"there is no label %q in labels_from%s", label, similar)
			}
			if problem := fleet.CheckLabelValue(text.ValueString()); problem != "" {
				diagnostics.AddAttributeError(at, "Invalid label_defaults", tfvalue.Sentence(problem))
			}
			labels[label] = text.ValueString()
		}
		s.defaults[name] = labels
	}
}

func read(ctx context.Context, c *connection.Connection, m *clusterFactsModel, diagnostics *diag.Diagnostics) {
	s := m.decode(diagnostics)
	question, complete := s.question(c, m.Requested.ValueBool(), diagnostics)
	if diagnostics.HasError() {
		return
	}
	at := c.Now()
	known, unusable, err := discovery.Discover(ctx, question)
	if err != nil {
		diagnostics.AddAttributeError(path.Root("sources"), "Hub cannot be read", tfvalue.Sentence(err.Error()))
		return
	}
	if len(unusable) > 0 {
		tfvalue.AddWarningf(diagnostics, path.Root("sources"), "Clusters of the hub have no name that can be used",
			"These objects are left out: %s.", wording.List(unusable, wording.Named))
	}
	labels := facts.Label(known, s.choices, s.defaults, complete)
	if m.LabelsFrom.IsNull() {
		labels.Without = nil
	}
	if names := labels.Silent; len(names) > 0 {
		lines := []string{}
		for _, name := range names {
			lines = append(lines, name+": "+strings.Join(slices.Sorted(maps.Values(labels.Without[name])), "; "))
		}
		diagnostics.AddAttributeError(path.Root("label_defaults"), "Labels of clusters are not known", fmt.Sprintf(
			"Without their labels, policies would no longer select these clusters. Set label_defaults to the labels that they had, or to {%q "+
				"= {}} to go on without:\n%s", facts.AllOthers, wording.Lines(lines, wording.Named)))
		return
	}
	if len(labels.Waiting) > 0 {
		diagnostics.AddAttributeWarning(path.Root("label_defaults"), "Labels of clusters are not known yet", fmt.Sprintf(
			"The addresses or credentials of these clusters are not known before the apply, and label_defaults has no entry for them, so that "+
				"they lack these labels in this run. Existing clusters would lose the workloads that the labels select: set label_defaults "+
				"to their former labels. Clusters that this run creates need no entry.\n%s",
			wording.Lines(labels.Waiting, wording.Named)))
	}
	m.set(at, known, labels, diagnostics)
}

// question returns the clusters to read. complete is false while some are unknown.
func (s *settings) question(c *connection.Connection, requested bool, diagnostics *diag.Diagnostics) (q discovery.Question, complete bool) {
	root := path.Root("sources")
	known := c.Clusters
	s.options.UserAgent = connection.UserAgent(c.Release)
	there := slices.Sorted(maps.Keys(known.Known))
	there = append(there, slices.Sorted(maps.Keys(known.Waiting))...)
	check := func(at, name string) bool {
		if known.Unknown || slices.Contains(there, name) {
			return true
		}
		tfvalue.AddErrorf(diagnostics, root, "Invalid sources",
			"%s: the provider's clusters have no entry %q%s", at, name, fleet.DidYouMean(name, there))
		return false
	}
	q = discovery.Question{Reach: map[string]kube.Cluster{}, Options: s.options, ReadyPercent: s.percent, Requested: requested}
	complete = true
	names := s.names
	if names == nil && s.clusters {
		names, complete = there, !known.Unknown
	}
	for i, name := range names {
		switch reach, ok := known.Known[name]; {
		case !check(fmt.Sprintf("clusters.names[%d]", i), name):
		case ok:
			q.Reach[name] = reach
		default:
			q.Waiting = append(q.Waiting, name)
		}
	}
	if s.hub != nil && check("hub", s.hub.Name) {
		var ok bool
		if s.hub.Reach, ok = known.Known[s.hub.Name]; ok {
			q.Hub = s.hub
		} else {
			complete = false
		}
	}
	if !complete {
		diagnostics.AddAttributeWarning(root, "Clusters are not known yet",
			"The addresses or credentials of clusters are not known before the apply. This plan has no facts of them.")
	}
	return q, complete
}
