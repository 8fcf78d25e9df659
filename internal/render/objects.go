package render

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/reconciler"
)

// Object is the reference of a reconciler object.
type Object struct {
	Kind      string
	Namespace string // empty where the file does not say
	Name      string
}

// Objects returns the reconciler objects of an assignment whose status shows its verdict: see
// [reconciler.IsReconciled]. files are those that [Templates.Render] returned; they are read only
// where a template is the user's own.
func (t *Templates) Objects(subject Subject, files []File) []Object {
	host := t.hosts[subject.Assignment.Host.ClusterType.Name]
	if host == nil {
		return nil
	}
	var objects []Object
	for _, template := range host.templates {
		switch {
		case template.isBuiltin && template.kind == "reconciler":
			objects = append(objects, builtinObjects(host.reconciler, subject)...)
		case !template.isBuiltin && template.contentType == "yaml":
			for _, file := range files {
				if file.Name == template.file {
					objects = append(objects, objectsIn(file.Content)...)
				}
			}
		}
	}
	return objects
}

func builtinObjects(of *reconciler.Reconciler, subject Subject) []Object {
	kind := of.KindFor(manifestsOf(&subject.Assignment.Target.Target.Manifests))
	if kind == nil {
		return nil
	}
	name := objectName(subject.Assignment.Target, subject.Assignment.Host, subject.Assignment.Namespace, subject.Environment)
	return []Object{{kind.Kind, of.Namespace, name}}
}

// objectsIn returns the reconciler objects in a file, up to the first YAML error.
func objectsIn(content []byte) []Object {
	var objects []Object
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var document struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string `yaml:"kind"`
			Metadata   struct {
				Name      string `yaml:"name"`
				Namespace string `yaml:"namespace"`
			} `yaml:"metadata"`
		}
		if err := decoder.Decode(&document); err != nil {
			return objects
		}
		group, _, _ := strings.Cut(document.APIVersion, "/")
		if reconciler.IsReconciled(group, document.Kind) && document.Metadata.Name != "" {
			objects = append(objects, Object{document.Kind, document.Metadata.Namespace, document.Metadata.Name})
		}
	}
}
