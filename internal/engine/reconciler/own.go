package reconciler

import (
	"path"
	"slices"
)

// Own describes objects that an agent's controllers create for their own use, not for users. An empty field matches
// everything.
type Own struct {
	Group, Kind string
	// Name is a pattern, Label the key of a required label, and Managers the only permitted field managers.
	Name     string
	Label    string
	Managers []string
}

// IsOwn reports whether an agent created an object for its own use. managers are all its field managers.
func IsOwn(group, kind, name string, labels map[string]string, managers []string) bool {
	if len(managers) == 0 {
		return false
	}
	return slices.ContainsFunc(all, func(reconciler *Reconciler) bool {
		return slices.ContainsFunc(reconciler.Own, func(own Own) bool { return own.is(group, kind, name, labels, managers) })
	})
}

func (o *Own) is(group, kind, name string, labels map[string]string, managers []string) bool {
	if o.Kind != "" && (o.Group != group || o.Kind != kind) {
		return false
	}
	if matches, err := path.Match(o.Name, name); o.Name != "" && (err != nil || !matches) {
		return false
	}
	if _, has := labels[o.Label]; o.Label != "" && !has {
		return false
	}
	return !slices.ContainsFunc(managers, func(manager string) bool { return !slices.Contains(o.Managers, manager) })
}
