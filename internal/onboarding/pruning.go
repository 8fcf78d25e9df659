package onboarding

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// argoFinalizer is the prefix of the finalizers by which Argo CD removes what an Application has applied.
const argoFinalizer = "resources-finalizer.argocd.argoproj.io"

// withoutPruning is the merge patch after which an object that follows folders can be deleted and what it has applied
// stays. It is nil where no patch is needed.
func withoutPruning(live *unstructured.Unstructured) map[string]any {
	switch live.GetKind() {
	case "Kustomization": // its finalizer looks at the spec at the time of the deletion
		spec := map[string]any{}
		if prune, _, _ := unstructured.NestedBool(live.Object, "spec", "prune"); prune {
			spec["prune"] = false
		}
		if policy, _, _ := unstructured.NestedString(live.Object, "spec", "deletionPolicy"); policy != "" && policy != "MirrorPrune" && policy != "Orphan" {
			spec["deletionPolicy"] = "Orphan"
		}
		return specPatch(spec)
	case "Application":
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
	case "ApplicationSet":
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
	case "GitRepo", "Bundle":
		if keeps, _, _ := unstructured.NestedBool(live.Object, "spec", "keepResources"); keeps {
			return nil
		}
		return specPatch(map[string]any{"keepResources": true})
	}
	return nil
}

// withPruning is the merge patch after which the deletion of an object removes what it has applied; nil where no patch is needed.
func withPruning(live *unstructured.Unstructured) map[string]any {
	switch live.GetKind() {
	case "Kustomization":
		spec := map[string]any{}
		if prune, _, _ := unstructured.NestedBool(live.Object, "spec", "prune"); !prune {
			spec["prune"] = true
		}
		if policy, _, _ := unstructured.NestedString(live.Object, "spec", "deletionPolicy"); policy == "Orphan" {
			spec["deletionPolicy"] = "Delete"
		}
		if suspended, _, _ := unstructured.NestedBool(live.Object, "spec", "suspend"); suspended {
			spec["suspend"] = false // while it is suspended, its finalizer removes nothing
		}
		return specPatch(spec)
	case "Application":
		if finalizers := live.GetFinalizers(); !slices.ContainsFunc(finalizers, isArgoFinalizer) {
			return map[string]any{"metadata": map[string]any{"finalizers": anyOf(append(finalizers, argoFinalizer))}}
		}
	case "ApplicationSet":
		spec := map[string]any{}
		if keeps, _, _ := unstructured.NestedBool(live.Object, "spec", "syncPolicy", "preserveResourcesOnDeletion"); keeps {
			spec["syncPolicy"] = map[string]any{"preserveResourcesOnDeletion": false}
		}
		if finalizers := templateFinalizers(live); !slices.ContainsFunc(finalizers, isArgoFinalizer) {
			spec["template"] = map[string]any{"metadata": map[string]any{"finalizers": anyOf(append(finalizers, argoFinalizer))}}
		}
		return specPatch(spec)
	case "GitRepo", "Bundle":
		if keeps, _, _ := unstructured.NestedBool(live.Object, "spec", "keepResources"); keeps {
			return specPatch(map[string]any{"keepResources": false})
		}
	}
	return nil
}

// templateFinalizers returns the finalizers that an ApplicationSet gives its Applications.
func templateFinalizers(live *unstructured.Unstructured) []string {
	finalizers, _, _ := unstructured.NestedStringSlice(live.Object, "spec", "template", "metadata", "finalizers")
	return finalizers
}

func specPatch(spec map[string]any) map[string]any {
	if len(spec) == 0 {
		return nil
	}
	return map[string]any{"spec": spec}
}

func isArgoFinalizer(finalizer string) bool { return strings.HasPrefix(finalizer, argoFinalizer) }

func anyOf(texts []string) []any {
	list := make([]any, len(texts))
	for i, text := range texts {
		list[i] = text
	}
	return list
}
