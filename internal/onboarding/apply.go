package onboarding

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/wait"
)

// Clusters are those that an agent's objects are for.
type Clusters map[agent.Where]Cluster

// applyOrder are the clusters in the order in which they are written: a hub reaches what is on the cluster already.
var applyOrder = []agent.Where{agent.OnCluster, agent.OnHub}

// Wanted is what is to be on the clusters of an agent.
type Wanted struct {
	Objects []agent.Object
	// Records are what was put there last, and UIDs which clusters those were.
	Records []Record
	UIDs    map[agent.Where]string
	// Force takes over what others manage.
	Force bool
	// Following is what is waited for; nil for not waiting until the folders have been followed.
	Following *Following
}

// Result is what was put onto the clusters.
type Result struct {
	Records []Record
	UIDs    map[agent.Where]string
	// Notes are sentences about what was left where it is, and why.
	Notes []string
}

// Apply puts objects onto their clusters: looks at all of them first, and writes nothing where one of them cannot be.
// Then stage by stage: definitions, until the API knows their kinds; namespaces; the rest, what follows the folders
// last. What is there as it shall be is not written. Former objects that are wanted no more go at the end.
func Apply(ctx context.Context, clusters Clusters, wanted Wanted) (Result, error) {
	result := Result{UIDs: map[agent.Where]string{}}
	looks := map[agent.Where]Look{}
	var failures Failures
	for _, where := range applyOrder {
		objects := objectsOn(wanted.Objects, where)
		cluster := clusters[where]
		if cluster == nil || len(objects) == 0 && wanted.UIDs[where] == "" {
			continue
		}
		look, found, err := lookForKinds(ctx, cluster, where, objects, LookOptions{Force: wanted.Force})
		if err != nil {
			return result, err
		}
		looks[where], result.UIDs[where] = look, look.UID
		failures = append(failures, found...)
	}
	if err := failures.orNil(); err != nil {
		return result, err
	}
	defined := definedKinds(wanted.Objects)
	for _, where := range applyOrder {
		objects := objectsOn(wanted.Objects, where)
		for len(objects) > 0 {
			count := sameStep(objects)
			a := &applier{cluster: clusters[where], look: looks[where], force: wanted.Force, defined: defined}
			records, err := a.step(ctx, objects[:count])
			if result.Records = append(result.Records, records...); err != nil {
				return result, err
			}
			objects = objects[count:]
		}
	}
	if wanted.Following != nil {
		if err := wanted.Following.wait(ctx, clusters, wanted.Objects); err != nil {
			return result, err
		}
	}
	notes, err := removeFormer(ctx, clusters, wanted, result.UIDs)
	result.Notes = notes
	return result, err
}

// lookForKinds looks, again where nothing is amiss but a kind that is not there: whoever brings it may have done so a moment
// ago.
func lookForKinds(ctx context.Context, cluster Cluster, where agent.Where, objects []agent.Object, options LookOptions) (Look, Failures, error) {
	for try := 1; ; try++ {
		look, err := LookAt(ctx, cluster, where, objects, options)
		if err != nil {
			return Look{}, nil, err
		}
		failures := FindFailures(where, objects, look)
		isMissing := slices.ContainsFunc(failures, func(f *Failure) bool { return f.Cause == CauseNoKind })
		others := slices.ContainsFunc(failures, func(f *Failure) bool { return f.Cause != CauseNoKind })
		if !isMissing || others || try == kindAttempts {
			return look, failures, nil
		}
		if wait.For(ctx, time.Second) != nil {
			return look, failures, nil
		}
	}
}

// kindAttempts is how often it is looked for kinds, once a second.
const kindAttempts = 6

// sameStep is how many of the first objects are applied at once.
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
}

// step applies objects at once, and returns when all are there and the API knows the kinds among them.
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
	if failure, ok := asFailure(object.Where, err).(*Failure); ok && failure.Cause != CauseCluster { //nolint:errorlint // made here, never wrapped
		return failure
	}
	return failureOf(object, err)
}

// one applies one object.
func (a *applier) one(ctx context.Context, object *agent.Object) (Record, error) {
	seen := a.look.Seen[object.ID()]
	if isTerminating(seen.Live) {
		if err := a.untilGone(ctx, object, string(seen.Live.GetUID())); err != nil {
			return Record{}, err
		}
		seen = Seen{}
	}
	record := RecordOf(object)
	created := isCreated(object, seen.Live, a.look.UID)
	live := seen.Live
	if Find(object, seen).State != Same {
		applied, err := a.patch(ctx, object, created, seen)
		if err != nil {
			return Record{}, err
		}
		if created && seen.Live == nil && !applied.Created && !object.Shared { // somebody else has made it in between
			created = false
			if applied, err = a.patch(ctx, object, created, seen); err != nil {
				return Record{}, err
			}
		}
		live = applied.Object
	}
	record.UID, record.Created = string(live.GetUID()), created
	if object.Stage == agent.Definitions {
		return record, a.untilEstablished(ctx, object, live)
	}
	return record, nil
}

// patch applies an object; again while its kind was defined a moment ago and is not served yet.
func (a *applier) patch(ctx context.Context, object *agent.Object, created bool, seen Seen) (kube.Applied, error) {
	ready := prepared(object.Unstructured, created, a.look.UID)
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
		return applied, overdue(ctx, object.Where, object.ID().String(), fmt.Sprintf("%s was not applied in time", object.ID()), nil)
	}
	return applied, err
}

// untilGone waits until an object that is being deleted has gone.
func (a *applier) untilGone(ctx context.Context, object *agent.Object, uid string) error {
	blocker := ""
	err := poll(ctx, func() (bool, error) {
		live, err := a.cluster.Read(ctx, kube.RefOf(object.Unstructured))
		if err != nil || live == nil || string(live.GetUID()) != uid {
			return err == nil, err
		}
		blocker = blockerOf(live)
		return false, nil
	})
	if err != nil {
		return overdue(ctx, object.Where, object.ID().String(), fmt.Sprintf("%s is still being deleted%s: it can be applied once it has gone", object.ID(), blocker), err)
	}
	return nil
}

// blockerOf says for whom an object that is being deleted waits.
func blockerOf(live *unstructured.Unstructured) string {
	finalizers := live.GetFinalizers()
	if live.GetKind() == "Namespace" && len(finalizers) == 0 {
		conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
		for _, one := range conditions {
			condition, _ := one.(map[string]any)
			if condition["status"] == "True" && (condition["type"] == "NamespaceFinalizersRemaining" || condition["type"] == "NamespaceContentRemaining") {
				return fmt.Sprintf(" (%v)", condition["message"])
			}
		}
		return ""
	}
	if len(finalizers) == 0 {
		return ""
	}
	return fmt.Sprintf(" (its finalizers %s wait for who set them)", strings.Join(finalizers, ", "))
}

// untilEstablished waits until the API knows the kinds of a definition.
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
		return overdue(ctx, object.Where, object.ID().String(), fmt.Sprintf("%s is not established%s", object.ID(), reason), err)
	}
	return nil
}

func isEstablished(live *unstructured.Unstructured) bool {
	return conditionIs(live, "Established", "True")
}

// notAccepted says why a definition is not served.
func notAccepted(live *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, one := range conditions {
		if condition, _ := one.(map[string]any); condition["status"] == "False" && condition["message"] != nil {
			return fmt.Sprintf(": %v", condition["message"])
		}
	}
	return ""
}

func conditionIs(live *unstructured.Unstructured, kind, status string) bool {
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(one any) bool {
		condition, _ := one.(map[string]any)
		return condition["type"] == kind && condition["status"] == status
	})
}

// poll asks until the answer is yes, an error, or the end of the context.
func poll(ctx context.Context, ask func() (bool, error)) error {
	for interval := 50 * time.Millisecond; ; interval = min(2*interval, 2*time.Second) {
		result, err := ask()
		if err != nil || result {
			return err
		}
		if err := wait.For(ctx, interval); err != nil {
			return err
		}
	}
}
