package reconciler

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// argoFinalizer is the prefix of the finalizers by which Argo CD removes what an Application has applied.
const argoFinalizer = "resources-finalizer.argocd.argoproj.io"

var (
	applicationRemoval = Removal{
		Keeping: keepApplication, Pruning: pruneApplication, Removes: applicationRemoves, Inventory: applicationInventory, Waits: true,
		Kept: keptByArgo, Mark: markForArgo, Delay: 2 * time.Second,
	}
	applicationSetRemoval = Removal{Keeping: keepApplicationSet, Pruning: pruneApplicationSet}
)

const argoOptions = "argocd.argoproj.io/sync-options"

func keptByArgo(applied *unstructured.Unstructured) bool {
	annotations := applied.GetAnnotations()
	return slices.Contains(optionsOf(annotations[argoOptions]), "Delete=false") || annotations["helm.sh/resource-policy"] == "keep"
}

func markForArgo(applied *unstructured.Unstructured) (annotation, value string) {
	options := optionsOf(applied.GetAnnotations()[argoOptions])
	for _, option := range []string{"Prune=false", "Delete=false"} {
		if !slices.Contains(options, option) {
			options = append(options, option)
		}
	}
	return argoOptions, strings.Join(options, ",")
}

func optionsOf(text string) []string {
	var options []string
	for _, option := range strings.Split(text, ",") {
		if option = strings.TrimSpace(option); option != "" {
			options = append(options, option)
		}
	}
	return options
}

func keepApplication(live *unstructured.Unstructured) map[string]any {
	patch := map[string]any{}
	if finalizers := live.GetFinalizers(); slices.ContainsFunc(finalizers, isArgoFinalizer) {
		patch["metadata"] = map[string]any{"finalizers": anyOf(slices.DeleteFunc(finalizers, isArgoFinalizer))}
	}
	if prune, _, _ := unstructured.NestedBool(live.Object, "spec", "syncPolicy", "automated", "prune"); prune {
		patch["spec"] = map[string]any{"syncPolicy": map[string]any{"automated": map[string]any{"prune": false}}}
	}
	if len(patch) == 0 {
		return nil
	}
	return patch
}

func pruneApplication(live *unstructured.Unstructured) map[string]any {
	if finalizers := live.GetFinalizers(); !slices.ContainsFunc(finalizers, isArgoFinalizer) {
		return map[string]any{"metadata": map[string]any{"finalizers": anyOf(append(finalizers, argoFinalizer))}}
	}
	return nil
}

func keepApplicationSet(live *unstructured.Unstructured) map[string]any {
	spec := map[string]any{}
	if keeps, _, _ := unstructured.NestedBool(live.Object, "spec", "syncPolicy", "preserveResourcesOnDeletion"); !keeps {
		spec["syncPolicy"] = map[string]any{"preserveResourcesOnDeletion": true}
	}
	template := map[string]any{}
	if finalizers := templateFinalizers(live); slices.ContainsFunc(finalizers, isArgoFinalizer) {
		template["metadata"] = map[string]any{"finalizers": anyOf(slices.DeleteFunc(finalizers, isArgoFinalizer))}
	}
	// Its controller gives its Applications back whatever the template has.
	if prune, _, _ := unstructured.NestedBool(live.Object, "spec", "template", "spec", "syncPolicy", "automated", "prune"); prune {
		template["spec"] = map[string]any{"syncPolicy": map[string]any{"automated": map[string]any{"prune": false}}}
	}
	if len(template) > 0 {
		spec["template"] = template
	}
	return specPatch(spec)
}

func pruneApplicationSet(live *unstructured.Unstructured) map[string]any {
	spec := map[string]any{}
	if keeps, _, _ := unstructured.NestedBool(live.Object, "spec", "syncPolicy", "preserveResourcesOnDeletion"); keeps {
		spec["syncPolicy"] = map[string]any{"preserveResourcesOnDeletion": false}
	}
	if finalizers := templateFinalizers(live); !slices.ContainsFunc(finalizers, isArgoFinalizer) {
		spec["template"] = map[string]any{"metadata": map[string]any{"finalizers": anyOf(append(finalizers, argoFinalizer))}}
	}
	return specPatch(spec)
}

// templateFinalizers returns the finalizers that an ApplicationSet gives its Applications.
func templateFinalizers(live *unstructured.Unstructured) []string {
	finalizers, _, _ := unstructured.NestedStringSlice(live.Object, "spec", "template", "metadata", "finalizers")
	return finalizers
}

func isArgoFinalizer(finalizer string) bool { return strings.HasPrefix(finalizer, argoFinalizer) }

func applicationRemoves(live *unstructured.Unstructured) bool {
	server, _, _ := unstructured.NestedString(live.Object, "spec", "destination", "server")
	name, _, _ := unstructured.NestedString(live.Object, "spec", "destination", "name")
	return slices.ContainsFunc(live.GetFinalizers(), isArgoFinalizer) && (server == "https://kubernetes.default.svc" || name == "in-cluster")
}

func applicationInventory(live *unstructured.Unstructured) []InventoryEntry {
	resources, _, _ := unstructured.NestedSlice(live.Object, "status", "resources")
	var found []InventoryEntry
	for _, one := range resources {
		fields, _ := one.(map[string]any)
		text := func(key string) string { value, _ := fields[key].(string); return value }
		if text("version") != "" && text("kind") != "" && text("name") != "" {
			found = append(found, InventoryEntry{text("group"), text("version"), text("kind"), text("namespace"), text("name")})
		}
	}
	return found
}
