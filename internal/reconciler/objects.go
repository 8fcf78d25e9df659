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

// Object is one of a cluster's objects. Fields with an unexpected type read as absent.
type Object struct {
	ObjectName
	of   *Kind
	from *unstructured.Unstructured
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
		name := nameOf(u)
		if o.byName[name] == nil {
			o.byName[name] = &Object{name, kindOf(u), u}
			o.All = append(o.All, o.byName[name])
		}
	}
	return o
}

// kindOf is the kind of an object; nil where objects of its kind say nothing about what runs.
func kindOf(u *unstructured.Unstructured) *Kind {
	of := u.GroupVersionKind()
	if kind := KindOf(of.Group, of.Kind); kind != nil && kind.Role != 0 {
		return kind
	}
	return nil
}

func nameOf(u *unstructured.Unstructured) ObjectName {
	return ObjectName{u.GetKind(), u.GetNamespace(), u.GetName()}
}

func (o *Object) text(fields ...string) string {
	text, _, _ := unstructured.NestedString(o.from.Object, fields...)
	return text
}

func (o *Object) flag(fields ...string) bool {
	flag, _, _ := unstructured.NestedBool(o.from.Object, fields...)
	return flag
}

func (o *Object) number(fields ...string) (int64, bool) { return number(o.value(fields...)) }

// Labels are the labels of an object.
func (o *Object) Labels() map[string]string { return o.from.GetLabels() }

// number reads a whole number, however it was decoded.
func number(value any) (int64, bool) {
	switch number := value.(type) {
	case int64:
		return number, true
	case float64:
		return int64(number), true
	}
	return 0, false
}

func (o *Object) value(fields ...string) any {
	value, _, err := unstructured.NestedFieldNoCopy(o.from.Object, fields...)
	if err != nil {
		return nil
	}
	return value
}

func (o *Object) has(fields ...string) bool { return o.value(fields...) != nil }

// entry is an object in a list.
type entry map[string]any

func (e entry) text(fields ...string) string {
	text, _, _ := unstructured.NestedString(e, fields...)
	return text
}

func (e entry) time(fields ...string) time.Time { return parseTime(e.text(fields...)) }

// list reads a list of objects; what else is in it is left out.
func (o *Object) list(fields ...string) []entry {
	list, _ := o.value(fields...).([]any)
	entries := make([]entry, 0, len(list))
	for _, one := range list {
		if fields, ok := one.(map[string]any); ok {
			entries = append(entries, fields)
		}
	}
	return entries
}

func (o *Object) time(fields ...string) time.Time { return parseTime(o.text(fields...)) }

// parseTime reads a time in whole seconds; zero when it is none.
func parseTime(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at.UTC().Truncate(time.Second)
}
