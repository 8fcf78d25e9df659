package observe

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/verdict"
)

// What an object is reconciled from, and what was made of it, is a chain of links: it is ready when each link has what
// the link before gives. A link that could not be read makes it unknown.

// sources are the names of the objects that an object gets its content from.
func (o *object) sources() []ObjectName {
	kind := reconciler.KindOf(o.group, o.Kind)
	if kind == nil {
		return nil
	}
	for _, reference := range kind.Sources {
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
func (o *objects) source(of *object) *object {
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
func (o *objects) linked(of *object, own verdict.Status, before int) verdict.Status {
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
		if own.Verdict == verdict.Ready {
			own = verdict.Worst(own, of.compared(source))
		}
		own = verdict.Worst(own, o.sourceStatus(source, own, before+1))
	}
	return own
}

// needsSource says whether an object is nothing without a source.
func (o *object) needsSource() bool {
	kind := reconciler.KindOf(o.group, o.Kind)
	return kind != nil && len(kind.Sources) > 0 && (!kind.Is(reconciler.Source) || o.Kind == "HelmChart")
}

// absent says what it means that an object that another one needs was not listed.
func (o *objects) absent(of *object, name ObjectName) verdict.Status {
	reason, unlisted := o.unlisted[name.Kind]
	switch kind := reconciler.KindNamed(name.Kind); {
	case unlisted:
		return of.say(verdict.Unknown, time.Time{}, "depends on %s, which cannot be read: %s", name, reason)
	case kind == nil || kind.Role == 0:
		return of.say(verdict.Unknown, time.Time{}, "depends on %s, and objects of this kind cannot be read", name)
	}
	return of.say(verdict.Progressing, time.Time{}, "depends on %s, which does not exist", name)
}

// compared says whether an object has what its source gives.
func (o *object) compared(source *object) verdict.Status {
	gives := source.gives()
	if gives == "" {
		return verdict.Status{Verdict: verdict.Ready} // the source's own status says that it has nothing yet
	}
	var has []string
	for _, field := range reconciler.KindOf(o.group, o.Kind).Has {
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
func (o *object) gives() string {
	kind := reconciler.KindOf(o.group, o.Kind)
	if kind == nil || kind.Gives == "" {
		return ""
	}
	return o.text(strings.Split(kind.Gives, ".")...)
}

// isIndexOnly reports whether a source has neither a status nor an artifact: charts in an OCI registry are found
// without an index.
func (o *object) isIndexOnly() bool {
	return o.Kind == "HelmRepository" && o.text("spec", "type") == "oci"
}

// sourceStatus is the effect of a source on the status of what is reconciled from it. A source that cannot be
// reached has no effect as long as it has an artifact of the wanted ref.
func (o *objects) sourceStatus(source *object, otherwise verdict.Status, before int) verdict.Status {
	if source.isIndexOnly() {
		return otherwise
	}
	own, hasWanted := source.ready(nil), source.hasWanted()
	if hasWanted && own.Verdict == verdict.Failed {
		own.Verdict = verdict.Ready
	}
	if source.Kind != "HelmChart" || !hasWanted { // which version of a chart is newest matters only where none is wanted
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

// isExact says whether the version of a chart is one version, and not a range of them.
func isExact(version string) bool {
	version = strings.TrimPrefix(version, "v")
	core, _, _ := strings.Cut(version, "-")
	core, _, _ = strings.Cut(core, "+")
	parts := strings.Split(core, ".")
	return len(parts) == 3 && !slices.ContainsFunc(parts, func(part string) bool {
		return part == "" || strings.Trim(part, "0123456789") != ""
	})
}
