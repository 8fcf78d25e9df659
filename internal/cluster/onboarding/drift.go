package onboarding

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// ObjectState is the difference between an object and the applied one.
type ObjectState string

// The states of objects.
const (
	Same        ObjectState = "same"
	Gone        ObjectState = "gone"      // not on the cluster
	Changed     ObjectState = "changed"   // has other content
	Unmanaged   ObjectState = "unmanaged" // has the content, but not managed by Flotilla
	Foreign     ObjectState = "foreign"   // another manager has some of its fields
	Terminating ObjectState = "terminating"
	Refused     ObjectState = "refused"
)

// ObjectDrift is the state of an object that should be on the cluster.
type ObjectDrift struct {
	State  ObjectState `json:"state"`
	Fields []string    `json:"fields,omitempty"` // paths of fields that differ or that others manage
	By     []string    `json:"by,omitempty"`     // their field managers, if known
}

func compareObject(object *agent.StagedObject, seen SeenObject) ObjectDrift {
	managers, fields := splitConflicts(seen.Conflicts)
	switch {
	case kube.ReasonOf(seen.Err) == kube.ReasonConflict:
		return ObjectDrift{State: Foreign, Fields: fields, By: managers}
	case seen.Err != nil:
		return ObjectDrift{State: Refused}
	case seen.Live == nil:
		return ObjectDrift{State: Gone}
	case isTerminating(seen.Live):
		return ObjectDrift{State: Terminating}
	case seen.DryRun == nil && isSecret(object):
		if lost := lostData(prepareForApply(object.Unstructured, false, ""), seen.Live); len(lost) > 0 {
			return ObjectDrift{State: Changed, Fields: lost}
		}
		return ObjectDrift{State: Same}
	case seen.DryRun == nil:
		return ObjectDrift{State: Gone} // its kind was removed, and the object with it
	}
	differences := Differences(seen.Live, seen.DryRun)
	for _, field := range addedFields(object, seen.Live) {
		differences, managers = append(differences, field.Path), append(managers, managersOf(seen.Live, field.Steps())...)
	}
	if len(differences) > 0 {
		slices.Sort(differences)
		slices.Sort(managers)
		return ObjectDrift{State: Changed, Fields: differences, By: slices.Compact(managers)}
	}
	if !reflect.DeepEqual(ownedFields(seen.Live), ownedFields(seen.DryRun)) {
		return ObjectDrift{State: Unmanaged}
	}
	return ObjectDrift{State: Same}
}

func splitConflicts(conflicts []kube.Conflict) (managers, fields []string) {
	for _, conflict := range conflicts {
		managers, fields = append(managers, conflict.Manager), append(fields, conflict.Field)
	}
	slices.Sort(managers)
	slices.Sort(fields)
	return slices.Compact(managers), slices.Compact(fields)
}

// String returns a predicate such as "is gone"; "" for an object as applied.
func (f ObjectDrift) String() string {
	by := ""
	if len(f.By) > 0 {
		by = ", by " + wording.List(wording.Quoted(f.By), wording.Named)
	}
	switch f.State {
	case Gone:
		return "is gone"
	case Changed:
		return wording.List(f.Fields, wording.Named) + " changed" + by
	case Foreign:
		return wording.List(f.Fields, wording.Named) + " is managed by " + wording.List(wording.Quoted(f.By), wording.Named)
	case Unmanaged:
		return "is not managed by Flotilla any more"
	case Terminating:
		return "is being deleted"
	case Refused:
		return "is refused by the cluster"
	}
	return ""
}

// Line returns a line about an object.
func (f ObjectDrift) Line(id agent.ID) string {
	if f.State == Changed || f.State == Foreign {
		return id.String() + ": " + f.String()
	}
	return id.String() + " " + f.String()
}

// Drift has the objects of an agent that are not as applied.
type Drift struct {
	UID      string                 `json:"uid,omitempty"`      // of the cluster
	Findings map[string]ObjectDrift `json:"findings,omitempty"` // by name of the object
}

// FindDrift returns the drift of an agent on a cluster.
func FindDrift(objects []agent.StagedObject, look Inspection) Drift {
	drift := Drift{UID: look.UID, Findings: map[string]ObjectDrift{}}
	for i := range objects {
		id := objects[i].ID()
		if finding := compareObject(&objects[i], look.Seen[id]); finding.State != Same {
			drift.Findings[id.String()] = finding
		}
	}
	return drift
}

// Changes describes an apply in lines: removals, additions, changes of the configuration, drift. before are the objects
// of the last apply.
func Changes(before, after []agent.StagedObject, drift map[string]ObjectDrift, records []Record) []string {
	former, wanted := byID(before), byID(after)
	var removed, added, changed, drifted []string
	installed := 0
	for i := range records {
		if _, stays := wanted[records[i].ID()]; !stays {
			switch id := records[i].ID().String(); {
			case records[i].Partial:
				removed = append(removed, id+" loses what Flotilla has set in it")
			case records[i].Created:
				removed = append(removed, id+" is removed")
			default:
				removed = append(removed, id+" is left, since it was there before")
			}
		}
	}
	for i := range after {
		id := after[i].ID()
		old, was := former[id]
		switch finding, isDrift := drift[id.String()]; {
		case !was && after[i].Part == agent.Install:
			installed++
		case !was:
			added = append(added, id.String()+" is applied")
		case isDrift:
			drifted = append(drifted, finding.Line(id))
		default:
			if fields := Differences(old.Unstructured, after[i].Unstructured); len(fields) > 0 {
				changed = append(changed, id.String()+": "+wording.List(fields, wording.Named)+" "+wording.OneOrMany(len(fields), "changes", "change"))
			}
		}
	}
	if installed > 0 {
		added = append([]string{"install: " + wording.Count(installed, "object is", "objects are") + " applied"}, added...)
	}
	slices.Sort(removed)
	return slices.Concat(removed, added, changed, drifted)
}

func byID(objects []agent.StagedObject) map[agent.ID]*agent.StagedObject {
	found := make(map[agent.ID]*agent.StagedObject, len(objects))
	for i := range objects {
		found[objects[i].ID()] = &objects[i]
	}
	return found
}

var writtenByServers = []string{
	"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink",
	"deletionTimestamp", "deletionGracePeriodSeconds",
}

// Differences returns the sorted paths of differing fields, as in "spec.template.containers[0].image", without values
// and fields that API servers write.
func Differences(before, after *unstructured.Unstructured) []string {
	var found []string
	appendDifferences(withoutServersFields(before), withoutServersFields(after), "", &found)
	for i := range found {
		found[i] = wording.OneLine(found[i]) // clusters control the keys
	}
	slices.Sort(found)
	return found[:min(len(found), maxFields)]
}

// maxFields bounds the fields stored in the state.
const maxFields = 100

func withoutServersFields(object *unstructured.Unstructured) map[string]any {
	stripped := maps.Clone(object.Object)
	delete(stripped, "status")
	if metadata, ok := stripped["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range writtenByServers {
			delete(metadata, field)
		}
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			annotations = maps.Clone(annotations)
			delete(annotations, createdAnnotation)
			metadata["annotations"] = annotations
			if len(annotations) == 0 {
				delete(metadata, "annotations")
			}
		}
		stripped["metadata"] = metadata
	}
	return stripped
}

func appendDifferences(before, after any, at string, found *[]string) {
	switch before := before.(type) {
	case map[string]any:
		if after, ok := after.(map[string]any); ok {
			both := maps.Clone(before)
			maps.Copy(both, after)
			for _, key := range slices.Sorted(maps.Keys(both)) {
				appendDifferences(before[key], after[key], strings.TrimPrefix(at+"."+key, "."), found)
			}
			return
		}
	case []any:
		if after, ok := after.([]any); ok && len(after) == len(before) {
			for i := range before {
				appendDifferences(before[i], after[i], fmt.Sprintf("%s[%d]", at, i), found)
			}
			return
		}
	}
	if !reflect.DeepEqual(before, after) {
		*found = append(*found, at)
	}
}

// ownedFields returns Flotilla's fields, nested as in the API: {"f:spec": …}.
func ownedFields(live *unstructured.Unstructured) map[string]any {
	for _, entry := range live.GetManagedFields() {
		if isOurEntry(entry) {
			if fields := fieldsOf(entry); fields != nil {
				return fields
			}
		}
	}
	return nil
}

func isOurEntry(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == kube.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply
}

func fieldsOf(entry metav1.ManagedFieldsEntry) map[string]any {
	var fields map[string]any
	if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return nil
	}
	return fields
}

// ownData returns the merge patch that removes Flotilla's data keys. An apply without them would remove all data if
// nobody manages the rest.
func ownData(live *unstructured.Unstructured) map[string]any {
	own := map[string]any{}
	ours, _ := ownedFields(live)["f:data"].(map[string]any)
	for key := range ours {
		if name, isKey := strings.CutPrefix(key, "f:"); isKey {
			own[name] = nil
		}
	}
	for _, entry := range live.GetManagedFields() {
		if isOurEntry(entry) {
			continue
		}
		theirs, _ := fieldsOf(entry)["f:data"].(map[string]any)
		for key := range theirs {
			delete(own, strings.TrimPrefix(key, "f:"))
		}
	}
	return own
}

// ownLabels returns the merge patch that removes Flotilla's labels.
func ownLabels(live *unstructured.Unstructured) map[string]any {
	ours, _, _ := unstructured.NestedMap(ownedFields(live), "f:metadata", "f:labels")
	own := map[string]any{}
	for key := range ours {
		own[strings.TrimPrefix(key, "f:")] = nil
	}
	return own
}

// lostData returns the data keys of a Secret that another manager has changed since the apply, and so owns, and the
// labels with other values.
func lostData(object, live *unstructured.Unstructured) []string {
	wanted, _, _ := unstructured.NestedMap(object.Object, "data")
	owned, _ := ownedFields(live)["f:data"].(map[string]any)
	var lost []string
	for _, key := range slices.Sorted(maps.Keys(object.GetLabels())) {
		if live.GetLabels()[key] != object.GetLabels()[key] {
			lost = append(lost, "metadata.labels."+key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if _, ours := owned["f:"+key]; !ours {
			lost = append(lost, "data."+key)
		}
	}
	return lost
}

func addedFields(object *agent.StagedObject, live *unstructured.Unstructured) []reconciler.DecisiveField {
	if live == nil || object.Partial {
		return nil
	}
	var added []reconciler.DecisiveField
	for _, field := range reconciler.DecisiveFields(object.GroupVersionKind().Group, object.GetKind()) {
		if _, wanted, _ := unstructured.NestedFieldNoCopy(object.Object, field.Steps()...); wanted {
			continue
		}
		if value, found, _ := unstructured.NestedFieldNoCopy(live.Object, field.Steps()...); found && field.IsDecisive(value) {
			added = append(added, field)
		}
	}
	return added
}

// withoutFields returns the merge patch that removes fields, or nil.
func withoutFields(fields []reconciler.DecisiveField) map[string]any {
	if len(fields) == 0 {
		return nil
	}
	patch := map[string]any{}
	for _, field := range fields {
		_ = unstructured.SetNestedField(patch, nil, field.Steps()...) // the patch has only objects
	}
	return patch
}

// withLiveCredentials returns an object whose credential fields have the live values if Flotilla still manages them: no
// state has them.
func withLiveCredentials(object *agent.StagedObject, live *unstructured.Unstructured) *agent.StagedObject {
	if len(object.FromCredentials) == 0 || live == nil {
		return object
	}
	own := *object
	own.Unstructured = object.DeepCopy()
	owned := ownedFields(live)
	for _, steps := range object.FromCredentials {
		if value, found, _ := unstructured.NestedFieldNoCopy(live.Object, steps...); found && hasField(owned, steps) {
			_ = unstructured.SetNestedField(own.Object, value, steps...)
		}
	}
	return &own
}

func managersOf(live *unstructured.Unstructured, steps []string) []string {
	var managers []string
	for _, entry := range live.GetManagedFields() {
		if hasField(fieldsOf(entry), steps) {
			managers = append(managers, wording.OneLine(entry.Manager))
		}
	}
	slices.Sort(managers)
	return slices.Compact(managers)
}

func hasField(fields map[string]any, steps []string) bool {
	for _, step := range steps {
		below, ok := fields["f:"+step].(map[string]any)
		if !ok {
			return false
		}
		fields = below
	}
	return true
}
