package onboarding

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// SeenObject is an object on a cluster, now and after a dry run of an apply.
type SeenObject struct {
	Live *unstructured.Unstructured // nil if the cluster does not have it
	// DryRun is nil if the cluster does not have its kind or namespace yet.
	DryRun    *unstructured.Unstructured
	Conflicts []kube.Conflict // fields that other managers have changed or manage
	// Force reports that it must be applied by force: InspectOptions.Force is set, or all conflicts are changes of
	// fields that Flotilla has applied.
	Force  bool
	Err    error // why the cluster rejects the object
	NoKind bool  // the cluster does not have its kind
	// OtherCluster is the label of another cluster whose agent has the object, unless it may be taken over.
	OtherCluster string
}

// Inspection has the objects of an agent on one cluster.
type Inspection struct {
	UID  string // of the cluster
	Seen map[agent.ID]SeenObject
}

// InspectOptions configure [Inspect].
type InspectOptions struct {
	Force bool // takes over fields of other managers
	// SecretsUnknown means that the content of Secrets is unknown, as in a refresh. They get no dry run, and only their
	// managers reveal changes.
	SecretsUnknown bool
	FormerLabel    string // of the cluster under its former name
	// Known is the UID of the cluster at the last apply of Records.
	Known   string
	Records []Record
}

// Inspect reads objects and applies them as a dry run. It returns only errors about the whole cluster; SeenObject.Err
// has the others.
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

// inspectObject retries if a controller writes the object between its two requests.
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

// isCreated reports whether Flotilla has created or will create an object. A partial object belongs to others even if
// it did not exist before.
func isCreated(object *agent.StagedObject, live *unstructured.Unstructured, mark string) bool {
	return !object.Partial && (live == nil || createdHere(live, mark))
}

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

// isDrift reports whether the conflicts are updates of fields that Flotilla has applied. A manager that applies the
// same field wants its value.
func isDrift(live *unstructured.Unstructured, conflicts []kube.Conflict) bool {
	return live != nil && slices.ContainsFunc(live.GetManagedFields(), isOurEntry) &&
		!slices.ContainsFunc(conflicts, func(c kube.Conflict) bool { return !c.Updated && c.Manager != kube.FieldManager })
}

// FindAgents reads the agents of a cluster with [agent.Read].
func FindAgents(ctx context.Context, client *kube.ClusterClient, name string) (found []agent.Settings, refused []agent.Refused, err error) {
	var kinds []kube.ResourceKind
	for _, kind := range agent.Kinds() {
		kinds = append(kinds, listedAs(kind))
	}
	var live []*unstructured.Unstructured
	options := kube.ListOptions{LabelSelector: reconciler.ManagedLabel + "=" + reconciler.ManagedBy}
	for _, listing := range client.ListEach(ctx, kinds, options) {
		if listing.Err != nil {
			return nil, nil, listing.Err
		}
		live = append(live, listing.Items...)
	}
	found, refused = agent.Read(name, live)
	return found, refused, nil
}

// Recognize returns the records of an agent's objects as an apply would have left them.
func Recognize(objects []agent.StagedObject, look Inspection) []Record {
	var records []Record
	for i := range objects {
		live := look.Seen[objects[i].ID()].Live
		if live == nil {
			continue
		}
		record := RecordOf(&objects[i])
		record.UID, record.Created = string(live.GetUID()), isCreated(&objects[i], live, markOf(look.UID))
		records = append(records, record)
	}
	return records
}

const (
	// unidentified stands for a uid that the credentials may not read.
	unidentified = "unknown"
	// byObject is the prefix of a UID that stands for applied objects.
	byObject = "object/"
)

// markOf returns the value of the annotation on created objects.
func markOf(uid string) string {
	if strings.HasPrefix(uid, byObject) {
		return unidentified
	}
	return uid
}

// identify returns the uid of the namespace kube-system or, if the credentials may not read it, known while an object
// of the last apply has its uid.
func identify(ctx context.Context, cluster ClusterAPI, known string, records []Record) (uid string, err error) {
	system, err := cluster.Read(ctx, kube.Ref{APIVersion: "v1", Kind: "Namespace", Name: "kube-system"})
	switch {
	case kube.ReasonOf(err) == kube.ReasonForbidden:
	case err != nil:
		return "", err
	case system != nil:
		uid = string(system.GetUID())
	}
	if known != "" && (uid == "" || strings.HasPrefix(known, byObject)) {
		if isSame, err := hasAny(ctx, cluster, records); err != nil || isSame {
			return known, err
		}
	}
	return cmp.Or(uid, unidentified), nil
}

// hasAny reports whether one of the objects exists with its uid, or none can be read: nothing then shows another
// cluster.
func hasAny(ctx context.Context, cluster ClusterAPI, records []Record) (bool, error) {
	isRead := false
	for i := range records {
		if records[i].UID == "" {
			continue
		}
		live, err := cluster.Read(ctx, records[i].Ref)
		switch {
		case kube.ReasonOf(err) == kube.ReasonForbidden:
			continue
		case err != nil:
			return false, err
		case live != nil && string(live.GetUID()) == records[i].UID:
			return true, nil
		}
		isRead = true
	}
	return !isRead, nil
}
