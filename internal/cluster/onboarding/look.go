package onboarding

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// Seen is one object on a cluster: as it is now, and as a dry run says that it would be.
type Seen struct {
	// Live is the object as it is now; nil when the cluster does not have it.
	Live *unstructured.Unstructured
	// DryRun is the object as it would be after an apply; nil where no dry run was possible, since the cluster does not
	// have its kind or its namespace yet.
	DryRun *unstructured.Unstructured
	// Conflicts are the fields that other managers have changed or manage.
	Conflicts []kube.Conflict
	// Force says that it must be applied by force: because all conflicts are changes of fields that Flotilla has
	// applied, or because LookOptions.Force is set.
	Force bool
	// Err is why the cluster refuses the object; nil where it does not.
	Err error
	// NoKind says that the cluster does not have its kind.
	NoKind bool
	// OtherCluster is the label of another cluster whose agent has the object; "" if none has, or it may be taken over.
	OtherCluster string
}

// Look is what was read of an agent's objects on one cluster.
type Look struct {
	UID  string // of the cluster
	Seen map[agent.ID]Seen
}

// LookOptions say how LookAt reads the objects.
type LookOptions struct {
	// Force takes over fields that others manage.
	Force bool
	// SecretsUnknown says that the wanted content of Secrets is not known, as in a refresh: there is no dry run of them,
	// and only their managers show whether they were changed.
	SecretsUnknown bool
	// FormerLabel is the label of the cluster under the name that it had before; "" if it is not renamed.
	FormerLabel string
	// Known is the UID of the cluster at the last apply, and Records are the objects that were applied then.
	Known   string
	Records []Record
}

// LookAt reads objects and applies them as a dry run. It changes nothing. An error is one
// of the cluster as a whole; what the cluster says about one object is in Seen.Err.
func LookAt(ctx context.Context, cluster Cluster, objects []agent.Object, options LookOptions) (Look, error) {
	uid, err := identify(ctx, cluster, options.Known, options.Records)
	if err != nil {
		return Look{}, err
	}
	seen := make([]Seen, len(objects))
	err = each(len(objects), func(i int) (err error) {
		seen[i], err = lookAt(ctx, cluster, &objects[i], markOf(uid), options)
		return err
	})
	if err != nil {
		return Look{}, err
	}
	look := Look{UID: uid, Seen: make(map[agent.ID]Seen, len(objects))}
	for i := range objects {
		look.Seen[objects[i].ID()] = seen[i]
	}
	return look, nil
}

// lookAt looks at one object. A controller may write it between the two requests, which would be taken for a difference:
// then it looks again.
func lookAt(ctx context.Context, cluster Cluster, object *agent.Object, mark string, options LookOptions) (Seen, error) {
	for try := 1; ; try++ {
		seen, err := lookOnce(ctx, cluster, object, mark, options)
		if err != nil || try == lookAttempts || seen.Live == nil || seen.DryRun == nil ||
			seen.Live.GetResourceVersion() == seen.DryRun.GetResourceVersion() {
			return seen, err
		}
	}
}

const lookAttempts = 4

func lookOnce(ctx context.Context, cluster Cluster, object *agent.Object, mark string, options LookOptions) (Seen, error) {
	ref := kube.RefOf(object.Unstructured)
	live, err := cluster.Read(ctx, ref)
	if err != nil {
		return objectError(Seen{}, err)
	}
	seen := Seen{Live: live, OtherCluster: otherCluster(object, live, options)}
	if isTerminating(live) || options.SecretsUnknown && isSecret(object) {
		return seen, nil
	}
	if options.SecretsUnknown {
		object = withLiveCredentials(object, live)
	}
	ready := prepared(object.Unstructured, isCreated(object, live, mark), mark)
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

// otherCluster returns the label of another cluster that an object has; "" if it has none.
func otherCluster(object *agent.Object, live *unstructured.Unstructured, options LookOptions) string {
	if live == nil || options.Force {
		return ""
	}
	wanted, is := object.GetLabels()[reconciler.ClusterLabel], live.GetLabels()[reconciler.ClusterLabel]
	if wanted == "" || is == wanted || is == options.FormerLabel {
		return ""
	}
	return is
}

// isSecret says whether an object may hold a credential.
func isSecret(object *agent.Object) bool {
	return object.Part == agent.Credential || object.GetKind() == "Secret" && object.GetAPIVersion() == "v1"
}

// isCreated says whether Flotilla has created an object, or will create it. A partial object, of which Flotilla sets
// only some fields, belongs to others, even where it was not there before.
func isCreated(object *agent.Object, live *unstructured.Unstructured, mark string) bool {
	return !object.Partial && (live == nil || createdHere(live, mark))
}

// objectError keeps an error about the object in what was seen, and returns one that is about the cluster, such as a timeout.
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

// isDrift says whether all conflicts are changes of what Flotilla has applied, made by hand or by a controller that
// updates. A manager that uses server-side apply for the same field wants it so: that is no drift.
func isDrift(live *unstructured.Unstructured, conflicts []kube.Conflict) bool {
	if live == nil || !isOurs(live) {
		return false
	}
	return !slices.ContainsFunc(conflicts, func(c kube.Conflict) bool { return !c.Updated && c.Manager != kube.FieldManager })
}
