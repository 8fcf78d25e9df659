package reconciler

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var fluxRemoval = Removal{
	// The finalizer reads the spec at the time of deletion.
	Keeping: patching(change{"spec.prune", from(true, false)}, change{"spec.deletionPolicy", func(policy any) any {
		switch policy {
		case nil, "", "MirrorPrune", "Orphan":
			return nil
		}
		return "Orphan"
	}}),
	// A suspended Kustomization removes nothing.
	Pruning: patching(
		change{"spec.prune", to(true)},
		change{"spec.deletionPolicy", from("Orphan", "Delete")},
		change{"spec.suspend", from(true, false)},
	),
	Removes: fluxRemoves, Inventory: fluxInventory, Kept: keptByFlux, Mark: markForFlux,
}

const fluxPrune = "kustomize" + ofFlux + "/prune"

func keptByFlux(applied *unstructured.Unstructured) bool {
	return strings.EqualFold(applied.GetAnnotations()[fluxPrune], "disabled") || strings.EqualFold(applied.GetLabels()[fluxPrune], "disabled")
}

func markForFlux(*unstructured.Unstructured) (annotation, value string) { return fluxPrune, "disabled" }

func fluxRemoves(live *unstructured.Unstructured) bool {
	spec := jsonObject(live.Object).object("spec")
	switch policy := spec.text("deletionPolicy"); policy {
	case "", "MirrorPrune":
		return spec.flag("prune") && !spec.flag("suspend")
	default:
		return policy != "Orphan" && !spec.flag("suspend")
	}
}

func fluxInventory(live *unstructured.Unstructured) []InventoryEntry {
	var found []InventoryEntry
	for _, one := range jsonObject(live.Object).list("status", "inventory", "entries") {
		if applied, ok := parseEntry(one.text("id"), one.text("v")); ok {
			found = append(found, applied)
		}
	}
	return found
}

// parseEntry parses <namespace>_<name>_<group>_<kind>. Two underscores in the name stand for a colon.
func parseEntry(id, version string) (InventoryEntry, bool) {
	namespace, rest, ok := strings.Cut(id, "_")
	if !ok {
		return InventoryEntry{}, false
	}
	rest, kind, ok := cutLast(rest)
	if !ok {
		return InventoryEntry{}, false
	}
	name, group, ok := cutLast(rest)
	if !ok || name == "" || kind == "" || version == "" {
		return InventoryEntry{}, false
	}
	return InventoryEntry{group, version, kind, namespace, strings.ReplaceAll(name, "__", ":")}, true
}

func cutLast(text string) (before, after string, ok bool) {
	i := strings.LastIndex(text, "_")
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}
