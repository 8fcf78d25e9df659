package changes

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// kind is the kind of an object, as lines name it.
type kind string

const (
	byRollback    kind = "rollback to commit"
	byEnvironment kind = "environment"
	byContainer   kind = "config container"
	byWorkload    kind = "workload"
	byPolicy      kind = "target policy"
	byPlacement   kind = "placement of target policy"
	byAssignments kind = "the explicit assignments"
	byClusterType kind = "cluster type"
	byCluster     kind = "cluster"
	byWorkspace   kind = "workspace"
	byTemplate    kind = "template"
	byHydration   kind = "the hydration settings"
	byRepo        kind = "gitops_repo"
	byName        kind = "the new name of the owner"
	byProvider    kind = "provider"
	byHand        kind = "drift"

	ofTarget kind = "deployment target" // which lines call by its workload
)

// kindOrder is the order of causes in a line.
var kindOrder = []kind{
	byRollback, byEnvironment, byContainer, byWorkload, byPolicy, byPlacement, byAssignments, byClusterType,
	byCluster, byWorkspace, byTemplate, byHydration, byRepo, byName, byProvider, byHand,
}

// cause is what a line names: an object of the fleet that was changed, added or removed, or something beside the fleet.
type cause struct {
	kind kind
	name string
	how  string // isNew, isRemoved, or empty for changed
	// moved says of a workload how its artifact moves, as [Finals].Moved; or "".
	moved string
}

// roles are types of template. Each type renders one file.
type roles int

const (
	reconcilerRole roles = 1 << iota
	namespaceRole
	configRole
	policyRole
	secretRole
	encryptedRole // a file that somebody else has encrypted, which no template renders
	allRoles      = reconcilerRole | namespaceRole | configRole | policyRole | secretRole
)

// rolesOfType are the files of the types of template.
var rolesOfType = map[string]roles{
	"reconciler": reconcilerRole, "namespace": namespaceRole, "config": configRole, "policy": policyRole, "secret": secretRole,
}

// roleOf returns the role of a file of an assignment's folder, by its name; 0 for any other file.
func roleOf(file string) roles {
	called, _, _ := strings.Cut(file, ".")
	switch {
	case called == "platform-secrets":
		return secretRole
	case strings.HasPrefix(called, "encrypted-"):
		return encryptedRole
	}
	return rolesOfType[strings.TrimPrefix(called, "platform-")]
}

// rolesOfField are the files in which the built-in templates show an attribute of a cluster type, cluster, workload or
// deployment target.
var rolesOfField = map[string]roles{
	"reconciler": reconcilerRole, "parameters": reconcilerRole, "manifests": reconcilerRole, "requires": reconcilerRole,
	"namespace_service": namespaceRole | policyRole, "config_type": configRole,
	"secret_service": secretRole, "secret_stores": secretRole,
	"labels": reconcilerRole | namespaceRole | policyRole, "workspace": reconcilerRole | namespaceRole | policyRole,
	"cluster_type": allRoles, "namespace": allRoles,
}

// fleetObject is an object of the fleet that differs between two versions.
type fleetObject struct {
	cause  cause
	fields map[string]bool // the attributes that differ, as JSON calls them; nil where it is new or removed
	shown  roles           // the files that are rendered from what differs
	// keys are, of a config container, those whose values it can have changed; nil: any.
	keys map[string]bool
}

// has says whether one of the attributes differs. Of an object that is new or removed, all do.
func (o *fleetObject) has(fields ...string) bool {
	return o != nil && (o.fields == nil || slices.ContainsFunc(fields, func(field string) bool { return o.fields[field] }))
}

// objectName is a kind and a name; of a template, its type, a slash and its name.
type objectName struct {
	kind kind
	name string
}

// differences are the objects that differ between two versions of the fleet.
type differences map[objectName]*fleetObject

// compareVersions returns nil where one of the versions is not known.
func compareVersions(before, after *Version) differences {
	if before == nil || after == nil || before.Fleet == nil || after.Fleet == nil {
		return nil
	}
	old, wanted := before.Fleet, after.Fleet
	oldTargets, wantedTargets := targetsOf(before), targetsOf(after)
	workloads := map[string]string{} // by the full name of a deployment target
	for _, one := range slices.Concat(oldTargets, wantedTargets) {
		workloads[one.fullName()] = one.workload
	}
	d := differences{}
	compare(d, byWorkspace, old.Workspaces, wanted.Workspaces, func(w *fleet.Workspace) string { return w.Name })
	compare(d, byClusterType, old.ClusterTypes, wanted.ClusterTypes, func(c *fleet.ClusterType) string { return c.Name })
	compare(d, byCluster, old.Clusters, wanted.Clusters, func(c *fleet.Cluster) string { return c.Name })
	compare(d, byPolicy, old.TargetPolicies, wanted.TargetPolicies, func(p *fleet.TargetPolicy) string { return p.Name })
	compare(d, byWorkload, old.Workloads, wanted.Workloads, func(w *fleet.Workload) string { return w.Name })
	compare(d, ofTarget, oldTargets, wantedTargets, (*target).fullName)
	compare(d, byContainer, containersOf(before), containersOf(after), func(c *container) string { return c.Name })
	compare(d, byTemplate, old.Templates, wanted.Templates, func(t *fleet.Template) string { return t.Type + "/" + t.Name })
	for of, shown := range map[objectName]struct {
		differs bool
		in      roles
	}{
		{byEnvironment, wanted.Environment}: {old.Environment != wanted.Environment, allRoles},
		{byHydration, ""}:                   {old.HydrationOrDefault() != wanted.HydrationOrDefault(), configRole | reconcilerRole},
		{byAssignments, ""}:                 {old.Explicit != wanted.Explicit || !reflect.DeepEqual(old.Assignments, wanted.Assignments), 0},
		{byRepo, ""}:                        {before.GitopsRepo != after.GitopsRepo, reconcilerRole | namespaceRole},
		{byProvider, ""}:                    {before.Provider != "" && after.Provider != "" && before.Provider != after.Provider, allRoles},
	} {
		if shown.differs {
			d[of] = &fleetObject{cause: cause{kind: of.kind, name: of.name}, fields: map[string]bool{}, shown: shown.in}
		}
	}
	for of, object := range d {
		switch of.kind {
		case byProvider:
			object.cause.name = before.Provider + " -> " + after.Provider
		case ofTarget:
			object.cause = cause{kind: byWorkload, name: workloads[of.name]}
			if workload := d[objectName{byWorkload, object.cause.name}]; workload != nil && workload.fields == nil {
				object.cause = workload.cause
			}
		case byTemplate:
			ofType, called, _ := strings.Cut(of.name, "/")
			object.cause.name, object.shown = called, rolesOfType[ofType]
		case byContainer:
			object.addContents(before.Config, after.Config)
		case byPolicy:
			object.shown = 0
		case byWorkspace:
			object.shown = namespaceRole | policyRole
			if object.has("service_account", "argocd_project") {
				object.shown |= reconcilerRole
			}
		}
	}
	return d
}

// withoutEffect are attributes that change nothing in a folder, and those that are compared on their own.
var withoutEffect = []string{"description", "decryption", "config_schemas", "deployment_targets"}

// compare adds the objects of two lists that differ.
func compare[T any](d differences, of kind, before, after []T, nameOf func(*T) string) {
	old := make(map[string]*T, len(before))
	for i := range before {
		old[nameOf(&before[i])] = &before[i]
	}
	for i := range after {
		called := nameOf(&after[i])
		one := old[called]
		delete(old, called)
		if one == nil {
			d[objectName{of, called}] = &fleetObject{cause: cause{kind: of, name: called, how: isNew}, shown: allRoles}
			continue
		}
		if reflect.DeepEqual(one, &after[i]) {
			continue
		}
		before, after := membersOf(one), membersOf(&after[i])
		object := &fleetObject{cause: cause{kind: of, name: called}, fields: map[string]bool{}}
		for _, field := range unionOfKeys(before, after) {
			if !bytes.Equal(before[field], after[field]) && !slices.Contains(withoutEffect, field) {
				object.fields[field] = true
				object.shown |= rolesOfField[field]
			}
		}
		if len(object.fields) > 0 {
			d[objectName{of, called}] = object
		}
	}
	for called := range old {
		d[objectName{of, called}] = &fleetObject{cause: cause{kind: of, name: called, how: isRemoved}, shown: allRoles}
	}
}

// membersOf returns the attributes of an object as JSON.
func membersOf(value any) (members map[string]json.RawMessage) {
	text, _ := json.Marshal(value) // never fails: the model was read from JSON
	_ = json.Unmarshal(text, &members)
	return members
}

// target is a deployment target with its manifests, which the model does not have. Targets are compared one by one, since a
// change of one does not affect the folders of the others of its workload.
type target struct {
	*fleet.DeploymentTarget
	Manifests string `json:"manifests"` // any text that changes when they do
	workload  string
}

func (t *target) fullName() string { return fleet.FullName(t.workload, t.Name) }

func targetsOf(v *Version) []target {
	var all []target
	for workload, one := range v.Fleet.Targets() {
		manifests := v.Manifests[fleet.FullName(workload.Name, one.Name)]
		if v.Manifests == nil && !one.ManifestsPending {
			text, _ := json.Marshal(one.Manifests) // never fails: they were read from JSON
			manifests = string(text)
		}
		all = append(all, target{one, manifests, workload.Name})
	}
	return all
}

// container is a config container with the digests of its data and of what it has beside them, which the model does not have.
type container struct {
	fleet.ConfigContainer
	Data    string `json:"data"`
	Secrets string `json:"secrets,omitempty"`
}

func containersOf(v *Version) []container {
	all := make([]container, len(v.Fleet.ConfigContainers))
	for i, one := range v.Fleet.ConfigContainers {
		all[i] = container{one, digestOf(v.Config[one.Name]), secretsDigest(v.Config[fleet.SecretsEntry(one.Name)])}
	}
	return all
}

// addContents sets, of a config container, the top-level keys whose values or references it can have changed, nil where its data is not
// known as JSON, and the files that show that, apart from those with its values.
func (o *fleetObject) addContents(before, after map[string]string) {
	data, ok := o.changedIn(o.cause.name, digestOf, before, after)
	references, referencesOK := o.changedIn(fleet.SecretsEntry(o.cause.name), secretsDigest, before, after)
	if ok && referencesOK {
		maps.Copy(data, references)
		o.keys = data
	}
	hasEncrypted := references[encryptedFiles]
	delete(references, encryptedFiles)
	o.shown = configRole
	if hasEncrypted || !referencesOK {
		o.shown |= encryptedRole
	}
	if len(references) > 0 || !referencesOK {
		o.shown |= secretRole
	}
}

// changedIn returns the keys of one entry of the configuration that the container can have changed; ok is false where the entry
// is not known as JSON.
func (o *fleetObject) changedIn(entry string, digest func(string) string, before, after map[string]string) (keys map[string]bool, ok bool) {
	old, ok := dataKeys(digest(before[entry]))
	wanted, wantedOK := dataKeys(digest(after[entry]))
	switch o.cause.how {
	case isNew:
		old, ok = nil, true
	case isRemoved:
		wanted, wantedOK = nil, true
	}
	if !ok || !wantedOK {
		return nil, false
	}
	all := o.has("labels", "priority", "from_config_map")
	keys = map[string]bool{}
	for _, key := range unionOfKeys(old, wanted) {
		one, had := old[key]
		other, has := wanted[key]
		if all || had != has || !bytes.Equal(one, other) {
			keys[key] = true
		}
	}
	return keys, true
}

// dataKeys returns the top-level keys of a container's data, or of a digest.
func dataKeys(text string) (map[string]json.RawMessage, bool) {
	text = strings.TrimPrefix(text, digestMark)
	if !strings.HasPrefix(text, "{") {
		return nil, false
	}
	keys := map[string]json.RawMessage{}
	return keys, json.Unmarshal([]byte(text), &keys) == nil
}
