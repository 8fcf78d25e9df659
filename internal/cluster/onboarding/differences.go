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

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

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

func sameOwnership(a, b *unstructured.Unstructured) bool {
	return reflect.DeepEqual(ownedFields(a), ownedFields(b))
}
