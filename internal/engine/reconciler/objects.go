package reconciler

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
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

// An object, its sources and the objects it creates form a chain. It is ready if each link has the output of the
// previous one.

func (o *ListedObject) sources() []ObjectName {
	for _, reference := range o.of.Sources {
		var names []ObjectName
		for _, value := range valuesAt(o.from.Object, strings.Split(reference.Field, ".")) {
			name := ObjectName{Kind: reference.Kinds[0], Namespace: o.Namespace}
			switch value := value.(type) {
			case string:
				namespace, last, both := strings.Cut(value, "/")
				if name.Name = namespace; both {
					name.Namespace, name.Name = namespace, last
				}
			case map[string]any:
				named := jsonObject(value)
				name.Name = named.text("name")
				name.Kind = cmp.Or(named.text("kind"), name.Kind)
				name.Namespace = cmp.Or(named.text("namespace"), name.Namespace)
			}
			if name.Name != "" {
				names = append(names, name)
			}
		}
		if names != nil {
			return names
		}
	}
	return nil
}

// valuesAt returns the values at a path. A step "<field>[]" matches each element of a list.
func valuesAt(value any, path []string) []any {
	if len(path) == 0 {
		if value == nil {
			return nil
		}
		return []any{value}
	}
	fields, _ := value.(map[string]any)
	step, isList := strings.CutSuffix(path[0], "[]")
	if !isList {
		return valuesAt(fields[step], path[1:])
	}
	list, _ := fields[step].([]any)
	var values []any
	for _, one := range list {
		values = append(values, valuesAt(one, path[1:])...)
	}
	return values
}

func (l *Listing) source(of *ListedObject) *ListedObject {
	if names := of.sources(); len(names) == 1 {
		return l.byName[names[0]]
	}
	return nil
}

// longestChain stops at cycles, which a cluster may report.
const longestChain = 8

// linked adds the status of an object's sources to its own. before is the number of links before it.
func (l *Listing) linked(of *ListedObject, own verdict.Status, before int) verdict.Status {
	switch {
	case l.alone:
		return own
	case before == longestChain:
		return verdict.Worst(own, of.say(verdict.Unknown, time.Time{}, "gets its content by way of too many objects"))
	}
	names := of.sources()
	if len(names) == 0 && of.needsSource() {
		return verdict.Worst(own, of.say(verdict.Unknown, time.Time{}, "does not say where its content comes from"))
	}
	for _, name := range names {
		source := l.byName[name]
		if source == nil {
			own = verdict.Worst(own, l.absent(of, name))
			continue
		}
		if l.anyRevision && name.Kind == "GitRepository" {
			continue
		}
		if own.Verdict == verdict.Ready {
			own = verdict.Worst(own, of.compared(source))
		}
		own = verdict.Worst(own, l.sourceStatus(source, own, before+1))
	}
	return own
}

func (o *ListedObject) needsSource() bool {
	return slices.ContainsFunc(o.of.Sources, func(reference Reference) bool { return !reference.Optional })
}

// absent returns the status of an object whose dependency was not listed.
func (l *Listing) absent(of *ListedObject, name ObjectName) verdict.Status {
	reason, unlisted := l.unlisted[name.Kind]
	switch {
	case unlisted:
		return of.say(verdict.Unknown, time.Time{}, "depends on %s, which cannot be read: %s", name, reason)
	case !KindNamed(name.Kind).Is(anyRole):
		return of.say(verdict.Unknown, time.Time{}, "depends on %s, and objects of this kind cannot be read", name)
	}
	return of.say(verdict.Progressing, time.Time{}, "depends on %s, which does not exist", name)
}

func (o *ListedObject) compared(source *ListedObject) verdict.Status {
	gives := source.gives()
	if gives == "" {
		return verdict.Status{Verdict: verdict.Ready} // the source's own status reports that it has no output yet
	}
	var has []string
	for _, field := range o.of.Has {
		for _, value := range valuesAt(o.from.Object, strings.Split(field, ".")) {
			if text, ok := value.(string); ok && text != "" {
				has = append(has, text)
			}
		}
	}
	_, digest, _ := strings.Cut(gives, "@")
	switch {
	case len(has) == 0:
		return o.say(verdict.Unknown, time.Time{}, "reports no revision of %s", source)
	case slices.Contains(has, gives) || digest != "" && slices.Contains(has, digest):
		return verdict.Status{Verdict: verdict.Ready}
	}
	return o.say(verdict.Progressing, source.time("status", "artifact", "lastUpdateTime"), "has %s, and its source has %s", has[0], gives)
}

func (o *ListedObject) gives() string {
	if o.of.Gives == "" {
		return ""
	}
	return o.text(strings.Split(o.of.Gives, ".")...)
}

// sourceStatus returns the effect of a source on its consumer: none if it is unreachable but has an artifact of the
// wanted ref.
func (l *Listing) sourceStatus(source *ListedObject, otherwise verdict.Status, before int) verdict.Status {
	if source.of.Silent != nil && source.of.Silent(source) {
		return otherwise
	}
	own, hasWanted := source.ready(nil), source.of.Wanted != nil && source.of.Wanted(source)
	if hasWanted && own.Verdict == verdict.Failed {
		own.Verdict = verdict.Ready
	}
	if !source.needsSource() || !hasWanted { // the newest chart version matters only if no exact version is wanted
		own = l.linked(source, own, before)
	}
	if own.Verdict == verdict.Ready && source.gives() == "" {
		own = source.say(verdict.Progressing, own.Since, "has nothing yet")
	}
	if own.Verdict == verdict.Ready {
		return otherwise
	}
	return own
}

// madeBy returns the objects that a maker created. Makers in different namespaces may share a name.
func (l *Listing) madeBy(maker *ListedObject) []*ListedObject {
	var made []*ListedObject
	for _, one := range l.All {
		if !maker.of.MakesKind(one.Kind) {
			continue
		}
		labels, namespace := one.Labels(), one.Namespace
		if key := maker.of.NamespaceLabel; key != "" {
			namespace = labels[key]
		}
		if labels[maker.of.Label] == maker.Name && namespace == maker.Namespace {
			made = append(made, one)
		}
	}
	return made
}
