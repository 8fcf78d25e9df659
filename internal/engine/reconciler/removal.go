package reconciler

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Removal is what becomes of what an object has applied, or what its objects apply, when it is deleted.
type Removal struct {
	// Keeping and Pruning are [WithoutPruning] and [WithPruning] of a kind.
	Keeping, Pruning func(live *unstructured.Unstructured) map[string]any
	// Removes says whether the deletion removes, on this cluster, what is in the inventory of an object.
	Removes func(live *unstructured.Unstructured) bool
	// Inventory has what an object has applied, as its status lists it; it is nil for kinds that have none.
	Inventory func(live *unstructured.Unstructured) []InventoryEntry
	// Waits says that an object is gone only when what it has applied is.
	Waits bool
	// Kept says whether what an object has applied has a mark for which it stays when the object goes, and Mark is the
	// annotation that is such a mark. Delay is how long the controller may decide by what it saw before the mark.
	Kept  func(applied *unstructured.Unstructured) bool
	Mark  func(applied *unstructured.Unstructured) (annotation, value string)
	Delay time.Duration
}

// InventoryEntry is an object that another one has applied, as its status names it.
type InventoryEntry struct{ Group, Version, Kind, Namespace, Name string }

// RemovalOf is that of a kind, by its name; it has nothing where deleting its objects removes nothing else.
func RemovalOf(kind string) Removal {
	if found := KindNamed(kind); found != nil {
		return found.Removal
	}
	return Removal{}
}

// WithoutPruning is the merge patch after which an object can be deleted and what it has applied stays; nil where no patch
// is needed.
func WithoutPruning(live *unstructured.Unstructured) map[string]any {
	if removal := RemovalOf(live.GetKind()); removal.Keeping != nil {
		return removal.Keeping(live)
	}
	return nil
}

// WithPruning is the merge patch after which the deletion of an object removes what it has applied; nil where no patch is
// needed.
func WithPruning(live *unstructured.Unstructured) map[string]any {
	if removal := RemovalOf(live.GetKind()); removal.Pruning != nil {
		return removal.Pruning(live)
	}
	return nil
}

// Marked is the merge patch after which no agent removes an object together with what has applied it.
func Marked(live *unstructured.Unstructured) map[string]any {
	annotations := map[string]any{}
	for _, kind := range kinds {
		if kind.Removal.Mark != nil {
			annotation, value := kind.Removal.Mark(live)
			annotations[annotation] = value
		}
	}
	return map[string]any{"metadata": map[string]any{"annotations": annotations}}
}

// Applied says whether an object of the kind has applied another object, as the label or the annotation of that says, and
// which one, where the labels say that too.
func (k *Kind) Applied(object *unstructured.Unstructured) (namespace, name string, applied bool) {
	labels := object.GetLabels()
	name = cmp.Or(labels[k.Applies], object.GetAnnotations()[k.Applies])
	return labels[strings.TrimSuffix(k.Applies, "name")+"namespace"], name, k.Applies != "" && name != ""
}

// change is what becomes of a field: value returns what it is set to, or nil where it stays as it is.
type change struct {
	path  string
	value func(is any) any
}

// from changes one value; to changes every other value, and an absent one.
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

// patching makes a merge patch of changes; it is nil where no field changes.
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
