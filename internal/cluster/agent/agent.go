// Package agent renders the objects that make an agent on a cluster or hub follow the cluster's folders of a GitOps
// repository: its own manifests, sources, credentials, and feedback to the Git host. It connects to nothing.
package agent

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// StagedObject is an object that must be on the cluster or on its hub.
type StagedObject struct {
	*unstructured.Unstructured
	Handling
	// FromCredentials are the paths of fields outside of Secrets with credentials, such as certificates. No state has
	// them.
	FromCredentials [][]string
	Reports         bool // the object's status shows when it is ready
}

// Handling is how an apply or removal treats an object.
type Handling struct {
	OnHub bool  `json:"on_hub,omitempty"` // belongs on the hub, like all objects of its agent
	Stage Stage `json:"stage"`
	Part  Part  `json:"part"`
	// Shared reports that agents of other clusters need the object, too.
	Shared bool `json:"shared,omitempty"`
	// Partial reports that Flotilla sets only some fields of others' object. Removing the agent removes them and keeps
	// the object.
	Partial bool `json:"partial,omitempty"`
	// Merged are the data keys, sorted, of credentials and feedback in an object of the agent's own manifests.
	Merged      []string `json:"merged,omitempty"`
	Environment string   `json:"environment,omitempty"` // label of the clusters that share it; "" for all
}

// Stage is the order of an apply: the objects of a stage are applied, and the API serves their kinds, before the next
// stage.
type Stage int

// The stages, in order.
const (
	Definitions Stage = iota
	Namespaces
	Rest
)

func (s Stage) String() string { return [...]string{"definitions", "namespaces", "rest"}[s] }

// Part is the purpose of an object.
type Part string

// The parts. Root objects are applied last and removed first.
const (
	Install    Part = "install"
	Credential Part = "credential"
	Source     Part = "source" // read by the agent, or limits its permissions
	Feedback   Part = "feedback"
	Root       Part = "root"
)

// ID identifies an object on the cluster or its hub.
type ID struct {
	OnHub                        bool
	Group, Kind, Namespace, Name string
}

// ID returns the identity of the object, which has no API version.
func (o *StagedObject) ID() ID {
	return ID{o.OnHub, o.GroupVersionKind().Group, o.GetKind(), o.GetNamespace(), o.GetName()}
}

// String returns a name such as "Kustomization flux-system/flotilla on the hub".
func (i ID) String() string {
	name := reconciler.ObjectName{Kind: i.Kind, Namespace: i.Namespace, Name: i.Name}.String()
	if i.OnHub {
		name += " on the hub"
	}
	return name
}

// SettingsProblem is a mistake in settings.
type SettingsProblem struct {
	fleet.Finding      // HCL path of an attribute
	Warning       bool // the settings are accepted
}

// Failed reports whether a problem is more than a warning.
func Failed(problems []SettingsProblem) bool {
	return slices.ContainsFunc(problems, func(p SettingsProblem) bool { return !p.Warning })
}

// Render returns the objects in order of apply, and all problems of the settings. There are no objects if a problem is
// more than a warning. It is deterministic.
func Render(settings Settings) ([]StagedObject, []SettingsProblem) {
	return renderWith(settings, readDocuments)
}

func renderWith(settings Settings, read func(text string) []yamlDocument) ([]StagedObject, []SettingsProblem) {
	s := settings.withDefaults()
	c := &settingsValidator{settings: &s}
	c.checkNames()
	c.checkRepository()
	c.checkCredentials()
	c.checkFeedback()
	c.checkRegistration()
	c.checkDecryption()
	if Failed(c.problems) {
		return nil, c.problems
	}
	r := &renderer{problemCollector: c.problemCollector, settings: &s, read: read}
	r.install()
	r.placeDefined()
	r.render()
	r.checkInstalled()
	r.sortObjects()
	r.checkSchemas()
	if Failed(r.problems) {
		return nil, r.problems
	}
	objects := make([]StagedObject, len(r.objects))
	for i, o := range r.objects {
		objects[i] = *o
	}
	return objects, r.problems
}

type renderer struct {
	problemCollector
	read     func(text string) []yamlDocument
	settings *Settings
	objects  []*StagedObject // pointers stay valid
}

// Order returns a part's position within a stage.
func (p Part) Order() int {
	return slices.Index([]Part{Install, Credential, Source, Feedback, Root}, p)
}

// sortObjects sorts the objects and merges equal identities. Namespaces and partial objects merge into the agent's own
// manifests.
func (r *renderer) sortObjects() {
	installed := map[ID]*StagedObject{}
	for _, o := range r.objects {
		o.OnHub = r.settings.reconciler().OnHub()
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
	r.objects = slices.DeleteFunc(r.objects, func(o *StagedObject) bool { return o.Part != Install && fromInstall[o.ID()] })
	slices.SortStableFunc(r.objects, func(a, b *StagedObject) int {
		return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Part.Order(), b.Part.Order()))
	})
}

// mergeFields adds the fields of a partial object.
func (r *renderer) mergeFields(some, into *StagedObject) {
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
