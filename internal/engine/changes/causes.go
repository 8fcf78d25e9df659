package changes

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/numbering"
)

// explainer finds the objects of the fleet behind a change. It caches results, because most folders have the same
// objects.
type explainer struct {
	before, after   *Version
	notes           *Notes
	changed         differences
	requires        bool                // whether workloads that one requires changed
	former, current map[string]placed   // changed folders, by assignment key
	excluded        map[string][]string // policies that exclude an assignment in either version
	derived         map[derivation]*fleetObject
	numbers         numbering.Numbers[*fleetObject]
	reached         map[string]*reached
	sets            map[string]*causeSet
}

type placed struct {
	assignment *schedule.Assignment
	containers []string
}

// reached lists the changed objects that reach a folder. Equal lists are identical.
type reached struct {
	objects []*fleetObject
	causes  map[causeQuery]*causeSet
}

type causeQuery struct {
	role roles
	key  Key
}

// derivation is an indirect path of an object to a folder.
type derivation struct {
	object    *fleetObject
	container string // that starts or stops matching; "" for a required workload
}

func newExplainer(before, after *Version, folders []FolderChange, notes *Notes) *explainer {
	e := &explainer{
		before: before, after: after, notes: notes, changed: compareVersions(before, after), derived: map[derivation]*fleetObject{},
		reached: map[string]*reached{}, sets: map[string]*causeSet{}, excluded: map[string][]string{},
	}
	for of, object := range e.changed {
		e.requires = e.requires || of.kind == ByWorkload && object.has("requires")
	}
	wanted := make(map[string]bool, len(folders))
	for i := range folders {
		wanted[folders[i].String()] = true
	}
	e.former, e.current = e.placedIn(before, wanted), e.placedIn(after, wanted)
	return e
}

// placedIn returns the wanted assignments and records excluding policies. A version with invalid containers places
// nothing: it was never deployed.
func (e *explainer) placedIn(v *Version, wanted map[string]bool) map[string]placed {
	if v == nil || v.Schedule == nil {
		return nil
	}
	var assignments []*schedule.Assignment
	for _, assignment := range v.Schedule.Assignments {
		if wanted[assignment.Key()] {
			assignments = append(assignments, assignment)
		}
	}
	containers := make([][]string, len(assignments))
	if len(e.changed) > 0 {
		if matched, err := hydrate.Match(v.Fleet, assignments); err == nil {
			containers = matched
		}
		for _, one := range v.Schedule.Excluded {
			key := one.Host + "/" + one.DeploymentTarget
			e.excluded[key] = append(e.excluded[key], one.Policies...)
		}
	}
	found := make(map[string]placed, len(assignments))
	for i, assignment := range assignments {
		found[assignment.Key()] = placed{assignment, containers[i]}
	}
	return found
}

func (e *explainer) reach(folder *FolderChange) *reached {
	var objects []*fleetObject
	add := func(object *fleetObject) {
		if object != nil && !slices.Contains(objects, object) {
			objects = append(objects, object)
		}
	}
	if len(e.changed) > 0 {
		for _, of := range []objectName{{ByEnvironment, e.after.Fleet.Environment}, {ByHydration, ""}, {ByRepo, ""}, {ByProvider, ""}} {
			add(e.changed[of])
		}
		former, current := e.former[folder.String()], e.current[folder.String()]
		if former.assignment != nil {
			e.addObjectsOf(former, e.before.Fleet, add)
		}
		if current.assignment != nil {
			e.addObjectsOf(current, e.after.Fleet, add)
		}
		if former.assignment != nil && current.assignment != nil && !slices.Equal(former.containers, current.containers) {
			e.addMovers(former, current, add)
		}
	}
	numbers := make([]int, len(objects))
	for i, object := range objects {
		numbers[i] = e.numbers.Number(object)
	}
	id := numbersKey(numbers)
	if e.reached[id] == nil {
		e.reached[id] = &reached{objects, map[causeQuery]*causeSet{}}
	}
	return e.reached[id]
}

func (e *explainer) addObjectsOf(of placed, in *fleet.Fleet, add func(*fleetObject)) {
	a := of.assignment
	clusterType, workload := a.Host.ClusterType, a.Target.Workload
	for _, one := range []objectName{
		{ByClusterType, clusterType.Name}, {ByCluster, clusterName(a)}, {ofTarget, a.Target.Name}, {ByWorkload, workload.Name},
		{ByWorkspace, workload.Workspace},
	} {
		add(e.changed[one])
	}
	for _, one := range []string{
		"reconciler/" + cmp.Or(clusterType.Reconciler, fleet.DefaultReconciler),
		"namespace/" + cmp.Or(clusterType.NamespaceService, fleet.DefaultNamespaceService),
		"config/" + cmp.Or(clusterType.ConfigType, fleet.DefaultConfigType), "policy/default", "secret/" + clusterType.SecretService,
	} {
		add(e.changed[objectName{ByTemplate, one}])
	}
	for _, policy := range a.Policies {
		add(e.changed[objectName{ByPolicy, policy}])
	}
	for _, container := range of.containers {
		add(e.changed[objectName{ByContainer, container}])
	}
	// The reconciler object names all required workloads in order.
	if e.requires {
		for _, required := range requiredBy(in, workload) {
			if object := e.changed[objectName{ByWorkload, required}]; object.has("requires") {
				add(e.derive(derivation{object: object}))
			}
		}
	}
	for _, required := range a.Requires {
		if object := e.changed[objectName{ofTarget, required}]; object.has("namespace", "manifests") {
			add(e.derive(derivation{object: object}))
		}
	}
}

func requiredBy(f *fleet.Fleet, workload *fleet.Workload) []string {
	found := slices.Clone(workload.Requires)
	for i := 0; i < len(found); i++ {
		for j := range f.Workloads {
			if f.Workloads[j].Name != found[i] {
				continue
			}
			for _, further := range f.Workloads[j].Requires {
				if !slices.Contains(found, further) {
					found = append(found, further)
				}
			}
		}
	}
	return found
}

// addMovers adds objects whose changed labels change the matching containers.
func (e *explainer) addMovers(former, current placed, add func(*fleetObject)) {
	a := current.assignment
	for _, of := range []objectName{
		{ByEnvironment, e.after.Fleet.Environment}, {ByClusterType, a.Host.ClusterType.Name}, {ByCluster, clusterName(a)},
		{ByWorkload, a.Target.Workload.Name}, {ofTarget, a.Target.Name},
	} {
		object := e.changed[of]
		if of.kind != ByEnvironment && !object.has("labels", "cluster_type", "workspace") || object == nil {
			continue
		}
		for _, container := range slices.Concat(former.containers, current.containers) {
			if slices.Contains(former.containers, container) != slices.Contains(current.containers, container) &&
				e.changed[objectName{ByContainer, container}] == nil {
				add(e.derive(derivation{object, container}))
			}
		}
	}
}

// derive returns the object with only the differences from a derivation. Equal results are identical.
func (e *explainer) derive(by derivation) *fleetObject {
	if e.derived[by] == nil {
		made := &fleetObject{cause: by.object.cause, shown: reconcilerRole}
		if by.container != "" {
			made.cause = Cause{Kind: ByContainer, Name: by.container, How: New} // all keys differ
			made.addContents(nil, e.after.Config)
			made.cause = by.object.cause
		}
		e.derived[by] = made
	}
	return e.derived[by]
}

func clusterName(a *schedule.Assignment) string {
	if a.Host.Cluster == nil {
		return ""
	}
	return a.Host.Cluster.Name
}

// explain returns the causes of a changed key: config containers with that value, or the objects behind the file, or
// all objects that reach the folder.
func (e *explainer) explain(by *reached, file string, key *keyChange) *causeSet {
	asked := causeQuery{roleOf(file), key.Key}
	if by.causes[asked] != nil {
		return by.causes[asked]
	}
	var exact, shown, all []Cause
	at, config := key.segments, asked.role == configRole
	if config || asked.role == secretRole || slices.ContainsFunc(at, ofConfig.MatchString) {
		for _, object := range by.objects {
			if slices.ContainsFunc(at, func(segment string) bool { return object.keys[segment] }) {
				exact = append(exact, object.cause)
			}
		}
	}
	if len(exact) == 0 {
		holds := slices.ContainsFunc(at, ofConfig.MatchString)
		for _, object := range by.objects {
			isShown := object.shown&asked.role != 0
			if (object.keys != nil || object.cause.Kind == ByContainer) && asked.role != secretRole && asked.role != encryptedRole {
				isShown = holds || config && (len(at) == 0 || object.keys == nil)
			}
			switch {
			case isShown:
				shown = append(shown, object.cause)
			case object.cause.Kind != ByTemplate: // other templates render other files
				all = append(all, object.cause)
			}
		}
	}
	if len(all) == 0 && e.notes.HandedOver != "" {
		all = []Cause{{Kind: ByName}}
	}
	for _, causes := range [][]Cause{exact, shown, all} {
		if by.causes[asked] = e.internCauses(causes); len(causes) > 0 {
			break
		}
	}
	return by.causes[asked]
}

// ofConfig matches keys that contain values or their version.
var ofConfig = regexp.MustCompile(`(?i)config|values|substitute`)

func (e *explainer) besidesFleet(folder *FolderChange) *causeSet {
	back := cmp.Or(e.notes.RolledBack, folder.Back)
	switch {
	case folder.Drift != "":
		return e.internCauses([]Cause{{Kind: ByDrift, Name: folder.Drift}})
	case back != "":
		return e.internCauses([]Cause{{Kind: ByRollback, Name: back}})
	case folder.Location != "":
		return e.internCauses(nil)
	}
	return nil
}

// explainMove explains why a folder is added or removed: by changed objects, or by policies with a placement. Without a
// version before, it returns the assigning policies.
func (e *explainer) explainMove(folder *FolderChange) *causeSet {
	if besides := e.besidesFleet(folder); besides != nil {
		return besides
	}
	former, current := e.former[folder.String()].assignment, e.current[folder.String()].assignment
	a, in := current, e.after
	if folder.Removed {
		a, in = former, e.before
	}
	if a == nil || former != nil && current != nil {
		return e.internCauses(nil)
	}
	var causes []Cause
	if e.before == nil {
		for _, policy := range a.Policies {
			causes = append(causes, Cause{Kind: ByPolicy, Name: policy})
		}
	}
	if e.changed == nil {
		return e.internCauses(causes)
	}
	decides := func(of CauseKind, called string, fields ...string) {
		if object := e.changed[objectName{of, called}]; object.has(fields...) {
			causes = append(causes, object.cause)
		}
	}
	decides(ByClusterType, a.Host.ClusterType.Name, "labels", "taints")
	decides(ByCluster, clusterName(a), "labels", "taints", "cluster_type")
	decides(ofTarget, a.Target.Name, "labels")
	decides(ByWorkload, a.Target.Workload.Name, "labels", "workspace")
	others := []objectName{{ByEnvironment, e.after.Fleet.Environment}, {ByAssignments, ""}}
	for _, policy := range slices.Concat(a.Policies, e.excluded[folder.String()]) {
		others = append(others, objectName{ByPolicy, policy})
	}
	for _, of := range others {
		if object := e.changed[of]; object != nil {
			causes = append(causes, object.cause)
		}
	}
	if len(causes) > 0 {
		return e.internCauses(causes)
	}
	for i := range in.Fleet.TargetPolicies {
		if policy := &in.Fleet.TargetPolicies[i]; policy.Placement != nil && slices.Contains(a.Policies, policy.Name) {
			causes = append(causes, Cause{Kind: ByPlacement, Name: policy.Name})
		}
	}
	return e.internCauses(causes)
}

// unnamedHosts returns the causes without names of new and removed hosts, and whether there are any.
func (e *explainer) unnamedHosts(of *causeSet) (_ *causeSet, ok bool) {
	isHost := func(one Cause) bool {
		return one.How != Changed && (one.Kind == ByClusterType || one.Kind == ByCluster)
	}
	if !slices.ContainsFunc(of.causes, isHost) {
		return of, false
	}
	causes := slices.Clone(of.causes)
	for i := range causes {
		if isHost(causes[i]) {
			causes[i].Name = ""
		}
	}
	return e.internCauses(causes), true
}

func (e *explainer) policiesOf(folder *FolderChange) string {
	of := e.current[folder.String()].assignment
	if folder.Removed {
		of = e.former[folder.String()].assignment
	}
	if of == nil {
		return ""
	}
	return strings.Join(slices.Sorted(slices.Values(of.Policies)), "\x00")
}

// causeSet is a sorted list of causes. Equal lists are identical.
type causeSet struct{ causes []Cause }

func (e *explainer) internCauses(causes []Cause) *causeSet {
	slices.SortFunc(causes, Cause.compare)
	causes = slices.Compact(causes)
	var id []byte
	for _, one := range causes {
		id = fmt.Appendf(id, "%q", one)
	}
	if e.sets[string(id)] == nil {
		e.sets[string(id)] = &causeSet{causes}
	}
	return e.sets[string(id)]
}
