package assignment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

type comparison struct {
	decision
	outlook *delivery.Plan
}

// compare finds the effect of the decision on the location, and the errors that the apply would hit.
func compare(ctx context.Context, d decision) comparison {
	desired := d.desired()
	c := comparison{decision: d, outlook: delivery.PlanUnread(desired)}
	if d.isLocated && d.connection.CanAsk() {
		outlook, err := d.connection.Delivery.Plan(ctx, desired)
		if err != nil {
			repository.AddError(ctx, d.diagnostics, err, d.before.isNew)
			return c
		}
		c.outlook = outlook
	}
	repository.AddProblems(d.diagnostics, c.outlook.Problems)
	return c
}

// mayMove reports whether only a look at two locations, which may differ later, tells if the assignment moves.
func (c *comparison) mayMove() bool {
	return c.outlook.Identity == delivery.Moved && c.before.state.Owner.Location.Path == c.owner.Location.Path
}

// isDone reports whether there is nothing to write. It warns of drift that waits for a window.
func (c *comparison) isDone(content types.String) bool {
	state := c.before.state
	if c.before.isNew || c.outlook.Identity != delivery.Same {
		return false
	}
	if c.outcome.Closed {
		if !state.Drift.IsNone() {
			tfvalue.AddWarningf(c.diagnostics, path.Root("rollout"), "Drift waits for a window",
				"The folders of %q are not as they were written. A repair is a change, too, and waits for %s.",
				state.Owner.Name, gate.WaitText(c.config.evidence.Time(), c.config.settings.Windows))
		}
		return true
	}
	if !state.Drift.IsNone() || !content.Equal(c.prior.Content) {
		return false
	}
	// A change of delivery must update an open request.
	return c.model.Delivery.Equal(c.prior.Delivery) || c.prior.PullRequest.IsNull() || !c.before.isProposed()
}

func (c *comparison) warnOfImport() {
	imported := c.before.state.Imported
	if imported == "" || c.model.Adopt.ValueBool() || c.model.Adopt.IsUnknown() {
		return
	}
	tfvalue.AddWarningf(c.diagnostics, path.Root("name"), "Assignment is taken over from another state",
		"This state knows the assignment %q from its records, which were written by %s. This apply makes it this state's: if another state "+
			"still has the assignment, the next plan of that one fails.", c.before.state.Owner.Name, imported)
}

// warnOfDeparture lists the folders to be removed at the former location. Terraform hides warnings of the second plan of a
// replacement.
func (c *comparison) warnOfDeparture() {
	if c.outlook.Identity != delivery.Moved || c.mayMove() || c.model.keeps() || c.before.trees.Count() == 0 {
		return
	}
	lines := make([]string, 0, c.before.trees.Count())
	for _, key := range c.before.trees.Keys() {
		lines = append(lines, "- "+key.String())
	}
	c.diagnostics.AddAttributeWarning(path.Root("gitops_repo"), "Folders at the former location are removed", fmt.Sprintf(
		"The assignment %q moves from %s, and its folders there are removed:\n%s", c.before.state.Owner.Name,
		repository.LocationText(c.before.state.Owner.Location), wording.Lines(lines, changes.MaxLines)))
}

func warnOfUnknownHosts(d *decision) {
	known := slices.Collect(maps.Keys(d.before.trees))
	for _, host := range d.goal.result.Schedule.Hosts {
		known = append(known, host.Name)
	}
	for _, host := range d.protection.EmptiedHosts {
		if !slices.Contains(known, host) {
			tfvalue.AddWarningf(d.diagnostics, path.Root("protection"), "A host of emptied_hosts does not exist",
				"neither the fleet nor the branch has a host %q%s", host, fleet.DidYouMean(host, known))
		}
	}
}

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
		c.diagnostics.AddAttributeWarning(path.Root("fleet"), "Version was published again",
			tfvalue.Sentence(text)+" This plan deploys the new content. If you do not expect that, ask the publisher. To keep the content "+
				"that is deployed, leave the deployment targets out of update of flotilla_artifacts."+
				"\n\nDeployment targets: "+wording.List(wording.Quoted(slices.Sorted(maps.Keys(targets[text]))), wording.Named)+".")
	}
}
