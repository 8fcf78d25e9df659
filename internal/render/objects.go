package render

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Object is the reference of a reconciler object.
type Object struct {
	Kind      string
	Namespace string // empty where the file does not say
	Name      string
}

// reconciled are the kinds of reconciler objects whose status shows the verdict of an assignment, by API group.
var reconciled = map[string]map[string]bool{
	"kustomize.toolkit.fluxcd.io": set("Kustomization"),
	"helm.toolkit.fluxcd.io":      set("HelmRelease"),
	"argoproj.io":                 set("Application"),
	"fleet.cattle.io":             set("GitRepo", "HelmOp"),
}

// Objects returns the reconciler objects of an assignment, of the kinds Kustomization, HelmRelease, Application,
// GitRepo and HelmOp, or ApplicationSet on a hub. files are those that [Templates.Render] returned; they are read only
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
			objects = append(objects, builtinObjects(template.name, subject)...)
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

func builtinObjects(reconciler string, subject Subject) []Object {
	manifests := &subject.Assignment.Target.Target.Manifests
	name := objectName(subject.Assignment.Target, subject.Assignment.Namespace)
	switch {
	case reconciler == "flux" && isChart(manifests):
		return []Object{{"HelmRelease", "flux-system", name}}
	case reconciler == "flux":
		return []Object{{"Kustomization", "flux-system", name}}
	case reconciler == "argocd":
		return []Object{{"Application", "argocd", name}}
	case reconciler == argoHub:
		return []Object{{"ApplicationSet", "argocd", name}}
	case reconciler == "fleet" && manifests.Storage == "git":
		return []Object{{"GitRepo", "fleet-local", name}}
	case reconciler == "fleet":
		return []Object{{"HelmOp", "fleet-local", name}}
	}
	return nil
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
		if reconciled[group][document.Kind] && document.Metadata.Name != "" {
			objects = append(objects, Object{document.Kind, document.Metadata.Namespace, document.Metadata.Name})
		}
	}
}
