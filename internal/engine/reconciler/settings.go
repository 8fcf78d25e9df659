package reconciler

import (
	"regexp"
	"slices"
	"strings"
)

// Reach is the access that a field grants beyond the workload's content and the permissions of the team's account.
type Reach int

// The kinds of access. An Unknown field is in no table.
const (
	Nothing Reach = iota
	// Decided fields are set by Flotilla, never by users.
	Decided
	// Secrets fields name Secrets or ConfigMaps in the namespace of the reconciler's objects.
	Secrets
	// Accounts fields choose an account, or make the reconciler use its own.
	Accounts
	Clusters
	Namespaces
	Objects
	// Content fields add content from outside of the manifests' source.
	Content
	// URLs fields have paths or URLs. Only URLs grant access.
	URLs
	Programs
	Unknown
)

// String describes the access for messages.
func (r Reach) String() string {
	return [...]string{
		"nothing", "what Flotilla decides", "Secrets and ConfigMaps of the agent's namespace", "another account", "other clusters",
		"namespaces", "other objects of the reconciler", "content that is not in the workload's source", "other sources",
		"programs of the agent", "what Flotilla does not know",
	}[r]
}

// Setting is a field of a spec, including fields below it without an entry.
type Setting struct {
	// Path has no list indexes: "postBuild.substituteFrom". Below ".*" are the user's own keys.
	Path  string
	Reach Reach
	// By explains who sets a Decided field.
	By string
	// Trust reports that the field decides which content or server is trusted, so it belongs to the platform.
	Trust bool
}

const (
	byManifests = "the deployment target's manifests set this"
	byNamespace = "the deployment target's namespace sets this"
	byName      = "the deployment target's name sets this"
	byFlotilla  = "Flotilla decides the labels and annotations of namespaces"
)

func reaching(reach Reach, paths ...string) []Setting {
	fields := make([]Setting, len(paths))
	for i, path := range paths {
		fields[i] = Setting{Path: path, Reach: reach}
	}
	return fields
}

func trusting(reach Reach, paths ...string) []Setting {
	fields := reaching(reach, paths...)
	for i := range fields {
		fields[i].Trust = true
	}
	return fields
}

func decided(by string, paths ...string) []Setting {
	fields := reaching(Decided, paths...)
	for i := range fields {
		fields[i].By = by
	}
	return fields
}

// KindOfParameter returns the kind whose spec a parameter changes; nil if there is none.
func KindOfParameter(name string) *ObjectKind {
	return first(kinds, func(kind *ObjectKind) bool { return name != "" && kind.Parameter == name })
}

// DecidedFields maps the fields that Flotilla sets to the reason.
func (k *ObjectKind) DecidedFields() map[string]string {
	all := map[string]string{}
	for _, field := range k.Settings {
		if field.Reach == Decided {
			all[field.Path] = field.By
		}
	}
	return all
}

// FieldNames returns the top-level fields of the spec, sorted.
func (k *ObjectKind) FieldNames() []string {
	var names []string
	for _, field := range k.Settings {
		name, _, _ := strings.Cut(field.Path, ".")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// suspicious matches names of fields that may grant access. They need an entry of their own, or below one that grants
// access.
var suspicious = regexp.MustCompile(
	`(?i)(ref|refs|from|provider|server)$|secret|account|kubeconfig|namespace|cluster|` +
		`credential|token|password|repo|url|source|project|plugin`,
)

func isSuspicious(path string) bool {
	return suspicious.MatchString(path[strings.LastIndex(path, ".")+1:])
}

// ReachOf returns the reach of a field by its path without indexes.
func (k *ObjectKind) ReachOf(path string) Reach {
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

func below(above, path string) []string {
	var paths []string
	for i := len(above) + 1; i < len(path); i++ {
		if path[i] == '.' {
			paths = append(paths, path[:i])
		}
	}
	return append(paths, path)
}

// ReachBelow returns the first reach that grants access below a path; "" is the spec itself.
func (k *ObjectKind) ReachBelow(path string) Reach {
	for i := range k.Settings {
		field := &k.Settings[i]
		if (path == "" || strings.HasPrefix(field.Path, path+".")) && field.Reach != Nothing && field.Reach != Decided {
			return field.Reach
		}
	}
	return Nothing
}

// DecidesTrust reports whether a value at a path decides trust through the field, a parent, or a child; "" is the
// spec itself.
func (k *ObjectKind) DecidesTrust(path string) bool {
	return slices.ContainsFunc(k.Settings, func(field Setting) bool {
		return field.Trust &&
			(path == "" || field.Path == path || strings.HasPrefix(path, field.Path+".") || strings.HasPrefix(field.Path, path+"."))
	})
}

// HasField reports whether a path leads to a known field, or to a parent or child of one.
func (k *ObjectKind) HasField(path string) bool {
	return slices.ContainsFunc(k.Settings, func(field Setting) bool {
		known := strings.TrimSuffix(field.Path, ".*")
		return known == path || strings.HasPrefix(known, path+".")
	}) || k.ReachOf(path) != Unknown
}

// AgentName is the default name of an agent's objects and the prefix of its Secrets.
const AgentName = "flotilla"

// IsAgents reports whether a name belongs to an object or Secret of an agent itself.
func IsAgents(name string) bool {
	return name == AgentName || strings.HasPrefix(name, AgentName+"-") ||
		slices.ContainsFunc(all, func(one *Reconciler) bool { return slices.Contains(one.Agent.Names, name) })
}
