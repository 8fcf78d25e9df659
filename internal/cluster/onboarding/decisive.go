package onboarding

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

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
