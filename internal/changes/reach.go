package changes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
)

// How well a changed object that reaches a folder explains a change in one of its files. Of all objects that
// reach the folder, those with the best fit are the causes.
const (
	fitNone     = iota // it cannot be the cause
	fitUnlikely        // only a template of the user's could show it there
	fitPossible        // it can be the cause
	fitLikely          // such files are rendered from it
	fitCertain         // its data has this key
)

// reason is a changed object that reaches a folder, and the rule for the way in which it does.
type reason struct {
	object *object
	rule   rule
}

// rule says how well an object explains a change of a key in a file.
type rule func(object *object, role role, key *keyChange) int

// reach finds the changed objects that reach an assignment in one of the versions.
type reach struct {
	*differences
	before, after     *Version
	former, current   map[assignmentKey]*schedule.Assignment // of the folders that change
	formerContainers  map[assignmentKey][]string             // their config containers
	currentContainers map[assignmentKey][]string
	reasons           map[*object]*reason
	byMatching        map[string]*reason
	changedOf         map[*string][]*object // of a list of containers, by its first element
	selectors         map[*fleet.Selector]compiledSelector
}

type assignmentKey struct{ host, target string }

func newReach(before, after *Version, folders []Folder) *reach {
	r := &reach{
		differences: compareVersions(before, after), before: before, after: after,
		reasons: map[*object]*reason{}, byMatching: map[string]*reason{},
		changedOf: map[*string][]*object{}, selectors: map[*fleet.Selector]compiledSelector{},
	}
	wanted := make(map[assignmentKey]bool, len(folders))
	for i := range folders {
		wanted[assignmentKey{folders[i].Host, folders[i].DeploymentTarget}] = true
	}
	r.former, r.current = assignmentsOf(before, wanted), assignmentsOf(after, wanted)
	if r.differences != nil {
		r.formerContainers, r.currentContainers = matchedOf(before, r.former), matchedOf(after, r.current)
	}
	return r
}

func assignmentsOf(v *Version, wanted map[assignmentKey]bool) map[assignmentKey]*schedule.Assignment {
	if v == nil {
		return nil
	}
	found := make(map[assignmentKey]*schedule.Assignment, len(wanted))
	for _, assignment := range v.Assignments {
		key := assignmentKey{assignment.Host.Name, assignment.Target.Name}
		if wanted[key] {
			found[key] = assignment
		}
	}
	return found
}

// matchedOf returns which config containers match the assignments. Where the fleet cannot be matched, none do: such
// a fleet was never deployed.
func matchedOf(v *Version, of map[assignmentKey]*schedule.Assignment) map[assignmentKey][]string {
	keys := slices.SortedFunc(maps.Keys(of), func(a, b assignmentKey) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.target, b.target))
	})
	assignments := make([]*schedule.Assignment, len(keys))
	for i, key := range keys {
		assignments[i] = of[key]
	}
	lists, err := hydrate.Match(v.Fleet, assignments)
	if err != nil {
		return nil
	}
	matched := make(map[assignmentKey][]string, len(keys))
	for i, key := range keys {
		matched[key] = lists[i]
	}
	return matched
}

// reasonsFor returns the reasons for a change of a folder that both versions have.
func (r *reach) reasonsFor(key assignmentKey) []*reason {
	if r.differences == nil || !r.any {
		return nil
	}
	former, current := r.former[key], r.current[key]
	var found []*reason
	add := func(object *object, rule rule) {
		if object == nil {
			return
		}
		if r.reasons[object] == nil {
			r.reasons[object] = &reason{object, rule}
		}
		found = append(found, r.reasons[object])
	}
	add(r.environment, ofEnvironment)
	add(r.hydration, ofHydration)
	add(r.provider, ofProvider)
	add(r.repo, ofRepo)
	if former == nil || current == nil { // one version does not assign it: it is compared with itself
		former, current = cmp.Or(former, current), cmp.Or(current, former)
	}
	if former == nil {
		return found
	}
	for _, one := range []*schedule.Assignment{former, current} {
		add(r.clusterTypes[one.Host.ClusterType.Name], ofHost)
		if one.Host.Cluster != nil {
			add(r.clusters[one.Host.Cluster.Name], ofHost)
		}
		for _, template := range r.templatesFor(one.Host.ClusterType) {
			add(template, ofTemplate)
		}
		add(r.targets[one.Target.Name], ofTarget)
		add(r.workloads[one.Target.Workload.Name], ofWorkload)
		add(r.workspaces[one.Target.Workload.Workspace], ofWorkspace)
		for _, policy := range one.Policies {
			add(r.policies[policy], ofPolicy)
		}
	}
	found = r.required(found, former, current)
	for _, list := range [][]string{r.formerContainers[key], r.currentContainers[key]} {
		for _, container := range r.changedIn(list) {
			add(container, ofContainer)
		}
	}
	found = r.matching(found, key, former, current)
	return found
}

// changedIn returns the changed containers of a list. The answers are kept, since assignments share lists.
func (r *reach) changedIn(list []string) []*object {
	if len(list) == 0 || len(r.containers) == 0 {
		return nil
	}
	changed, known := r.changedOf[&list[0]]
	if !known {
		for _, name := range list {
			if object := r.containers[name]; object != nil {
				changed = append(changed, object)
			}
		}
		r.changedOf[&list[0]] = changed
	}
	return changed
}

// matching adds the objects whose labels changed, where other containers match because of that: the keys of these
// containers are added or removed.
func (r *reach) matching(found []*reason, key assignmentKey, former, current *schedule.Assignment) []*reason {
	if former == current || former.Host.ClusterType == nil {
		return found
	}
	var relabelled []*object
	for _, object := range []*object{
		r.clusterTypes[current.Host.ClusterType.Name], r.clusters[clusterName(current)], r.workloads[current.Target.Workload.Name], r.targets[current.Target.Name],
	} {
		if object.has("labels", "cluster_type", "workspace") {
			relabelled = append(relabelled, object)
		}
	}
	if len(relabelled) == 0 && r.environment == nil {
		return found
	}
	keys := map[string]bool{}
	for _, name := range symmetricDifference(r.formerContainers[key], r.currentContainers[key]) {
		if r.containers[name] != nil {
			continue // it changed itself
		}
		data, ok := dataKeys(r.after.Config[name])
		if !ok {
			keys = nil // any
			break
		}
		for field := range data {
			keys[field] = true
		}
	}
	if keys != nil && len(keys) == 0 {
		return found
	}
	for _, mover := range relabelled {
		name := fmt.Sprintf("%q", append([]string{string(mover.cause.kind), mover.cause.name}, slices.Sorted(maps.Keys(keys))...))
		if r.byMatching[name] == nil {
			r.byMatching[name] = &reason{&object{cause: mover.cause, keys: keys}, ofContainer}
		}
		found = append(found, r.byMatching[name])
	}
	return found
}

func clusterName(a *schedule.Assignment) string {
	if a.Host.Cluster == nil {
		return ""
	}
	return a.Host.Cluster.Name
}

func symmetricDifference(one, other []string) []string {
	var found []string
	for _, name := range one {
		if !slices.Contains(other, name) {
			found = append(found, name)
		}
	}
	for _, name := range other {
		if !slices.Contains(one, name) {
			found = append(found, name)
		}
	}
	return found
}

// required adds the workloads that the assignment's workload requires, directly or not: its reconciler refers to them.
func (r *reach) required(found []*reason, former, current *schedule.Assignment) []*reason {
	seen := map[string]bool{}
	var visit func(names []string, in *fleet.Fleet)
	visit = func(names []string, in *fleet.Fleet) {
		for _, name := range names {
			if seen[name] || len(seen) > 100 {
				continue
			}
			seen[name] = true
			if object := r.workloads[name]; object.has("requires") {
				found = append(found, r.byOther(object))
			}
			for i := range in.Workloads {
				if in.Workloads[i].Name == name {
					visit(in.Workloads[i].Requires, in)
				}
			}
		}
	}
	if r.requires {
		visit(former.Target.Workload.Requires, r.before.Fleet)
		visit(current.Target.Workload.Requires, r.after.Fleet)
	}
	for _, one := range []*schedule.Assignment{former, current} {
		for _, name := range one.Requires {
			if object := r.targets[name]; object.has("namespace", "manifests") {
				found = append(found, r.byOther(object))
			}
		}
	}
	return found
}

// byOther is the reason that a required workload has changed.
func (r *reach) byOther(object *object) *reason {
	name := fmt.Sprintf("required %p", object)
	if r.byMatching[name] == nil {
		r.byMatching[name] = &reason{object, ofRequired}
	}
	return r.byMatching[name]
}

// templatesFor returns the changed templates that a cluster type uses.
func (r *reach) templatesFor(host *fleet.ClusterType) []*object {
	if len(r.templates) == 0 {
		return nil
	}
	var used []*object
	for _, use := range []struct {
		role role
		name string
	}{
		{reconcilerRole, cmp.Or(host.Reconciler, fleet.DefaultReconciler)},
		{namespaceRole, cmp.Or(host.NamespaceService, fleet.DefaultNamespaceService)},
		{configRole, cmp.Or(host.ConfigType, fleet.DefaultConfigType)},
		{policyRole, "default"},
	} {
		if object := r.templates[templateName{roleTypes[use.role], use.name}]; object != nil {
			used = append(used, object)
		}
	}
	return used
}
