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

// Own is what was read of a cluster itself.
type Own struct {
	Version string // "" where it may not be read, or was not
	Nodes   *Nodes // nil where they were not read to the end
	Pods    *Pods  // nil where they were not read to the end, or not asked for
	// Forbidden are the rights that the credentials lack.
	Forbidden []string
	// Lost is why the cluster did not answer, or not to the end; "" where it did.
	Lost string
}

// Known is what is known of the cluster. So many percent of its nodes have to be ready.
func (o *Own) Known(readyPercent int) Known {
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
	known := Known{Sources: []Source{Cluster}, Missing: o.Forbidden, ClusterFacts: evidence.ClusterFacts{Facts: found}}
	switch {
	case o.Lost != "":
		known.Status = verdict.Status{Verdict: verdict.Unknown, Message: o.Lost}
	case o.Nodes == nil:
		known.Status = verdict.Status{Verdict: verdict.Unknown, Message: missing(o.Forbidden)}
	default:
		known.Status = o.Nodes.status(readyPercent)
		if len(o.Forbidden) > 0 {
			known.Message += "; " + missing(o.Forbidden)
		}
	}
	return known
}

// missing says which rights are missing.
func missing(rights []string) string {
	if len(rights) == 1 {
		return fmt.Sprintf("the credentials lack the right to %s at cluster scope", rights[0])
	}
	return fmt.Sprintf("the credentials lack the rights to %s at cluster scope", strings.Join(rights, " and to "))
}

// minor is the minor version in a version of Kubernetes.
var minor = regexp.MustCompile(`^([0-9]{1,4}\.[0-9]{1,4})(\D|$)`)

// versionOf is a version as clouds and modules write it, without the "v" that Kubernetes has.
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

// Registration is what a hub says of a cluster.
type Registration struct {
	Name   string
	From   Source
	Object string // by which it is registered, such as "Secret argocd/large-1"
	// Status is that of its control plane; without a verdict where the hub does not say it.
	Status verdict.Status
	Facts  map[string]any
}

// Together is what is known of clusters that were found in several places. own are those that the provider knows. asked are
// what was asked of a hub. What a cluster says itself goes before what a hub says.
func Together(own map[string]Known, registered []Registration, asked []Source) map[string]Known {
	all := make(map[string]Known, len(own))
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
			all[name] = Known{}
		}
	}
	for name, known := range all {
		all[name] = together(known, by[name], asked)
	}
	return all
}

func together(known Known, registered map[Source][]Registration, asked []Source) Known {
	isAsked := slices.Contains(known.Sources, Cluster) && !known.Waiting
	found := map[string]any{}
	var lost []Source // of which nothing counts
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
			known.ambiguous = fmt.Sprintf("several objects of the hub have this name, and none counts: %s", named(objects, len(objects)))
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
	// That there are none is something else than that it is not known: labels of the cluster must not vanish.
	maps.DeleteFunc(found, func(name string, _ any) bool {
		fact, _ := Named(name)
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
