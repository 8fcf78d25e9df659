// Package facts derives facts about clusters: versions, nodes, capacity, location. It reads objects of the clusters and
// of a hub where they are registered, and derives labels from facts. It is pure. "" means unknown or none.
package facts

import (
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// FactKind is the type of a fact.
type FactKind string

// The types of facts, with their Go types.
const (
	Text          FactKind = "text"           // string
	Number        FactKind = "number"         // float64
	Texts         FactKind = "list of texts"  // []any of strings
	TextsByName   FactKind = "map of texts"   // map[string]any of strings
	NumbersByName FactKind = "map of numbers" // map[string]any of float64
)

// Source is the origin of a fact.
type Source string

// The sources.
const (
	Cluster         Source = "cluster"          // the cluster itself
	ArgoCD          Source = "argocd"           // a Secret of Argo CD on a hub
	ClusterProfiles Source = "cluster_profiles" // a ClusterProfile on a hub
)

// Fact describes a fact.
type Fact struct {
	Name  string
	Kind  FactKind
	About string
	From  []Source
	Right string // that the fact requires
}

// The permissions for facts, at cluster scope.
const (
	RightVersion = "get /version"
	RightNodes   = "list nodes"
	RightPods    = "list pods"
)

var (
	inCluster           = []Source{Cluster}
	inClusterAndProfile = []Source{Cluster, ClusterProfiles}
)

// All lists all facts: schema, documentation and checks of references derive from it.
var All = []Fact{
	{"kubernetes_version", Text, "version of the API server, such as `1.31.2` or `1.31.2-gke.100`", inClusterAndProfile, RightVersion},
	{"kubernetes_minor", Text, "minor version of the API server, such as `1.31`", inClusterAndProfile, RightVersion},
	{"nodes", Number, "number of nodes", inCluster, RightNodes},
	{"nodes_ready", Number, "number of ready nodes", inCluster, RightNodes},
	{"node_versions", Texts, "distinct versions of the kubelets, such as `1.31.2`, oldest first", inCluster, RightNodes},
	{"os_images", Texts, "names of the nodes' operating systems, such as `Ubuntu 22.04.5 LTS`", inCluster, RightNodes},
	{"operating_systems", Texts, "such as `linux`", inCluster, RightNodes},
	{"architectures", Texts, "such as `amd64`", inCluster, RightNodes},
	{"container_runtimes", Texts, "such as `containerd://1.7.25`", inCluster, RightNodes},
	{"provider", Text, "provider of the nodes, by `providerID`: `aws`, `azure`, `gce`, `kind`, …; " +
		"`\"\"` if no node names it or they differ", inCluster, RightNodes},
	{"region", Text, "the region of the nodes, by `topology.kubernetes.io/region`; " +
		"`\"\"` if no node names it or they differ", inCluster, RightNodes},
	{"zones", Texts, "zones of the nodes, by `topology.kubernetes.io/zone`", inCluster, RightNodes},
	{"capacity", NumbersByName, "total capacity of the nodes, by resource: `cpu` (cores), `memory` (bytes), `pods`, `nvidia.com/gpu`, …",
		inCluster, RightNodes},
	{"allocatable", NumbersByName, "part of `capacity` for pods", inCluster, RightNodes},
	{"requested", NumbersByName, "total requests of pods on nodes, and their number as `pods`; only with `requested = true`",
		inCluster, RightPods},
	{"labels", TextsByName, "common labels of all nodes, without names of nodes", inCluster, RightNodes},
	{"server", Text, "URL of the API server according to Argo CD", []Source{ArgoCD}, ""},
	{"registered_labels", TextsByName, "labels of the cluster's Argo CD Secret and of its ClusterProfile, which takes precedence",
		[]Source{ArgoCD, ClusterProfiles}, ""},
	{"properties", TextsByName, "`status.properties` of its ClusterProfile", []Source{ClusterProfiles}, ""},
}

// Names returns the names of all facts.
func Names() []string {
	names := make([]string, len(All))
	for i := range All {
		names[i] = All[i].Name
	}
	return names
}

// FindFact returns the fact with a name.
func FindFact(name string) (Fact, bool) {
	at := slices.IndexFunc(All, func(fact Fact) bool { return fact.Name == name })
	if at < 0 {
		return Fact{}, false
	}
	return All[at], true
}

// KnownFacts has the facts of a cluster.
type KnownFacts struct {
	evidence.ClusterFacts
	Sources   []Source // where the cluster was found, sorted
	Missing   []string // lacking permissions, such as "list nodes"
	Waiting   bool     // not queried, because the connection is not known yet
	ambiguous string   // why a hub's facts about this name do not count
}

// The bounds of facts.
const (
	maxText   = 1024  // bytes of a string
	maxMany   = 100   // of a list, or of a map of numbers
	maxByName = 400   // of a map of strings: Node Feature Discovery creates some 200 labels
	maxFound  = 1_000 // before sorting
)

// textOf returns a string that can be a fact, or "".
func textOf(value any) string {
	text, _ := value.(string)
	if len(text) > maxText || !wording.IsLine(text) {
		return ""
	}
	return text
}

func isFact(name, text string) bool { return textOf(name) != "" && (text == "" || textOf(text) != "") }

// textsByName returns the first strings by name that can be facts.
func textsByName(from map[string]string) map[string]any {
	found := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if isFact(name, from[name]) && len(found) < maxByName {
			found[name] = from[name]
		}
	}
	return found
}
