package reconciler

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Removal describes the effect of deletion on applied objects.
type Removal struct {
	Keeping, Pruning func(live *unstructured.Unstructured) map[string]any
	// Removes reports whether deletion removes the objects of the inventory on this cluster.
	Removes   func(live *unstructured.Unstructured) bool
	Inventory func(live *unstructured.Unstructured) []InventoryEntry
	// Waits reports that an object is gone only after its applied objects are.
	Waits bool
	// Kept reports whether the annotation of Mark keeps an applied object. Delay is how long the controller may
	// overlook it.
	Kept  func(applied *unstructured.Unstructured) bool
	Mark  func(applied *unstructured.Unstructured) (annotation, value string)
	Delay time.Duration
}

// InventoryEntry identifies an applied object in the status of another.
type InventoryEntry struct{ Group, Version, Kind, Namespace, Name string }

// RemovalOf returns the removal of a kind, which may be empty.
func RemovalOf(kind string) Removal {
	if found := KindNamed(kind); found != nil {
		return found.Removal
	}
	return Removal{}
}

// KeepPatch returns the merge patch after which deletion keeps applied objects; nil if none is needed.
func KeepPatch(live *unstructured.Unstructured) map[string]any {
	if removal := RemovalOf(live.GetKind()); removal.Keeping != nil {
		return removal.Keeping(live)
	}
	return nil
}

// PrunePatch returns the merge patch after which deletion removes applied objects; nil if none is needed.
func PrunePatch(live *unstructured.Unstructured) map[string]any {
	if removal := RemovalOf(live.GetKind()); removal.Pruning != nil {
		return removal.Pruning(live)
	}
	return nil
}

// RetainPatch returns the merge patch that keeps every agent from removing an object with its owner.
func RetainPatch(live *unstructured.Unstructured) map[string]any {
	annotations := map[string]any{}
	for _, kind := range kinds {
		if kind.Removal.Mark != nil {
			annotation, value := kind.Removal.Mark(live)
			annotations[annotation] = value
		}
	}
	return map[string]any{"metadata": map[string]any{"annotations": annotations}}
}

// Applied returns the object of this kind that applied another. Only labels give a namespace.
func (k *ObjectKind) Applied(object *unstructured.Unstructured) (namespace, name string, applied bool) {
	labels := object.GetLabels()
	name = cmp.Or(labels[k.Applies], object.GetAnnotations()[k.Applies])
	return labels[strings.TrimSuffix(k.Applies, "name")+"namespace"], name, k.Applies != "" && name != ""
}

type change struct {
	path  string
	value func(is any) any
}

func from(old, value any) func(any) any {
	return func(is any) any {
		if is == old {
			return value
		}
		return nil
	}
}

func to(value any) func(any) any {
	return func(is any) any {
		if is != value {
			return value
		}
		return nil
	}
}

func patching(changes ...change) func(live *unstructured.Unstructured) map[string]any {
	return func(live *unstructured.Unstructured) map[string]any {
		patch := map[string]any{}
		for _, one := range changes {
			steps := strings.Split(one.path, ".")
			is, _, _ := unstructured.NestedFieldNoCopy(live.Object, steps...)
			if value := one.value(is); value != nil && unstructured.SetNestedField(patch, value, steps...) != nil {
				return nil
			}
		}
		if len(patch) == 0 {
			return nil
		}
		return patch
	}
}

func anyOf(texts []string) []any {
	list := make([]any, len(texts))
	for i, text := range texts {
		list[i] = text
	}
	return list
}
