package observe

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/numbering"
)

func (e *evaluation) running(folder *WrittenFolder) reconciler.Running {
	var all []reconciler.Running
	for _, name := range folder.Objects {
		if one, found := e.report.find(name); found {
			all = append(all, e.runningOf(folder, &one))
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return reconciler.MergeRunning(all...)
}

// runningOf returns the content that an object has brought onto the cluster. An object that follows final objects knows
// only the commit of the GitOps repository, so the folder's own version counts if it has the folder's content.
func (e *evaluation) runningOf(of *WrittenFolder, one *observedObject) reconciler.Running {
	running := one.running.Value()
	if !one.follows(of) || one.followed[0].OfChart {
		return running
	}
	running.Version, running.Revision = "", ""
	if slices.ContainsFunc(one.followed, func(followed reconciler.FinalStatus) bool {
		tree, known := e.treeAt(followed.Applied, of)
		return !known || tree != of.Tree
	}) {
		return running
	}
	if folder.IsCommit(of.Wanted) {
		running.Revision = of.Wanted
	} else {
		running.Version = of.Wanted
	}
	return running
}

// AssignmentRun is the content that some clusters run of an assignment.
type AssignmentRun struct {
	*WrittenFolder
	reconciler.Running
	// Clusters are sorted. Everywhere reports that no other cluster follows the host.
	Clusters   []string
	Everywhere bool
}

// AssignmentRuns returns the running content of each assignment, sorted by key, most clusters first, without clusters
// whose content is unknown.
func (r *Observation) AssignmentRuns() []AssignmentRun {
	followers := map[*WrittenFolder]int{}
	found := map[*WrittenFolder][]int{} // indexes of runs
	var runs []AssignmentRun
	for i := range r.Clusters {
		c := &r.Clusters[i]
		for k := range c.Assignments {
			a := &c.Assignments[k]
			followers[a.Folder]++
			if a.Running == (reconciler.Running{}) {
				continue
			}
			at := slices.IndexFunc(found[a.Folder], func(n int) bool { return runs[n].Running == a.Running })
			if at < 0 {
				at = len(found[a.Folder])
				found[a.Folder] = append(found[a.Folder], len(runs))
				runs = append(runs, AssignmentRun{WrittenFolder: a.Folder, Running: a.Running})
			}
			run := &runs[found[a.Folder][at]]
			run.Clusters = append(run.Clusters, c.Name)
		}
	}
	for i := range runs {
		runs[i].Everywhere = len(runs[i].Clusters) == followers[runs[i].WrittenFolder]
	}
	slices.SortFunc(runs, func(a, b AssignmentRun) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.DeploymentTarget, b.DeploymentTarget),
			cmp.Compare(len(b.Clusters), len(a.Clusters)), cmp.Compare(a.Clusters[0], b.Clusters[0]))
	})
	return runs
}

// TargetRun is the running content of a deployment target on some hosts.
type TargetRun struct {
	DeploymentTarget string
	Wanted           string
	reconciler.Running
	Clusters int
	// Hosts run it on all clusters. Names are clusters of other hosts. Both are sorted.
	Hosts, Names []string
}

// TargetRuns returns the running content of each deployment target, sorted by name, most clusters first.
func (r *Observation) TargetRuns() []TargetRun {
	type group struct {
		target, wanted string
		reconciler.Running
	}
	at := map[group]int{}
	var all []TargetRun
	for _, run := range r.AssignmentRuns() {
		of := group{run.DeploymentTarget, run.Wanted, run.Running}
		n, known := at[of]
		if !known {
			n = len(all)
			at[of] = n
			all = append(all, TargetRun{DeploymentTarget: of.target, Wanted: of.wanted, Running: of.Running})
		}
		all[n].Clusters += len(run.Clusters)
		if run.Everywhere {
			all[n].Hosts = append(all[n].Hosts, run.Host)
		} else {
			all[n].Names = append(all[n].Names, run.Clusters...)
		}
	}
	slices.SortFunc(all, func(a, b TargetRun) int {
		return cmp.Or(
			cmp.Compare(a.DeploymentTarget, b.DeploymentTarget),
			cmp.Compare(b.Clusters, a.Clusters),
			a.Compare(&b.Running),
			cmp.Compare(a.Wanted, b.Wanted),
		)
	})
	for i := range all {
		slices.Sort(all[i].Names)
	}
	return all
}

// addRunning adds the most common content once, and differences for each cluster.
func (r *Observation) addRunning(e *Evidence) {
	type most struct {
		reconciler.Running
		hosts int
	}
	byKey, byTarget := map[string]reconciler.Running{}, map[string]map[reconciler.Running]int{}
	for _, run := range r.AssignmentRuns() {
		key := run.Key()
		if _, known := byKey[key]; known {
			continue
		}
		byKey[key] = run.Running
		if byTarget[run.DeploymentTarget] == nil {
			byTarget[run.DeploymentTarget] = map[reconciler.Running]int{}
		}
		byTarget[run.DeploymentTarget][run.Running]++
	}
	if len(byKey) == 0 {
		return
	}
	e.Running = map[string]reconciler.Running{}
	for target, found := range byTarget {
		var of most
		for running, hosts := range found {
			if hosts > of.hosts || hosts == of.hosts && running.Compare(&of.Running) < 0 {
				of = most{running, hosts}
			}
		}
		e.Running[target] = of.Running
	}
	for key, running := range byKey {
		if _, target := splitKey(key); e.Running[target] != running {
			e.Running[key] = running
		}
	}
	for i := range r.Clusters {
		from := &r.Clusters[i]
		if !slices.ContainsFunc(from.Assignments, func(a AssignmentResult) bool { return a.Running != reconciler.Running{} }) {
			continue
		}
		c := e.Clusters[from.Name]
		c.Running = map[string]reconciler.Running{}
		for k := range from.Assignments {
			if a := &from.Assignments[k]; a.Running != e.mostCommon(a.Key) {
				c.Running[a.Key] = a.Running
			}
		}
		e.Clusters[from.Name] = c
	}
}

func (e *Evidence) mostCommon(key string) reconciler.Running {
	if running, ok := e.Running[key]; ok {
		return running
	}
	_, target := splitKey(key)
	return e.Running[target]
}

// RunningOn returns the running content of an assignment on a cluster.
func (e *Evidence) RunningOn(cluster, key string) reconciler.Running {
	of := e.Clusters[cluster].Running
	if of == nil {
		return reconciler.Running{}
	}
	if running, ok := of[key]; ok {
		return running
	}
	return e.mostCommon(key)
}

// runningDocument has each content once, and its number, counted from 1, by assignment or target. 0 means unknown.
type runningDocument struct {
	Runs    []reconciler.Running `json:"runs,omitempty"`
	Running map[string]int       `json:"running,omitempty"`
}

func numbersOf(runs *numbering.Numbers[reconciler.Running], of map[string]reconciler.Running) map[string]int {
	if of == nil {
		return nil
	}
	numbers := make(map[string]int, len(of))
	for _, key := range slices.Sorted(maps.Keys(of)) {
		numbers[key] = runs.Number(of[key])
	}
	return numbers
}

func (r *evidenceReader) checkRuns(runs []reconciler.Running) []reconciler.Running {
	for i := range runs {
		for _, text := range []string{runs[i].Version, runs[i].Revision, runs[i].Chart, runs[i].AppVersion, runs[i].Images} {
			r.checkText(text)
		}
	}
	return append([]reconciler.Running{{}}, runs...)
}

func (r *evidenceReader) readRunning(numbers map[string]int) map[string]reconciler.Running {
	if numbers == nil {
		return nil
	}
	found := make(map[string]reconciler.Running, len(numbers))
	for key, number := range numbers {
		if strings.Contains(r.checkText(key), "/") {
			r.checkKey(key)
		}
		if number < 0 || number >= len(r.runs) {
			r.fail("%q runs number %d of %d", key, number, len(r.runs)-1)
			continue
		}
		found[key] = r.runs[number]
	}
	return found
}
