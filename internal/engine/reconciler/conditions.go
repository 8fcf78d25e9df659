package reconciler

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

type condition struct {
	status, reason, message string
	changed                 time.Time // last transition of the status; unchanged while it stays ready
	generation              int64     // observed generation; 0 if not reported
}

func (o *ListedObject) condition(of string) (condition, bool) {
	for _, one := range o.list("status", "conditions") {
		if one.text("type") == of && one.text("status") != "" {
			generation, _ := one.number("observedGeneration")
			changed := one.time("lastTransitionTime")
			if changed.IsZero() {
				changed = one.time("lastUpdateTime") // Rancher Fleet has only this one
			}
			return condition{one.text("status"), one.text("reason"), one.text("message"), changed, generation}, true
		}
	}
	return condition{}, false
}

// say builds a status. It cleans names too, because a cluster controls them.
func (o *ListedObject) say(is verdict.Verdict, since time.Time, format string, arguments ...any) verdict.Status {
	return verdict.Status{
		Verdict: is,
		Since:   since,
		Message: wording.OneLine(o.String()) + " " + wording.OneLine(fmt.Sprintf(format, arguments...)),
	}
}

// waitingReasons are the reasons of objects that wait.
var waitingReasons = []string{
	"Progressing", "ProgressingWithRetry", "DependencyNotReady", "SourceNotReady", "ArtifactNotReady", "NewRevision",
	"HealthCheckCanceled", "Initializing",
}

// ready evaluates conditions like kstatus, but requires the condition Ready, and an error of the latest generation is
// a failure even if it will be retried. waits recognizes conditions that wait for another object.
func (o *ListedObject) ready(waits func(condition) bool) verdict.Status {
	ready, has := o.condition("Ready")
	if stopped := o.stopped(ready.changed); stopped.Verdict != "" {
		return stopped
	}
	if stalled, is := o.condition("Stalled"); is && stalled.status == "True" && o.isCurrent(stalled) {
		said := whyOf(stalled.message, stalled.reason)
		if ready.status == "False" && ready.message != "" && ready.message != stalled.message {
			said += ": " + ready.message
		}
		return o.say(verdict.Failed, stalled.changed, "has stalled: %s", said)
	}
	switch pending := o.pending(ready, has); {
	case pending.Verdict != "":
		return pending
	case ready.status == "False" && !slices.Contains(waitingReasons, ready.reason) && (waits == nil || !waits(ready)):
		return o.say(verdict.Failed, ready.changed, "is not ready: %s", whyOf(ready.message, ready.reason))
	case ready.status != "True":
		return o.say(verdict.Progressing, ready.changed, "is not ready yet: %s", o.progress(ready))
	}
	result, err := status.Compute(o.from)
	switch {
	case err != nil:
		return o.say(verdict.Unknown, ready.changed, "has conditions that cannot be read: %s", err)
	case result.Status != status.CurrentStatus:
		return o.say(verdict.Progressing, ready.changed, "is not ready yet: %s", result.Message)
	}
	return o.say(verdict.Ready, ready.changed, "is ready")
}

// stopped returns the status of an object that is being deleted or suspended, else none.
func (o *ListedObject) stopped(since time.Time) verdict.Status {
	switch {
	case o.has("metadata", "deletionTimestamp"):
		return o.say(verdict.Progressing, o.time("metadata", "deletionTimestamp"), "is being deleted")
	case o.flag("spec", "suspend") || o.flag("spec", "paused"):
		return o.say(verdict.Progressing, since, "is suspended")
	}
	return verdict.Status{}
}

// pending returns the status of an object whose condition is absent or outdated, else none.
func (o *ListedObject) pending(c condition, has bool) verdict.Status {
	switch {
	case !has:
		return o.say(verdict.Progressing, o.time("metadata", "creationTimestamp"), "has no status yet")
	case !o.isCurrent(c):
		return o.say(verdict.Progressing, c.changed, "was changed after its status was written")
	}
	return verdict.Status{}
}

func (o *ListedObject) isCurrent(c condition) bool {
	generation, known := o.number("metadata", "generation")
	observed, has := o.number("status", "observedGeneration")
	switch {
	case !known:
		return true
	case c.generation != 0:
		return c.generation >= generation
	case has:
		return observed >= generation
	}
	return true
}

func (o *ListedObject) progress(ready condition) string {
	if doing, ok := o.condition("Reconciling"); ok && doing.status == "True" && doing.message != "" {
		return doing.message
	}
	return whyOf(ready.message, ready.reason)
}

func whyOf(texts ...string) string {
	return cmp.Or(cmp.Or(texts...), "it gives no reason")
}
