package reconciler

import (
	"path"
	"slices"
)

// Own are objects that an agent's controllers make for themselves. What people make with an agent's web server, or what
// its controllers apply for people, is not among them. What is empty here may be anything.
type Own struct {
	Group, Kind string
	// Name is a pattern.
	Name string
	// Label is a key that the object has.
	Label string
	// Managers are the field managers that such an object has, and no other.
	Managers []string
}

// IsOwn says whether an agent has made an object for itself. managers are all field managers of the object.
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
