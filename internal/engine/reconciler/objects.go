package reconciler

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ObjectName names an object of a kind that a reconciler has.
type ObjectName struct{ Kind, Namespace, Name string }

func (n ObjectName) String() string {
	if n.Namespace == "" {
		return n.Kind + " " + n.Name
	}
	return n.Kind + " " + n.Namespace + "/" + n.Name
}

// CompareNames orders names by kind, namespace and name.
func CompareNames(a, b ObjectName) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Answer is a cluster's answer to listing its agent's objects.
type Answer struct {
	// Objects are of the kinds that reconcilers have, in any order.
	Objects []*unstructured.Unstructured
	// Unlisted are kinds that could not be listed, by the reason: not served, or forbidden.
	Unlisted map[string]string
}

// Listing has the objects of one cluster, in order, each once.
type Listing struct {
	All    []*Object
	byName map[ObjectName]*Object
	// unlisted are kinds of which nothing is known, by the reason.
	unlisted map[string]string
	// alone says that one object was read by itself, without those that it depends on.
	alone bool
	// anyRevision says that what an object has of a GitRepository may be older than what that has: it is compared otherwise.
	anyRevision bool
}

// Object is one of a cluster's objects.
type Object struct {
	ObjectName
	entry
	of   *Kind
	from *unstructured.Unstructured
}

func newObject(u *unstructured.Unstructured) *Object {
	return &Object{nameOf(u), u.Object, kindOf(u), u}
}

// Index puts what a cluster listed in order. Objects of other kinds are left out.
func Index(listed Answer) *Listing {
	o := &Listing{byName: map[ObjectName]*Object{}, unlisted: listed.Unlisted}
	sorted := slices.DeleteFunc(slices.Clone(listed.Objects), func(u *unstructured.Unstructured) bool {
		return u == nil || u.GetName() == "" || kindOf(u) == nil
	})
	// Of an object in two versions either says the same.
	slices.SortStableFunc(sorted, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(CompareNames(nameOf(a), nameOf(b)), cmp.Compare(b.GetAPIVersion(), a.GetAPIVersion()))
	})
	for _, u := range sorted {
		if one := newObject(u); o.byName[one.ObjectName] == nil {
			o.byName[one.ObjectName] = one
			o.All = append(o.All, one)
		}
	}
	return o
}

// kindOf is the kind of an object; nil where objects of its kind say nothing about what runs.
func kindOf(u *unstructured.Unstructured) *Kind {
	of := u.GroupVersionKind()
	if kind := KindOf(of.Group, of.Kind); kind.Is(anyRole) {
		return kind
	}
	return nil
}

func nameOf(u *unstructured.Unstructured) ObjectName {
	return ObjectName{u.GetKind(), u.GetNamespace(), u.GetName()}
}

// Labels are the labels of an object.
func (o *Object) Labels() map[string]string { return o.from.GetLabels() }

// entry is an object, or a part of one. Fields with an unexpected type read as absent.
type entry map[string]any

// entryOf is a value that is an object; nil where it is none.
func entryOf(value any) entry {
	fields, _ := value.(map[string]any)
	return fields
}

// isEmpty says whether a value is false, or has nothing in it.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case bool:
		return !value
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return false
}

func (e entry) value(fields ...string) any {
	value, _, err := unstructured.NestedFieldNoCopy(e, fields...)
	if err != nil {
		return nil
	}
	return value
}

func (e entry) has(fields ...string) bool { return e.value(fields...) != nil }

func (e entry) text(fields ...string) string {
	text, _ := e.value(fields...).(string)
	return text
}

func (e entry) flag(fields ...string) bool {
	flag, _ := e.value(fields...).(bool)
	return flag
}

// number reads a whole number, however it was decoded.
func (e entry) number(fields ...string) (int64, bool) {
	switch number := e.value(fields...).(type) {
	case int64:
		return number, true
	case float64:
		return int64(number), true
	}
	return 0, false
}

// time reads a time in whole seconds; zero when it is none.
func (e entry) time(fields ...string) time.Time {
	at, err := time.Parse(time.RFC3339, e.text(fields...))
	if err != nil {
		return time.Time{}
	}
	return at.UTC().Truncate(time.Second)
}

func (e entry) object(fields ...string) entry { return entryOf(e.value(fields...)) }

// list reads a list of objects; what else is in it is left out.
func (e entry) list(fields ...string) []entry {
	list, _ := e.value(fields...).([]any)
	entries := make([]entry, 0, len(list))
	for _, one := range list {
		if fields := entryOf(one); fields != nil {
			entries = append(entries, fields)
		}
	}
	return entries
}

// texts reads a list of texts; what else is in it is "".
func (e entry) texts(fields ...string) []string {
	list, _ := e.value(fields...).([]any)
	texts := make([]string, len(list))
	for i, one := range list {
		texts[i], _ = one.(string)
	}
	return texts
}
