package reconciler

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// What an object is reconciled from, and what was made of it, is a chain of links: it is ready when each link has what
// the link before gives. A link that could not be read makes it unknown.

// sources are the names of the objects that an object gets its content from.
func (o *Object) sources() []ObjectName {
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
				named := entry(value)
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

// valuesAt are what is at a path. A step that ends with "[]" is a list, of which each element counts.
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

// source is what an object gets its content from, where it is one object that was listed; else nil.
func (o *Listing) source(of *Object) *Object {
	if names := of.sources(); len(names) == 1 {
		return o.byName[names[0]]
	}
	return nil
}

// longestChain is how many objects can get their content from one another, in a row. Clusters may say that they do so
// in a circle.
const longestChain = 8

// linked is the status of an object together with what it gets its content from. before is how many objects get
// theirs from it, in a row.
func (o *Listing) linked(of *Object, own verdict.Status, before int) verdict.Status {
	switch {
	case o.alone:
		return own
	case before == longestChain:
		return verdict.Worst(own, of.say(verdict.Unknown, time.Time{}, "gets its content by way of too many objects"))
	}
	names := of.sources()
	if len(names) == 0 && of.needsSource() {
		return verdict.Worst(own, of.say(verdict.Unknown, time.Time{}, "does not say where its content comes from"))
	}
	for _, name := range names {
		source := o.byName[name]
		if source == nil {
			own = verdict.Worst(own, o.absent(of, name))
			continue
		}
		if o.anyRevision && name.Kind == "GitRepository" {
			continue
		}
		if own.Verdict == verdict.Ready {
			own = verdict.Worst(own, of.compared(source))
		}
		own = verdict.Worst(own, o.sourceStatus(source, own, before+1))
	}
	return own
}

// needsSource says whether an object is nothing without a source.
func (o *Object) needsSource() bool {
	return slices.ContainsFunc(o.of.Sources, func(reference Reference) bool { return !reference.Optional })
}

// absent says what it means that an object that another one needs was not listed.
func (o *Listing) absent(of *Object, name ObjectName) verdict.Status {
	reason, unlisted := o.unlisted[name.Kind]
	switch {
	case unlisted:
		return of.say(verdict.Unknown, time.Time{}, "depends on %s, which cannot be read: %s", name, reason)
	case !KindNamed(name.Kind).Is(anyRole):
		return of.say(verdict.Unknown, time.Time{}, "depends on %s, and objects of this kind cannot be read", name)
	}
	return of.say(verdict.Progressing, time.Time{}, "depends on %s, which does not exist", name)
}

// compared says whether an object has what its source gives.
func (o *Object) compared(source *Object) verdict.Status {
	gives := source.gives()
	if gives == "" {
		return verdict.Status{Verdict: verdict.Ready} // the source's own status says that it has nothing yet
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
		return o.say(verdict.Unknown, time.Time{}, "does not say what it has of %s", source)
	case slices.Contains(has, gives) || digest != "" && slices.Contains(has, digest):
		return verdict.Status{Verdict: verdict.Ready}
	}
	return o.say(verdict.Progressing, source.time("status", "artifact", "lastUpdateTime"), "has %s, and its source has %s", has[0], gives)
}

// gives is the revision that others get of a source; "" where it has none.
func (o *Object) gives() string {
	if o.of.Gives == "" {
		return ""
	}
	return o.text(strings.Split(o.of.Gives, ".")...)
}

// sourceStatus is the effect of a source on the status of what is reconciled from it. A source that cannot be
// reached has no effect as long as it has an artifact of the wanted ref.
func (o *Listing) sourceStatus(source *Object, otherwise verdict.Status, before int) verdict.Status {
	if source.of.Silent != nil && source.of.Silent(source) {
		return otherwise
	}
	own, hasWanted := source.ready(nil), source.of.Wanted != nil && source.of.Wanted(source)
	if hasWanted && own.Verdict == verdict.Failed {
		own.Verdict = verdict.Ready
	}
	if !source.needsSource() || !hasWanted { // which version of a chart is newest matters only where none is wanted
		own = o.linked(source, own, before)
	}
	if own.Verdict == verdict.Ready && source.gives() == "" {
		own = source.say(verdict.Progressing, own.Since, "has nothing yet")
	}
	if own.Verdict == verdict.Ready {
		return otherwise
	}
	return own
}

// madeBy are the objects that an object has made, as their labels say. Makers of one name can be in several namespaces.
func (o *Listing) madeBy(maker *Object) []*Object {
	var made []*Object
	for _, one := range o.All {
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
