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

// condition is one of the conditions of an object.
type condition struct {
	status, reason, message string
	changed                 time.Time // when the status changed, which from ready to ready it does not
	generation              int64     // that it is about; 0 where it does not say
}

// condition finds a condition; one without a status is none.
func (o *Object) condition(of string) (condition, bool) {
	for _, one := range o.list("status", "conditions") {
		if one.text("type") == of && one.text("status") != "" {
			generation, _ := one.number("observedGeneration")
			changed := one.time("lastTransitionTime")
			if changed.IsZero() {
				changed = one.time("lastUpdateTime") // which Rancher Fleet has instead
			}
			return condition{one.text("status"), one.text("reason"), one.text("message"), changed, generation}, true
		}
	}
	return condition{}, false
}

// say makes a status of an object from a verdict and a message. The object's name is the cluster's to choose, too: it may be
// longer than Kubernetes allows, or steer a terminal.
func (o *Object) say(is verdict.Verdict, since time.Time, format string, arguments ...any) verdict.Status {
	return verdict.Status{
		Verdict: is,
		Since:   since,
		Message: wording.OneLine(o.String()) + " " + wording.OneLine(fmt.Sprintf(format, arguments...)),
	}
}

// waitingReasons are those of conditions that are false because something else comes first.
var waitingReasons = []string{
	"Progressing", "ProgressingWithRetry", "DependencyNotReady", "SourceNotReady", "ArtifactNotReady", "NewRevision",
	"HealthCheckCanceled", "Initializing",
}

// ready is the status of an object by its conditions, as kstatus reads them but more strictly: without the
// condition Ready an object is not ready, and an error of the latest generation is a failure at once, also one
// that will be tried again. waits reports whether a condition waits for something else.
func (o *Object) ready(waits func(condition) bool) verdict.Status {
	ready, ok := o.condition("Ready")
	if o.text("metadata", "deletionTimestamp") != "" {
		return o.say(verdict.Progressing, o.time("metadata", "deletionTimestamp"), "is being deleted")
	}
	if o.flag("spec", "suspend") || o.flag("spec", "paused") {
		return o.say(verdict.Progressing, ready.changed, "is suspended")
	}
	if stalled, is := o.condition("Stalled"); is && stalled.status == "True" && o.isCurrent(stalled) {
		said := whyOf(stalled.message, stalled.reason)
		if ready.status == "False" && ready.message != "" && ready.message != stalled.message {
			said += ": " + ready.message
		}
		return o.say(verdict.Failed, stalled.changed, "has stalled: %s", said)
	}
	switch {
	case !ok:
		return o.say(verdict.Progressing, o.time("metadata", "creationTimestamp"), "has no status yet")
	case !o.isCurrent(ready):
		return o.say(verdict.Progressing, ready.changed, "was changed after its status was written")
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

// isCurrent reports whether a condition is about the present spec of the object.
func (o *Object) isCurrent(c condition) bool {
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

// progress is what an object that is not ready is doing.
func (o *Object) progress(ready condition) string {
	if doing, ok := o.condition("Reconciling"); ok && doing.status == "True" && doing.message != "" {
		return doing.message
	}
	return whyOf(ready.message, ready.reason)
}

// whyOf is the first of these texts that says why.
func whyOf(texts ...string) string {
	return cmp.Or(cmp.Or(texts...), "it gives no reason")
}
