// Package agent knows what has to be on a cluster, or on a hub, so that an agent follows the cluster's folders
// of a GitOps repository: the agent's own manifests, where it reads, with which credentials, and whom it
// tells. It makes objects and asks nobody.
package agent

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// Object is one object that has to be there.
type Object struct {
	*unstructured.Unstructured
	Where Where
	Stage Stage
	Part  Part
	// Shared says that agents of other clusters have the object, too: it goes with the last of them.
	Shared bool
	// Environment is the label of the environment whose clusters share the object; "" for those of all.
	Environment string
	// Partial says that the object is one that others have, or will have, and of which only some fields are ours:
	// these go, and the object stays.
	Partial bool
	// Reports says that the object has conditions or a health that say when it has done what it is for.
	Reports bool
}

// Where is a cluster on which an object has to be.
type Where string

// The clusters of an agent: the one that follows its folders, and the one whose Argo CD deploys to it.
const (
	OnCluster Where = "cluster"
	OnHub     Where = "hub"
)

// Stage is when an object is applied: one stage is there, and the API knows of it, before the next one is
// tried.
type Stage int

// The stages, in their order.
const (
	Definitions Stage = iota // of kinds
	Namespaces
	Rest
)

func (s Stage) String() string { return [...]string{"definitions", "namespaces", "rest"}[s] }

// Part is what an object is for.
type Part string

// The parts. What follows the folders is the last to be applied, and the first to go.
const (
	Install    Part = "install"    // the agent's own manifests
	Credential Part = "credential" // a Secret that holds something secret
	Source     Part = "source"     // where the agent reads, and what it may do
	Feedback   Part = "feedback"   // whom it tells
	Root       Part = "root"       // what follows the folders
)

// ID names an object wherever it is.
type ID struct {
	Where                        Where
	Group, Kind, Namespace, Name string
}

// ID is the identity of the object. The version of its API is no part of it.
func (o *Object) ID() ID {
	return ID{o.Where, o.GroupVersionKind().Group, o.GetKind(), o.GetNamespace(), o.GetName()}
}

// String names the object as people do.
func (i ID) String() string {
	name := i.Kind + " " + i.Name
	if i.Namespace != "" {
		name = i.Kind + " " + i.Namespace + "/" + i.Name
	}
	if i.Where == OnHub {
		name += " on the hub"
	}
	return name
}

// Problem is what is wrong with settings, or smells of a mistake.
type Problem struct {
	Path    string // as one would write it in HCL; "" is all of the settings
	Message string
	Warning bool // nothing is refused for it
}

func (p Problem) String() string {
	return fleet.Finding{Path: p.Path, Message: p.Message}.String()
}

// Failed reports whether any of the problems is more than a warning.
func Failed(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning })
}

// Render returns the objects in the order in which they are applied, and all that is wrong with the settings.
// Where more than warnings are among the problems, there are no objects. The same settings give the same
// objects.
func Render(settings Settings) ([]Object, []Problem) { return renderWith(settings, readDocuments) }

func renderWith(settings Settings, read func(text string) []document) ([]Object, []Problem) {
	s := settings.withDefaults()
	r := &renderer{settings: &s, read: read}
	r.check()
	switch {
	case Failed(r.problems):
		return nil, r.problems
	default:
		r.render()
	}
	r.install()
	r.placeDefined()
	r.addDefaultProject()
	r.checkInstalled()
	r.arrange()
	if Failed(r.problems) {
		return nil, r.problems
	}
	return r.objects, r.problems
}

func (r *renderer) render() {
	switch r.settings.Reconciler {
	case Flux:
		r.flux()
	case ArgoCD:
		r.argocd()
	case ArgoCDHub:
		r.hub()
	case RancherFleet:
		r.rancher()
	}
}

// renderer collects what is made.
type renderer struct {
	read           func(text string) []document // a text of the agent's own manifests
	settings       *Settings
	objects        []Object
	problems       []Problem
	defaultProject bool // Argo CD's, where nobody else makes it
}

// add adds one of our own objects.
func (r *renderer) add(where Where, part Part, apiVersion, kind, namespace, name string, content map[string]any) *Object {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	for key, value := range content {
		u.Object[key] = value
	}
	u.SetName(name)
	if namespace != "" {
		u.SetNamespace(namespace)
	}
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["app.kubernetes.io/managed-by"] = "flotilla"
	u.SetLabels(labels)
	r.objects = append(r.objects, Object{Unstructured: u, Where: where, Stage: Rest, Part: part})
	return &r.objects[len(r.objects)-1]
}

// namespace adds a namespace, which others may have made, and about which nothing more is said.
func (r *renderer) namespace(where Where, name string) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	u.SetName(name)
	r.objects = append(r.objects, Object{Unstructured: u, Where: where, Stage: Namespaces, Part: Source})
}

// secret adds a Secret of texts.
func (r *renderer) secret(where Where, namespace, name string, labels map[string]string, texts map[string]string) *Object {
	data := map[string]any{}
	for key, text := range texts {
		if text != "" {
			data[key] = text
		}
	}
	content := map[string]any{"type": "Opaque", "stringData": data}
	o := r.add(where, Credential, "v1", "Secret", namespace, name, content)
	o.SetLabels(merged(o.GetLabels(), labels))
	return o
}

func merged(a, b map[string]string) map[string]string {
	for key, value := range b {
		a[key] = value
	}
	return a
}

// partOrder is the order in which parts are applied within a stage.
var partOrder = map[Part]int{Install: 0, Credential: 1, Source: 2, Feedback: 3, Root: 4}

// arrange puts the objects in order and finds those of one identity. A namespace that the agent's own
// manifests have is theirs, and what is to be in one of their objects comes with it.
func (r *renderer) arrange() {
	installed := map[ID]*Object{}
	for i := range r.objects {
		if r.objects[i].Part == Install {
			installed[r.objects[i].ID()] = &r.objects[i]
		}
	}
	fromInstall := map[ID]bool{}
	for i := range r.objects {
		o := &r.objects[i]
		given := installed[o.ID()]
		switch {
		case o.Part == Install || given == nil:
		case o.Partial:
			r.mergeFields(o, given)
			fromInstall[o.ID()] = true
		case o.Stage == Namespaces:
			fromInstall[o.ID()] = true
		default:
			r.problem("install", "%s is what Flotilla makes: leave it out", o.ID())
		}
	}
	r.objects = slices.DeleteFunc(r.objects, func(o Object) bool { return o.Part != Install && fromInstall[o.ID()] })
	slices.SortStableFunc(r.objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(partOrder[a.Part], partOrder[b.Part]), strings.Compare(string(a.Where), string(b.Where)))
	})
}

// mergeFields adds what some fields are to be to an object of the agent's own manifests.
func (r *renderer) mergeFields(some, into *Object) {
	for _, field := range []string{"data", "stringData"} {
		values, _ := some.Object[field].(map[string]any)
		if len(values) == 0 {
			continue
		}
		fields, isObject := into.Object[field].(map[string]any)
		if into.Object[field] == nil {
			fields, isObject = map[string]any{}, true
		}
		if !isObject {
			r.problem("install", "the %s of %s is no object", field, into.ID())
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if given, twice := fields[key]; twice && given != values[key] {
				r.problem("install", "%s has %q in it, which Flotilla sets: leave it out", into.ID(), key)
			}
			fields[key] = values[key]
		}
		into.Object[field] = fields
	}
}
