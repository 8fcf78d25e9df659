package reconciler

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Status is the status of an object, with the objects that belong to it.
func (o *Listing) Status(one *Object) verdict.Status {
	if one.of.Status == nil {
		return one.ready(nil)
	}
	return one.of.Status(o, one)
}

// StatusOf is the status of a single object, whatever it depends on.
func StatusOf(one *unstructured.Unstructured) verdict.Status {
	found := Index(Answer{Objects: []*unstructured.Unstructured{one}})
	found.alone = true
	if len(found.All) == 0 {
		return verdict.Status{Verdict: verdict.Unknown, Message: "the status of objects of this kind cannot be read"}
	}
	return found.Status(found.All[0])
}

// IsReconciled says whether the status of an object shows the verdict of an assignment whose folder has it, or what has
// made it.
func (o *Object) IsReconciled() bool { return o.of.isReconciled() && o.of.Template == "" }

// Maker is what has made an object by a template, which is what a folder has; else the object itself.
func (o *Object) Maker() (name ObjectName, generated bool) {
	for _, owner := range o.from.GetOwnerReferences() {
		if IsTemplated(owner.Kind) && KindNamed(owner.Kind).MakesKind(o.Kind) {
			return ObjectName{owner.Kind, o.Namespace, owner.Name}, true
		}
	}
	return o.ObjectName, false
}

// Made says whether an object is as that wants it which has made it by a template.
func (o *Listing) Made(one *Object, by ObjectName) verdict.Status {
	maker := o.byName[by]
	if maker == nil {
		return o.absent(one, by)
	}
	return maker.of.Made(maker, one)
}

// Makers has the status of each object that makes others by a template.
func (o *Listing) Makers() map[ObjectName]verdict.Status {
	makers := map[ObjectName]verdict.Status{}
	for _, one := range o.All {
		if one.of.Template != "" {
			makers[one.ObjectName] = o.Status(one)
		}
	}
	return makers
}

// ByDestination are the objects on a hub that are applied to other clusters, by the name of the cluster.
func (o *Listing) ByDestination() map[string]*Listing {
	byCluster := map[string]*Listing{}
	for _, one := range o.All {
		if one.of.Destination == "" {
			continue
		}
		name := one.text(strings.Split(one.of.Destination, ".")...)
		if byCluster[name] == nil {
			byCluster[name] = &Listing{byName: o.byName, unlisted: o.unlisted}
		}
		byCluster[name].All = append(byCluster[name].All, one)
	}
	return byCluster
}
