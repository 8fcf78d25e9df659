package observe

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// Contexts maps the contexts of commit statuses to clusters.
type Contexts struct{ patterns []contextPattern }

type contextPattern struct {
	text    string
	matches *regexp.Regexp // with optional groups "cluster" and "host"
}

const (
	clusterName = "{cluster}"
	hostKind    = "{host}"
)

// The kinds of hosts in contexts, in the order of [FollowedHosts].
const (
	ClusterTypeHost = "cluster-type"
	ClusterHost     = "cluster"
)

var placeholder = regexp.MustCompile(`\{[^{}]*\}?|\}`)

// ParseContext parses a pattern such as "kustomization/root-{cluster}/*". {cluster} is the name of a cluster, {host} a
// segment with a kind of host, and * any segment. Flux' commitStatusExpr and the templates of Argo CD's notifications
// produce such contexts.
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
	for text := range strings.SplitSeq(pattern, "/") {
		if text != hostKind && strings.Contains(text, hostKind) {
			return Contexts{}, fmt.Errorf("context %q: {host} must be a whole segment, and %q has more than that", pattern, text)
		}
		if text != "*" && strings.Contains(text, "*") {
			return Contexts{}, fmt.Errorf("context %q: * must be a whole segment, and %q has more than that", pattern, text)
		}
	}
	matches, err := regexp.Compile(`\A` + groups.Replace(regexp.QuoteMeta(pattern)) + `\z`)
	return Contexts{[]contextPattern{{pattern, matches}}}, err
}

var groups = strings.NewReplacer(
	regexp.QuoteMeta(clusterName),
	`(?P<cluster>[^/]+)`,
	regexp.QuoteMeta(hostKind),
	`(?P<host>`+ClusterTypeHost+`|`+ClusterHost+`)`,
	`\*`,
	`[^/]*`,
)

// DefaultContexts returns the agents' default contexts that contain the cluster's name, "flotilla/<name>", and
// "flotilla/<cluster>/{host}" of agents set up by Flotilla. The name may have the prefix "flotilla-" or
// "flotilla-<environment>-".
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

// Subject is the cluster and the kind of host of a status; Host is "" for everything the cluster follows.
type Subject struct{ Cluster, Host string }

// Keys returns the subjects of all possible statuses, by the key of their context. The first matching pattern wins, as
// in Cluster. Patterns with * have no keys.
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

// context returns the context of a subject, and the part of the subject in the pattern; ok is false if it has a *.
func (p contextPattern) context(of Subject) (context string, as Subject, ok bool) {
	if strings.Contains(p.text, "*") {
		return "", Subject{}, false
	}
	as.Cluster = of.Cluster
	if strings.Contains(p.text, hostKind) {
		as.Host = of.Host
	}
	return strings.NewReplacer(clusterName, of.Cluster, hostKind, of.Host).Replace(p.text), as, true
}

// Cluster returns the [Subject] of a status. known reports whether a cluster exists.
func (c Contexts) Cluster(context string, known func(cluster string) bool) (cluster, host string, ok bool) {
	for _, pattern := range c.patterns {
		groups := pattern.matches.FindStringSubmatch(context)
		if groups == nil || !known(groups[pattern.matches.SubexpIndex("cluster")]) {
			continue
		}
		if at := pattern.matches.SubexpIndex("host"); at >= 0 {
			host = groups[at]
		}
		return groups[pattern.matches.SubexpIndex("cluster")], host, true
	}
	return "", "", false
}
