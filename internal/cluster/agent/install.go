package agent

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
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
				for _, found := range part.violations { // unknown fields are warnings: the cluster may be newer than the schema
					r.problem(text.Path, "line %d: %s", part.line, found.text)
					r.problems[len(r.problems)-1].Warning = found.isUnknown
				}
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
	kind := u.GroupVersionKind()
	o.Reports = kind.Group == "apps" && (kind.Kind == "Deployment" || kind.Kind == "StatefulSet" || kind.Kind == "DaemonSet")
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

func (r *renderer) checkInstalled() {
	if len(r.settings.Install) == 0 {
		return
	}
	for _, one := range r.settings.reconciler().Agent.Controllers {
		at := slices.IndexFunc(r.objects, func(o *StagedObject) bool {
			return o.Part == Install && o.GetKind() == "Deployment" && o.GetName() == one.Name
		})
		switch {
		case one.Reports && r.settings.Feedback == nil:
		case at < 0:
			r.warn("install", "has no Deployment %s: without it %s", one.Name, one.Without)
		case one.Check != nil:
			if problem := one.Check(r.objects[at].Unstructured); problem != "" {
				r.warn("install", "%s", problem)
			}
		}
	}
}

// Cache keeps recently parsed manifests of agents: Argo CD's have 2 MiB, and all clusters of a fleet have the same. It
// is safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	texts []readText // latest first
}

const keptTexts = 8

// readText is a text that is parsed once.
type readText struct {
	text      string
	documents func() []yamlDocument
}

// yamlDocument has the types of unstructured objects. It is shared and must not be changed.
type yamlDocument struct {
	line       int
	value      any
	err        error
	violations []violation
}

// Render is [Render] with cached parsing.
func (c *Cache) Render(settings Settings) ([]StagedObject, []SettingsProblem) {
	return renderWith(settings, c.read)
}

func (c *Cache) read(text string) []yamlDocument {
	c.mu.Lock()
	one := readText{text, sync.OnceValue(func() []yamlDocument { return readDocuments(text) })}
	if at := slices.IndexFunc(c.texts, func(known readText) bool { return known.text == text }); at >= 0 {
		one = c.texts[at]
		c.texts = slices.Delete(c.texts, at, at+1)
	}
	c.texts = slices.Insert(c.texts, 0, one)
	c.texts = c.texts[:min(keptTexts, len(c.texts))]
	c.mu.Unlock()
	return one.documents()
}

// readDocuments leaves too long a text unparsed, because the caller rejects it.
func readDocuments(text string) []yamlDocument {
	parts := fleet.SplitYAML(text)
	documents := make([]yamlDocument, len(parts))
	for i, part := range parts {
		if documents[i].line = part.Line; len(parts) <= maxInstall {
			documents[i].value, documents[i].err = unstructuredValue(part.Text)
		}
	}
	checkDocuments(documents)
	return documents
}

// unstructuredValue parses a document with int64 and float64 numbers.
func unstructuredValue(text string) (value any, err error) {
	if value, err = fleet.ParseYAML(text); err != nil {
		return nil, err
	}
	json, err := fleet.CanonicalJSON(value)
	if err == nil {
		err = utiljson.Unmarshal([]byte(json), &value)
	}
	return value, err
}

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
