// Package facts derives facts about clusters: versions, nodes, capacity, location. It reads objects of the clusters and
// of a hub where they are registered, and derives labels from facts. It is pure. "" means unknown or none.
package facts

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
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

// OwnFacts is the data read from a cluster.
type OwnFacts struct {
	Version   string
	Nodes     *Nodes   // nil if incomplete
	Pods      *Pods    // nil if incomplete or not requested
	Forbidden []string // permissions that the credentials lack
	Lost      string   // why the answer is incomplete
}

// Known returns the facts. readyPercent of the nodes must be ready.
func (o *OwnFacts) Known(readyPercent int) KnownFacts {
	found := map[string]any{}
	addVersion(found, o.Version)
	if o.Nodes != nil {
		maps.Copy(found, o.Nodes.facts())
	}
	if o.Pods != nil {
		maps.Copy(found, o.Pods.facts())
	}
	if len(found) == 0 {
		found = nil
	}
	known := KnownFacts{Sources: []Source{Cluster}, Missing: o.Forbidden, ClusterFacts: evidence.ClusterFacts{Facts: found}}
	switch {
	case o.Lost != "":
		known.Status = verdict.Status{Verdict: verdict.Unknown, Message: o.Lost}
	case o.Nodes == nil:
		known.Status = verdict.Status{Verdict: verdict.Unknown, Message: describeMissing(o.Forbidden)}
	default:
		known.Status = o.Nodes.status(readyPercent)
		if len(o.Forbidden) > 0 {
			known.Message += "; " + describeMissing(o.Forbidden)
		}
	}
	return known
}

func describeMissing(rights []string) string {
	if len(rights) == 1 {
		return fmt.Sprintf("the credentials lack the right to %s at cluster scope", rights[0])
	}
	return fmt.Sprintf("the credentials lack the rights to %s at cluster scope", strings.Join(rights, " and to "))
}

// minor matches the minor version in a Kubernetes version.
var minor = regexp.MustCompile(`^([0-9]{1,4}\.[0-9]{1,4})(\D|$)`)

// versionOf removes the "v", which clouds and modules omit.
func versionOf(text string) string {
	if after, ok := strings.CutPrefix(text, "v"); ok && after != "" && after[0] >= '0' && after[0] <= '9' {
		return after
	}
	return text
}

func addVersion(to map[string]any, version string) {
	if version = versionOf(textOf(version)); version == "" {
		return
	}
	to["kubernetes_version"] = version
	if found := minor.FindStringSubmatch(version); found != nil {
		to["kubernetes_minor"] = found[1]
	}
}

// Registration is a hub's record of a cluster.
type Registration struct {
	Name   string
	From   Source
	Object string         // registering object, such as "Secret argocd/large-1"
	Status verdict.Status // of the control plane; without a verdict if unknown
	Facts  map[string]any
}

// Merge combines facts about the same cluster; its own override a hub's. asked are the queried sources of the hub.
func Merge(own map[string]KnownFacts, registered []Registration, asked []Source) map[string]KnownFacts {
	all := make(map[string]KnownFacts, len(own))
	by := map[string][]Registration{}
	for _, one := range registered {
		by[one.Name] = append(by[one.Name], one)
	}
	for name := range by {
		all[name] = KnownFacts{}
	}
	maps.Copy(all, own)
	for name, known := range all {
		all[name] = mergeSources(known, by[name], asked)
	}
	return all
}

func mergeSources(known KnownFacts, registered []Registration, asked []Source) KnownFacts {
	isAsked := slices.Contains(known.Sources, Cluster) && !known.Waiting
	found := map[string]any{}
	var lost []Source // sources that do not count
	for _, source := range asked {
		for _, fact := range All {
			if fact.Kind == TextsByName && slices.Contains(fact.From, source) && !slices.Contains(fact.From, Cluster) {
				found[fact.Name] = map[string]any{}
			}
		}
	}
	said := verdict.Status{
		Verdict: verdict.Unknown,
		Message: "the provider's clusters have no entry of this name, so that the cluster itself was not asked",
	}
	if known.Waiting {
		said = known.Status
	}
	for _, source := range asked {
		of := slices.DeleteFunc(slices.Clone(registered), func(one Registration) bool { return one.From != source })
		if len(of) == 0 {
			continue
		}
		known.Sources = append(known.Sources, source)
		if len(of) > 1 {
			objects := []string{}
			for _, one := range of {
				objects = append(objects, one.Object)
			}
			slices.Sort(objects)
			known.ambiguous = fmt.Sprintf("several objects of the hub have this name, and none counts: %s", listNames(objects, len(objects)))
			said = verdict.Status{Verdict: verdict.Unknown, Message: known.ambiguous}
			lost = append(lost, source)
			continue
		}
		for name, value := range of[0].Facts {
			labels, isMap := value.(map[string]any)
			if before, ok := found[name].(map[string]any); ok && isMap {
				maps.Copy(before, labels)
				continue
			}
			found[name] = value
		}
		if of[0].Status.Verdict != "" {
			said = of[0].Status
		}
	}
	// Lost facts are unknown rather than empty: labels of the cluster must not vanish.
	maps.DeleteFunc(found, func(name string, _ any) bool {
		fact, _ := FindFact(name)
		return slices.ContainsFunc(lost, func(source Source) bool { return slices.Contains(fact.From, source) })
	})
	slices.Sort(known.Sources)
	known.Sources = slices.Compact(known.Sources)
	maps.Copy(found, known.Facts)
	if known.Facts = found; len(found) == 0 {
		known.Facts = nil
	}
	if !isAsked {
		known.Status = said
	}
	return known
}

// ReadSecret reads name, server and labels from Argo CD's Secret of a cluster, and no credentials or annotations, which
// may repeat the whole Secret, as kubectl's do. ok is false if no cluster can have the name.
func ReadSecret(secret *unstructured.Unstructured) (r Registration, ok bool) {
	r = Registration{From: ArgoCD, Object: fmt.Sprintf("Secret %s/%s", secret.GetNamespace(), secret.GetName()), Facts: map[string]any{}}
	if r.Name = dataOf(secret, "name"); r.Name == "" {
		r.Name = secret.GetName()
	}
	// A URL may have credentials.
	if server, err := url.Parse(dataOf(secret, "server")); err == nil && server.Host != "" {
		r.Facts["server"] = textOf((&url.URL{Scheme: server.Scheme, Host: server.Host, Path: server.Path}).String())
	}
	labels := secret.GetLabels()
	delete(labels, reconciler.SecretType)
	r.Facts["registered_labels"] = textsByName(labels)
	return r, textOf(r.Name) != ""
}

func dataOf(secret *unstructured.Unstructured, key string) string {
	encoded, _, _ := unstructured.NestedString(secret.Object, "data", key)
	text, _ := base64.StdEncoding.DecodeString(encoded) // unreadable data is absent
	return textOf(string(text))
}

// ReadClusterProfile reads a ClusterProfile of multicluster.x-k8s.io.
func ReadClusterProfile(profile *unstructured.Unstructured) (r Registration, ok bool) {
	object := fmt.Sprintf("ClusterProfile %s/%s", profile.GetNamespace(), profile.GetName())
	r = Registration{Name: profile.GetName(), From: ClusterProfiles, Object: object, Facts: map[string]any{}}
	version, _, _ := unstructured.NestedString(profile.Object, "status", "version", "kubernetes")
	addVersion(r.Facts, version)
	r.Facts["registered_labels"] = textsByName(profile.GetLabels())
	properties := map[string]string{}
	value, _, _ := unstructured.NestedFieldNoCopy(profile.Object, "status", "properties")
	given, _ := value.([]any)
	for _, one := range given {
		property, _ := one.(map[string]any)
		name, _ := property["name"].(string)
		properties[name], _ = property["value"].(string)
	}
	r.Facts["properties"] = textsByName(properties)
	healthy := conditionOf(profile, "ControlPlaneHealthy")
	r.Status = verdict.Status{Since: healthy.since}
	switch healthy.status {
	case "True":
		r.Status.Verdict, r.Status.Message = verdict.Ready, object+" says that the control plane is healthy"
	case "False":
		r.Status.Verdict, r.Status.Message = verdict.Progressing, fmt.Sprintf(
			"%s says that the control plane is not healthy: %s",
			object,
			wording.OneLine(healthy.reason+" "+healthy.message),
		)
	default:
		r.Status.Verdict, r.Status.Message = verdict.Unknown, object+" does not say whether the control plane is healthy"
	}
	return r, textOf(r.Name) != ""
}
