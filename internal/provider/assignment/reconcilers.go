package assignment

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

func (c *comparison) warnOfReconcilers(folders []changes.FolderChange) {
	type change struct{ from, to string }
	hosts := map[change][]string{}
	decided := map[string]bool{}
	for i := range folders {
		one := &folders[i]
		if decided[one.Host] || one.Before == nil {
			continue
		}
		before := reconciler.Deploying(objectsIn(one.Before))
		if before == nil {
			continue
		}
		if after, known := c.reconcilerAfter(one); known {
			if decided[one.Host] = true; after != before.Name {
				pair := change{before.Name, after}
				hosts[pair] = append(hosts[pair], one.Host)
			}
		}
	}
	ordered := slices.SortedFunc(maps.Keys(hosts), func(a, b change) int { return strings.Compare(a.from+a.to, b.from+b.to) })
	for _, pair := range ordered {
		of := hosts[pair]
		slices.Sort(of)
		tfvalue.AddWarningf(c.diagnostics, path.Root("fleet"), "Reconciler changes",
			"The reconciler of %s changes from %q to %q: %s. An agent of %s that still follows the folders then prunes its objects, and "+
				"with them all that they have deployed, before the other agent creates anything: workloads stop, and their volumes may go. The "+
				"section \"Another reconciler\" of the guide \"Onboarding clusters: reference\" has the way on which everything stays.",
			wording.Count(len(of), "host", "hosts"), pair.from, pair.to, wording.List(of, wording.Named), reconciler.Named(pair.from).Product)
	}
}

// reconcilerAfter returns the reconciler, or the user's template, that will deploy a folder. known is false if that is not
// certain yet.
func (d *decision) reconcilerAfter(of *changes.FolderChange) (name string, known bool) {
	if after := reconciler.Deploying(objectsIn(of.After)); after != nil {
		return after.Name, true
	}
	if d.goal == nil {
		return "", false
	}
	i, _ := d.goal.result.AssignmentIndex(of.Host, of.DeploymentTarget)
	name = d.goal.result.Schedule.Assignments[i].Host.ClusterType.Reconciler
	return name, reconciler.Named(name) != nil || of.WaitsFor == ""
}

// objectsIn returns the objects that templates rendered. Objects in subfolders belong to the workload.
func objectsIn(files []git.File) (objects []map[string]any) {
	for _, file := range files {
		if strings.Contains(file.Name, "/") || !strings.HasSuffix(file.Name, ".yaml") {
			continue
		}
		documents, _ := fleet.ReadObjects(string(file.Content))
		objects = append(objects, documents...)
	}
	return objects
}
