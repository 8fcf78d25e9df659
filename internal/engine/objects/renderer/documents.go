package renderer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/envsubst"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name         string         `json:"name"`
		GenerateName string         `json:"generateName"`
		Namespace    string         `json:"namespace"`
		Labels       map[string]any `json:"labels"`
		Annotations  map[string]any `json:"annotations"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

type collector struct {
	objects []collected
	size    int      // of the objects in JSON
	missing []string // see [objects.Rendering]
	remote  []objects.RemoteSchema
}

type collected struct {
	objects.FinalObject
	file string
}

// leaveOut removes objects that the agent skips.
func (c *collector) leaveOut(hooks *objects.Hooks) {
	c.objects = slices.DeleteFunc(c.objects, func(o collected) bool {
		var h head
		return bytes.Contains(o.YAML, []byte("/hook")) && yaml.Unmarshal(o.YAML, &h) == nil && hooks.LeaveOut(h.Metadata.Annotations)
	})
}

func (c *collector) add(document []byte, file, hook string, from objects.Origin) error {
	// Parsing a large document takes long.
	if len(document) > maxOutput-c.size {
		return errOutput
	}
	text, err := yaml.YAMLToJSON(document)
	if err != nil {
		return fmt.Errorf("%s is not YAML: %w", file, err)
	}
	return c.addJSON(text, file, hook, from)
}

func (c *collector) addJSON(text []byte, file, hook string, from objects.Origin) error {
	if bytes.Equal(text, []byte("null")) || bytes.Equal(text, []byte("{}")) {
		return nil
	}
	var h head
	if err := json.Unmarshal(text, &h); err != nil {
		return fmt.Errorf("%s has a document that is no Kubernetes object: %w", file, err)
	}
	if h.Items != nil { // a list: see [objects.Items]
		for _, item := range h.Items {
			if err := c.addJSON(item, file, hook, from); err != nil {
				return err
			}
		}
		return nil
	}
	if c.size += len(text); c.size > maxOutput {
		return errOutput
	}
	name := cmp.Or(h.Metadata.Name, h.Metadata.GenerateName)
	if h.APIVersion == "" || h.Kind == "" || name == "" {
		return fmt.Errorf("%s has a document that is no Kubernetes object: apiVersion, kind or metadata.name is missing", file)
	}
	normal, err := yaml.JSONToYAML(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	group, version, hasGroup := strings.Cut(h.APIVersion, "/")
	if !hasGroup {
		group, version = "", h.APIVersion
	}
	c.objects = append(c.objects, collected{objects.FinalObject{
		Group: group, Version: version, Kind: h.Kind, Namespace: h.Metadata.Namespace, Name: name, From: from, Hook: hook, YAML: normal,
	}, file})
	return nil
}

// result sorts objects, refuses duplicates and sets namespaces, but not in YAML.
func (c *collector) result(namespace string) (*objects.Rendering, error) {
	scopes := c.scopes()
	for i := range c.objects {
		o := &c.objects[i].FinalObject
		switch isNamespaced(o, scopes) {
		case false:
			o.Namespace = ""
		case true:
			o.Namespace = cmp.Or(o.Namespace, namespace)
		}
	}
	slices.SortFunc(c.objects, func(a, b collected) int {
		return cmp.Or(a.Identity().Compare(b.Identity()), cmp.Compare(a.Hook, b.Hook), cmp.Compare(a.On, b.On), bytes.Compare(a.YAML, b.YAML))
	})
	result := &objects.Rendering{MissingAPIs: c.missing, RemoteSchemas: c.remote}
	var mistakes []error
	for i, o := range c.objects {
		result.Objects = append(result.Objects, o.FinalObject)
		if i == 0 {
			continue
		}
		// Helm runs hooks in sequence, so others may have their names.
		before := c.objects[i-1]
		isAlternative := before.On != o.On && before.On != "" && o.On != ""
		if before.Identity() == o.Identity() && before.Hook == o.Hook && !isAlternative && !o.IsGenerated() {
			mistakes = append(mistakes, fmt.Errorf("%s is there twice: in %s and in %s", describeObject(&o.FinalObject), before.file, o.file))
		}
	}
	return result, errors.Join(mistakes...)
}

func describeObject(o *objects.FinalObject) string {
	if o.Namespace == "" {
		return fmt.Sprintf("%s %q", o.Kind, o.Name)
	}
	return fmt.Sprintf("%s %q of namespace %q", o.Kind, o.Name, o.Namespace)
}

// scopes maps the group and kind of each CRD to whether it is namespaced.
func (c *collector) scopes() map[[2]string]bool {
	scopes := map[[2]string]bool{}
	for _, o := range c.objects {
		if o.Kind != "CustomResourceDefinition" {
			continue
		}
		var definition struct {
			Spec struct {
				Group, Scope string
				Names        struct{ Kind string }
			}
		}
		if yaml.Unmarshal(o.YAML, &definition) == nil {
			scopes[[2]string{definition.Spec.Group, definition.Spec.Names.Kind}] = definition.Spec.Scope != "Cluster"
		}
	}
	return scopes
}

// isNamespaced assumes so for unknown kinds.
func isNamespaced(o *objects.FinalObject, scopes map[[2]string]bool) bool {
	if namespaced, isDefined := scopes[[2]string{o.Group, o.Kind}]; isDefined {
		return namespaced
	}
	version := o.Version
	if o.Group != "" {
		version = o.Group + "/" + o.Version
	}
	namespaced, isKnown := openapi.IsNamespaceScoped(kyaml.TypeMeta{APIVersion: version, Kind: o.Kind})
	return namespaced || !isKnown
}

var variableName = regexp.MustCompile(`^[_[:alpha:]][_[:alpha:][:digit:]]*$`)

// substituteKey is a label or annotation.
const substituteKey = "kustomize.toolkit.fluxcd.io/substitute"

// finish replaces variables and then adds metadata, as Flux does after a build.
func (c *collector) finish(request *objects.Request) error {
	variables := map[string]string{}
	for name, value := range request.Substitute {
		if !variableName.MatchString(name) {
			return fmt.Errorf("%q is no name of a variable: it may have letters, digits and underscores, and begins with no digit", name)
		}
		variables[name] = strings.ReplaceAll(value, "\n", "")
	}
	var labels, annotations map[string]string
	if k := request.Kustomize; k != nil {
		labels, annotations = k.Labels, k.Annotations
	}
	if h := request.Helm; h != nil && h.After != nil {
		labels, annotations = h.After.Labels, h.After.Annotations
	}
	if len(variables) == 0 && len(labels) == 0 && len(annotations) == 0 {
		return nil
	}
	finished := collector{missing: c.missing, remote: c.remote}
	for _, o := range c.objects {
		text := o.YAML
		if len(variables) > 0 {
			replaced, err := substitute(text, variables)
			if err != nil {
				return fmt.Errorf("%s: %w", describeObject(&o.FinalObject), err)
			}
			text = replaced
		}
		text, err := withMetadata(text, labels, annotations)
		if err != nil {
			return fmt.Errorf("%s: %w", describeObject(&o.FinalObject), err)
		}
		if err := finished.add(text, o.file, o.Hook, o.From); err != nil {
			return err
		}
		if n := len(finished.objects); n > 0 {
			finished.objects[n-1].IsCRD, finished.objects[n-1].On = o.IsCRD, o.On
		}
	}
	*c = finished
	return nil
}

func substitute(text []byte, variables map[string]string) ([]byte, error) {
	var h head
	if err := yaml.Unmarshal(text, &h); err != nil {
		return nil, err
	}
	if h.Metadata.Labels[substituteKey] == "disabled" || h.Metadata.Annotations[substituteKey] == "disabled" {
		return text, nil
	}
	replaced, err := envsubst.Eval(string(text), func(name string) (string, bool) { return variables[name], true })
	if err != nil {
		return nil, fmt.Errorf("its variables cannot be replaced: %w", err)
	}
	return []byte(replaced), nil
}

func withMetadata(text []byte, labels, annotations map[string]string) ([]byte, error) {
	if len(labels) == 0 && len(annotations) == 0 {
		return text, nil
	}
	text, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	var object, metadata map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(object["metadata"], &metadata); err != nil {
		return nil, err
	}
	for field, added := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
		if len(added) == 0 {
			continue
		}
		var has map[string]string
		if metadata[field] != nil {
			if err := json.Unmarshal(metadata[field], &has); err != nil {
				return nil, err
			}
		}
		if metadata[field], err = json.Marshal(mergeMaps(has, added)); err != nil {
			return nil, err
		}
	}
	if object["metadata"], err = json.Marshal(metadata); err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

// checkSchemas runs in the worker, so that its findings are cached.
func checkSchemas(result *objects.Rendering, kubernetes string) error {
	catalog, err := kinds.For(kubernetes)
	if err != nil {
		return err
	}
	read := make([]map[string]any, len(result.Objects))
	for i := range result.Objects {
		if err := yaml.Unmarshal(result.Objects[i].YAML, &read[i]); err != nil {
			return fmt.Errorf("%s: %w", describeObject(&result.Objects[i]), err)
		}
		if !kinds.IsDefinition(read[i]) {
			continue
		}
		definition, err := kinds.ReadDefinition(read[i])
		if err != nil {
			result.Violations = append(result.Violations, objects.SchemaViolation{Object: i, Message: err.Error()})
			continue
		}
		catalog = catalog.With(definition)
	}
	for i, object := range read {
		if !catalog.IsOfClusters(object) {
			result.Undefined = append(result.Undefined, i)
			continue
		}
		for _, violation := range catalog.Check(object) {
			result.Violations = append(result.Violations, objects.SchemaViolation{
				Object: i, Message: violation.In(catalog, object), IsUnknown: violation.IsUnknown, IsNewer: catalog.MayLackFields(object),
			})
		}
	}
	return nil
}
