package reconciler

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// An ApplicationSet makes Applications. What it says of itself is about all that it makes, and not of which version of
// it: so an Application is compared with the template that it was made of.

// applicationSet says whether an ApplicationSet could make what it has to.
func (*Listing) applicationSet(set *Object) verdict.Status { return set.makes() }

func (o *Object) makes() verdict.Status {
	if at := o.time("metadata", "deletionTimestamp"); !at.IsZero() {
		return o.say(verdict.Progressing, at, "is being deleted")
	}
	if wrong, is := o.condition("ErrorOccurred"); is && wrong.status == "True" {
		return o.say(verdict.Failed, wrong.changed, "cannot make its Applications: %s", whyOf(wrong.message, wrong.reason))
	}
	done, is := o.condition("ResourcesUpToDate")
	switch {
	case !is:
		return o.say(verdict.Progressing, o.time("metadata", "creationTimestamp"), "has no status yet")
	case done.status != "True":
		return o.say(verdict.Progressing, done.changed, "has not made its Applications yet: %s", whyOf(done.message, done.reason))
	}
	return o.say(verdict.Ready, done.changed, "has made its Applications")
}

// applicationMade says whether an Application is as the ApplicationSet wants it that has made it.
func (o *Object) applicationMade(application *Object) verdict.Status {
	status := o.makes()
	same, exact := o.gave(application)
	switch {
	case status.Verdict == verdict.Failed && same && exact: // what it could not make is another one
		return verdict.Status{Verdict: verdict.Ready}
	case status.Verdict == verdict.Failed:
		return status
	case o.isPatching():
		return o.say(
			verdict.Unknown,
			time.Time{},
			"changes what it makes by more than its template, so %s cannot be compared with it",
			application,
		)
	case !same:
		return o.say(verdict.Progressing, time.Time{}, "has not given %s its present content yet", application)
	}
	return status
}

// isPatching says whether what an ApplicationSet makes may differ from its template.
func (o *Object) isPatching() bool {
	return o.has("spec", "templatePatch") || o.has("spec", "ignoreApplicationDifferences") ||
		deep.Holds(o.value("spec", "generators"), hasTemplate)
}

// hasTemplate says whether a generator has a template of its own, which is merged over the other.
func hasTemplate(generator any) bool { return len(entryOf(generator).object("template", "spec")) > 0 }

// gave says whether an Application has the content that the template of an ApplicationSet gives it. exact says that
// no parameters are in there, but in its destination.
func (o *Object) gave(application *Object) (same, exact bool) {
	same, exact = !o.isPatching(), true
	for _, field := range []string{"project", "source", "sources", "sourceHydrator", "destination"} {
		wanted, is := withoutDefaults(o.value("spec", "template", "spec", field)), withoutDefaults(application.value("spec", field))
		if field == "project" {
			wanted, is = cmp.Or(wanted, any("default")), cmp.Or(is, any("default"))
		}
		same = same && isMadeOf(is, wanted)
		exact = exact && (field == "destination" || !hasParameters(wanted))
	}
	return same, exact
}

// parameter is a parameter in a text of a template.
var parameter = regexp.MustCompile(`\{\{.*?\}\}`)

func hasParameter(text string) bool { return strings.Contains(text, "{{") }

func hasParameters(value any) bool {
	return deep.Holds(value, func(part any) bool {
		text, _ := part.(string)
		object, _ := part.(map[string]any)
		return hasParameter(text) || hasParametricKey(object)
	})
}

func hasParametricKey(object map[string]any) bool {
	for key := range object {
		if hasParameter(key) {
			return true
		}
	}
	return false
}

// isMadeOf says whether a value can have been made of a template. In a text with parameters only what is around them
// is compared.
func isMadeOf(value, template any) bool {
	switch template := template.(type) {
	case string:
		text, isText := value.(string)
		if !hasParameter(template) {
			return isText && text == template
		}
		parts := parameter.Split(template, -1)
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		matches, err := regexp.MatchString("(?s)^"+strings.Join(parts, ".*")+"$", text)
		return (isText || value == nil) && err == nil && matches
	case map[string]any:
		fields, is := value.(map[string]any)
		if !is {
			return false
		}
		for key, one := range template {
			if !hasParameter(key) && !isMadeOf(fields[key], one) {
				return false
			}
		}
		for key := range fields {
			if _, known := template[key]; !known && !hasParametricKey(template) {
				return false
			}
		}
		return true
	case []any:
		list, is := value.([]any)
		if !is || len(list) != len(template) {
			return false
		}
		for i := range list {
			if !isMadeOf(list[i], template[i]) {
				return false
			}
		}
		return true
	}
	return sameValue(value, template)
}
