package reconciler

import (
	"regexp"
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

// inventoryID matches <namespace>_<name>_<group>_<kind>. Two underscores in the name stand for a colon.
var inventoryID = regexp.MustCompile(`^([^_]*)_(.+)_([^_]*)_([^_]+)$`)

func fluxInventory(live *unstructured.Unstructured) []InventoryEntry {
	var found []InventoryEntry
	for _, one := range jsonObject(live.Object).list("status", "inventory", "entries") {
		id, version := inventoryID.FindStringSubmatch(one.text("id")), one.text("v")
		if id != nil && version != "" {
			found = append(found, InventoryEntry{id[3], version, id[4], id[1], strings.ReplaceAll(id[2], "__", ":")})
		}
	}
	return found
}
