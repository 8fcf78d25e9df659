package observe

import (
	"cmp"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/reconciler"
)

// running is what a cluster has of an assignment, by the objects that reconcile it.
func (e *evaluation) running(folder *Folder) reconciler.Running {
	var all []reconciler.Running
	for _, name := range folder.Objects {
		if one, found := e.report.find(name); found {
			all = append(all, one.running.Value())
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return reconciler.Together(all...)
}

// Run is what some clusters run of an assignment.
type Run struct {
	*Folder
	reconciler.Running
	// Clusters are those that run it, in order, and Everywhere says that these are all that follow the host.
	Clusters   []string
	Everywhere bool
}

// Runs are what runs of each assignment, in the order of their keys; first what most clusters run. A cluster is in at most
// one of an assignment's: in none where it is not known what it runs.
func (r *Result) Runs() []Run {
	followers := map[*Folder]int{}
	clusters := map[*Folder]map[reconciler.Running][]string{}
	for i := range r.Clusters {
		c := &r.Clusters[i]
		for k := range c.Assignments {
			a := &c.Assignments[k]
			followers[a.Folder]++
			if a.Running == (reconciler.Running{}) {
				continue
			}
			if clusters[a.Folder] == nil {
				clusters[a.Folder] = map[reconciler.Running][]string{}
			}
			clusters[a.Folder][a.Running] = append(clusters[a.Folder][a.Running], c.Name)
		}
	}
	var runs []Run
	for folder, by := range clusters {
		for running, names := range by {
			runs = append(runs, Run{folder, running, names, len(names) == followers[folder]})
		}
	}
	slices.SortFunc(runs, func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.DeploymentTarget, b.DeploymentTarget),
			cmp.Compare(len(b.Clusters), len(a.Clusters)), cmp.Compare(a.Clusters[0], b.Clusters[0]))
	})
	return runs
}
