package reconciler

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

func specPatch(spec map[string]any) map[string]any {
	if len(spec) == 0 {
		return nil
	}
	return map[string]any{"spec": spec}
}

func anyOf(texts []string) []any {
	list := make([]any, len(texts))
	for i, text := range texts {
		list[i] = text
	}
	return list
}
