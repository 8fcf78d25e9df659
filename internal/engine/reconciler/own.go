package reconciler

import (
	"path"
	"slices"
)

// Own describes objects that an agent's controllers create for their own use. It excludes objects that users create
// through the agent's web server, or that controllers apply for users. An empty field matches everything.
type Own struct {
	Group, Kind string
	// Name is a pattern.
	Name string
	// Label is the key of a required label.
	Label string
	// Managers are the only field managers that the object may have.
	Managers []string
}

// IsOwn reports whether an agent created an object for its own use. managers lists all field managers of the object.
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
