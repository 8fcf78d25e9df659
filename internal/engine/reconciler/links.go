package reconciler

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

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
