package agent

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

const (
	// maxInstall bounds documents. Flux has about 40, Argo CD about 60.
	maxInstall = 2_000
	// maxInstallSize bounds bytes. Argo CD's have 2 MiB.
	maxInstallSize = 16 << 20
)

// install reads the agent's own manifests. A hub is installed separately.
func (r *renderer) install() {
	if len(r.settings.Install) > 0 && r.settings.reconciler().OnHub() {
		r.problem(
			"install",
			"is for an agent on the cluster, which the reconciler %q does not need: the %s of the hub is installed already",
			r.settings.Reconciler,
			r.settings.reconciler().Product,
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
				r.addInstalled(text.Path, part.line, part.value, seen)
			}
		}
	}
}

func (r *renderer) addInstalled(path string, line int, value any, seen map[ID]string) {
	fields, isObject := value.(map[string]any)
	if !isObject {
		r.problem(path, "line %d: is no Kubernetes object", line)
		return
	}
	if items, isList := objects.Items(fields); isList {
		for _, item := range items {
			r.addInstalled(path, line, item, seen)
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
	o := &StagedObject{Unstructured: u, Handling: Handling{Stage: stageOf(u), Part: Install}}
	id := o.ID()
	if first, twice := seen[id]; twice {
		r.problem(path, "line %d: %s appears twice, first in %s", line, id, first)
		return
	}
	seen[id] = fmt.Sprintf("%s, line %d", path, line)
	o.Reports = hasStatus(u)
	if confinement := r.settings.reconciler().Agent.Confinement; confinement != nil && o.Reports && !r.settings.Unconfined {
		confinement.Add(u)
	}
	r.objects = append(r.objects, o)
}

func textOf(value any) string {
	text, _ := value.(string)
	return text
}

func stageOf(u *unstructured.Unstructured) Stage {
	switch kind := u.GroupVersionKind(); {
	case kind.Group == "apiextensions.k8s.io" && kind.Kind == "CustomResourceDefinition":
		return Definitions
	case kind.Group == "" && kind.Kind == "Namespace":
		return Namespaces
	}
	return Rest
}

// hasStatus reports whether the status of an object shows when it is ready.
func hasStatus(u *unstructured.Unstructured) bool {
	kind := u.GroupVersionKind()
	return kind.Group == "apps" && (kind.Kind == "Deployment" || kind.Kind == "StatefulSet" || kind.Kind == "DaemonSet")
}

func (r *renderer) checkInstalled() {
	if len(r.settings.Install) == 0 {
		return
	}
	for _, one := range r.settings.reconciler().Agent.Controllers {
		deployment := r.findInstalled("Deployment", one.Name)
		switch {
		case one.Reports && r.settings.Feedback == nil:
		case deployment == nil:
			r.warn("install", "has no Deployment %s: without it %s", one.Name, one.Without)
		case one.Check != nil:
			if problem := one.Check(deployment.Unstructured); problem != "" {
				r.warn("install", "%s", problem)
			}
		}
	}
}

func (r *renderer) findInstalled(kind, name string) *StagedObject {
	for _, o := range r.objects {
		if o.Part == Install && o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	return nil
}
