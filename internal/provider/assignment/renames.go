package assignment

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// applyRenames puts the deployment under the present names of cluster types. It returns false after an error.
func (w *wanted) applyRenames() bool {
	if w.before.isNew || len(w.renames) == 0 {
		return true
	}
	w.movedHosts = w.formerHosts(w.before.trees)
	merges := w.renames.FindMerges(w.before.trees)
	for _, former := range slices.Sorted(maps.Keys(merges)) {
		tfvalue.AddErrorf(w.diagnostics, path.Root("fleet"), "Cluster types cannot become one",
			"The folders of cluster type %q would move to those of %q, which is deployed itself. Take %q out of formerly: the cluster type can go, "+
				"and its clusters be of the other one, as a change that removes what it has.", former, merges[former], former)
	}
	w.before = w.before.renamed(w.renames)
	return len(merges) == 0
}

func (d deployment) renamed(by folder.Renames) deployment {
	state := *d.state
	state.Trees = by.RenameTrees(state.Trees)
	state.Drift.Trees, state.Drift.Since = folder.RenameKeys(by, state.Drift.Trees), folder.RenameKeys(by, state.Drift.Since)
	d.state, d.trees, d.private = &state, state.Current(), d.private.renamed(by)
	return d
}

// warnOfFirstNames warns of names on clusters that change with the first name in formerly.
func (w *wanted) warnOfFirstNames(after *fleet.Fleet) {
	before := w.before.private.fleet()
	if before == nil {
		return
	}
	first := map[string]string{}
	for i := range before.ClusterTypes {
		name := before.ClusterTypes[i].Name
		if now, renamed := w.renames[name]; renamed && len(w.before.trees[name]) > 0 {
			name = now
		}
		first[name] = before.ClusterTypes[i].FirstName()
	}
	for i := range after.ClusterTypes {
		one := &after.ClusterTypes[i]
		if was := first[one.Name]; was != "" && was != one.FirstName() {
			tfvalue.AddWarningf(w.diagnostics, path.Root("fleet"), "Names on clusters change",
				"Namespaces and objects of cluster type %q were called after %q, and will be called after %q. Agents remove the objects of "+
					"the former names, and create the same objects again. If that is not meant, let formerly of the cluster type begin with %q.",
				one.Name, was, one.FirstName(), was)
		}
	}
}

// warnOfNewName mentions formerly if one cluster type leaves the fleet and another joins it with the same deployment
// targets.
func warnOfNewName(goal *fleetGoal, deployed folder.Trees, diagnostics *diag.Diagnostics) {
	wanted, joined := goal.rendering.Wanted(), map[string][]string{} // by their deployment targets
	in := map[string]bool{}
	for _, host := range goal.result.Schedule.Hosts {
		in[host.Name] = true
		if _, known := deployed[host.Name]; host.Cluster == nil && !known && len(wanted[host.Name]) > 0 {
			targets := joinTargets(wanted[host.Name])
			joined[targets] = append(joined[targets], host.Name)
		}
	}
	var first string
	var pairs []string
	for _, host := range slices.Sorted(maps.Keys(deployed)) {
		targets := joinTargets(deployed[host])
		if in[host] || folder.IsCluster(host) || targets == "" || len(joined[targets]) == 0 {
			continue
		}
		slices.Sort(joined[targets])
		pairs, first = append(pairs, fmt.Sprintf("%q leaves and %q joins", host, joined[targets][0])), cmp.Or(first, host)
		joined[targets] = joined[targets][1:]
	}
	if len(pairs) > 0 {
		tfvalue.AddWarningf(diagnostics, path.Root("fleet"), "Cluster type may have another name now",
			"Of these cluster types the one has the deployment targets of the other: %s. If they are the same under another name, add the former "+
				"name to formerly of the cluster type, such as formerly = [%q]: then its folders move, and nothing on clusters is removed.",
			wording.List(pairs, wording.Named), first)
	}
}

func joinTargets(targets map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(targets)), " ")
}

func (m *assignmentPrivate) renamed(by folder.Renames) *assignmentPrivate {
	after := *m
	after.Trees, after.Written = by.RenameTrees(m.Trees), folder.RenameHosts(by, m.Written)
	if m.Rollout != nil {
		state := *m.Rollout
		state.Targets = maps.Clone(state.Targets)
		for name, target := range state.Targets {
			renamed := *target
			renamed.Hosts = folder.RenameHosts(by, target.Hosts)
			state.Targets[name] = &renamed
		}
		after.Rollout = &state
	}
	return &after
}

// asOf returns the owner's folders at a commit, under the names of then. If this state did not write the location, it reads
// the former names there.
func (w *wanted) asOf(ctx context.Context, commit string) (gitops.FolderEdits, error) {
	if w.before.isNew && w.former.Hosts == nil || !w.before.isNew && w.before.state.Owner.Location != w.owner.Location {
		written, err := w.connection.Delivery.ReadOwner(ctx, w.owner, nil)
		if err != nil {
			return nil, err
		}
		w.former = written.Former
	}
	return w.connection.Delivery.ReadFoldersAt(ctx, w.formerOwner(), commit, w.former.Owners...)
}

func (w *wanted) underPresentNames(hosts gitops.FolderEdits) gitops.FolderEdits {
	renamed := make(gitops.FolderEdits, len(hosts))
	for host, targets := range hosts {
		now := w.presentName(host)
		if renamed[now] == nil {
			renamed[now] = map[string]gitops.FolderEdit{}
		}
		maps.Copy(renamed[now], targets)
	}
	return renamed
}

func (w *wanted) presentName(host string) string { return w.renames.Host(w.former.Hosts.Host(host)) }

// formerHosts maps renamed hosts with folders to their former names.
func (w *wanted) formerHosts(folders folder.Trees) map[string]string {
	former := map[string]string{}
	for name, now := range w.renames {
		if _, is := folders[name]; is {
			former[now] = name
		}
	}
	return former
}

func (d *decision) renameLines() (lines []string) {
	before := d.before.recorded.Trees
	for _, former := range slices.Sorted(maps.Keys(d.renames)) {
		if now, has := d.renames[former], before[former]; has != nil {
			moved := 0
			for target := range has {
				if d.after.Has(now, target) {
					moved++
				}
			}
			lines = append(lines, fmt.Sprintf("cluster type %q is now %q: %s", former, now, wording.Count(moved, "folder moves", "folders move")))
		}
	}
	return lines
}
