// Package onboarding applies the objects of an agent to a cluster and removes them again. It tracks which fields
// differ, who else manages them, and which objects Flotilla has created. Its decisions are pure functions. "" and zero
// values mean none or unknown.
package onboarding

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// ClusterAPI is the access to a cluster, which *kube.ClusterClient implements.
type ClusterAPI interface {
	ObjectReader
	ObjectWriter
}

// ObjectReader reads objects and kinds.
type ObjectReader interface {
	Read(ctx context.Context, ref kube.Ref) (*unstructured.Unstructured, error)
	List(ctx context.Context, kind kube.ResourceKind, options kube.ListOptions) (kube.List, error)
	Resources(ctx context.Context) (found []kube.Resource, incomplete bool, err error)
}

// ObjectWriter changes objects, also as a dry run.
type ObjectWriter interface {
	Apply(ctx context.Context, object *unstructured.Unstructured, options kube.ApplyOptions) (kube.Applied, error)
	Patch(ctx context.Context, ref kube.Ref, patch map[string]any) (*unstructured.Unstructured, error)
	Delete(ctx context.Context, ref kube.Ref, uid string) error
	Try(ctx context.Context, verb string, ref kube.Ref) error
}

// Record is an applied object as stored in the state.
type Record struct {
	kube.Ref
	agent.Handling
	Type    string `json:"type,omitempty"` // label of the clusters that share it; "" for all
	UID     string `json:"uid,omitempty"`
	Created bool   `json:"made,omitempty"` // by Flotilla
}

// ID returns the object's identity.
func (r *Record) ID() agent.ID {
	return agent.ID{OnHub: r.OnHub, Group: r.Group(), Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// RecordOf returns the record of an object before it is applied.
func RecordOf(object *agent.StagedObject) Record {
	return Record{
		Ref: kube.RefOf(object.Unstructured), Handling: object.Handling, Type: object.GetLabels()[reconciler.TypeLabel],
	}
}

// createdAnnotation marks objects that Flotilla has created. Its value is the cluster's mark, so a copy on another
// cluster does not count.
const createdAnnotation = "flotilla.dev/made-on"

// forEach calls do in parallel and returns the error with the lowest index.
func forEach(count int, do func(i int) error) error {
	errs := make([]error, count)
	kube.Each(count, func(i int) { errs[i] = do(i) })
	return cmp.Or(errs...)
}

func createdHere(live *unstructured.Unstructured, mark string) bool {
	return live != nil && live.GetAnnotations()[createdAnnotation] == mark && mark != ""
}

func prepareForApply(object *unstructured.Unstructured, created bool, mark string) *unstructured.Unstructured {
	ready := object.DeepCopy()
	annotations := ready.GetAnnotations()
	delete(annotations, createdAnnotation)
	if created && mark != "" {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[createdAnnotation] = mark
	}
	ready.SetAnnotations(annotations)
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(ready.Object, "metadata", "annotations")
	}
	unstructured.RemoveNestedField(ready.Object, "status")
	unstructured.RemoveNestedField(ready.Object, "metadata", "creationTimestamp")
	encodeSecret(ready)
	return ready
}

// encodeSecret moves stringData to data: API servers do not track its managers.
func encodeSecret(object *unstructured.Unstructured) {
	if object.GetKind() != "Secret" || object.GetAPIVersion() != "v1" {
		return
	}
	texts, _, _ := unstructured.NestedStringMap(object.Object, "stringData")
	if len(texts) == 0 {
		return
	}
	data, _, _ := unstructured.NestedMap(object.Object, "data")
	if data == nil {
		data = map[string]any{}
	}
	for key, text := range texts {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	object.Object["data"] = data
	delete(object.Object, "stringData")
}

// Wanted has the objects that an agent needs on its cluster or hub.
type Wanted struct {
	Objects []agent.StagedObject
	// Records are the objects of the last apply, and UID is the cluster's uid then.
	Records   []Record
	UID       string
	Force     bool
	Following *Following // makes the apply wait; nil not to wait
}

// ApplyResult describes an apply, up to its failure if it fails.
type ApplyResult struct {
	Records []Record
	UID     string   // of the cluster
	Notes   []string // sentences about objects that were not removed, with the reason
	Changes []string // in order, as in "Secret a/b was applied"
}

// Apply applies objects to a cluster and removes objects of the last apply that are no longer wanted. It writes nothing
// if one of them cannot be applied or removed, and does not write objects that are already as wanted. It works in
// stages: definitions, until the API serves their kinds; namespaces; everything else, root objects last.
func Apply(ctx context.Context, cluster ClusterAPI, wanted Wanted) (ApplyResult, error) {
	var result ApplyResult
	options := InspectOptions{Force: wanted.Force, Known: wanted.UID, Records: wanted.Records}
	look, err := inspectUntilServed(ctx, cluster, wanted.Objects, options)
	if err != nil {
		return result, err
	}
	r, former := formerOf(cluster, wanted, look)
	if _, err := r.plan(ctx, former); err != nil {
		return result, err
	}
	result.UID = look.UID
	a := &applier{cluster: cluster, look: look, force: wanted.Force, defined: definedKinds(wanted.Objects)}
	for objects := wanted.Objects; len(objects) > 0; {
		count := 1 // of objects that may be applied in parallel
		for count < len(objects) && objects[count].Stage == objects[0].Stage && objects[count].Part == objects[0].Part {
			count++
		}
		records, err := a.applyStep(ctx, objects[:count])
		result.Changes = a.changes.list
		if result.Records = append(result.Records, records...); err != nil {
			return result, err
		}
		objects = objects[count:]
	}
	if look.UID == unidentified && len(result.Records) > 0 {
		result.UID = byObject + result.Records[0].UID
	}
	if wanted.Following != nil {
		if err := wanted.Following.wait(ctx, cluster, wanted.Objects); err != nil {
			return result, err
		}
	}
	r, former = formerOf(cluster, wanted, look) // without the notes of the first plan
	removed, err := r.planAndRemove(ctx, former)
	result.Notes, result.Changes = removed.Notes, append(result.Changes, removed.Changes...)
	return result, err
}

// inspectUntilServed waits for missing kinds, whose definitions may have just been applied.
func inspectUntilServed(ctx context.Context, cluster ClusterAPI, objects []agent.StagedObject, options InspectOptions) (Inspection, error) {
	for try := 1; ; try++ {
		look, err := Inspect(ctx, cluster, objects, options)
		if err != nil {
			return Inspection{}, err
		}
		failures := FindFailures(objects, look)
		others := slices.ContainsFunc(failures, func(f *Failure) bool { return f.Cause != CauseNoKind })
		if len(failures) == 0 || others || try == kindAttempts || wait.For(ctx, time.Second) != nil {
			return look, failures.orNil()
		}
	}
}

// kindAttempts are one second apart.
const kindAttempts = 6

type applier struct {
	cluster ClusterAPI
	look    Inspection
	force   bool
	defined map[string]bool
	changes changeList
}

// applyStep applies objects in parallel and waits for the kinds that they define.
func (a *applier) applyStep(ctx context.Context, objects []agent.StagedObject) ([]Record, error) {
	records, failures := make([]Record, len(objects)), make(Failures, len(objects))
	kube.Each(len(objects), func(i int) {
		record, err := a.applyObject(ctx, &objects[i])
		if err != nil {
			if failures[i] = FailuresOf(err)[0]; failures[i].Cause == CauseCluster {
				failures[i] = failureOf(&objects[i], err)
			}
			return
		}
		records[i] = record
	})
	records = slices.DeleteFunc(records, func(r Record) bool { return r.Name == "" })
	return records, failures.orNil()
}

func (a *applier) applyObject(ctx context.Context, object *agent.StagedObject) (Record, error) {
	seen := a.look.Seen[object.ID()]
	if isTerminating(seen.Live) {
		if blocker, err := untilGone(ctx, a.cluster, kube.RefOf(object.Unstructured), string(seen.Live.GetUID())); err != nil {
			id := object.ID().String()
			return Record{}, timeoutError(ctx, id, id+" is still being deleted"+blocker+": it can be applied once it has gone", err)
		}
		seen = SeenObject{}
	}
	record := RecordOf(object)
	created := isCreated(object, seen.Live, markOf(a.look.UID))
	live := seen.Live
	if compareObject(object, seen).State != Same {
		applied, err := a.patch(ctx, object, created, seen)
		if err != nil {
			return Record{}, err
		}
		if created && seen.Live == nil && !applied.Created && !object.Shared { // by another manager in the meantime
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

// patch applies an object. It waits for a recently defined kind.
func (a *applier) patch(ctx context.Context, object *agent.StagedObject, created bool, seen SeenObject) (kube.Applied, error) {
	ready := prepareForApply(object.Unstructured, created, markOf(a.look.UID))
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
		return applied, timeoutError(ctx, object.ID().String(), fmt.Sprintf("%s was not applied in time", object.ID()), nil)
	}
	return applied, err
}

func untilGone(ctx context.Context, cluster ClusterAPI, ref kube.Ref, uid string) (blocker string, err error) {
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

// blockerOf returns the reason why a deleted object still exists, as " (…)".
func blockerOf(live *unstructured.Unstructured) string {
	finalizers := live.GetFinalizers()
	switch {
	case len(finalizers) > 0:
		return fmt.Sprintf(" (it waits for what has set its finalizers: %s)", wording.OneLine(wording.List(finalizers, wording.Named)))
	case live.GetKind() != "Namespace":
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, one := range conditions {
		condition, _ := one.(map[string]any)
		if condition["status"] == "True" &&
			(condition["type"] == "NamespaceFinalizersRemaining" || condition["type"] == "NamespaceContentRemaining") {
			return fmt.Sprintf(" (%s)", wording.OneLine(fmt.Sprint(condition["message"])))
		}
	}
	return ""
}

func (a *applier) untilEstablished(ctx context.Context, object *agent.StagedObject, live *unstructured.Unstructured) error {
	reason := ""
	err := poll(ctx, func() (bool, error) {
		if live != nil {
			result, err := status.Compute(live)
			if err != nil || result.Status == status.CurrentStatus {
				return err == nil, err
			}
			reason = ": " + wording.OneLine(result.Message)
		}
		var err error
		live, err = a.cluster.Read(ctx, kube.RefOf(object.Unstructured))
		return false, err
	})
	if err != nil {
		return timeoutError(ctx, object.ID().String(), fmt.Sprintf("%s is not established%s", object.ID(), reason), err)
	}
	return nil
}

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
