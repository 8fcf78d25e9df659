package onboarding

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/kube"
)

// Seen is what a cluster has of one object, and what it would make of it.
type Seen struct {
	// Live is the object as it is; nil when it is not there.
	Live *unstructured.Unstructured
	// DryRun is what the cluster would make of it, by a dry run; nil where that could not be tried: its kind, or its
	// namespace, is not there yet.
	DryRun *unstructured.Unstructured
	// Conflicts are fields that others have changed or manage.
	Conflicts []kube.Conflict
	// Force says that it must be applied by force, since what is in the way are changes of what is ours, or because
	// that is asked for.
	Force bool
	// Err is why the cluster refuses the object; nil where it does not.
	Err error
	// NoKind says that the cluster does not have its kind.
	NoKind bool
}

// Look is what a cluster has of an agent's objects.
type Look struct {
	// UID identifies the cluster.
	UID  string
	Seen map[agent.ID]Seen
}

// LookOptions say how it is looked at objects.
type LookOptions struct {
	// Force takes over what others manage.
	Force bool
	// SecretsUnknown says that nobody knows what is in Secrets: only who changed them is looked at.
	SecretsUnknown bool
}

// LookAt reads the objects that are for one cluster and tries what would become of them. Nothing is changed. The error is one of the
// cluster as a whole.
func LookAt(ctx context.Context, cluster Cluster, where agent.Where, objects []agent.Object, options LookOptions) (Look, error) {
	objects = objectsOn(objects, where)
	uid, err := Identify(ctx, cluster)
	if err != nil {
		return Look{}, asFailure(where, err)
	}
	seen, errs := make([]Seen, len(objects)), make([]error, len(objects))
	kube.Each(len(objects), func(i int) { seen[i], errs[i] = lookAt(ctx, cluster, &objects[i], uid, options) })
	look := Look{UID: uid, Seen: make(map[agent.ID]Seen, len(objects))}
	for i := range objects {
		if errs[i] != nil {
			return Look{}, asFailure(where, errs[i])
		}
		look.Seen[objects[i].ID()] = seen[i]
	}
	return look, nil
}

// lookAt looks at one object. What the cluster says about the object is in what was seen; what it says of itself, such
// as that it does not answer, is an error.
func lookAt(ctx context.Context, cluster Cluster, object *agent.Object, uid string, options LookOptions) (Seen, error) {
	ref := kube.RefOf(object.Unstructured)
	live, err := cluster.Read(ctx, ref)
	if err != nil {
		return objectError(Seen{}, err)
	}
	seen := Seen{Live: live}
	if isTerminating(live) || options.SecretsUnknown && isSecret(object) {
		return seen, nil
	}
	ready := prepared(object.Unstructured, isCreated(object, live, uid), uid)
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

// isSecret says whether an object may hold a credential.
func isSecret(object *agent.Object) bool {
	return object.Part == agent.Credential || object.GetKind() == "Secret" && object.GetAPIVersion() == "v1"
}

// isCreated says whether an object is one that Flotilla made, or will make. One of which only some fields are ours belongs
// to others, whoever was first.
func isCreated(object *agent.Object, live *unstructured.Unstructured, uid string) bool {
	return !object.Partial && (live == nil || createdHere(live, uid))
}

// objectError tells what a cluster says of an object from what it says of itself.
func objectError(seen Seen, err error) (Seen, error) {
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

// isDrift says whether conflicts are but changes of what Flotilla has applied: made by hand, or by who writes without
// applying. Whoever applies the same field has a will of his own.
func isDrift(live *unstructured.Unstructured, conflicts []kube.Conflict) bool {
	if live == nil || !isOurs(live) {
		return false
	}
	return !slices.ContainsFunc(conflicts, func(c kube.Conflict) bool { return !c.Updated && c.Manager != kube.FieldManager })
}

// objectsOn are the objects that are for one cluster.
func objectsOn(objects []agent.Object, where agent.Where) []agent.Object {
	var there []agent.Object
	for _, object := range objects {
		if object.Where == where {
			there = append(there, object)
		}
	}
	return there
}
