package observe

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/reconciler"
)

// The API groups whose objects are read in ways of their own.
const (
	groupKustomize = "kustomize.toolkit.fluxcd.io"
	groupHelm      = "helm.toolkit.fluxcd.io"
	groupArgo      = "argoproj.io"
)

// ObjectName names an object of a kind that a reconciler has.
type ObjectName struct{ Kind, Namespace, Name string }

func (n ObjectName) String() string {
	if n.Namespace == "" {
		return n.Kind + " " + n.Name
	}
	return n.Kind + " " + n.Namespace + "/" + n.Name
}

func compareNames(a, b ObjectName) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// objects are those of one cluster, in order, each once.
type objects struct {
	all    []*object
	byName map[ObjectName]*object
	// unlisted are kinds of which nothing is known, by the reason.
	unlisted map[string]string
	// alone says that one object was read by itself, without those that it depends on.
	alone bool
}

// object is one of a cluster's objects. Fields with an unexpected type read as absent.
type object struct {
	ObjectName
	group string
	from  *unstructured.Unstructured
}

// index puts what a cluster listed in order. Objects of other kinds are left out.
func index(listed Listed) *objects {
	o := &objects{byName: map[ObjectName]*object{}, unlisted: listed.Unlisted}
	sorted := slices.DeleteFunc(slices.Clone(listed.Objects), func(u *unstructured.Unstructured) bool {
		return u == nil || u.GetName() == "" || !isRead(u)
	})
	// Of an object in two versions either says the same.
	slices.SortStableFunc(sorted, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(compareNames(nameOf(a), nameOf(b)), cmp.Compare(b.GetAPIVersion(), a.GetAPIVersion()))
	})
	for _, u := range sorted {
		name := nameOf(u)
		if o.byName[name] == nil {
			o.byName[name] = &object{name, u.GroupVersionKind().Group, u}
			o.all = append(o.all, o.byName[name])
		}
	}
	return o
}

// isRead says whether objects of a kind say something about what runs.
func isRead(u *unstructured.Unstructured) bool {
	of := u.GroupVersionKind()
	kind := reconciler.KindOf(of.Group, of.Kind)
	return kind != nil && kind.Role != 0
}

func nameOf(u *unstructured.Unstructured) ObjectName {
	return ObjectName{u.GetKind(), u.GetNamespace(), u.GetName()}
}

func (o *object) text(fields ...string) string {
	text, _, _ := unstructured.NestedString(o.from.Object, fields...)
	return text
}

func (o *object) flag(fields ...string) bool {
	flag, _, _ := unstructured.NestedBool(o.from.Object, fields...)
	return flag
}

func (o *object) number(fields ...string) (int64, bool) { return number(o.value(fields...)) }

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

func (o *object) value(fields ...string) any {
	value, _, err := unstructured.NestedFieldNoCopy(o.from.Object, fields...)
	if err != nil {
		return nil
	}
	return value
}

func (o *object) has(fields ...string) bool { return o.value(fields...) != nil }

// entry is an object in a list.
type entry map[string]any

func (e entry) text(fields ...string) string {
	text, _, _ := unstructured.NestedString(e, fields...)
	return text
}

func (e entry) time(fields ...string) time.Time { return parseTime(e.text(fields...)) }

// list reads a list of objects; what else is in it is left out.
func (o *object) list(fields ...string) []entry {
	list, _ := o.value(fields...).([]any)
	entries := make([]entry, 0, len(list))
	for _, one := range list {
		if fields, ok := one.(map[string]any); ok {
			entries = append(entries, fields)
		}
	}
	return entries
}

func (o *object) time(fields ...string) time.Time { return parseTime(o.text(fields...)) }

// parseTime reads a time in whole seconds; zero when it is none.
func parseTime(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at.UTC().Truncate(time.Second)
}
