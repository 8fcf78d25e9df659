package onboarding

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Wanted says what should be on the cluster of an agent, or on its hub.
type Wanted struct {
	Objects []agent.Object
	// Records are the objects of the last apply, and UID is the uid of the cluster that they were applied to.
	Records []Record
	UID     string
	// Force takes over fields that others manage.
	Force bool
	// Following says what to wait for after the apply; nil to wait for nothing.
	Following *Following
}

// Result is what an apply has done. Where Apply fails, it has what was applied until then.
type Result struct {
	Records []Record
	UID     string // of the cluster
	// Notes are sentences about objects that were not removed, and why.
	Notes []string
	// Changes are the changes that were made, as in "Secret a/b was applied", in their order.
	Changes []string
}

// Apply applies objects to a cluster. It looks at all of them first, and writes nothing where one of them cannot be
// applied, or a former one not be removed. Then it works stage by stage: definitions, until the API serves their kinds; namespaces; the rest, with the
// objects that follow the folders last. An object that is as wanted is not written. Objects of the last apply that are
// not wanted any more are removed at the end.
func Apply(ctx context.Context, cluster Cluster, wanted Wanted) (Result, error) {
	var result Result
	look, err := lookForKinds(ctx, cluster, wanted.Objects, LookOptions{Force: wanted.Force, Known: wanted.UID, Records: wanted.Records})
	if err != nil {
		return result, err
	}
	if err := checkFormer(ctx, cluster, wanted, look); err != nil {
		return result, err
	}
	result.UID = look.UID
	a := &applier{cluster: cluster, look: look, force: wanted.Force, defined: definedKinds(wanted.Objects)}
	for objects := wanted.Objects; len(objects) > 0; {
		count := sameStep(objects)
		records, err := a.step(ctx, objects[:count])
		result.Changes = a.changes.list
		if result.Records = append(result.Records, records...); err != nil {
			return result, err
		}
		objects = objects[count:]
	}
	result.UID = identifiedBy(look.UID, result.Records)
	if wanted.Following != nil {
		if err := wanted.Following.wait(ctx, cluster, wanted.Objects); err != nil {
			return result, err
		}
	}
	removed, err := removeFormer(ctx, cluster, wanted, look)
	result.Notes, result.Changes = removed.Notes, append(result.Changes, removed.Changes...)
	return result, err
}

// lookForKinds looks at the objects, and fails where one of them cannot be applied. Where all that is wrong is a kind that
// the API does not serve, it looks again: the definition of the kind may have been applied a moment ago.
func lookForKinds(ctx context.Context, cluster Cluster, objects []agent.Object, options LookOptions) (Look, error) {
	for try := 1; ; try++ {
		look, err := LookAt(ctx, cluster, objects, options)
		if err != nil {
			return Look{}, err
		}
		failures := FindFailures(objects, look)
		others := slices.ContainsFunc(failures, func(f *Failure) bool { return f.Cause != CauseNoKind })
		if len(failures) == 0 || others || try == kindAttempts || wait.For(ctx, time.Second) != nil {
			return look, failures.orNil()
		}
	}
}

// kindAttempts is how many times missing kinds are looked for, once a second.
const kindAttempts = 6

// sameStep is how many of the first objects are applied together.
func sameStep(objects []agent.Object) int {
	for i := range objects {
		if objects[i].Stage != objects[0].Stage || objects[i].Part != objects[0].Part {
			return i
		}
	}
	return len(objects)
}

// applier applies objects on one cluster.
type applier struct {
	cluster Cluster
	look    Look
	force   bool
	defined map[string]bool
	changes changeList
}

// step applies objects in parallel, and returns when all are applied and the API serves the kinds that they define.
func (a *applier) step(ctx context.Context, objects []agent.Object) ([]Record, error) {
	records, failures := make([]Record, len(objects)), make(Failures, len(objects))
	kube.Each(len(objects), func(i int) {
		record, err := a.one(ctx, &objects[i])
		if err != nil {
			failures[i] = failureOn(&objects[i], err)
			return
		}
		records[i] = record
	})
	records = slices.DeleteFunc(records, func(r Record) bool { return r.Name == "" })
	return records, failures.orNil()
}

func failureOn(object *agent.Object, err error) *Failure {
	if failure := FailuresOf(err)[0]; failure.Cause != CauseCluster {
		return failure
	}
	return failureOf(object, err)
}

// one applies one object.
func (a *applier) one(ctx context.Context, object *agent.Object) (Record, error) {
	seen := a.look.Seen[object.ID()]
	if isTerminating(seen.Live) {
		if blocker, err := untilGone(ctx, a.cluster, kube.RefOf(object.Unstructured), string(seen.Live.GetUID())); err != nil {
			return Record{}, overdue(
				ctx,
				object.ID().String(),
				fmt.Sprintf("%s is still being deleted%s: it can be applied once it has gone", object.ID(), blocker),
				err,
			)
		}
		seen = Seen{}
	}
	record := RecordOf(object)
	created := isCreated(object, seen.Live, markOf(a.look.UID))
	live := seen.Live
	if Find(object, seen).State != Same {
		applied, err := a.patch(ctx, object, created, seen)
		if err != nil {
			return Record{}, err
		}
		if created && seen.Live == nil && !applied.Created && !object.Shared { // it was created by another manager in between
			created = false
			if applied, err = a.patch(ctx, object, created, seen); err != nil {
				return Record{}, err
			}
		}
		a.changes.add("%s was applied", object.ID())
		live = applied.Object
		if without := withoutFields(addedFields(object, live)); without != nil {
			patched, err := a.cluster.Patch(ctx, kube.RefOf(object.Unstructured), without)
			if err != nil {
				return Record{}, err
			}
			if patched != nil {
				live = patched
			}
		}
	}
	record.UID, record.Created = string(live.GetUID()), created
	if object.Stage == agent.Definitions {
		return record, a.untilEstablished(ctx, object, live)
	}
	return record, nil
}

// patch applies an object. It tries again while the kind of the object was defined a moment ago and is not served yet.
func (a *applier) patch(ctx context.Context, object *agent.Object, created bool, seen Seen) (kube.Applied, error) {
	ready := prepared(object.Unstructured, created, markOf(a.look.UID))
	options := kube.ApplyOptions{Force: seen.Force || a.force}
	var applied kube.Applied
	err := poll(ctx, func() (bool, error) {
		var err error
		applied, err = a.cluster.Apply(ctx, ready, options)
		switch reason := kube.ReasonOf(err); {
		case reason == kube.ReasonNoKind && a.defined[object.GroupVersionKind().GroupKind().String()]:
			return false, nil
		case reason == kube.ReasonConflict && !options.Force:
			live, readErr := a.cluster.Read(ctx, kube.RefOf(object.Unstructured))
			if readErr != nil || !isDrift(live, kube.ConflictsOf(err)) {
				return false, err
			}
			options.Force = true
			return false, nil
		}
		return err == nil, err
	})
	if err != nil && ctx.Err() != nil {
		return applied, overdue(ctx, object.ID().String(), fmt.Sprintf("%s was not applied in time", object.ID()), nil)
	}
	return applied, err
}

// untilGone waits until an object that is being deleted has gone. blocker is what it waited for last, as " (…)".
func untilGone(ctx context.Context, cluster Cluster, ref kube.Ref, uid string) (blocker string, err error) {
	err = poll(ctx, func() (bool, error) {
		live, err := cluster.Read(ctx, ref)
		if err != nil || live == nil || string(live.GetUID()) != uid {
			return err == nil, err
		}
		blocker = blockerOf(live)
		return false, nil
	})
	return blocker, err
}

// blockerOf says what an object that is being deleted waits for, as " (…)"; "" where that is not known.
func blockerOf(live *unstructured.Unstructured) string {
	finalizers := live.GetFinalizers()
	switch {
	case len(finalizers) > 0:
		return fmt.Sprintf(" (it waits for what has set its finalizers: %s)", wording.OneLine(wording.List(finalizers, wording.Named)))
	case live.GetKind() != "Namespace":
		return ""
	}
	for _, condition := range conditionsOf(live) {
		if condition["status"] == "True" &&
			(condition["type"] == "NamespaceFinalizersRemaining" || condition["type"] == "NamespaceContentRemaining") {
			return fmt.Sprintf(" (%s)", wording.OneLine(fmt.Sprint(condition["message"])))
		}
	}
	return ""
}

// conditionsOf are the conditions in the status of an object.
func conditionsOf(live *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	conditions := make([]map[string]any, len(list))
	for i := range list {
		conditions[i], _ = list[i].(map[string]any)
	}
	return conditions
}

// untilEstablished waits until the API serves the kind of a definition.
func (a *applier) untilEstablished(ctx context.Context, object *agent.Object, live *unstructured.Unstructured) error {
	reason := ""
	err := poll(ctx, func() (bool, error) {
		if isEstablished(live) {
			return true, nil
		}
		found, err := a.cluster.Read(ctx, kube.RefOf(object.Unstructured))
		if err != nil {
			return false, err
		}
		if live = found; live == nil {
			live = &unstructured.Unstructured{Object: map[string]any{}}
		}
		reason = notAccepted(live)
		return isEstablished(live), nil
	})
	if err != nil {
		return overdue(ctx, object.ID().String(), fmt.Sprintf("%s is not established%s", object.ID(), reason), err)
	}
	return nil
}

func isEstablished(live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(conditionsOf(live), func(condition map[string]any) bool {
		return condition["type"] == "Established" && condition["status"] == "True"
	})
}

// notAccepted says why a definition is not served.
func notAccepted(live *unstructured.Unstructured) string {
	for _, condition := range conditionsOf(live) {
		if condition["status"] == "False" && condition["message"] != nil {
			return ": " + wording.OneLine(fmt.Sprint(condition["message"]))
		}
	}
	return ""
}

// poll calls ask until it returns true or an error, or the context ends.
func poll(ctx context.Context, ask func() (bool, error)) error {
	for interval := 50 * time.Millisecond; ; interval = min(2*interval, 2*time.Second) {
		isDone, err := ask()
		if err != nil || isDone {
			return err
		}
		if err := wait.For(ctx, interval); err != nil {
			return err
		}
	}
}
