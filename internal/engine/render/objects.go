package render

import (
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/naming"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/secretservice"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Objects returns the objects whose status gives the verdict: see [reconciler.IsReconciled]. It reads files only for users'
// templates.
func (t *Templates) Objects(subject Subject, files []AssignmentFile) []folder.ObjectRef {
	host := t.hostOf(subject.Assignment)
	var found []folder.ObjectRef
	for _, template := range host.templates {
		switch {
		case template.isBuiltin && template.kind == "reconciler":
			found = append(found, builtinObjects(host.reconciler, subject)...)
		case template.isBuiltin && template.kind == "secret":
			found = append(found, t.builtinSecrets(host.service, subject)...)
		case !template.isBuiltin && template.contentType == "yaml":
			for _, file := range files {
				if file.Name != template.file {
					continue
				}
				if !file.isRead { // up to the first error
					documents, _ := fleet.ReadObjects(string(file.Content))
					for _, object := range documents {
						file.objects = appendReconciled(file.objects, objects.IdentityOf(object))
					}
				}
				found = append(found, file.objects...)
			}
		}
	}
	for i := range subject.Encrypted {
		one := &subject.Encrypted[i]
		if slices.ContainsFunc(files, func(file AssignmentFile) bool { return file.Name == one.FileName() }) { // otherwise another folder has it
			group, kind := one.Object()
			found = appendReconciled(found, objects.Identity{Group: group, Kind: kind, Namespace: one.Namespace, Name: one.Name})
		}
	}
	return found
}

func builtinObjects(of *reconciler.Reconciler, subject Subject) []folder.ObjectRef {
	kind := of.KindFor(manifestsOf(&subject.Assignment.Target.Target.Manifests))
	if kind == nil {
		return nil
	}
	name := objectName(subject.Assignment.Target, subject.Assignment.Host, subject.Assignment.Namespace, subject.Environment)
	return []folder.ObjectRef{{Kind: kind.Kind, Namespace: of.Namespace, Name: name}}
}

func (x *fleetIndex) builtinSecrets(of *secretservice.Service, subject Subject) (found []folder.ObjectRef) {
	if len(subject.Secrets) == 0 {
		return nil
	}
	secret := objects.Identity{Group: of.Kind.Group, Kind: of.Kind.Kind, Namespace: subject.Assignment.Namespace}
	if secret.Name = secretName(subject.Assignment.Target.Target); secret.Name != "" {
		found = appendReconciled(found, secret)
	}
	if values := x.valuesSecretOf(subject); values != nil {
		secret.Namespace, secret.Name = values["namespace"].(string), values["name"].(string)
		found = appendReconciled(found, secret)
	}
	return found
}

func appendReconciled(to []folder.ObjectRef, of objects.Identity) []folder.ObjectRef {
	if of.Name == "" || !reconciler.IsReconciled(of.Group, of.Kind) {
		return to
	}
	return append(to, folder.ObjectRef{Kind: of.Kind, Namespace: of.Namespace, Name: of.Name})
}

// maxLabel is the largest length of a label value.
const maxLabel = 63

// LabelValue converts a name to a label value: "clusters/a" to "clusters.a". A long or invalid name ends in a hash.
func LabelValue(name string) string {
	value := name
	if cluster, isCluster := strings.CutPrefix(name, "clusters/"); isCluster {
		value = "clusters." + cluster
	}
	if value == "" || fleet.IsPlainLabel(value) {
		return value
	}
	value = strings.Map(func(r rune) rune {
		if r < 0x80 && (isAlphanumeric(byte(r)) || r == '.' || r == '_') {
			return r
		}
		return '-'
	}, value)
	return naming.AddHash(strings.TrimLeft(value, "-._"), name, maxLabel)
}

func isAlphanumeric(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' }

// objectName names the reconciler objects of a deployment target: after the namespace, unless others may share it.
func objectName(target *schedule.Target, host *schedule.Host, namespace, environment string) string {
	known, longest := reconciler.Named(host.ClusterType.Reconciler), maxLabel
	if known != nil && known.LongestName > 0 {
		longest = known.LongestName
	}
	if target.Target.Namespace == "" {
		return naming.Shorten(namespace, longest)
	}
	of := namespace + "/" + target.Name
	if known.OnHub() {
		of = environment + "/" + host.FirstName() + "/" + of
	}
	return naming.AddHash(namespace+"-"+target.Name, of, longest)
}
