package onboarding

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// SeenObject is an object on a cluster: its current content, and its content after a dry run of an apply.
type SeenObject struct {
	// Live is the current object; nil if the cluster does not have it.
	Live *unstructured.Unstructured
	// DryRun is the object after an apply; nil if no dry run was possible, because the cluster does not have its kind
	// or namespace yet.
	DryRun *unstructured.Unstructured
	// Conflicts are the fields that other managers have changed or manage.
	Conflicts []kube.Conflict
	// Force reports that it must be applied by force: all conflicts are changes of fields that Flotilla has applied,
	// or InspectOptions.Force is set.
	Force bool
	// Err is why the cluster rejects the object; nil if it does not.
	Err error
	// NoKind reports that the cluster does not have its kind.
	NoKind bool
	// OtherCluster is the label of another cluster whose agent has the object; "" if there is none, or if the object
	// may be taken over.
	OtherCluster string
}

// Inspection has the objects of an agent as they are on one cluster.
type Inspection struct {
	UID  string // uid of the cluster
	Seen map[agent.ID]SeenObject
}

// InspectOptions configure Inspect.
type InspectOptions struct {
	// Force takes over fields of other managers.
	Force bool
	// SecretsUnknown means that the wanted content of Secrets is unknown, as in a refresh. Secrets then get no dry
	// run, and only their managers reveal changes.
	SecretsUnknown bool
	// FormerLabel is the cluster's label under its former name; "" if it is not renamed.
	FormerLabel string
	// Known is the UID of the cluster at the last apply, and Records are the objects applied then.
	Known   string
	Records []Record
}

// Inspect reads objects and applies them as a dry run, without changes. It returns only errors that concern the whole
// cluster; SeenObject.Err has the others.
func Inspect(ctx context.Context, cluster ClusterAPI, objects []agent.StagedObject, options InspectOptions) (Inspection, error) {
	uid, err := identify(ctx, cluster, options.Known, options.Records)
	if err != nil {
		return Inspection{}, err
	}
	seen := make([]SeenObject, len(objects))
	err = forEach(len(objects), func(i int) (err error) {
		seen[i], err = inspectObject(ctx, cluster, &objects[i], markOf(uid), options)
		return err
	})
	if err != nil {
		return Inspection{}, err
	}
	look := Inspection{UID: uid, Seen: make(map[agent.ID]SeenObject, len(objects))}
	for i := range objects {
		look.Seen[objects[i].ID()] = seen[i]
	}
	return look, nil
}

// inspectObject inspects one object. If a controller writes it between the two requests, the result would show a
// false difference; inspectObject then retries.
func inspectObject(
	ctx context.Context, cluster ClusterAPI, object *agent.StagedObject, mark string, options InspectOptions,
) (SeenObject, error) {
	for try := 1; ; try++ {
		seen, err := inspectOnce(ctx, cluster, object, mark, options)
		if err != nil || try == inspectAttempts || seen.Live == nil || seen.DryRun == nil ||
			seen.Live.GetResourceVersion() == seen.DryRun.GetResourceVersion() {
			return seen, err
		}
	}
}

const inspectAttempts = 4

func inspectOnce(
	ctx context.Context, cluster ClusterAPI, object *agent.StagedObject, mark string, options InspectOptions,
) (SeenObject, error) {
	ref := kube.RefOf(object.Unstructured)
	live, err := cluster.Read(ctx, ref)
	if err != nil {
		return objectError(SeenObject{}, err)
	}
	seen := SeenObject{Live: live, OtherCluster: otherCluster(object, live, options)}
	if isTerminating(live) || options.SecretsUnknown && isSecret(object) {
		return seen, nil
	}
	if options.SecretsUnknown {
		object = withLiveCredentials(object, live)
	}
	ready := prepareForApply(object.Unstructured, isCreated(object, live, mark), mark)
	dryRun, err := cluster.Apply(ctx, ready, kube.ApplyOptions{DryRun: true})
	if kube.ReasonOf(err) == kube.ReasonConflict {
		seen.Conflicts = kube.ConflictsOf(err)
		if seen.Force = options.Force || isDrift(live, seen.Conflicts); seen.Force {
			dryRun, err = cluster.Apply(ctx, ready, kube.ApplyOptions{DryRun: true, Force: true})
		}
	}
	if err != nil {
		return objectError(seen, err)
	}
	seen.DryRun = dryRun.Object
	return seen, nil
}

// otherCluster returns the label of another cluster on an object; "" if there is none.
func otherCluster(object *agent.StagedObject, live *unstructured.Unstructured, options InspectOptions) string {
	if live == nil || options.Force {
		return ""
	}
	wanted, is := object.GetLabels()[reconciler.ClusterLabel], live.GetLabels()[reconciler.ClusterLabel]
	if wanted == "" || is == wanted || is == options.FormerLabel {
		return ""
	}
	return is
}

func isSecret(object *agent.StagedObject) bool {
	return object.Part == agent.Credential || object.GetKind() == "Secret" && object.GetAPIVersion() == "v1"
}

// isCreated reports whether Flotilla has created an object or will create it. A partial object, in which Flotilla
// sets only some fields, belongs to others even if it did not exist before.
func isCreated(object *agent.StagedObject, live *unstructured.Unstructured, mark string) bool {
	return !object.Partial && (live == nil || createdHere(live, mark))
}

// objectError stores an error about the object in seen, and returns errors about the cluster, such as a timeout.
func objectError(seen SeenObject, err error) (SeenObject, error) {
	switch kube.ReasonOf(err) {
	case kube.ReasonConflict, kube.ReasonRefused, kube.ReasonForbidden:
		seen.Err = err
	case kube.ReasonNoKind:
		seen.NoKind = true
	case kube.ReasonNoNamespace, kube.ReasonTerminating:
	default:
		return seen, err
	}
	return seen, nil
}

func isTerminating(live *unstructured.Unstructured) bool {
	return live != nil && live.GetDeletionTimestamp() != nil
}

// isDrift reports whether all conflicts are changes of fields that Flotilla has applied, made by hand or by a
// controller's update. A manager that applies the same field wants its value; that is not drift.
func isDrift(live *unstructured.Unstructured, conflicts []kube.Conflict) bool {
	if live == nil || !isOurs(live) {
		return false
	}
	return !slices.ContainsFunc(conflicts, func(c kube.Conflict) bool { return !c.Updated && c.Manager != kube.FieldManager })
}
