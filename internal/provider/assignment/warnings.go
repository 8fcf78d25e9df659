package assignment

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
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

func (c *comparison) warnOfRepublished(ctx context.Context, folders []changes.FolderChange, before folder.Trees) {
	if c.goal == nil || c.before.isNew {
		return
	}
	changed := map[int]*changes.FolderChange{} // by assignment
	for i := range folders {
		one := &folders[i]
		if one.Before == nil || one.Removed {
			continue
		}
		at, ok := c.goal.result.AssignmentIndex(one.Host, one.DeploymentTarget)
		if ok && artifact.IsMovable(c.goal.result.Schedule.Assignments[at].Target.Target.Manifests.Manifests) {
			changed[at] = one
		}
	}
	if len(changed) == 0 {
		return
	}
	former, _ := c.formerOf(ctx, changed, before)
	targets := map[string]map[string]bool{}
	for at, was := range former {
		if was.Manifests == nil {
			continue
		}
		target := c.goal.result.Schedule.Assignments[at].Target
		if text := artifact.DescribeRepublished(*was.Manifests, target.Target.Manifests.Manifests); text != "" {
			if targets[text] == nil {
				targets[text] = map[string]bool{}
			}
			targets[text][target.Name] = true
		}
	}
	for _, text := range slices.Sorted(maps.Keys(targets)) {
		c.diagnostics.AddAttributeWarning(
			path.Root("fleet"),
			"Version was published again",
			tfvalue.Sentence(text)+" This plan deploys the new content. "+
				"If you do not expect that, ask the publisher. To keep the content that is deployed, leave the deployment targets out of update "+
				"of flotilla_artifacts."+
				"\n\nDeployment targets: "+wording.List(wording.Quoted(slices.Sorted(maps.Keys(targets[text]))), wording.Named)+".",
		)
	}
}
