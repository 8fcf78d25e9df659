// Package agent renders the objects that a cluster, or a hub, needs so that an agent follows the cluster's folders
// of a GitOps repository: the agent's own manifests, the sources that it reads, its credentials, and its reports to
// the Git host. It connects to nothing.
package agent

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// Object is one object that has to be on the cluster or on its hub.
type Object struct {
	*unstructured.Unstructured
	// OnHub says that the object has to be on the hub, as all objects of its agent.
	OnHub bool
	Stage Stage
	Part  Part
	// Shared says that the agents of other clusters need the object, too: it is removed with the last of them.
	Shared bool
	// Environment is the label of the environment whose clusters share the object; "" for an object of all environments.
	Environment string
	// Partial says that the object belongs to others and only some fields of it are Flotilla's: when the agent is
	// removed, these fields are, and the object stays.
	Partial bool
	// Merged are the keys of data, in order, that credentials and feedback have in an object of the agent's own manifests.
	Merged []string
	// FromCredentials are the paths of fields, of an object that is no Secret, whose values are among the credentials, such
	// as certificates. They are in no state, either.
	FromCredentials [][]string
	// Reports says that the status of the object shows when it is ready.
	Reports bool
}

// Stage is when an object is applied: all objects of a stage are applied, and the API serves their kinds, before the
// next stage.
type Stage int

// The stages, in their order.
const (
	Definitions Stage = iota // CustomResourceDefinitions
	Namespaces
	Rest
)

func (s Stage) String() string { return [...]string{"definitions", "namespaces", "rest"}[s] }

// Part is what an object is for.
type Part string

// The parts. Root objects are the last to be applied, and the first to be removed.
const (
	Install    Part = "install"    // the agent's own manifests
	Credential Part = "credential" // a Secret that holds something secret
	Source     Part = "source"     // what the agent reads, and what it may do
	Feedback   Part = "feedback"   // reports to the Git host
	Root       Part = "root"       // follows a folder
)

// ID identifies an object.
type ID struct {
	OnHub                        bool
	Group, Kind, Namespace, Name string
}

// ID is the identity of the object. The version of its API is no part of it.
func (o *Object) ID() ID {
	return ID{o.OnHub, o.GroupVersionKind().Group, o.GetKind(), o.GetNamespace(), o.GetName()}
}

// String is the name of the object in messages, as in "Kustomization flux-system/flotilla on the hub".
func (i ID) String() string {
	name := reconciler.ObjectName{Kind: i.Kind, Namespace: i.Namespace, Name: i.Name}.String()
	if i.OnHub {
		name += " on the hub"
	}
	return name
}

// Problem is a mistake in settings, or with Warning something that may be one.
type Problem struct {
	fleet.Finding      // at the path of an attribute, as in HCL; "" for the settings as a whole
	Warning       bool // the settings are accepted
}

// Failed says whether any of the problems is more than a warning.
func Failed(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning })
}

// Render returns the objects in the order in which they are applied, and all problems of the settings. Where a problem
// is more than a warning, there are no objects. The same settings give the same objects.
func Render(settings Settings) ([]Object, []Problem) { return renderWith(settings, readDocuments) }

func renderWith(settings Settings, read func(text string) []document) ([]Object, []Problem) {
	s := settings.withDefaults()
	r := &renderer{settings: &s, read: read}
	r.check()
	if Failed(r.problems) {
		return nil, r.problems
	}
	r.install()
	r.placeDefined()
	r.render()
	r.checkInstalled()
	r.arrange()
	r.checkSchemas()
	if Failed(r.problems) {
		return nil, r.problems
	}
	objects := make([]Object, len(r.objects))
	for i, o := range r.objects {
		objects[i] = *o
	}
	return objects, r.problems
}

// renderer collects objects and problems.
type renderer struct {
	read     func(text string) []document // reads a text of the agent's own manifests
	settings *Settings
	objects  []*Object // whose pointers stay what they are when more are added
	problems []Problem
}

// Order is the place of a part among those of a stage, in the order in which they are applied.
func (p Part) Order() int {
	return slices.Index([]Part{Install, Credential, Source, Feedback, Root}, p)
}

// arrange sorts the objects and merges those with the same identity. Where the agent's own manifests have a namespace,
// or an object that Flotilla adds fields to, only that one is left.
func (r *renderer) arrange() {
	installed := map[ID]*Object{}
	for _, o := range r.objects {
		o.OnHub = r.settings.of().OnHub()
		if o.Part == Install {
			installed[o.ID()] = o
		}
	}
	fromInstall := map[ID]bool{}
	for _, o := range r.objects {
		given := installed[o.ID()]
		switch {
		case o.Part == Install || given == nil:
		case o.Partial:
			r.mergeFields(o, given)
			fromInstall[o.ID()] = true
		case o.Stage == Namespaces:
			fromInstall[o.ID()] = true
		default:
			r.problem("install", "%s is an object that Flotilla renders: leave it out", o.ID())
		}
	}
	r.objects = slices.DeleteFunc(r.objects, func(o *Object) bool { return o.Part != Install && fromInstall[o.ID()] })
	slices.SortStableFunc(r.objects, func(a, b *Object) int {
		return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Part.Order(), b.Part.Order()))
	})
}

// mergeFields adds the fields of a partial object to an object of the agent's own manifests, or to another partial one.
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
			if into.Part == Install && (some.Part == Credential || some.Part == Feedback) {
				into.Merged = append(into.Merged, key)
			}
		}
		into.Object[field] = fields
	}
	into.FromCredentials = append(into.FromCredentials, some.FromCredentials...)
}
