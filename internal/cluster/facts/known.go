package facts

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

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
	by := map[string]map[Source][]Registration{}
	for _, one := range registered {
		if by[one.Name] == nil {
			by[one.Name] = map[Source][]Registration{}
		}
		by[one.Name][one.From] = append(by[one.Name][one.From], one)
	}
	for name, known := range own {
		all[name] = known
	}
	for name := range by {
		if _, known := all[name]; !known {
			all[name] = KnownFacts{}
		}
	}
	for name, known := range all {
		all[name] = mergeSources(known, by[name], asked)
	}
	return all
}

func mergeSources(known KnownFacts, registered map[Source][]Registration, asked []Source) KnownFacts {
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
		of := registered[source]
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
