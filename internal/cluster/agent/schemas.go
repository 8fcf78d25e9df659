package agent

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

type violation struct {
	text      string // without the line
	isUnknown bool
}

// checkDocuments finds the violations in a text's documents, which may define kinds.
func checkDocuments(documents []yamlDocument) {
	catalog := latest()
	for i := range documents {
		for _, object := range objectsOf(documents[i].value) {
			if !kinds.IsDefinition(object) {
				continue
			}
			if definition, err := kinds.ReadDefinition(object); err == nil { // otherwise its own schema reports the mistake
				catalog = catalog.With(definition)
			}
		}
	}
	for i := range documents {
		for _, object := range objectsOf(documents[i].value) {
			for _, found := range catalog.Check(object) {
				if found.IsMissing { // the API reports fields removed by a patch
					continue
				}
				text := strings.TrimSpace(fmt.Sprintf("%s: %s %s", nameOf(object), found.Path(), found.Message))
				documents[i].violations = append(documents[i].violations, violation{text, found.IsUnknown})
			}
		}
	}
}

// latest returns the published schemas: the cluster's version is unknown.
func latest() *kinds.Catalog {
	catalog, err := kinds.For("")
	if err != nil {
		panic(err) // an empty version is valid
	}
	return catalog
}

func objectsOf(value any) []map[string]any {
	object, isObject := value.(map[string]any)
	if !isObject {
		return nil
	}
	items, isList := objects.Items(object)
	if !isList {
		return []map[string]any{object}
	}
	var all []map[string]any
	for _, item := range items {
		all = append(all, objectsOf(item)...)
	}
	return all
}

func nameOf(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	return textOf(object["kind"]) + " " + textOf(metadata["name"])
}

// addViolations reports violations in the agent's own manifests. Unknown fields are warnings, because the cluster may
// be newer than the schema.
func (r *renderer) addViolations(path string, of *yamlDocument) {
	for _, found := range of.violations {
		r.problem(path, "line %d: %s", of.line, found.text)
		r.problems[len(r.problems)-1].Warning = found.isUnknown
	}
}

func (r *renderer) checkSchemas() {
	catalog := latest()
	for _, o := range r.objects {
		if o.Part == Install || o.Partial {
			continue
		}
		for _, found := range catalog.Check(o.Object) {
			r.problem(settingOf(found.Steps), "%s: %s %s (schema of %s)", o.ID(), found.Path(), found.Message, catalog.Source(o.Object))
		}
	}
}

func settingOf(steps []string) string {
	settings := map[string]string{
		"url": "gitops_repo.url", "repo": "gitops_repo.url", "repoURL": "gitops_repo.url",
		"branch": "gitops_repo.branch", "path": "gitops_repo.path",
		"interval": "interval", "timeout": "timeout",
	}
	for _, step := range slices.Backward(steps) {
		if settings[step] != "" {
			return settings[step]
		}
	}
	return ""
}

// clusterScoped are Kubernetes' own kinds.
var clusterScoped = []string{
	"APIService", "CSIDriver", "CSINode", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "ClusterTrustBundle",
	"CustomResourceDefinition", "DeviceClass", "FlowSchema", "IPAddress", "IngressClass", "MutatingAdmissionPolicy",
	"MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "Namespace", "Node", "PersistentVolume", "PriorityClass",
	"PriorityLevelConfiguration", "ResourceSlice", "RuntimeClass", "ServiceCIDR", "StorageClass", "StorageVersion",
	"ValidatingAdmissionPolicy",
	"ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment", "VolumeAttributesClass",
}

// placeInNamespace sets the agent's namespace like `kubectl apply --namespace`, as Argo CD's manifests require.
// definitions tells whether defined kinds are namespaced.
func (r *renderer) placeInNamespace(u *unstructured.Unstructured, definitions map[string]bool) {
	kind := u.GroupVersionKind()
	isOwn := !strings.Contains(kind.Group, ".") || strings.HasSuffix(kind.Group, ".k8s.io")
	namespaced, isDefined := definitions[kind.GroupKind().String()]
	if u.GetNamespace() == "" && (isDefined && namespaced || !isDefined && isOwn && !slices.Contains(clusterScoped, kind.Kind)) {
		u.SetNamespace(r.settings.Namespace)
	}
}

func (r *renderer) placeDefined() {
	definitions := map[string]bool{}
	for _, o := range r.objects {
		if o.Part == Install && o.Stage == Definitions {
			group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			scope, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
			definitions[kind+"."+group] = scope == "Namespaced"
		}
	}
	for _, o := range r.objects {
		if o.Part == Install {
			r.placeInNamespace(o.Unstructured, definitions)
		}
	}
}
