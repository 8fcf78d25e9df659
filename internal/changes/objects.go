package changes

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// kind is the kind of a cause, as lines name it.
type kind string

const (
	byRollback    kind = "rollback_to"
	byEnvironment kind = "environment"
	byContainer   kind = "config container"
	byWorkload    kind = "workload"
	byPolicy      kind = "target policy"
	byPlacement   kind = "placement of target policy"
	byAssignments kind = "explicit assignments"
	byClusterType kind = "cluster type"
	byCluster     kind = "cluster"
	byWorkspace   kind = "workspace"
	byTemplate    kind = "template"
	byHydration   kind = "hydration"
	byRepo        kind = "gitops_repo"
	byProvider    kind = "provider"
	byName        kind = "name"
	byHand        kind = "drift"
)

var kindOrder = func() map[kind]int {
	order := map[kind]int{}
	for i, k := range []kind{
		byRollback, byEnvironment, byContainer, byWorkload, byPolicy, byPlacement, byAssignments, byClusterType,
		byCluster, byWorkspace, byTemplate, byHydration, byRepo, byName, byProvider, byHand,
	} {
		order[k] = i
	}
	return order
}()

// cause is an object of the fleet that was changed, added or removed.
type cause struct {
	kind kind
	name string
	how  string // isNew, isGone, or empty for changed
}

// object is an object of the fleet that differs between two versions.
type object struct {
	cause  cause
	fields map[string]bool // the attributes that differ, as JSON calls them; nil where it is new or removed
	group  string          // the type of a template
	keys   map[string]bool // of a config container: the keys whose values it can have changed; nil: any
}

// has says whether one of the attributes differs. Of an object that is new or removed, all do.
func (o *object) has(fields ...string) bool {
	if o == nil {
		return false
	}
	if o.fields == nil {
		return true
	}
	for _, field := range fields {
		if o.fields[field] {
			return true
		}
	}
	return false
}

// isNewOrRemoved says whether one of the versions does not have the object.
func (o *object) isNewOrRemoved() bool { return o != nil && o.fields == nil }

// templateName is the type and name of a template.
type templateName struct{ group, name string }

// differences are the objects that differ between two versions of the fleet, by name.
type differences struct {
	workspaces, clusterTypes, clusters, workloads, targets, policies, containers map[string]*object
	templates                                                                    map[templateName]*object
	environment, hydration, assignments, repo, provider                          *object
	any                                                                          bool
	requires                                                                     bool // whether what a workload requires differs
}

// compareVersions returns nil where one of the versions is not known.
func compareVersions(before, after *Version) *differences {
	if before == nil || after == nil || before.Fleet == nil || after.Fleet == nil {
		return nil
	}
	old, wanted := before.Fleet, after.Fleet
	d := &differences{templates: map[templateName]*object{}}
	d.workspaces = compare(old.Workspaces, wanted.Workspaces, byWorkspace, func(w *fleet.Workspace) string { return w.Name })
	d.clusterTypes = compare(old.ClusterTypes, wanted.ClusterTypes, byClusterType, func(c *fleet.ClusterType) string { return c.Name })
	d.clusters = compare(old.Clusters, wanted.Clusters, byCluster, func(c *fleet.Cluster) string { return c.Name })
	d.policies = compare(old.TargetPolicies, wanted.TargetPolicies, byPolicy, func(p *fleet.TargetPolicy) string { return p.Name })
	d.workloads = compare(old.Workloads, wanted.Workloads, byWorkload, func(w *fleet.Workload) string { return w.Name })
	d.compareTargets(before, after)
	d.compareContainers(before, after)
	d.compareTemplates(old, wanted)
	single := func(kind kind, name string, differs bool) *object {
		if !differs {
			return nil
		}
		return &object{cause: cause{kind: kind, name: name}, fields: map[string]bool{}}
	}
	d.environment = single(byEnvironment, wanted.Environment, old.Environment != wanted.Environment)
	d.hydration = single(byHydration, "", old.HydrationOrDefault() != wanted.HydrationOrDefault())
	d.assignments = single(byAssignments, "", old.Explicit != wanted.Explicit || !sameJSON(old.Assignments, wanted.Assignments))
	d.repo = single(byRepo, "", before.GitopsRepo != after.GitopsRepo)
	d.provider = single(byProvider, "", before.Provider != "" && after.Provider != "" && before.Provider != after.Provider)
	d.any = len(d.workspaces)+len(d.clusterTypes)+len(d.clusters)+len(d.policies)+len(d.workloads)+len(d.targets)+
		len(d.containers)+len(d.templates) > 0 || d.environment != nil || d.hydration != nil || d.assignments != nil || d.repo != nil || d.provider != nil
	return d
}

// compare returns the objects of two lists that differ.
func compare[T any](before, after []T, kind kind, nameOf func(*T) string) map[string]*object {
	differ := map[string]*object{}
	old := make(map[string]*T, len(before))
	for i := range before {
		old[nameOf(&before[i])] = &before[i]
	}
	for i := range after {
		name := nameOf(&after[i])
		one := old[name]
		delete(old, name)
		if one == nil {
			differ[name] = &object{cause: cause{kind, name, isNew}}
		} else if fields := differentFields(one, &after[i]); len(fields) > 0 {
			differ[name] = &object{cause: cause{kind: kind, name: name}, fields: fields}
		}
	}
	for name := range old {
		differ[name] = &object{cause: cause{kind, name, isRemoved}}
	}
	return differ
}

// withoutEffect are attributes that change nothing in a folder.
var withoutEffect = []string{"description", "config_schemas"}

// differentFields returns the attributes that differ between two objects, except those without effect.
func differentFields(before, after any) map[string]bool {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	old, wanted := membersOfJSON(before), membersOfJSON(after)
	fields := map[string]bool{}
	for name, value := range old {
		if !bytes.Equal(value, wanted[name]) {
			fields[name] = true
		}
	}
	for name := range wanted {
		if _, had := old[name]; !had {
			fields[name] = true
		}
	}
	for _, name := range withoutEffect {
		delete(fields, name)
	}
	return fields
}

func membersOfJSON(value any) map[string]json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		return map[string]json.RawMessage{"": []byte(err.Error())} // never happens: the model was read from JSON
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &members); err != nil {
		return map[string]json.RawMessage{"": text}
	}
	return members
}

func sameJSON(a, b any) bool {
	one, err := json.Marshal(a)
	other, otherErr := json.Marshal(b)
	return err == nil && otherErr == nil && bytes.Equal(one, other)
}

// compareTargets compares deployment targets one by one, since a change of one target does not affect the folders of
// the others of its workload.
func (d *differences) compareTargets(before, after *Version) {
	type ofWorkload struct {
		workload string
		target   *fleet.DeploymentTarget
	}
	list := func(f *fleet.Fleet) []ofWorkload {
		var all []ofWorkload
		for i := range f.Workloads {
			for j := range f.Workloads[i].DeploymentTargets {
				all = append(all, ofWorkload{f.Workloads[i].Name, &f.Workloads[i].DeploymentTargets[j]})
			}
		}
		return all
	}
	d.targets = map[string]*object{}
	old := map[string]ofWorkload{}
	for _, one := range list(before.Fleet) {
		old[fleet.FullName(one.workload, one.target.Name)] = one
	}
	for _, one := range list(after.Fleet) {
		name := fleet.FullName(one.workload, one.target.Name)
		was, had := old[name]
		delete(old, name)
		of := cause{kind: byWorkload, name: one.workload}
		if !had {
			d.targets[name] = &object{cause: of}
			continue
		}
		fields := differentFields(was.target, one.target)
		if manifestsOf(before, name, was.target) != manifestsOf(after, name, one.target) {
			if fields == nil {
				fields = map[string]bool{}
			}
			fields["manifests"] = true
		}
		if len(fields) > 0 {
			d.targets[name] = &object{cause: of, fields: fields}
		}
	}
	for name, one := range old {
		d.targets[name] = &object{cause: cause{kind: byWorkload, name: one.workload}}
	}
	// A workload is new or removed with its targets. Otherwise only what its targets have in common counts.
	for name, object := range d.workloads {
		delete(object.fields, "deployment_targets")
		if object.fields != nil && len(object.fields) == 0 {
			delete(d.workloads, name)
		}
	}
	for _, workload := range d.workloads {
		d.requires = d.requires || workload.has("requires")
	}
	for _, target := range d.targets {
		if workload := d.workloads[target.cause.name]; workload.isNewOrRemoved() {
			target.cause = workload.cause
		}
	}
}

// manifestsOf returns a text that changes when the manifests of a deployment target do.
func manifestsOf(v *Version, name string, target *fleet.DeploymentTarget) string {
	if v.Manifests != nil || target.ManifestsPending {
		return v.Manifests[name]
	}
	text, err := json.Marshal(target.Manifests)
	if err != nil {
		return err.Error() // never happens: they were read from JSON
	}
	return string(text)
}

func (d *differences) compareContainers(before, after *Version) {
	d.containers = compare(before.Fleet.ConfigContainers, after.Fleet.ConfigContainers, byContainer,
		func(c *fleet.ConfigContainer) string { return c.Name })
	for i := range after.Fleet.ConfigContainers {
		name := after.Fleet.ConfigContainers[i].Name
		one, had := before.Config[name]
		other, has := after.Config[name]
		one, other = inOneForm(one, other)
		if d.containers[name] == nil && (had != has || one != other) {
			d.containers[name] = &object{cause: cause{kind: byContainer, name: name}, fields: map[string]bool{"data": true}}
		}
	}
	for _, object := range d.containers {
		object.keys = changedKeys(object, before.Config, after.Config)
	}
}

// changedKeys returns the top-level keys whose values the container can have changed; nil where its data is not known
// as JSON.
func changedKeys(container *object, before, after map[string]string) map[string]bool {
	name := container.cause.name
	one, other := inOneForm(before[name], after[name])
	old, ok := dataKeys(one)
	wanted, wantedOK := dataKeys(other)
	switch container.cause.how {
	case isNew:
		old, ok = nil, true
	case isRemoved:
		wanted, wantedOK = nil, true
	}
	if !ok || !wantedOK {
		return nil
	}
	all := container.has("labels", "priority", "from_config_map")
	keys := map[string]bool{}
	for _, key := range unionOfKeys(old, wanted) {
		one, had := old[key]
		other, has := wanted[key]
		if all || had != has || !bytes.Equal(one, other) {
			keys[key] = true
		}
	}
	return keys
}

// dataKeys returns the top-level keys of a container's data, or of its digest.
func dataKeys(text string) (map[string]json.RawMessage, bool) {
	text = strings.TrimPrefix(text, digestMark)
	if !strings.HasPrefix(text, "{") {
		return nil, false
	}
	keys := map[string]json.RawMessage{}
	return keys, json.Unmarshal([]byte(text), &keys) == nil
}

func (d *differences) compareTemplates(before, after *fleet.Fleet) {
	byType := func(templates []fleet.Template) map[string][]fleet.Template {
		types := map[string][]fleet.Template{}
		for _, template := range templates {
			types[template.Type] = append(types[template.Type], template)
		}
		return types
	}
	old, wanted := byType(before.Templates), byType(after.Templates)
	for _, group := range unionOfKeys(old, wanted) {
		for name, object := range compare(old[group], wanted[group], byTemplate, func(t *fleet.Template) string { return t.Name }) {
			object.group = group
			d.templates[templateName{group, name}] = object
		}
	}
}
