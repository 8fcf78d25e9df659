package agent

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Kept returns an object as it has to be before it is deleted when what it brought shall stay: without
// pruning. It is nil for objects that take nothing with them. Where the kind is one that an agent acts upon,
// the agent has to have seen the change before the object is deleted.
func (o *Object) Kept() *unstructured.Unstructured {
	if o.Part != Root {
		return nil
	}
	kept := o.DeepCopy()
	set := func(value any, fields ...string) { _ = unstructured.SetNestedField(kept.Object, value, fields...) } // our own objects
	switch o.GetKind() {
	case "Kustomization":
		set(false, "spec", "prune")
		set("Orphan", "spec", "deletionPolicy")
	case "Application":
		kept.SetFinalizers(nil)
	case "ApplicationSet":
		set(true, "spec", "syncPolicy", "preserveResourcesOnDeletion")
	case "GitRepo":
		set(true, "spec", "keepResources")
	default:
		return nil
	}
	return kept
}
