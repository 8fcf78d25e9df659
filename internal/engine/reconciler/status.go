package reconciler

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Status returns the status of an object together with related objects.
func (l *Listing) Status(one *ListedObject) verdict.Status {
	if one.of.Status == nil {
		return one.ready(nil)
	}
	return one.of.Status(l, one)
}

// StatusOf returns the status of a single object.
func StatusOf(one *unstructured.Unstructured) verdict.Status {
	found := NewListing(Answer{Objects: []*unstructured.Unstructured{one}})
	found.alone = true
	if len(found.All) == 0 {
		return verdict.Status{Verdict: verdict.Unknown, Message: "the status of objects of this kind cannot be read"}
	}
	return found.Status(found.All[0])
}

// IsReconciled reports whether the object shows the verdict of the assignment whose folder has it or its maker.
func (o *ListedObject) IsReconciled() bool { return o.of.isReconciled() && o.of.Template == "" }

// Maker returns the object that created this one from a template, or else itself.
func (o *ListedObject) Maker() (name ObjectName, generated bool) {
	for _, owner := range o.from.GetOwnerReferences() {
		if IsTemplated(owner.Kind) && KindNamed(owner.Kind).MakesKind(o.Kind) {
			return ObjectName{owner.Kind, o.Namespace, owner.Name}, true
		}
	}
	return o.ObjectName, false
}

// Made reports whether an object matches the template of its maker.
func (l *Listing) Made(one *ListedObject, by ObjectName) verdict.Status {
	maker := l.byName[by]
	if maker == nil {
		return l.absent(one, by)
	}
	return maker.of.Made(maker, one)
}

// Makers returns the status of each object that creates others from a template.
func (l *Listing) Makers() map[ObjectName]verdict.Status {
	makers := map[ObjectName]verdict.Status{}
	for _, one := range l.All {
		if one.of.Template != "" {
			makers[one.ObjectName] = l.Status(one)
		}
	}
	return makers
}

// ByDestination groups the objects on a hub by the cluster they apply to, or by host label if they name its server.
func (l *Listing) ByDestination() (byCluster, byHost map[string]*Listing) {
	byCluster, byHost = map[string]*Listing{}, map[string]*Listing{}
	for _, one := range l.All {
		if one.of.Destination == "" {
			continue
		}
		field := strings.Split(one.of.Destination, ".")
		to, name := byCluster, one.text(field...)
		field[len(field)-1] = "server"
		if server := one.text(field...); name == "" && server != HubServer {
			to, name = byHost, one.Labels()[HostLabel]
		}
		if to[name] == nil {
			to[name] = &Listing{byName: l.byName, unlisted: l.unlisted}
		}
		to[name].All = append(to[name].All, one)
	}
	return byCluster, byHost
}
