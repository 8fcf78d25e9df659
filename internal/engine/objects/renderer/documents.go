package renderer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

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
