package changes

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
)

// explainer finds the causes of changes: the objects of the fleet that differ and reach a folder. It keeps its answers,
// since the same objects reach most folders of a plan.
type explainer struct {
	before, after   *Version
	notes           *Notes
	changed         differences
	templates       bool                // whether one of the templates has changed
	requires        bool                // whether what one of the workloads requires has changed
	former, current map[string]placed   // of the folders that change, by the assignment's key
	excluded        map[string][]string // the policies that exclude an assignment in one of the versions
	derived         map[derivation]*object
	numbers         map[*object]int
	reached         map[string]*reached
	sets            map[string]*causeSet
}

// placed is an assignment in one of the versions, with the config containers that match it.
type placed struct {
	assignment *schedule.Assignment
	containers []string
}

// reached are the changed objects that reach a folder. Equal ones are the same *reached.
type reached struct {
	objects []*object
	causes  map[question]*causeSet
}

// question is what the causes of a change depend on, besides the objects that reach the folder.
type question struct {
	role roles
	key  string
}

// derivation says in which other way an object reaches a folder.
type derivation struct {
	object    *object
	container string // that matches because of it; "": its workload is required by the folder's
}

func newExplainer(before, after *Version, folders []Folder, notes *Notes) *explainer {
	e := &explainer{
		before: before, after: after, notes: notes, changed: compareVersions(before, after), derived: map[derivation]*object{},
		numbers: map[*object]int{}, reached: map[string]*reached{}, sets: map[string]*causeSet{}, excluded: map[string][]string{},
	}
	for of, object := range e.changed {
		e.templates = e.templates || of.kind == byTemplate
		e.requires = e.requires || of.kind == byWorkload && object.has("requires")
	}
	wanted := make(map[string]bool, len(folders))
	for i := range folders {
		wanted[folders[i].key()] = true
	}
	e.former, e.current = e.placedIn(before, wanted), e.placedIn(after, wanted)
	return e
}

// placedIn returns the wanted assignments of a version, and notes the policies that exclude others of them. Where the
// containers of a fleet cannot be matched, none do: such a fleet was never deployed.
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

// reach returns the changed objects that reach a folder in one of the versions.
func (e *explainer) reach(folder *Folder) *reached {
	var objects []*object
	add := func(object *object) {
		if object != nil && !slices.Contains(objects, object) {
			objects = append(objects, object)
		}
	}
	if len(e.changed) > 0 {
		for _, of := range []objectName{{byEnvironment, e.after.Fleet.Environment}, {byHydration, ""}, {byRepo, ""}, {byProvider, ""}} {
			add(e.changed[of])
		}
		former, current := e.former[folder.key()], e.current[folder.key()]
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
	var id []byte
	for _, object := range objects {
		number, seen := e.numbers[object]
		if !seen {
			number = len(e.numbers)
			e.numbers[object] = number
		}
		id = append(strconv.AppendInt(id, int64(number), 36), ' ')
	}
	if e.reached[string(id)] == nil {
		e.reached[string(id)] = &reached{objects, map[question]*causeSet{}}
	}
	return e.reached[string(id)]
}

// addObjectsOf adds the changed objects that reach an assignment of a fleet.
func (e *explainer) addObjectsOf(of placed, in *fleet.Fleet, add func(*object)) {
	a := of.assignment
	clusterType, workload := a.Host.ClusterType, a.Target.Workload
	for _, one := range []objectName{
		{byClusterType, clusterType.Name}, {byCluster, clusterName(a)}, {ofTarget, a.Target.Name}, {byWorkload, workload.Name},
		{byWorkspace, workload.Workspace},
	} {
		add(e.changed[one])
	}
	if e.templates {
		add(e.changed[objectName{byTemplate, "reconciler/" + cmp.Or(clusterType.Reconciler, fleet.DefaultReconciler)}])
		add(e.changed[objectName{byTemplate, "namespace/" + cmp.Or(clusterType.NamespaceService, fleet.DefaultNamespaceService)}])
		add(e.changed[objectName{byTemplate, "config/" + cmp.Or(clusterType.ConfigType, fleet.DefaultConfigType)}])
		add(e.changed[objectName{byTemplate, "policy/default"}])
	}
	for _, policy := range a.Policies {
		add(e.changed[objectName{byPolicy, policy}])
	}
	for _, container := range of.containers {
		add(e.changed[objectName{byContainer, container}])
	}
	// What the workload requires is named in its reconciler, in order.
	if e.requires {
		for _, required := range requiredBy(in, workload) {
			if object := e.changed[objectName{byWorkload, required}]; object.has("requires") {
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

// requiredBy returns the workloads that a workload requires, directly or not.
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

// addMovers adds the objects whose labels changed where other containers match because of that: the keys of these
// containers are added or removed.
func (e *explainer) addMovers(former, current placed, add func(*object)) {
	a := current.assignment
	for _, of := range []objectName{
		{byEnvironment, e.after.Fleet.Environment}, {byClusterType, a.Host.ClusterType.Name}, {byCluster, clusterName(a)},
		{byWorkload, a.Target.Workload.Name}, {ofTarget, a.Target.Name},
	} {
		object := e.changed[of]
		if of.kind != byEnvironment && !object.has("labels", "cluster_type", "workspace") || object == nil {
			continue
		}
		for _, container := range slices.Concat(former.containers, current.containers) {
			if slices.Contains(former.containers, container) != slices.Contains(current.containers, container) && e.changed[objectName{byContainer, container}] == nil {
				add(e.derive(derivation{object, container}))
			}
		}
	}
}

// derive returns the object with what differs because of it. Equal ones are the same *object.
func (e *explainer) derive(by derivation) *object {
	if e.derived[by] == nil {
		made := &object{cause: by.object.cause, shown: reconcilerRole}
		if by.container != "" {
			data, _ := dataKeys(e.after.Config[by.container])
			made.shown, made.keys = configRole, map[string]bool{}
			for key := range data {
				made.keys[key] = true
			}
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

// explain returns the causes of a change of a key in a file of a folder: the config containers that have the value; else
// all objects from which the file is rendered; else all objects that reach the folder.
func (e *explainer) explain(by *reached, file string, key *keyChange) *causeSet {
	asked := question{roleOf(file), key.text}
	if by.causes[asked] != nil {
		return by.causes[asked]
	}
	var exact, shown, all []cause
	for _, object := range by.objects {
		isExact, isShown := object.explains(asked.role, key.segments)
		switch {
		case isExact:
			exact = append(exact, object.cause)
		case isShown:
			shown = append(shown, object.cause)
		case object.cause.kind != byTemplate:
			all = append(all, object.cause)
		}
	}
	causes := exact
	switch {
	case len(exact) > 0:
	case len(shown) > 0:
		causes = shown
	case len(all) > 0:
		causes = all
	case e.notes.HandedOver != "":
		causes = []cause{{kind: byName}}
	}
	by.causes[asked] = e.set(causes)
	return by.causes[asked]
}

// explains says whether the object's values have the key at a path, and whether such files are rendered from what differs.
func (o *object) explains(role roles, at []string) (isExact, isShown bool) {
	if o.cause.kind != byContainer && o.keys == nil {
		return false, o.shown&role != 0
	}
	holds := holdsConfig(at)
	if role != configRole && !holds {
		return false, false
	}
	return slices.ContainsFunc(at, func(segment string) bool { return o.keys[segment] }), holds || len(at) == 0 || o.keys == nil
}

// holdsConfig says whether a path is one where values, or a version of them, are put.
func holdsConfig(at []string) bool {
	return slices.ContainsFunc(at, func(segment string) bool {
		lower := strings.ToLower(segment)
		return strings.Contains(lower, "config") || strings.Contains(lower, "values") || strings.Contains(lower, "substitute")
	})
}

// besidesFleet returns the cause of a change of a folder that does not come from the fleet; nil where it does.
func (e *explainer) besidesFleet(folder *Folder) *causeSet {
	switch {
	case e.notes.RolledBack != "":
		return e.set([]cause{{kind: byRollback, name: e.notes.RolledBack}})
	case folder.Back != "":
		return e.set([]cause{{kind: byRollback, name: folder.Back}})
	case folder.Location != "":
		return e.set(nil)
	case folder.Drift != "":
		return e.set([]cause{{kind: byHand, name: folder.Drift}})
	}
	return nil
}

// moved returns why a folder is added or removed: the objects that it needs and that one version does not have; else those
// that decide about it and have changed; else the policies whose placement chose other hosts. Where the version before is
// not known, the policies that assign it.
func (e *explainer) moved(folder *Folder) *causeSet {
	if besides := e.besidesFleet(folder); besides != nil {
		return besides
	}
	former, current := e.former[folder.key()].assignment, e.current[folder.key()].assignment
	a, in := current, e.after
	if folder.Removed {
		a, in = former, e.before
	}
	if a == nil || former != nil && current != nil {
		return e.set(nil)
	}
	var causes []cause
	if e.changed == nil {
		if e.before == nil {
			for _, policy := range a.Policies {
				causes = append(causes, cause{kind: byPolicy, name: policy})
			}
		}
		return e.set(causes)
	}
	var deciding []cause
	decides := func(of kind, called string, fields ...string) bool {
		object := e.changed[objectName{of, called}]
		switch {
		case object.isNewOrRemoved():
			causes = append(causes, object.cause)
		case object.has(fields...):
			deciding = append(deciding, object.cause)
		}
		return object.isNewOrRemoved()
	}
	if !decides(byClusterType, a.Host.ClusterType.Name, "labels", "taints") {
		decides(byCluster, clusterName(a), "labels", "taints", "cluster_type")
	}
	decides(ofTarget, a.Target.Name, "labels")
	if workload := e.changed[objectName{byWorkload, a.Target.Workload.Name}]; workload.has("labels", "workspace") {
		deciding = append(deciding, workload.cause)
	}
	var policies []cause
	newOrRemoved := 0
	for _, policy := range slices.Concat(a.Policies, e.excluded[folder.key()]) {
		if object := e.changed[objectName{byPolicy, policy}]; object != nil {
			policies = append(policies, object.cause)
			if object.isNewOrRemoved() && slices.Contains(a.Policies, policy) {
				newOrRemoved++
			}
		}
	}
	if newOrRemoved > 0 && newOrRemoved == len(a.Policies) {
		causes = append(causes, policies...)
	}
	if len(causes) > 0 {
		return e.set(causes)
	}
	deciding = append(deciding, policies...)
	for _, of := range []objectName{{byEnvironment, e.after.Fleet.Environment}, {byAssignments, ""}} {
		if object := e.changed[of]; object != nil {
			deciding = append(deciding, object.cause)
		}
	}
	if len(deciding) == 0 {
		deciding = placements(a, in.Fleet)
	}
	return e.set(deciding)
}

// placements returns the policies of an assignment that choose among hosts.
func placements(a *schedule.Assignment, in *fleet.Fleet) []cause {
	var causes []cause
	for i := range in.TargetPolicies {
		if policy := &in.TargetPolicies[i]; policy.Placement != nil && slices.Contains(a.Policies, policy.Name) {
			causes = append(causes, cause{kind: byPlacement, name: policy.Name})
		}
	}
	return causes
}

// causeSet is a sorted list of causes. Equal lists are the same *causeSet.
type causeSet struct{ causes []cause }

// byHand says whether drift is the only cause.
func (c *causeSet) byHand() bool { return len(c.causes) == 1 && c.causes[0].kind == byHand }

func (e *explainer) set(causes []cause) *causeSet {
	slices.SortFunc(causes, func(a, b cause) int {
		return cmp.Or(cmp.Compare(slices.Index(kindOrder, a.kind), slices.Index(kindOrder, b.kind)), cmp.Compare(a.name, b.name), cmp.Compare(a.how, b.how))
	})
	causes = slices.Compact(causes)
	var id []byte
	for _, one := range causes {
		id = append(strconv.AppendQuote(append(id, one.kind...), one.name), one.how...)
	}
	if e.sets[string(id)] == nil {
		e.sets[string(id)] = &causeSet{causes}
	}
	return e.sets[string(id)]
}

// maxCauses is how many causes a line names.
const maxCauses = 3

// text is the end of a line: `, by config containers "east", "west"`; "" without causes.
func (c *causeSet) text() string {
	var b strings.Builder
	for i, one := range c.causes {
		if i == maxCauses {
			b.WriteString(" and " + strconv.Itoa(len(c.causes)-i) + " more")
			break
		}
		b.WriteString(", ")
		if i == 0 && one.kind != byHand {
			b.WriteString("by ")
		}
		kinds := string(one.kind) + " "
		switch {
		case i > 0 && c.causes[i-1].kind == one.kind:
			kinds = ""
		case i+1 < len(c.causes) && c.causes[i+1].kind == one.kind:
			kinds = strings.Replace(string(one.kind)+"s", "policys", "policies", 1) + " "
		}
		switch one.kind {
		case byRollback:
			b.WriteString(kinds + word(one.name))
		case byHand:
			b.WriteString(word(one.name))
		case byAssignments, byHydration, byRepo, byName, byProvider:
			b.WriteString(string(one.kind))
		default:
			b.WriteString(kinds + quoted(one.name))
			if one.how != "" {
				b.WriteString(" (" + one.how + ")")
			}
		}
	}
	return b.String()
}
