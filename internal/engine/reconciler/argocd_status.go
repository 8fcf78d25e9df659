package reconciler

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// application is the status of an Argo CD Application: it is ready when it is healthy and synced, both for its
// present spec, and both determined after the last sync.
func (o *Listing) application(a *Object) verdict.Status {
	since := a.time("status", "health", "lastTransitionTime")
	if since.IsZero() {
		since = a.time("metadata", "creationTimestamp")
	}
	if at := a.time("metadata", "deletionTimestamp"); !at.IsZero() {
		return a.say(verdict.Progressing, at, "is being deleted")
	}
	sync, health := a.text("status", "sync", "status"), a.text("status", "health", "status")
	if wrong, at := a.applicationError(); wrong != "" {
		return a.say(verdict.Failed, at, "%s", wrong)
	}
	if sync == "" || health == "" {
		return a.say(verdict.Progressing, since, "has no status yet")
	}
	if !a.isCompared() {
		return a.say(verdict.Progressing, since, "was changed after its status was written")
	}
	if said, ok := a.operation(); ok {
		return said
	}
	switch sync {
	case "Synced":
	case "OutOfSync":
		return a.say(verdict.Progressing, a.time("status", "reconciledAt"), "is out of sync%s", a.which("status", "OutOfSync"))
	default:
		return a.say(verdict.Unknown, a.time("status", "reconciledAt"), "does not know whether it is in sync")
	}
	if reconciled, finished := a.time("status", "reconciledAt"), a.time("status", "operationState", "finishedAt"); reconciled.Before(
		finished,
	) {
		return a.say(
			verdict.Progressing,
			finished,
			"was synced at %s, and its health was determined before that",
			finished.UTC().Format(time.RFC3339),
		)
	}
	message := a.text("status", "health", "message")
	if message != "" {
		message = ": " + message
	}
	switch health {
	case "Healthy":
		return a.say(verdict.Ready, verdict.Latest(since, a.deployed()), "is healthy")
	case "Degraded":
		return a.say(verdict.Failed, since, "is degraded%s%s", message, a.which("health", "Degraded"))
	case "Progressing":
		return a.say(verdict.Progressing, since, "is progressing%s%s", message, a.which("health", "Progressing"))
	case "Suspended":
		return a.say(verdict.Progressing, since, "is suspended%s%s", message, a.which("health", "Suspended"))
	case "Missing":
		return a.say(verdict.Progressing, since, "has objects that do not exist%s%s", message, a.which("health", "Missing"))
	}
	return a.say(verdict.Unknown, since, "does not know its health%s", message)
}

// applicationError is the error among an Application's conditions; warnings do not count, nor does the message
// that a sync would remove everything, since what runs has no error then.
func (o *Object) applicationError() (string, time.Time) {
	for _, one := range o.list("status", "conditions") {
		if kind := one.text("type"); strings.HasSuffix(kind, "Error") && !strings.Contains(one.text("message"), "auto-sync will wipe out") {
			return whyOf(one.text("message"), kind), one.time("lastTransitionTime")
		}
	}
	return "", time.Time{}
}

// operation is the status of the last sync, unless it has succeeded.
func (o *Object) operation() (verdict.Status, bool) {
	started, message := o.time("status", "operationState", "startedAt"), o.text("status", "operationState", "message")
	phase := o.text("status", "operationState", "phase")
	retries, _ := o.number("status", "operationState", "retryCount")
	limit, _ := o.number("status", "operationState", "operation", "retry", "limit")
	switch isEndless := limit < 0; {
	case phase == "Running" && (retries == 1 || retries > 1 && !isEndless): // it says when it gives up
		attempt := fmt.Sprintf("attempt %d", retries+1)
		if limit > 0 {
			attempt += fmt.Sprintf(" of %d", limit+1)
		}
		return o.say(verdict.Progressing, started, "could not be synced, and is tried again (%s): %s", attempt, whyOf(message, phase)), true
	case phase == "Failed" || phase == "Error" || phase == "Running" && retries > 1:
		return o.say(
			verdict.Failed,
			verdict.Latest(started, o.time("status", "operationState", "finishedAt")),
			"cannot be synced: %s",
			whyOf(message, phase),
		), true
	case phase == "Running" || phase == "Terminating":
		return o.say(verdict.Progressing, started, "is being synced: %s", whyOf(message, phase)), true
	case o.has("operation"):
		return o.say(verdict.Progressing, o.time("status", "reconciledAt"), "is about to be synced"), true
	}
	return verdict.Status{}, false
}

// isCompared reports whether the status is about the present spec of the Application.
func (o *Object) isCompared() bool {
	compared := o.value("status", "sync", "comparedTo")
	if compared == nil {
		return true // older versions do not say
	}
	for _, field := range []string{"source", "sources"} {
		if !sameValue(withoutDefaults(o.value("spec", field)), withoutDefaults(o.value("status", "sync", "comparedTo", field))) {
			return false
		}
	}
	was, is := o.value("status", "sync", "comparedTo", "destination"), o.value("spec", "destination")
	return was == nil || sameValue(withoutDefaults(is), withoutDefaults(was))
}

// withoutDefaults leaves out what is empty: Argo CD writes an empty `jsonnet` where nothing was.
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

// which names the objects of an Application that are in a state, where it says so.
func (o *Object) which(field, state string) string {
	var names []string
	for _, resource := range o.list("status", "resources") {
		is := resource.text(field)
		if field == "health" {
			is = resource.text("health", "status")
		}
		if is == state {
			name := resourceName(resource).String()
			if message := resource.text("health", "message"); field == "health" && message != "" {
				name += " (" + wording.OneLine(message) + ")"
			}
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return ": " + wording.List(names, 3)
}

func resourceName(resource entry) ObjectName {
	return ObjectName{resource.text("kind"), resource.text("namespace"), resource.text("name")}
}

// deployed is when an Application was synced last with something new.
func (o *Object) deployed() time.Time {
	var last time.Time
	for _, one := range o.list("status", "history") {
		last = verdict.Latest(last, one.time("deployedAt"))
	}
	return last
}

// applicationRunning is what an Application has on its cluster: what it is in sync with, else what was synced last. A sync
// that has failed is not in the history.
func (*Listing) applicationRunning(a *Object) Running {
	if a.text("status", "sync", "status") == "Synced" {
		return a.runningOf(a.object("status", "sync"), a.object("status", "sync", "comparedTo"))
	}
	var last entry
	for _, one := range a.list("status", "history") {
		if last == nil || !one.time("deployedAt").Before(last.time("deployedAt")) {
			last = one
		}
	}
	return a.runningOf(last, last)
}

// runningOf is what the revisions of the sources of an Application name, with the images of its containers.
func (o *Object) runningOf(revisions, sources entry) Running {
	texts, list := revisions.texts("revisions"), sources.list("sources")
	if len(texts) == 0 {
		texts, list = []string{revisions.text("revision")}, []entry{sources.object("source")}
	}
	var all []Running
	for i, revision := range texts {
		if revision == "" {
			continue
		}
		var source entry
		if i < len(list) {
			source = list[i]
		}
		is := Running{Revision: revision}
		switch ref := source.text("targetRevision"); {
		case source.text("chart") != "":
			is = Running{Version: revision, Chart: source.text("chart")}
		case ref != revision && ref != "HEAD" && !strings.ContainsAny(ref, "*^~<>=|, "): // a range says nothing of what runs
			is.Version = ref
		}
		all = append(all, is)
	}
	if len(all) == 0 {
		return Running{}
	}
	return Together(append(all, Running{Images: strings.Join(o.texts("status", "summary", "images"), " ")})...)
}

// applicationRoot is an Application that follows a folder.
func (o *Listing) applicationRoot(a *Object, at Location, folder string) (Root, bool) {
	sources, several := a.applicationSources()
	for i, source := range sources {
		if source.text("chart") != "" || clean(source.text("path")) != folder || !source.isOfBranch(at.Branch) {
			continue
		}
		r := Root{Applied: o.argoApplied(a, i, several), SameRepository: SameRepository(source.text("repoURL"), at.URL)}
		destination := a.text("spec", "destination", "name")
		r.ToHub = (destination == "" || destination == "in-cluster") && a.text("spec", "source", "directory", "include") != ""
		for _, resource := range a.list("status", "resources") {
			if name := resourceName(resource); r.ToHub && IsTemplated(name.Kind) {
				r.Makers = append(r.Makers, name)
			}
		}
		return r, true
	}
	return Root{}, false
}

// applicationSources are the sources of an Application, which has one, or a list of several.
func (o *Object) applicationSources() (sources []entry, several bool) {
	if sources = o.list("spec", "sources"); len(sources) > 0 {
		return sources, true
	}
	return []entry{o.object("spec", "source")}, false
}

// isOfBranch says whether a source of an Application reads a branch, or leaves that to the repository.
func (e entry) isOfBranch(branch string) bool {
	ref := e.text("targetRevision")
	return ref == "" || ref == "HEAD" || strings.TrimPrefix(ref, "refs/heads/") == branch
}

// noFolderArgo is the message of Argo CD about a folder that does not exist.
const noFolderArgo = "app path does not exist"

// argoApplied is what a root Application has applied. Its sync status is about a commit that may be newer
// than the one that it has applied.
func (o *Listing) argoApplied(a *Object, source int, several bool) Applied {
	revision := func(of entry) string {
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
	is := Applied{Root: a.ObjectName, Status: o.application(a), Compared: revision(a.object("status", "sync")), Hindered: a.hindered()}
	_, isSyncing := a.operation()
	if is.Hindered.Verdict == "" && !isSyncing && a.isCompared() && a.text("status", "sync", "status") != "Synced" {
		is.Hindered = is.Status
	}
	wrong, _ := a.applicationError()
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
