// Package facts is what clusters say of themselves: versions, nodes, capacity, where they are. It makes facts of objects of
// a cluster, and of a hub that others have registered clusters with, and labels of facts. It is pure.
package facts

import (
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Kind is the shape of a fact.
type Kind string

// The shapes of facts, with their types in Facts.
const (
	Text          Kind = "text"           // string
	Number        Kind = "number"         // float64
	Texts         Kind = "list of texts"  // []any of strings
	TextsByName   Kind = "map of texts"   // map[string]any of strings
	NumbersByName Kind = "map of numbers" // map[string]any of float64
)

// Source says who knows a fact.
type Source string

// Who knows facts.
const (
	Cluster         Source = "cluster"          // the cluster itself
	ArgoCD          Source = "argocd"           // a Secret of Argo CD on a hub
	ClusterProfiles Source = "cluster_profiles" // a ClusterProfile on a hub
)

// Fact describes a fact.
type Fact struct {
	Name  string
	Kind  Kind
	About string
	From  []Source
	Right string // without which the cluster does not say it
}

// The rights that facts of a cluster need, at cluster scope.
const (
	RightVersion = "get /version"
	RightNodes   = "list nodes"
	RightPods    = "list pods"
)

// All are all facts, by name: the schema, the documentation and the checks of what refers to facts follow from it.
var All = []Fact{
	{
		"kubernetes_version",
		Text,
		"version of the API server, such as `1.31.2` or `1.31.2-gke.100`",
		[]Source{Cluster, ClusterProfiles},
		RightVersion,
	},
	{"kubernetes_minor", Text, "its minor version, such as `1.31`", []Source{Cluster, ClusterProfiles}, RightVersion},
	{"nodes", Number, "how many nodes there are", []Source{Cluster}, RightNodes},
	{"nodes_ready", Number, "how many of them are ready", []Source{Cluster}, RightNodes},
	{"node_versions", Texts, "versions of their kubelets, such as `1.31.2`, each once, the oldest first", []Source{Cluster}, RightNodes},
	{"os_images", Texts, "their operating systems as they name them, such as `Ubuntu 22.04.5 LTS`", []Source{Cluster}, RightNodes},
	{"operating_systems", Texts, "such as `linux`", []Source{Cluster}, RightNodes},
	{"architectures", Texts, "such as `amd64`", []Source{Cluster}, RightNodes},
	{"container_runtimes", Texts, "such as `containerd://1.7.25`", []Source{Cluster}, RightNodes},
	{
		"provider",
		Text,
		"who runs the nodes, by their `providerID`: `aws`, `azure`, `gce`, `kind`, …; `\"\"` where none of them says it, or they differ",
		[]Source{Cluster},
		RightNodes,
	},
	{
		"region",
		Text,
		"the region of the nodes, by `topology.kubernetes.io/region`; `\"\"` where none of them says it, or they differ",
		[]Source{Cluster},
		RightNodes,
	},
	{"zones", Texts, "their zones, by `topology.kubernetes.io/zone`", []Source{Cluster}, RightNodes},
	{
		"capacity",
		NumbersByName,
		"what all nodes have, by resource: `cpu` (cores), `memory` (bytes), `pods`, `nvidia.com/gpu`, …",
		[]Source{Cluster},
		RightNodes,
	},
	{"allocatable", NumbersByName, "what of it pods can have", []Source{Cluster}, RightNodes},
	{
		"requested",
		NumbersByName,
		"what of it the pods on nodes request, and their number as `pods`; only with `requested = true`",
		[]Source{Cluster},
		RightPods,
	},
	{"labels", TextsByName, "labels that all nodes have in common, without those that name a node", []Source{Cluster}, RightNodes},
	{"server", Text, "URL of the API server, as Argo CD has it", []Source{ArgoCD}, ""},
	{
		"registered_labels",
		TextsByName,
		"labels of the cluster's Secret of Argo CD, and of its ClusterProfile, which wins",
		[]Source{ArgoCD, ClusterProfiles},
		"",
	},
	{"properties", TextsByName, "`status.properties` of its ClusterProfile", []Source{ClusterProfiles}, ""},
}

// Names are the names of all facts.
func Names() []string {
	names := make([]string, len(All))
	for i := range All {
		names[i] = All[i].Name
	}
	return names
}

// Named is the fact of a name.
func Named(name string) (Fact, bool) {
	at := slices.IndexFunc(All, func(fact Fact) bool { return fact.Name == name })
	if at < 0 {
		return Fact{}, false
	}
	return All[at], true
}

// Known is what is known of a cluster.
type Known struct {
	evidence.ClusterFacts
	// Sources are where the cluster was found, in the order of their names.
	Sources []Source
	// Missing are rights that the credentials lack, such as "list nodes".
	Missing []string
	// Waiting says that how to reach the cluster is not known yet, so that it was not asked.
	Waiting bool
	// ambiguous says why what a hub has of this name does not count; "" where it does.
	ambiguous string
}

// What a cluster or a hub can make facts of is bounded.
const (
	maxText   = 1024  // bytes of a text
	maxMany   = 100   // of a list, or of a map of numbers
	maxByName = 400   // of a map of texts: Node Feature Discovery alone makes some 200 labels
	maxFound  = 1_000 // of what may be sorted out later
)

// textOf is a text that can be a fact; "" where it cannot.
func textOf(value any) string {
	text, _ := value.(string)
	if len(text) > maxText || !wording.IsLine(text) {
		return ""
	}
	return text
}

// isFact says whether a text with a name can be a fact.
func isFact(name, text string) bool { return textOf(name) != "" && (text == "" || textOf(text) != "") }

// textsByName are the texts of an object that can be facts: the first ones in the order of names.
func textsByName(from map[string]string) map[string]any {
	found := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if isFact(name, from[name]) && len(found) < maxByName {
			found[name] = from[name]
		}
	}
	return found
}
