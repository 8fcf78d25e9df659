package assignment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// followNames takes what the state knows of cluster types that have another name now to be theirs under that name, so that
// all that compares before and after sees no removal and no addition. It returns false after an error.
func (o *operation) followNames() bool {
	o.intent.Renames = o.result.Fleet.Renames()
	o.warnOfFirstNames()
	if o.known == nil || len(o.intent.Renames) == 0 {
		return true
	}
	o.renamedNow = o.formerHosts(o.current)
	merges := o.intent.Renames.FindMerges(o.current)
	for _, former := range slices.Sorted(maps.Keys(merges)) {
		o.diagnostics.AddAttributeError(path.Root("fleet"), "Cluster types cannot become one", fmt.Sprintf(
			"The folders of cluster type %q would move to those of %q, which is deployed itself. Take %q out of formerly: the cluster type can go, and its clusters be of the other one, as "+
				"a change that removes what it has.",
			former,
			merges[former],
			former,
		))
	}
	known := *o.known
	known.Trees = o.intent.Renames.RenameTrees(known.Trees)
	known.Drift.Trees, known.Drift.Since = folder.RenameKeys(o.intent.Renames, known.Drift.Trees), folder.RenameKeys(o.intent.Renames, known.Drift.Since)
	o.known, o.current = &known, known.Current()
	o.private = o.private.renamed(o.intent.Renames)
	return len(merges) == 0
}

// warnOfFirstNames warns of cluster types whose namespaces and objects get other names, since formerly has another first name.
func (o *operation) warnOfFirstNames() {
	before := o.private.fleet()
	if before == nil {
		return
	}
	first := map[string]string{}
	for i := range before.ClusterTypes {
		name := before.ClusterTypes[i].Name
		if now, renamed := o.intent.Renames[name]; renamed && len(o.current[name]) > 0 {
			name = now
		}
		first[name] = before.ClusterTypes[i].FirstName()
	}
	for i := range o.result.Fleet.ClusterTypes {
		one := &o.result.Fleet.ClusterTypes[i]
		if was := first[one.Name]; was != "" && was != one.FirstName() {
			o.diagnostics.AddAttributeWarning(path.Root("fleet"), "Names on clusters change", fmt.Sprintf(
				"Namespaces and objects of cluster type %q were called after %q, and will be called after %q. Agents remove the objects of the former names, and create the same objects again. "+
					"If that is not meant, let formerly of the cluster type begin with %q.",
				one.Name,
				was,
				one.FirstName(),
				was,
			))
		}
	}
}

// warnOfNewName mentions formerly for a cluster type that leaves the fleet while another one joins it with the same
// deployment targets.
func (o *operation) warnOfNewName() {
	if o.result == nil || o.rendering == nil {
		return
	}
	wanted, joined := o.rendering.Wanted(), map[string][]string{} // by their deployment targets
	in := map[string]bool{}
	for _, host := range o.result.Schedule.Hosts {
		in[host.Name] = true
		if _, known := o.current[host.Name]; host.Cluster == nil && !known && len(wanted[host.Name]) > 0 {
			targets := targetsOf(wanted[host.Name])
			joined[targets] = append(joined[targets], host.Name)
		}
	}
	var pairs []string
	for _, host := range slices.Sorted(maps.Keys(o.current)) {
		targets := targetsOf(o.current[host])
		if in[host] || folder.IsCluster(host) || targets == "" || len(joined[targets]) == 0 {
			continue
		}
		slices.Sort(joined[targets])
		pairs = append(pairs, fmt.Sprintf("%q leaves and %q joins", host, joined[targets][0]))
		joined[targets] = joined[targets][1:]
	}
	if len(pairs) > 0 {
		o.diagnostics.AddAttributeWarning(path.Root("fleet"), "Cluster type may have another name now", fmt.Sprintf(
			"Of these cluster types the one has the deployment targets of the other: %s. If they are the same under another name, add the former name to formerly of the cluster type, "+
				"such as formerly = [%q]: then its folders move, and nothing on clusters is removed.",
			wording.List(pairs, wording.Named),
			strings.Split(pairs[0], `"`)[1],
		))
	}
}

// targetsOf is equal for hosts with the same deployment targets.
func targetsOf(targets map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(targets)), " ")
}

// renamed is the private state under the present names of hosts. m may be nil.
func (m *assignmentPrivate) renamed(by folder.Renames) *assignmentPrivate {
	if m == nil {
		return nil
	}
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

// asOf returns the owner's folders at a commit, which may be from before renames of hosts and of the assignment.
func (o *operation) asOf(ctx context.Context, commit string) (gitops.FolderEdits, error) {
	if err := o.readFormer(ctx); err != nil {
		return nil, err
	}
	return o.connection.Delivery.ReadFoldersAt(ctx, o.formerOwner(), commit, o.intent.Former.Owners...)
}

// underPresentNames returns folders under the present names of their hosts.
func (o *operation) underPresentNames(hosts gitops.FolderEdits) gitops.FolderEdits {
	renamed := make(gitops.FolderEdits, len(hosts))
	for host, targets := range hosts {
		now := o.presentName(host)
		if renamed[now] == nil {
			renamed[now] = map[string]gitops.FolderEdit{}
		}
		maps.Copy(renamed[now], targets)
	}
	return renamed
}

// presentName returns the present name of a host of a former commit.
func (o *operation) presentName(host string) string {
	return o.intent.Renames.Host(o.intent.Former.Hosts.Host(host))
}

// readFormer reads former names from the records where there is no state.
func (o *operation) readFormer(ctx context.Context) error {
	if o.known != nil || o.intent.Former.Hosts != nil {
		return nil
	}
	written, err := o.connection.Delivery.ReadOwner(ctx, o.intent.Owner, nil)
	o.intent.Former = written.Former
	return err
}

// moveLines say which cluster types have another name now, and how many folders move for that.
func (o *operation) moveLines() (lines []string) {
	if o.intent.State == nil {
		return nil
	}
	before := o.intent.State.Trees
	for _, former := range slices.Sorted(maps.Keys(o.intent.Renames)) {
		if now, has := o.intent.Renames[former], before[former]; has != nil {
			moved := 0
			for target := range has {
				if o.intent.After.Has(now, target) {
					moved++
				}
			}
			lines = append(lines, fmt.Sprintf("cluster type %q is now %q: %s", former, now, wording.Count(moved, "folder moves", "folders move")))
		}
	}
	return lines
}
