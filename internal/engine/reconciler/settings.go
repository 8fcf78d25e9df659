package reconciler

import (
	"regexp"
	"slices"
	"strings"
)

// Reach is what a field can reach beside the workload's own content and what the team's account may do.
type Reach int

// What fields reach.
const (
	// Nothing is that of fields that reach nothing else.
	Nothing Reach = iota
	// Decided is that of fields that Flotilla decides, so that nobody else can set them.
	Decided
	// Secrets is that of fields that name Secrets or ConfigMaps, in the namespace of the reconciler's objects. The names
	// are their texts, or those called "name" in them.
	Secrets
	// Accounts is that of fields that choose an account, or have the reconciler's own one used.
	Accounts
	// Clusters is that of fields that choose clusters.
	Clusters
	// Namespaces is that of fields that choose namespaces, or change them.
	Namespaces
	// Objects is that of fields that name other objects of the reconciler.
	Objects
	// Content is that of fields that bring content that is not in the manifests' source.
	Content
	// URLs is that of fields whose texts are paths or URLs. Only URLs reach anything.
	URLs
	// Programs is that of fields that run programs of the agent.
	Programs
	// Unknown is that of fields that no table has.
	Unknown
)

// String is what is reached, as messages say it.
func (r Reach) String() string {
	return [...]string{
		"nothing", "what Flotilla decides", "Secrets and ConfigMaps of the agent's namespace", "another account", "other clusters",
		"namespaces", "other objects of the reconciler", "content that is not in the workload's source", "other sources",
		"programs of the agent", "what Flotilla does not know",
	}[r]
}

// Setting is a field of the spec of a kind, and all that is below it and has no entry of its own.
type Setting struct {
	// Path is where it is, without the indexes of lists: "postBuild.substituteFrom". Below one that ends in ".*" are keys
	// of the user's own.
	Path  string
	Reach Reach
	// By is what decides a field that is Decided.
	By string
	// Trust says that the field decides which content or which server is trusted: signatures, certificates, proxies. Such fields
	// belong to the platform, whatever else they reach.
	Trust bool
}

// What decides fields.
const (
	byManifests = "the deployment target's manifests set this"
	byNamespace = "the deployment target's namespace sets this"
	byName      = "the deployment target's name sets this"
	byFlotilla  = "Flotilla decides the labels and annotations of namespaces"
)

// reaching makes fields of one reach.
func reaching(reach Reach, paths ...string) []Setting {
	fields := make([]Setting, len(paths))
	for i, path := range paths {
		fields[i] = Setting{Path: path, Reach: reach}
	}
	return fields
}

// trusting makes fields of one reach that decide what is trusted.
func trusting(reach Reach, paths ...string) []Setting {
	fields := reaching(reach, paths...)
	for i := range fields {
		fields[i].Trust = true
	}
	return fields
}

// decided makes fields that Flotilla decides.
func decided(by string, paths ...string) []Setting {
	fields := reaching(Decided, paths...)
	for i := range fields {
		fields[i].By = by
	}
	return fields
}

// KindOfParameter returns the kind over whose spec a parameter is merged; nil where there is none.
func KindOfParameter(name string) *Kind {
	return first(kinds, func(kind *Kind) bool { return name != "" && kind.Parameter == name })
}

// DecidedFields are the fields that Flotilla decides, by path, with what decides them.
func (k *Kind) DecidedFields() map[string]string {
	all := map[string]string{}
	for _, field := range k.Settings {
		if field.Reach == Decided {
			all[field.Path] = field.By
		}
	}
	return all
}

// FieldNames are the fields of the spec itself, sorted.
func (k *Kind) FieldNames() []string {
	var names []string
	for _, field := range k.Settings {
		name, _, _ := strings.Cut(field.Path, ".")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// suspicious are names of fields that name a Secret, an account, a namespace, a cluster or a source.
var suspicious = regexp.MustCompile(
	`(?i)(ref|refs|from|provider|server)$|secret|account|kubeconfig|namespace|cluster|credential|token|password|repo|url|source|project|plugin`,
)

// isSuspicious says whether the last step of a path is called as fields are that reach something. Such a field needs an entry
// of its own, or one above that reaches something.
func isSuspicious(path string) bool {
	return suspicious.MatchString(path[strings.LastIndex(path, ".")+1:])
}

// ReachOf returns what a field of the spec reaches, by its path without indexes.
func (k *Kind) ReachOf(path string) Reach {
	for at := path; ; {
		for i := range k.Settings {
			field := &k.Settings[i]
			if own, isOwn := strings.CutSuffix(field.Path, ".*"); field.Path != at && (!isOwn || own != at) {
				continue
			} else if field.Reach == Nothing && !isOwn && at != path && slices.ContainsFunc(below(at, path), isSuspicious) {
				return Unknown
			}
			return field.Reach
		}
		last := strings.LastIndex(at, ".")
		if last < 0 {
			return Unknown
		}
		at = at[:last]
	}
}

// below are the paths from the first step after a path down to a longer one.
func below(above, path string) []string {
	var paths []string
	for i := len(above) + 1; i < len(path); i++ {
		if path[i] == '.' {
			paths = append(paths, path[:i])
		}
	}
	return append(paths, path)
}

// ReachBelow returns what fields below a path reach, "" for the spec itself: the first that reach anything and that others
// may set; Nothing where there are none.
func (k *Kind) ReachBelow(path string) Reach {
	for i := range k.Settings {
		field := &k.Settings[i]
		if (path == "" || strings.HasPrefix(field.Path, path+".")) && field.Reach != Nothing && field.Reach != Decided {
			return field.Reach
		}
	}
	return Nothing
}

// DecidesTrust reports whether a value at a path decides what is trusted: the field itself, one above it, or one below it, which the
// value replaces. The path "" is the spec itself.
func (k *Kind) DecidesTrust(path string) bool {
	return slices.ContainsFunc(k.Settings, func(field Setting) bool {
		return field.Trust &&
			(path == "" || field.Path == path || strings.HasPrefix(path, field.Path+".") || strings.HasPrefix(field.Path, path+"."))
	})
}

// HasField says whether a path is one of a field with an entry, or of what is above or below one.
func (k *Kind) HasField(path string) bool {
	return slices.ContainsFunc(k.Settings, func(field Setting) bool {
		known := strings.TrimSuffix(field.Path, ".*")
		return known == path || strings.HasPrefix(known, path+".")
	}) || k.ReachOf(path) != Unknown
}

// AgentName is the name of an agent's own objects, and what the names of its Secrets begin with, where nothing else is
// configured.
const AgentName = "flotilla"

// IsAgents says whether a name is that of an object or a Secret of an agent itself.
func IsAgents(name string) bool {
	return name == AgentName || strings.HasPrefix(name, AgentName+"-") ||
		slices.ContainsFunc(all, func(one *Reconciler) bool { return slices.Contains(one.Agent.Names, name) })
}
