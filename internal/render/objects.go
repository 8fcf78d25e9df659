package render

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/reconciler"
)

// Objects returns the objects of an assignment whose status shows its verdict: see [reconciler.IsReconciled].
// files are those that [Templates.Render] returned; they are read only where a template is the user's own, or
// brings Secrets.
func (t *Templates) Objects(subject Subject, files []File) []folder.Object {
	host := t.hosts[subject.Assignment.Host.ClusterType.Name]
	if host == nil {
		return nil
	}
	var objects []folder.Object
	for _, template := range host.templates {
		switch {
		case template.isBuiltin && template.kind == "reconciler":
			objects = append(objects, builtinObjects(host.reconciler, subject)...)
		case template.mayHaveObjects() && template.contentType == "yaml":
			for _, file := range files {
				if file.Name != template.file {
					continue
				}
				if !file.isRead { // up to the first error
					documents, _ := fleet.ReadYAMLDocuments(string(file.Content), func(string) bool { return false })
					for _, document := range documents {
						object, _ := document.(map[string]any)
						file.objects = appendReconciled(file.objects, identityOf(object))
					}
				}
				objects = append(objects, file.objects...)
			}
		}
	}
	return objects
}

// mayHaveObjects says whether the files of a template have to be read to know the objects in them.
func (c *compiled) mayHaveObjects() bool { return !c.isBuiltin || c.kind == "secret" }

func builtinObjects(of *reconciler.Reconciler, subject Subject) []folder.Object {
	kind := of.KindFor(manifestsOf(&subject.Assignment.Target.Target.Manifests))
	if kind == nil {
		return nil
	}
	name := objectName(subject.Assignment.Target, subject.Assignment.Host, subject.Assignment.Namespace, subject.Environment)
	return []folder.Object{{Kind: kind.Kind, Namespace: of.Namespace, Name: name}}
}

// appendReconciled appends an object if it is one of a reconciler.
func appendReconciled(to []folder.Object, of identity) []folder.Object {
	if of.name == "" || !reconciler.IsReconciled(of.group, of.kind) {
		return to
	}
	return append(to, folder.Object{Kind: of.kind, Namespace: of.namespace, Name: of.name})
}
