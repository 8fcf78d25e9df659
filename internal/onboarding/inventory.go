package onboarding

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/kube"
)

// inventoryOf returns the objects that a Kustomization or an Application has applied, as its status lists them.
func inventoryOf(live *unstructured.Unstructured) []kube.Ref {
	switch live.GetKind() {
	case "Kustomization":
		return entriesOf(live)
	case "Application":
		return resourcesOf(live)
	}
	return nil
}

func entriesOf(kustomization *unstructured.Unstructured) []kube.Ref {
	entries, _, _ := unstructured.NestedSlice(kustomization.Object, "status", "inventory", "entries")
	var found []kube.Ref
	for _, one := range entries {
		fields, _ := one.(map[string]any)
		id, _ := fields["id"].(string)
		version, _ := fields["v"].(string)
		if ref, ok := parseEntry(id, version); ok {
			found = append(found, ref)
		}
	}
	return found
}

// parseEntry reads <namespace>_<name>_<group>_<kind>. A colon in the name is written as two underscores.
func parseEntry(id, version string) (kube.Ref, bool) {
	namespace, rest, ok := strings.Cut(id, "_")
	if !ok {
		return kube.Ref{}, false
	}
	rest, kind, ok := cutLast(rest)
	if !ok {
		return kube.Ref{}, false
	}
	name, group, ok := cutLast(rest)
	if !ok || name == "" || kind == "" || version == "" {
		return kube.Ref{}, false
	}
	return kube.Ref{APIVersion: apiVersion(group, version), Kind: kind, Namespace: namespace, Name: strings.ReplaceAll(name, "__", ":")}, true
}

func cutLast(text string) (before, after string, ok bool) {
	i := strings.LastIndex(text, "_")
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

func resourcesOf(application *unstructured.Unstructured) []kube.Ref {
	resources, _, _ := unstructured.NestedSlice(application.Object, "status", "resources")
	var found []kube.Ref
	for _, one := range resources {
		fields, _ := one.(map[string]any)
		text := func(key string) string { value, _ := fields[key].(string); return value }
		if text("version") != "" && text("kind") != "" && text("name") != "" {
			found = append(found, kube.Ref{
				APIVersion: apiVersion(text("group"), text("version")), Kind: text("kind"), Namespace: text("namespace"), Name: text("name"),
			})
		}
	}
	return found
}

func apiVersion(group, version string) string {
	if group == "" {
		return version
	}
	return group + "/" + version
}
