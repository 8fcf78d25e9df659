package reconciler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Status returns the status of an object together with related objects.
func (l *Listing) Status(one *ListedObject) verdict.Status {
	if one.of.Status == nil {
		return one.ready(nil)
	}
	return one.of.Status(l, one)
}

// StatusOf returns the status of a single object.
func StatusOf(one *unstructured.Unstructured) verdict.Status {
	found := NewListing(Answer{Objects: []*unstructured.Unstructured{one}})
	found.alone = true
	if len(found.All) == 0 {
		return verdict.Status{Verdict: verdict.Unknown, Message: "the status of objects of this kind cannot be read"}
	}
	return found.Status(found.All[0])
}

// IsReconciled reports whether the object shows the verdict of the assignment whose folder has it or its maker.
func (o *ListedObject) IsReconciled() bool { return o.of.isReconciled() && o.of.Template == "" }

// Maker returns the object that created this one from a template, or else itself.
func (o *ListedObject) Maker() (name ObjectName, generated bool) {
	for _, owner := range o.from.GetOwnerReferences() {
		if IsTemplated(owner.Kind) && KindNamed(owner.Kind).MakesKind(o.Kind) {
			return ObjectName{owner.Kind, o.Namespace, owner.Name}, true
		}
	}
	return o.ObjectName, false
}

// Made reports whether an object matches the template of its maker.
func (l *Listing) Made(one *ListedObject, by ObjectName) verdict.Status {
	maker := l.byName[by]
	if maker == nil {
		return l.absent(one, by)
	}
	return maker.of.Made(maker, one)
}

// Makers returns the status of each object that creates others from a template.
func (l *Listing) Makers() map[ObjectName]verdict.Status {
	makers := map[ObjectName]verdict.Status{}
	for _, one := range l.All {
		if one.of.Template != "" {
			makers[one.ObjectName] = l.Status(one)
		}
	}
	return makers
}

// ByDestination groups the objects on a hub by the cluster they apply to, or by host label if they name its server.
func (l *Listing) ByDestination() (byCluster, byHost map[string]*Listing) {
	byCluster, byHost = map[string]*Listing{}, map[string]*Listing{}
	for _, one := range l.All {
		if one.of.Destination == "" {
			continue
		}
		field := strings.Split(one.of.Destination, ".")
		to, name := byCluster, one.text(field...)
		field[len(field)-1] = "server"
		if server := one.text(field...); name == "" && server != HubServer {
			to, name = byHost, one.Labels()[HostLabel]
		}
		if to[name] == nil {
			to[name] = &Listing{byName: l.byName, unlisted: l.unlisted}
		}
		to[name].All = append(to[name].All, one)
	}
	return byCluster, byHost
}

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

// Running is the applied content of an object. Unknown fields are "". Strings are bounded single lines. Equal values
// mean equal content.
type Running struct {
	// Version is the version of a chart, or the tag or branch of other content.
	Version string `json:"version,omitempty"`
	// Revision is the commit in hex, or a digest such as "sha256:<hex>".
	Revision string `json:"revision,omitempty"`
	// Chart is the name of a Helm chart, AppVersion the version of its application.
	Chart      string `json:"chart,omitempty"`
	AppVersion string `json:"app_version,omitempty"`
	// Images are the images of running containers, sorted and separated by spaces.
	Images string `json:"images,omitempty"`
}

const maxImages = 2048

// Compare orders values by their strings.
func (r *Running) Compare(other *Running) int {
	return cmp.Or(
		cmp.Compare(r.Version, other.Version), cmp.Compare(r.Revision, other.Revision), cmp.Compare(r.Chart, other.Chart),
		cmp.Compare(r.AppVersion, other.AppVersion), cmp.Compare(r.Images, other.Images),
	)
}

// Running returns the content of an object; zero if its kind does not report it.
func (l *Listing) Running(one *ListedObject) Running {
	if one.of.Running == nil {
		return Running{}
	}
	return MergeRunning(one.of.Running(l, one))
}

// MergeRunning joins the distinct strings of several values.
func MergeRunning(all ...Running) Running {
	join := func(of func(*Running) string) string {
		if len(all) == 1 {
			return wording.OneLine(of(&all[0]))
		}
		texts := make([]string, len(all))
		for i := range all {
			texts[i] = of(&all[i])
		}
		return wording.OneLine(strings.Join(distinct(texts), ", "))
	}
	var images []string
	for i := range all {
		images = append(images, strings.Fields(all[i].Images)...)
	}
	images = distinct(images)
	slices.Sort(images)
	return Running{
		Version:    join(func(r *Running) string { return r.Version }),
		Revision:   join(func(r *Running) string { return r.Revision }),
		Chart:      join(func(r *Running) string { return r.Chart }),
		AppVersion: join(func(r *Running) string { return r.AppVersion }),
		Images:     strings.Join(images, " "),
	}
}

func distinct(texts []string) []string {
	var found []string
	size := 0
	for _, text := range texts {
		if text = wording.OneLine(text); text == "" || slices.Contains(found, text) {
			continue
		}
		if size += len(text) + len(" "); size > maxImages {
			break
		}
		found = append(found, text)
	}
	return found
}
