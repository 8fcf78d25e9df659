package observe

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/reconciler"
)

// Contexts finds the cluster of a commit status by its context.
type Contexts struct{ patterns []contextPattern }

// contextPattern are the segments of a context.
type contextPattern []contextSegment

// contextSegment is a text; or anything; or, where it names, the name of a cluster between two texts; or one
// of the kinds of hosts.
type contextSegment struct {
	before, after    string
	names, any, host bool
}

// What stands for the name of a cluster in a pattern, and for which of its folders a status is about.
const (
	clusterName = "{cluster}"
	hostKind    = "{host}"
)

// The kinds of hosts, as contexts name them: the folders that a cluster follows, in the order of [Hosts].
const (
	ClusterTypeHost = "cluster-type"
	ClusterHost     = "cluster"
)

var placeholder = regexp.MustCompile(`\{[^{}]*\}?|\}`)

// ParseContext reads a pattern such as "flotilla/{cluster}" or "kustomization/root-{cluster}/*": {cluster}
// is the name of a cluster, {host} a segment that says which of the cluster's folders the status is about, and
// * a segment of any text. It is what a Flux Provider's commitStatusExpr, or a template of Argo CD's
// notifications, makes contexts by.
func ParseContext(pattern string) (Contexts, error) {
	switch {
	case pattern == "":
		return Contexts{}, errors.New("the context is empty; it is a pattern such as \"flotilla/{cluster}\"")
	case strings.Count(pattern, clusterName) > 1:
		return Contexts{}, fmt.Errorf("context %q has {cluster} more than once", pattern)
	}
	for _, found := range placeholder.FindAllString(pattern, -1) {
		if found != clusterName && found != hostKind {
			return Contexts{}, fmt.Errorf("context %q has %q, which has no meaning; only {cluster} and {host} have one", pattern, found)
		}
	}
	if strings.Count(pattern, hostKind) > 1 {
		return Contexts{}, fmt.Errorf("context %q has {host} more than once", pattern)
	}
	if !strings.Contains(pattern, clusterName) {
		return Contexts{}, fmt.Errorf("context %q has no {cluster}, which says which cluster a status is about", pattern)
	}
	var parsed contextPattern
	for text := range strings.SplitSeq(pattern, "/") {
		before, after, names := strings.Cut(text, clusterName)
		if text != hostKind && strings.Contains(text, hostKind) {
			return Contexts{}, fmt.Errorf("context %q: {host} must be a whole segment, and %q has more than that", pattern, text)
		}
		if text != "*" && strings.Contains(text, "*") {
			return Contexts{}, fmt.Errorf("context %q: * must be a whole segment, and %q has more than that", pattern, text)
		}
		parsed = append(parsed, contextSegment{before: before, after: after, names: names, any: text == "*", host: text == hostKind})
	}
	return Contexts{[]contextPattern{parsed}}, nil
}

// DefaultContexts reads the contexts that agents use by default, as far as they have the name of a cluster, and
// "flotilla/<name>"; where the name is that of the cluster, or that with "flotilla-" or "flotilla-<environment>-" before it;
// and "flotilla/<cluster>/{host}", as agents do that Flotilla has set up.
func DefaultContexts(environment string) Contexts {
	patterns := []string{"flotilla/" + clusterName + "/" + hostKind}
	for _, prefix := range []string{"", "flotilla-", "flotilla-" + environment + "-"} {
		for _, pattern := range append([]string{"flotilla/" + clusterName}, reconciler.Contexts()...) {
			patterns = append(patterns, strings.Replace(pattern, clusterName, prefix+clusterName, 1))
		}
	}
	var contexts Contexts
	for _, pattern := range patterns {
		if parsed, err := ParseContext(pattern); err == nil { // an environment may have any name
			contexts.patterns = append(contexts.patterns, parsed.patterns...)
		}
	}
	return contexts
}

// Subject is what a status is of: a cluster, and the kind of the host that it is about, "" for all that the cluster
// follows.
type Subject struct{ Cluster, Host string }

// Keys are the subjects of all statuses that these clusters can have, by a key that is made of the context. As in
// Cluster, the first pattern wins. A pattern with a segment of any text has no keys.
func (c Contexts) Keys(clusters []string, key func(context string) string) map[string]Subject {
	found := map[string]Subject{}
	for _, pattern := range c.patterns {
		for _, cluster := range clusters {
			for _, host := range []string{ClusterTypeHost, ClusterHost} {
				context, of, ok := pattern.context(Subject{cluster, host})
				if !ok {
					continue
				}
				if name := key(context); found[name] == (Subject{}) {
					found[name] = of
				}
			}
		}
	}
	return found
}

// context is the context of the statuses of a subject, and the subject as the pattern distinguishes it; ok is false
// where it does not follow.
func (p contextPattern) context(of Subject) (context string, as Subject, ok bool) {
	as.Cluster = of.Cluster
	segments := make([]string, len(p))
	for i, segment := range p {
		switch {
		case segment.any:
			return "", Subject{}, false
		case segment.host:
			segments[i], as.Host = of.Host, of.Host
		case segment.names:
			segments[i] = segment.before + of.Cluster + segment.after
		default:
			segments[i] = segment.before
		}
	}
	return strings.Join(segments, "/"), as, true
}

// Cluster returns the cluster that a status is of, and the kind of the host that it is about, "" for all that
// the cluster follows; known says which clusters there are.
func (c Contexts) Cluster(context string, known func(cluster string) bool) (cluster, host string, ok bool) {
	segments := strings.Split(context, "/")
	for _, pattern := range c.patterns {
		if cluster, host, ok := pattern.cluster(segments); ok && known(cluster) {
			return cluster, host, true
		}
	}
	return "", "", false
}

func (p contextPattern) cluster(segments []string) (cluster, host string, ok bool) {
	if len(segments) != len(p) {
		return "", "", false
	}
	for i, segment := range p {
		switch text := segments[i]; {
		case segment.any:
		case segment.host:
			if text != ClusterTypeHost && text != ClusterHost {
				return "", "", false
			}
			host = text
		case segment.names:
			rest, hasBefore := strings.CutPrefix(text, segment.before)
			name, hasAfter := strings.CutSuffix(rest, segment.after)
			if !hasBefore || !hasAfter {
				return "", "", false
			}
			cluster = name
		case text != segment.before:
			return "", "", false
		}
	}
	return cluster, host, cluster != ""
}
