package render

import (
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/secretservice"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Objects returns the objects whose status gives the verdict: see [reconciler.IsReconciled]. It reads files only for users'
// templates.
func (t *Templates) Objects(subject Subject, files []AssignmentFile) []folder.ObjectRef {
	host := t.hostOf(subject.Assignment)
	var objects []folder.ObjectRef
	for _, template := range host.templates {
		switch {
		case template.isBuiltin && template.kind == "reconciler":
			objects = append(objects, builtinObjects(host.reconciler, subject)...)
		case template.isBuiltin && template.kind == "secret":
			objects = append(objects, t.builtinSecrets(host.service, subject)...)
		case !template.isBuiltin && template.contentType == "yaml":
			for _, file := range files {
				if file.Name != template.file {
					continue
				}
				if !file.isRead { // up to the first error
					documents, _ := fleet.ReadObjects(string(file.Content))
					for _, object := range documents {
						file.objects = appendReconciled(file.objects, identityOf(object))
					}
				}
				objects = append(objects, file.objects...)
			}
		}
	}
	for i := range subject.Encrypted {
		one := &subject.Encrypted[i]
		if slices.ContainsFunc(files, func(file AssignmentFile) bool { return file.Name == one.FileName() }) { // otherwise another folder has it
			group, kind := one.Object()
			objects = appendReconciled(objects, identity{group, kind, one.Namespace, one.Name})
		}
	}
	return objects
}

func builtinObjects(of *reconciler.Reconciler, subject Subject) []folder.ObjectRef {
	kind := of.KindFor(manifestsOf(&subject.Assignment.Target.Target.Manifests))
	if kind == nil {
		return nil
	}
	name := objectName(subject.Assignment.Target, subject.Assignment.Host, subject.Assignment.Namespace, subject.Environment)
	return []folder.ObjectRef{{Kind: kind.Kind, Namespace: of.Namespace, Name: name}}
}

func (x *fleetIndex) builtinSecrets(of *secretservice.Service, subject Subject) (objects []folder.ObjectRef) {
	if len(subject.Secrets) == 0 {
		return nil
	}
	if name := secretName(subject.Assignment.Target.Target); name != "" {
		objects = appendReconciled(objects, identity{of.Kind.Group, of.Kind.Kind, subject.Assignment.Namespace, name})
	}
	if values := x.valuesSecretOf(subject); values != nil {
		objects = appendReconciled(objects, identity{of.Kind.Group, of.Kind.Kind, values["namespace"].(string), values["name"].(string)})
	}
	return objects
}

func appendReconciled(to []folder.ObjectRef, of identity) []folder.ObjectRef {
	if of.name == "" || !reconciler.IsReconciled(of.group, of.kind) {
		return to
	}
	return append(to, folder.ObjectRef{Kind: of.kind, Namespace: of.namespace, Name: of.name})
}
