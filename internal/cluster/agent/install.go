package agent

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

const (
	// maxInstall bounds the documents of all texts of an agent's own manifests. Those of Flux are about 40, of
	// Argo CD about 60.
	maxInstall = 2_000
	// maxInstallSize bounds their bytes. Those of Argo CD have 2 MiB.
	maxInstallSize = 16 << 20
)

// install reads the agent's own manifests. They cannot be those of a hub, which is installed apart from its clusters.
func (r *renderer) install() {
	if len(r.settings.Install) > 0 && r.settings.of().OnHub() {
		r.problem(
			"install",
			"is for an agent on the cluster, which the reconciler %q does not need: the %s of the hub is installed already",
			r.settings.Reconciler,
			r.settings.of().Product,
		)
		return
	}
	seen := map[ID]string{}
	documents, size := 0, 0
	for _, text := range r.settings.Install {
		if size += len(text.Text); size > maxInstallSize {
			r.problem("install", "is larger than %d MiB", maxInstallSize>>20)
			return
		}
		parts := r.read(text.Text)
		if documents += len(parts); documents > maxInstall {
			r.problem("install", "holds more than %d YAML documents", maxInstall)
			return
		}
		if len(parts) == 0 {
			r.problem(text.Path, "holds no YAML document")
		}
		for i, part := range parts {
			if part.err != nil {
				r.problem(text.Path, "document %d, from line %d: %s", i+1, part.line, part.err)
				continue
			}
			if part.value != nil {
				r.addViolations(text.Path, &part)
				r.installed(text.Path, part.line, part.value, seen)
			}
		}
	}
}

// installed adds one object, or those of a list.
func (r *renderer) installed(path string, line int, value any, seen map[ID]string) {
	fields, isObject := value.(map[string]any)
	if !isObject {
		r.problem(path, "line %d: is no Kubernetes object", line)
		return
	}
	if items, isList := objects.Items(fields); isList {
		for _, item := range items {
			r.installed(path, line, item, seen)
		}
		return
	}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(fields)}
	for _, field := range []string{"apiVersion", "kind"} {
		if textOf(fields[field]) == "" {
			r.problem(path, "line %d: the object has no %s", line, field)
			return
		}
	}
	metadata, _ := fields["metadata"].(map[string]any)
	if textOf(metadata["name"]) == "" {
		r.problem(path, "line %d: the %s has no metadata.name", line, u.GetKind())
		return
	}
	if given := metadata["namespace"]; given != nil && textOf(given) == "" {
		r.problem(path, "line %d: the metadata.namespace of %s %s is no text", line, u.GetKind(), u.GetName())
		return
	}
	r.placeInNamespace(u, nil)
	o := &Object{Unstructured: u, Stage: stageOf(u), Part: Install}
	id := o.ID()
	if first, twice := seen[id]; twice {
		r.problem(path, "line %d: %s appears twice, first in %s", line, id, first)
		return
	}
	seen[id] = fmt.Sprintf("%s, line %d", path, line)
	o.Reports = reports(u)
	if confinement := r.settings.of().Agent.Confinement; confinement != nil && o.Reports && !r.settings.Unconfined {
		confinement.Add(u)
	}
	r.objects = append(r.objects, o)
}

func textOf(value any) string {
	text, _ := value.(string)
	return text
}

// stageOf is the stage of an object of the agent's own manifests.
func stageOf(u *unstructured.Unstructured) Stage {
	switch kind := u.GroupVersionKind(); {
	case kind.Group == "apiextensions.k8s.io" && kind.Kind == "CustomResourceDefinition":
		return Definitions
	case kind.Group == "" && kind.Kind == "Namespace":
		return Namespaces
	}
	return Rest
}

// reports says whether the status of an object of the agent's own manifests shows when it is ready.
func reports(u *unstructured.Unstructured) bool {
	kind := u.GroupVersionKind()
	return kind.Group == "apps" && (kind.Kind == "Deployment" || kind.Kind == "StatefulSet" || kind.Kind == "DaemonSet")
}
