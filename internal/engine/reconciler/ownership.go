package reconciler

import (
	"path"
	"reflect"
	"slices"
	"strings"
)

// Decisive lists fields that change the content or behavior of an object. Flotilla does not set them, so server-side
// apply leaves them to other managers.
type Decisive struct {
	Group, Kind string
	Fields      []DecisiveField
	// Diverting lists the fields that make an object apply other content than its folder's, or elsewhere.
	Diverting []DecisiveField
}

// DecisiveField is a field that other managers must not set.
type DecisiveField struct {
	// Path is written like "spec.suspend". A last key with dots is in brackets.
	Path string
	// Value is the only decisive value; nil means every value that is not zero or empty.
	Value any
}

// Steps splits the path.
func (f *DecisiveField) Steps() []string {
	path, key, hasKey := strings.Cut(strings.TrimSuffix(f.Path, "]"), "[")
	steps := strings.Split(path, ".")
	if hasKey {
		steps = append(steps, key)
	}
	return steps
}

// IsDecisive reports whether a value of the field has an effect.
func (f *DecisiveField) IsDecisive(value any) bool {
	if f.Value != nil {
		return reflect.DeepEqual(value, f.Value)
	}
	return !isEmpty(value) && !reflect.ValueOf(value).IsZero()
}

// controllers are the kinds that agents run as. An autoscaler may set replicas, but not to zero.
var controllers = []Decisive{
	{Group: "apps", Kind: "Deployment", Fields: []DecisiveField{{"spec.replicas", int64(0)}, {"spec.paused", nil}}},
	{Group: "apps", Kind: "StatefulSet", Fields: []DecisiveField{{"spec.replicas", int64(0)}}},
}

// DecisiveFields returns the decisive fields of a kind.
func DecisiveFields(group, kind string) []DecisiveField {
	of := decisiveOf(group, kind)
	return slices.Concat(of.Fields, of.Diverting)
}

func decisiveOf(group, kind string) Decisive {
	is := func(one Decisive) bool { return one.Group == group && one.Kind == kind }
	for _, reconciler := range all {
		if at := slices.IndexFunc(reconciler.Decisive, is); at >= 0 {
			return reconciler.Decisive[at]
		}
	}
	if at := slices.IndexFunc(controllers, is); at >= 0 {
		return controllers[at]
	}
	return Decisive{}
}

// anyValue returns fields below a path that are decisive with every value.
func anyValue(path string, names ...string) []DecisiveField {
	fields := make([]DecisiveField, len(names))
	for i, name := range names {
		fields[i] = DecisiveField{Path: path + "." + name}
	}
	return fields
}

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

// Labels of objects that Flotilla creates. Package render shortens the names in their values.
const (
	LabelPrefix      = "flotilla.dev/"
	OwnerLabel       = LabelPrefix + "owner"
	HostLabel        = LabelPrefix + "host"
	ClusterLabel     = LabelPrefix + "cluster"
	TypeLabel        = LabelPrefix + "cluster-type"
	EnvironmentLabel = LabelPrefix + "environment"
	AgentLabel       = LabelPrefix + "agent" // on a hub's Secrets of clusters that have one

	ManagedLabel = "app.kubernetes.io/managed-by"
	ManagedBy    = "flotilla" // the value of ManagedLabel
)
