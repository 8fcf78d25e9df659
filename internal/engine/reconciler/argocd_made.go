package reconciler

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// The conditions of an ApplicationSet cover all its Applications and name no generation. Each Application is
// therefore compared with the template.

func applicationSetStatus(_ *Listing, set *ListedObject) verdict.Status {
	if stopped := set.stopped(time.Time{}); stopped.Verdict != "" {
		return stopped
	}
	if wrong, is := set.condition("ErrorOccurred"); is && wrong.status == "True" {
		return set.say(verdict.Failed, wrong.changed, "cannot make its Applications: %s", whyOf(wrong.message, wrong.reason))
	}
	done, is := set.condition("ResourcesUpToDate")
	switch {
	case !is:
		return set.say(verdict.Progressing, set.time("metadata", "creationTimestamp"), "has no status yet")
	case done.status != "True":
		return set.say(verdict.Progressing, done.changed, "has not made its Applications yet: %s", whyOf(done.message, done.reason))
	}
	return set.say(verdict.Ready, done.changed, "has made its Applications")
}

func compareApplication(set *ListedObject, application *ListedObject) verdict.Status {
	status := applicationSetStatus(nil, set)
	same, exact := matchesTemplate(set, application)
	switch {
	case status.Verdict == verdict.Failed && same && exact: // another Application caused the failure
		return verdict.Status{Verdict: verdict.Ready}
	case status.Verdict == verdict.Failed:
		return status
	case isPatching(set):
		const format = "changes what it makes by more than its template, so %s cannot be compared with it"
		return set.say(verdict.Unknown, time.Time{}, format, application)
	case !same:
		return set.say(verdict.Progressing, time.Time{}, "has not given %s its present content yet", application)
	}
	return status
}

func isPatching(set *ListedObject) bool {
	return set.has("spec", "templatePatch") || set.has("spec", "ignoreApplicationDifferences") ||
		deep.Holds(set.value("spec", "generators"), hasTemplate)
}

func hasTemplate(generator any) bool { return len(asObject(generator).object("template", "spec")) > 0 }

// matchesTemplate reports whether an Application has the content of its ApplicationSet's template. exact means that
// only the destination has parameters.
func matchesTemplate(set *ListedObject, application *ListedObject) (same, exact bool) {
	same, exact = !isPatching(set), true
	for _, field := range []string{"project", "source", "sources", "sourceHydrator", "destination"} {
		wanted, is := withoutDefaults(set.value("spec", "template", "spec", field)), withoutDefaults(application.value("spec", field))
		if field == "project" {
			wanted, is = cmp.Or(wanted, any("default")), cmp.Or(is, any("default"))
		}
		same = same && isMadeOf(is, wanted)
		exact = exact && (field == "destination" || !hasParameters(wanted))
	}
	return same, exact
}

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

// isMadeOf reports whether a template can produce the value. Parameters match any text.
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
		return is && slices.EqualFunc(list, template, isMadeOf)
	}
	return sameValue(value, template)
}
