package changes

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// roles is a set of template types. Each type renders one file.
type roles int

const (
	reconcilerRole roles = 1 << iota
	namespaceRole
	configRole
	policyRole
	secretRole
	encryptedRole // a user's encrypted file, without a template
	allRoles      = reconcilerRole | namespaceRole | configRole | policyRole | secretRole
)

var rolesOfType = map[string]roles{
	"reconciler": reconcilerRole, "namespace": namespaceRole, "config": configRole, "policy": policyRole, "secret": secretRole,
}

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

// rolesOfField maps attributes to files in which built-in templates use them.
var rolesOfField = map[string]roles{
	"reconciler": reconcilerRole, "parameters": reconcilerRole, "manifests": reconcilerRole, "requires": reconcilerRole,
	"namespace_service": namespaceRole | policyRole, "config_type": configRole,
	"secret_service": secretRole, "secret_stores": secretRole,
	"labels": reconcilerRole | namespaceRole | policyRole, "workspace": reconcilerRole | namespaceRole | policyRole,
	"cluster_type": allRoles, "namespace": allRoles,
}

type fleetObject struct {
	cause  Cause
	fields map[string]bool // differing JSON attributes; nil if new or removed
	shown  roles           // affected files
	keys   map[string]bool
}

// has reports whether an attribute differs. New and removed objects differ in all.
func (o *fleetObject) has(fields ...string) bool {
	return o != nil && (o.fields == nil || slices.ContainsFunc(fields, func(field string) bool { return o.fields[field] }))
}

// objectName is a kind and name; templates have "<type>/<name>".
type objectName struct {
	kind CauseKind
	name string
}

type differences map[objectName]*fleetObject

func compareVersions(before, after *Version) differences {
	if before == nil || after == nil || before.Fleet == nil || after.Fleet == nil {
		return nil
	}
	old, wanted := before.Fleet, after.Fleet
	oldTargets, wantedTargets := targetsOf(before), targetsOf(after)
	workloads := map[string]string{} // by full name
	for _, one := range slices.Concat(oldTargets, wantedTargets) {
		workloads[one.fullName()] = one.workload
	}
	d := differences{}
	compare(d, ByWorkspace, old.Workspaces, wanted.Workspaces, func(w *fleet.Workspace) string { return w.Name })
	compare(d, ByClusterType, old.ClusterTypes, wanted.ClusterTypes, func(c *fleet.ClusterType) string { return c.Name })
	compare(d, ByCluster, old.Clusters, wanted.Clusters, func(c *fleet.Cluster) string { return c.Name })
	compare(d, ByPolicy, old.TargetPolicies, wanted.TargetPolicies, func(p *fleet.TargetPolicy) string { return p.Name })
	compare(d, ByWorkload, old.Workloads, wanted.Workloads, func(w *fleet.Workload) string { return w.Name })
	compare(d, ofTarget, oldTargets, wantedTargets, (*target).fullName)
	compare(d, ByContainer, containersOf(before), containersOf(after), func(c *container) string { return c.Name })
	compare(d, ByTemplate, old.Templates, wanted.Templates, func(t *fleet.Template) string { return t.Type + "/" + t.Name })
	for of, shown := range map[objectName]struct {
		differs bool
		in      roles
	}{
		{ByEnvironment, wanted.Environment}: {old.Environment != wanted.Environment, allRoles},
		{ByHydration, ""}:                   {old.HydrationOrDefault() != wanted.HydrationOrDefault(), configRole | reconcilerRole},
		{ByAssignments, ""}:                 {old.Explicit != wanted.Explicit || !reflect.DeepEqual(old.Assignments, wanted.Assignments), 0},
		{ByRepo, ""}:                        {before.GitopsRepo != after.GitopsRepo, reconcilerRole | namespaceRole},
		{ByProvider, ""}:                    {before.Provider != "" && after.Provider != "" && before.Provider != after.Provider, allRoles},
	} {
		if shown.differs {
			d[of] = &fleetObject{cause: Cause{Kind: of.kind, Name: of.name}, fields: map[string]bool{}, shown: shown.in}
		}
	}
	for of, object := range d {
		switch of.kind {
		case ByProvider:
			object.cause.Moved = Move{From: before.Provider, To: after.Provider}
		case ofTarget:
			object.cause = Cause{Kind: ByWorkload, Name: workloads[of.name]}
			if workload := d[objectName{ByWorkload, object.cause.Name}]; workload != nil && workload.fields == nil {
				object.cause = workload.cause
			}
		case ByTemplate:
			ofType, called, _ := strings.Cut(of.name, "/")
			object.cause.Name, object.shown = called, rolesOfType[ofType]
		case ByContainer:
			object.addContents(before.Config, after.Config)
		case ByPolicy:
			object.shown = 0
		case ByWorkspace:
			object.shown = namespaceRole | policyRole
			if object.has("service_account", "argocd_project") {
				object.shown |= reconcilerRole
			}
		}
	}
	return d
}

// withoutEffect lists attributes without effect on a folder, and those compared separately.
var withoutEffect = []string{"description", "decryption", "config_schemas", "deployment_targets"}

func compare[T any](d differences, of CauseKind, before, after []T, nameOf func(*T) string) {
	old := make(map[string]*T, len(before))
	for i := range before {
		old[nameOf(&before[i])] = &before[i]
	}
	for i := range after {
		called := nameOf(&after[i])
		one := old[called]
		delete(old, called)
		if one == nil {
			d[objectName{of, called}] = &fleetObject{cause: Cause{Kind: of, Name: called, How: New}, shown: allRoles}
			continue
		}
		if reflect.DeepEqual(one, &after[i]) {
			continue
		}
		before, after := membersOf(one), membersOf(&after[i])
		object := &fleetObject{cause: Cause{Kind: of, Name: called}, fields: map[string]bool{}}
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
		d[objectName{of, called}] = &fleetObject{cause: Cause{Kind: of, Name: called, How: Removed}, shown: allRoles}
	}
}

func membersOf(value any) (members map[string]json.RawMessage) {
	text, _ := json.Marshal(value) // the model came from JSON
	_ = json.Unmarshal(text, &members)
	return members
}

// target is a deployment target with manifests, which the model lacks.
type target struct {
	*fleet.DeploymentTarget
	Manifests string `json:"manifests"` // changes with the manifests
	workload  string
}

func (t *target) fullName() string { return fleet.FullName(t.workload, t.Name) }

func targetsOf(v *Version) []target {
	var all []target
	for workload, one := range v.Fleet.Targets() {
		manifests := v.Manifests[fleet.FullName(workload.Name, one.Name)]
		if v.Manifests == nil && !one.ManifestsPending {
			text, _ := json.Marshal(one.Manifests) // it came from JSON
			manifests = string(text)
		}
		all = append(all, target{one, manifests, workload.Name})
	}
	return all
}

// container is a config container with digests of data and secrets, which the model lacks.
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

// addContents sets the affected top-level keys of a config container, and further affected files.
func (o *fleetObject) addContents(before, after map[string]string) {
	data, ok := o.changedIn(o.cause.Name, digestOf, before, after)
	references, referencesOK := o.changedIn(fleet.SecretsEntry(o.cause.Name), secretsDigest, before, after)
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

// changedIn returns the affected keys, or false if the data is not JSON.
func (o *fleetObject) changedIn(entry string, digest func(string) string, before, after map[string]string) (keys map[string]bool, ok bool) {
	old, ok := dataKeys(digest(before[entry]))
	wanted, wantedOK := dataKeys(digest(after[entry]))
	switch o.cause.How {
	case New:
		old, ok = nil, true
	case Removed:
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

func dataKeys(text string) (map[string]json.RawMessage, bool) {
	text = strings.TrimPrefix(text, digestMark)
	if !strings.HasPrefix(text, "{") {
		return nil, false
	}
	keys := map[string]json.RawMessage{}
	return keys, json.Unmarshal([]byte(text), &keys) == nil
}

func unionOfKeys[V any](one, other map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(one)), maps.Keys(other))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// digestMark begins a digest. JSON never begins with it.
const digestMark = "#"

// Digest returns hashes of the data of config containers and their secrets, by name. They reveal changed keys but no
// values, and are kept until the next plan as [Version].Config.
func Digest(config map[string]string) map[string]string {
	digests := make(map[string]string, len(config))
	for name, text := range config {
		if digests[name] = digestOf(text); strings.HasPrefix(name, fleet.SecretsEntry("")) {
			digests[name] = secretsDigest(text)
		}
	}
	return digests
}

func digestOf(text string) string {
	if strings.HasPrefix(text, digestMark) {
		return text
	}
	keys, ok := dataKeys(text)
	if !ok {
		return digestMark + shortHash(text)
	}
	encoded, _ := json.Marshal(Hashes(keys)) // a map of strings always has JSON
	return digestMark + string(encoded)
}

// encryptedFiles is the key for all encrypted files in a digest. References cannot have it.
const encryptedFiles = "/encrypted"

func secretsDigest(text string) string {
	var secrets struct {
		References map[string]json.RawMessage `json:"secrets"`
		Encrypted  json.RawMessage            `json:"encrypted"`
	}
	switch {
	case strings.HasPrefix(text, digestMark):
		return text
	case text == "":
		return digestMark + "{}"
	case text == fleet.UnknownEntry || json.Unmarshal([]byte(text), &secrets) != nil:
		return digestMark + shortHash(text)
	}
	keys := Hashes(secrets.References)
	if secrets.Encrypted != nil {
		keys[encryptedFiles] = shortHash(string(secrets.Encrypted))
	}
	encoded, _ := json.Marshal(keys) // a map of strings always has JSON
	return digestMark + string(encoded)
}

// Hashes returns a hash of each text.
func Hashes[T ~string | ~[]byte](texts map[string]T) map[string]string {
	hashes := make(map[string]string, len(texts))
	for name, text := range texts {
		hashes[name] = shortHash(string(text))
	}
	return hashes
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}
