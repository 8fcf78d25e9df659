package reconciler

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// applicationStatus requires that an Application is healthy and synced with its current spec, both determined after
// the last sync.
func applicationStatus(l *Listing, a *ListedObject) verdict.Status {
	since := cmp.Or(a.time("status", "health", "lastTransitionTime"), a.time("metadata", "creationTimestamp"))
	if stopped := a.stopped(time.Time{}); stopped.Verdict != "" {
		return stopped
	}
	sync, health := a.text("status", "sync", "status"), a.text("status", "health", "status")
	if wrong, at := applicationError(a); wrong != "" {
		return a.say(verdict.Failed, at, "%s", wrong)
	}
	if sync == "" || health == "" {
		return a.say(verdict.Progressing, since, "has no status yet")
	}
	if !isCompared(a) {
		return a.say(verdict.Progressing, since, "was changed after its status was written")
	}
	if said, ok := lastOperation(a); ok {
		return said
	}
	switch sync {
	case "Synced":
	case "OutOfSync":
		return a.say(verdict.Progressing, a.time("status", "reconciledAt"), "is out of sync%s", resourcesIn(a, "status", "OutOfSync"))
	default:
		return a.say(verdict.Unknown, a.time("status", "reconciledAt"), "does not know whether it is in sync")
	}
	finished := a.time("status", "operationState", "finishedAt")
	if a.time("status", "reconciledAt").Before(finished) {
		at := finished.UTC().Format(time.RFC3339)
		return a.say(verdict.Progressing, finished, "was synced at %s, and its health was determined before that", at)
	}
	message := a.text("status", "health", "message")
	if message != "" {
		message = ": " + message
	}
	if health == "Healthy" {
		return a.say(verdict.Ready, verdict.Latest(since, lastDeployed(a)), "is healthy")
	}
	state, isKnown := unhealthy[health]
	if !isKnown {
		return a.say(verdict.Unknown, since, "does not know its health%s", message)
	}
	return a.say(state.is, since, "%s%s%s", state.says, message, resourcesIn(a, "health", health))
}

var unhealthy = map[string]struct {
	is   verdict.Verdict
	says string
}{
	"Degraded":    {verdict.Failed, "is degraded"},
	"Progressing": {verdict.Progressing, "is progressing"},
	"Suspended":   {verdict.Progressing, "is suspended"},
	"Missing":     {verdict.Progressing, "has objects that do not exist"},
}

// applicationError returns the first error condition of an Application. It ignores the refusal of a sync that would
// remove everything, because running objects are unaffected.
func applicationError(a *ListedObject) (string, time.Time) {
	for _, one := range a.list("status", "conditions") {
		if kind := one.text("type"); strings.HasSuffix(kind, "Error") && !strings.Contains(one.text("message"), "auto-sync will wipe out") {
			return whyOf(one.text("message"), kind), one.time("lastTransitionTime")
		}
	}
	return "", time.Time{}
}

func lastOperation(a *ListedObject) (verdict.Status, bool) {
	started, message := a.time("status", "operationState", "startedAt"), a.text("status", "operationState", "message")
	phase := a.text("status", "operationState", "phase")
	retries, _ := a.number("status", "operationState", "retryCount")
	limit, _ := a.number("status", "operationState", "operation", "retry", "limit")
	switch isEndless := limit < 0; {
	case phase == "Running" && (retries == 1 || retries > 1 && !isEndless): // Argo CD reports when it gives up
		attempt := fmt.Sprintf("attempt %d", retries+1)
		if limit > 0 {
			attempt += fmt.Sprintf(" of %d", limit+1)
		}
		return a.say(verdict.Progressing, started, "could not be synced, and is tried again (%s): %s", attempt, whyOf(message, phase)), true
	case phase == "Failed" || phase == "Error" || phase == "Running" && retries > 1:
		since := verdict.Latest(started, a.time("status", "operationState", "finishedAt"))
		return a.say(verdict.Failed, since, "cannot be synced: %s", whyOf(message, phase)), true
	case phase == "Running" || phase == "Terminating":
		return a.say(verdict.Progressing, started, "is being synced: %s", whyOf(message, phase)), true
	case a.has("operation"):
		return a.say(verdict.Progressing, a.time("status", "reconciledAt"), "is about to be synced"), true
	}
	return verdict.Status{}, false
}

func isCompared(a *ListedObject) bool {
	compared := a.value("status", "sync", "comparedTo")
	if compared == nil {
		return true // older versions do not report it
	}
	for _, field := range []string{"source", "sources"} {
		if !sameValue(withoutDefaults(a.value("spec", field)), withoutDefaults(a.value("status", "sync", "comparedTo", field))) {
			return false
		}
	}
	was, is := a.value("status", "sync", "comparedTo", "destination"), a.value("spec", "destination")
	return was == nil || sameValue(withoutDefaults(is), withoutDefaults(was))
}

// withoutDefaults removes empty values, because Argo CD adds some, such as an empty `jsonnet`.
func withoutDefaults(value any) any {
	switch within := value.(type) {
	case map[string]any:
		left := map[string]any{}
		for key, one := range within {
			if one = withoutDefaults(one); one != nil {
				left[key] = one
			}
		}
		value = left
	case []any:
		left := make([]any, len(within))
		for i, one := range within {
			left[i] = withoutDefaults(one)
		}
		value = left
	case int64:
		value = float64(within)
	}
	if isEmpty(value) {
		return nil
	}
	return value
}

func sameValue(a, b any) bool { return reflect.DeepEqual(a, b) }

func resourcesIn(a *ListedObject, field, state string) string {
	names := namesOf(a.list("status", "resources"), func(resource jsonObject) (message string, is bool) {
		if field != "health" {
			return "", resource.text(field) == state
		}
		return resource.text("health", "message"), resource.text("health", "status") == state
	})
	if len(names) == 0 {
		return ""
	}
	return ": " + wording.List(names, 3)
}

func namesOf(resources []jsonObject, has func(resource jsonObject) (message string, is bool)) (names []string) {
	for _, resource := range resources {
		message, is := has(resource)
		if !is {
			continue
		}
		name := resourceName(resource).String()
		if message != "" {
			name += " (" + wording.OneLine(message) + ")"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func resourceName(resource jsonObject) ObjectName {
	return ObjectName{resource.text("kind"), resource.text("namespace"), resource.text("name")}
}

func lastDeployed(a *ListedObject) time.Time {
	var last time.Time
	for _, one := range a.list("status", "history") {
		last = verdict.Latest(last, one.time("deployedAt"))
	}
	return last
}

// applicationRunning returns the synced sources, or else the last entry of the history, which omits failed syncs.
func applicationRunning(_ *Listing, a *ListedObject) Running {
	if a.text("status", "sync", "status") == "Synced" {
		return applicationRevisions(a, a.object("status", "sync"), a.object("status", "sync", "comparedTo"))
	}
	var last jsonObject
	for _, one := range a.list("status", "history") {
		if last == nil || !one.time("deployedAt").Before(last.time("deployedAt")) {
			last = one
		}
	}
	return applicationRevisions(a, last, last)
}

func applicationRevisions(a *ListedObject, revisions, sources jsonObject) Running {
	texts, list := revisions.texts("revisions"), sources.list("sources")
	if len(texts) == 0 {
		texts, list = []string{revisions.text("revision")}, []jsonObject{sources.object("source")}
	}
	var all []Running
	for i, revision := range texts {
		if revision == "" {
			continue
		}
		var source jsonObject
		if i < len(list) {
			source = list[i]
		}
		is := Running{Revision: revision}
		switch ref := source.text("targetRevision"); {
		case source.text("chart") != "":
			is = Running{Version: revision, Chart: source.text("chart")}
		case ref != revision && ref != "HEAD" && !strings.ContainsAny(ref, "*^~<>=|, "): // a range does not tell the running version
			is.Version = ref
		}
		all = append(all, is)
	}
	if len(all) == 0 {
		return Running{}
	}
	return MergeRunning(append(all, Running{Images: strings.Join(a.texts("status", "summary", "images"), " ")})...)
}

func applicationRoot(l *Listing, a *ListedObject, at folder.Location, dir string) (Root, bool) {
	sources, several := applicationSources(a)
	for i, source := range sources {
		if source.text("chart") != "" || clean(source.text("path")) != dir || !readsBranch(source, at.Branch) {
			continue
		}
		r := Root{Applied: applicationApplied(l, a, i, several), SameRepository: SameRepository(source.text("repoURL"), at.URL)}
		destination := a.text("spec", "destination", "name")
		r.ToHub = (destination == "" || destination == HubName) && a.text("spec", "source", "directory", "include") != ""
		for _, resource := range a.list("status", "resources") {
			if name := resourceName(resource); r.ToHub && IsTemplated(name.Kind) {
				r.Makers = append(r.Makers, name)
			}
		}
		return r, true
	}
	return Root{}, false
}

func applicationSources(a *ListedObject) (sources []jsonObject, several bool) {
	if sources = a.list("spec", "sources"); len(sources) > 0 {
		return sources, true
	}
	return []jsonObject{a.object("spec", "source")}, false
}

func readsBranch(source jsonObject, branch string) bool {
	ref := source.text("targetRevision")
	return ref == "" || ref == "HEAD" || strings.TrimPrefix(ref, "refs/heads/") == branch
}

const noFolderArgo = "app path does not exist"

func applicationApplied(l *Listing, a *ListedObject, source int, several bool) Applied {
	revision := func(of jsonObject) string {
		text := of.text("revision")
		if list := of.texts("revisions"); several && source < len(list) {
			text = list[source]
		} else if several {
			text = ""
		}
		if !folder.IsCommit(text) {
			return ""
		}
		return text
	}
	is := Applied{Root: a.ObjectName, Status: applicationStatus(l, a), Compared: revision(a.object("status", "sync")), Hindered: a.hindered()}
	_, isSyncing := lastOperation(a)
	if is.Hindered.Verdict == "" && !isSyncing && isCompared(a) && a.text("status", "sync", "status") != "Synced" {
		is.Hindered = is.Status
	}
	wrong, _ := applicationError(a)
	is.NoFolder = strings.Contains(wrong, noFolderArgo)
	for _, one := range a.list("status", "history") {
		if commit := revision(one); commit != "" {
			is.History = append(is.History, Moment{commit, one.time("deployedAt")})
		}
	}
	slices.SortStableFunc(is.History, func(a, b Moment) int { return a.Time.Compare(b.Time) })
	if last := len(is.History) - 1; last >= 0 {
		is.Commit = is.History[last].Commit
	}
	if a.text("status", "sync", "status") == "Synced" && is.Compared != "" {
		is.Commit = is.Compared
	}
	is.Attempted = is.Compared
	phase := a.text("status", "operationState", "phase")
	if tried := revision(a.object("status", "operationState", "syncResult")); tried != "" && phase != "Succeeded" && phase != "" {
		is.Attempted = tried
		for _, resource := range a.list("status", "operationState", "syncResult", "resources") {
			switch resource.text("status") {
			case "Synced":
				is.Arrived = append(is.Arrived, resourceName(resource))
			case "SyncFailed":
				is.Failing = append(is.Failing, resourceName(resource))
			}
		}
	}
	if is.Attempted == is.Commit {
		is.Attempted, is.Arrived = "", nil
	}
	for _, resource := range a.list("status", "resources") {
		switch {
		case resource.flag("requiresPruning"):
			is.ToPrune = append(is.ToPrune, resourceName(resource))
		case resource.text("status") == "OutOfSync":
			is.OutOfSync = append(is.OutOfSync, resourceName(resource))
		}
		if resource.text("health", "status") == "Degraded" {
			is.Failing = append(is.Failing, resourceName(resource))
		}
	}
	slices.SortFunc(is.OutOfSync, CompareNames)
	slices.SortFunc(is.ToPrune, CompareNames)
	slices.SortFunc(is.Arrived, CompareNames)
	return is
}

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
