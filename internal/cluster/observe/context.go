package observe

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// Contexts finds the cluster of a commit status by its context.
type Contexts struct{ patterns []contextPattern }

// contextPattern is a pattern, and what matches the contexts that are made by it.
type contextPattern struct {
	text    string
	matches *regexp.Regexp // with groups "cluster" and "host", where it has these
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

// groups replaces what stands for something in a pattern by what it stands for.
var groups = strings.NewReplacer(
	regexp.QuoteMeta(
		clusterName,
	),
	`(?P<cluster>[^/]+)`,
	regexp.QuoteMeta(hostKind),
	`(?P<host>`+ClusterTypeHost+`|`+ClusterHost+`)`,
	`\*`,
	`[^/]*`,
)

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
	if strings.Contains(p.text, "*") {
		return "", Subject{}, false
	}
	as.Cluster = of.Cluster
	if strings.Contains(p.text, hostKind) {
		as.Host = of.Host
	}
	return strings.NewReplacer(clusterName, of.Cluster, hostKind, of.Host).Replace(p.text), as, true
}

// Cluster returns the cluster that a status is of, and the kind of the host that it is about, "" for all that
// the cluster follows; known says which clusters there are.
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
