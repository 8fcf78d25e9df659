package reconciler

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ObjectName identifies an object of a reconciler's kind.
type ObjectName struct{ Kind, Namespace, Name string }

func (n ObjectName) String() string {
	if n.Namespace == "" {
		return n.Kind + " " + n.Name
	}
	return n.Kind + " " + n.Namespace + "/" + n.Name
}

// CompareNames orders by kind, namespace and name.
func CompareNames(a, b ObjectName) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Answer has an agent's objects on a cluster. Unlisted has the kinds that could not be listed, with the reason.
type Answer struct {
	Objects  []*unstructured.Unstructured
	Unlisted map[string]string
}

// Listing indexes the objects of one cluster, sorted and without duplicates.
type Listing struct {
	All      []*ListedObject
	byName   map[ObjectName]*ListedObject
	unlisted map[string]string
	// alone means that one object was read without its dependencies. anyRevision accepts every revision of a
	// GitRepository: final objects are compared by folder.
	alone       bool
	anyRevision bool
}

// ListedObject is an object whose kind is in the tables.
type ListedObject struct {
	ObjectName
	jsonObject
	of   *ObjectKind
	from *unstructured.Unstructured
}

func newObject(u *unstructured.Unstructured) *ListedObject {
	return &ListedObject{nameOf(u), u.Object, kindOf(u), u}
}

// NewListing indexes the objects of known kinds.
func NewListing(listed Answer) *Listing {
	o := &Listing{byName: map[ObjectName]*ListedObject{}, unlisted: listed.Unlisted}
	sorted := slices.DeleteFunc(slices.Clone(listed.Objects), func(u *unstructured.Unstructured) bool {
		return u == nil || u.GetName() == "" || kindOf(u) == nil
	})
	// All versions of an object have the same content.
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

// kindOf returns the kind of an object; nil if it does not affect verdicts.
func kindOf(u *unstructured.Unstructured) *ObjectKind {
	of := u.GroupVersionKind()
	if kind := KindOf(of.Group, of.Kind); kind.Is(anyRole) {
		return kind
	}
	return nil
}

func nameOf(u *unstructured.Unstructured) ObjectName {
	return ObjectName{u.GetKind(), u.GetNamespace(), u.GetName()}
}

// Labels returns the labels of an object.
func (o *ListedObject) Labels() map[string]string { return o.from.GetLabels() }

// jsonObject is an object or a part of one. Fields of an unexpected type read as absent.
type jsonObject map[string]any

func asObject(value any) jsonObject {
	fields, _ := value.(map[string]any)
	return fields
}

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

func (e jsonObject) value(fields ...string) any {
	value, _, err := unstructured.NestedFieldNoCopy(e, fields...)
	if err != nil {
		return nil
	}
	return value
}

func (e jsonObject) has(fields ...string) bool { return e.value(fields...) != nil }

func (e jsonObject) text(fields ...string) string {
	text, _ := e.value(fields...).(string)
	return text
}

func (e jsonObject) flag(fields ...string) bool {
	flag, _ := e.value(fields...).(bool)
	return flag
}

func (e jsonObject) number(fields ...string) (int64, bool) {
	switch number := e.value(fields...).(type) {
	case int64:
		return number, true
	case float64:
		return int64(number), true
	}
	return 0, false
}

// time reads a time in whole seconds; zero if invalid.
func (e jsonObject) time(fields ...string) time.Time {
	at, err := time.Parse(time.RFC3339, e.text(fields...))
	if err != nil {
		return time.Time{}
	}
	return at.UTC().Truncate(time.Second)
}

func (e jsonObject) object(fields ...string) jsonObject { return asObject(e.value(fields...)) }

func (e jsonObject) list(fields ...string) []jsonObject {
	list, _ := e.value(fields...).([]any)
	entries := make([]jsonObject, 0, len(list))
	for _, one := range list {
		if fields := asObject(one); fields != nil {
			entries = append(entries, fields)
		}
	}
	return entries
}

func (e jsonObject) texts(fields ...string) []string {
	list, _ := e.value(fields...).([]any)
	var texts []string
	for _, one := range list {
		text, _ := one.(string)
		texts = append(texts, text)
	}
	return texts
}
