package reconciler

import (
	"reflect"
	"slices"
	"strings"
)

// Decisive are the fields of a kind that decide whether an object does its work, and on what. Flotilla does not set them,
// so a server-side apply leaves them to whoever has added them: what an agent does is as wanted only without them.
type Decisive struct {
	Group, Kind string
	Fields      []Field
	// Diverting are further fields, by which an object that follows a folder applies something else than the folder, or applies
	// it elsewhere.
	Diverting []Field
}

// Field is a field that somebody may add.
type Field struct {
	// Path is the field, as in "spec.suspend"; a key with dots in it is in brackets, at the end.
	Path string
	// Value is the only value that matters; nil for every one but false, 0, "" and what is empty.
	Value any
}

// Steps is the path, one step each.
func (f *Field) Steps() []string {
	path, key, hasKey := strings.Cut(strings.TrimSuffix(f.Path, "]"), "[")
	steps := strings.Split(path, ".")
	if hasKey {
		steps = append(steps, key)
	}
	return steps
}

// Matters says whether a value of the field is one that matters.
func (f *Field) Matters(value any) bool {
	if f.Value != nil {
		return reflect.DeepEqual(value, f.Value)
	}
	return !isEmpty(value) && !reflect.ValueOf(value).IsZero()
}

// controllers are the kinds that an agent runs as. An autoscaler may set replicas, but not to none.
var controllers = []Decisive{
	{Group: "apps", Kind: "Deployment", Fields: []Field{{"spec.replicas", int64(0)}, {"spec.paused", nil}}},
	{Group: "apps", Kind: "StatefulSet", Fields: []Field{{"spec.replicas", int64(0)}}},
}

// DecisiveFields are those of a kind.
func DecisiveFields(group, kind string) []Field {
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

// under are fields below a path.
func under(path string, fields []Field) []Field {
	var below []Field
	for _, field := range fields {
		below = append(below, Field{path + "." + field.Path, field.Value})
	}
	return below
}
