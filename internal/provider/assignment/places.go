package assignment

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// A folder with final objects names its own place: the object that follows them has their path and, for Argo CD, the branch
// and the repository. Another place changes the tree of the folder, but not its content. Relocations map former trees to
// present ones, so that comparisons see no new content.

type relocation struct {
	tree  string
	files []git.File
}

// relocations are folders by key and former tree.
type relocations map[folder.Key]map[string]relocation

func (r relocations) relocated(key folder.Key, tree string) string {
	if one, ok := r[key][tree]; ok {
		return one.tree
	}
	return tree
}

func (r relocations) trees(of folder.Trees) folder.Trees {
	if len(r) == 0 {
		return of
	}
	present := of.Clone()
	for key, tree := range folder.All(of) {
		folder.Put(present, key, r.relocated(key, tree))
	}
	return present
}

func (r relocations) at(key folder.Key, tree string) (relocation, bool) {
	for _, one := range r[key] {
		if one.tree == tree {
			return one, true
		}
	}
	return relocation{}, false
}

type formerFolder struct {
	tree string
	from folder.Location
}

func placeOf(at folder.Location, key folder.Key) folder.Location {
	at.Path = path.Join(at.Path, key.String())
	return at
}

// addRelocations adds folders that name a former place. It reads all files of a folder only if the top ones name one.
func (w *wanted) addRelocations(ctx context.Context, folders map[folder.Key]formerFolder) error {
	asked := folder.Trees{}
	for key, of := range folders {
		if _, known := w.relocations[key][of.tree]; !known && of.tree != "" {
			folder.Put(asked, key, of.tree)
		}
	}
	if asked.Count() == 0 {
		return nil
	}
	isTop := func(name string) bool {
		return !strings.Contains(name, "/") && (path.Ext(name) == ".yaml" || path.Ext(name) == ".yml")
	}
	tops, err := w.connection.Delivery.ReadFilesNamed(ctx, w.formerOwner(), asked, isTop)
	if err != nil {
		return err
	}
	moving := folder.Trees{}
	for key, files := range tops {
		if _, isSame := render.RelocatePointers(files, folders[key].from, placeOf(w.owner.Location, key)); !isSame {
			folder.Put(moving, key, folders[key].tree)
		}
	}
	if moving.Count() == 0 {
		return nil
	}
	all, err := w.connection.Delivery.ReadFiles(ctx, w.formerOwner(), moving, nil)
	if err != nil {
		return err
	}
	for key, files := range all {
		files, _ := render.RelocatePointers(files, folders[key].from, placeOf(w.owner.Location, key))
		tree, err := git.TreeID(files)
		if err != nil {
			return err
		}
		if w.relocations[key] == nil {
			w.relocations[key] = map[string]relocation{}
		}
		w.relocations[key][folders[key].tree] = relocation{tree, files}
	}
	return nil
}

func (w *wanted) relocateDeployment(ctx context.Context) error {
	was := w.before.saved.Owner.Location
	if w.before.isNew || !w.isLocated || !w.connection.CanAsk() || was.Path != w.owner.Location.Path {
		return nil
	}
	if w.before.state.Owner.Location != w.owner.Location { // else it is the same location by another name, which has the folders
		identity, err := w.connection.Delivery.Identify(ctx, w.before.state, w.owner)
		if err != nil || identity == delivery.Moved {
			return nil //nolint:nilerr // the look at the location reports it
		}
	}
	from := func(key folder.Key) folder.Location {
		if former, renamed := w.movedHosts[key.Host]; renamed {
			key.Host = former
		}
		return placeOf(was, key)
	}
	moved := map[folder.Key]formerFolder{}
	for key, tree := range folder.All(w.before.trees) {
		if at := from(key); at != placeOf(w.owner.Location, key) {
			moved[key] = formerFolder{tree, at}
		}
	}
	if err := w.addRelocations(ctx, moved); err != nil {
		return err
	}
	w.before = w.before.relocated(w.relocations, w.renderAtFormerPlace(ctx, from))
	return nil
}

// relocated returns the deployment at the present place. rendered has the trees of rendered folders at both places.
func (d deployment) relocated(by relocations, rendered map[folder.Key][2]string) deployment {
	state := *d.state
	state.Trees = by.trees(state.Trees).Clone()
	for key, tree := range folder.All(state.Trees) {
		if trees, ok := rendered[key]; ok && trees[0] == tree {
			folder.Put(state.Trees, key, trees[1])
		}
	}
	drift := map[folder.Key]string{}
	for key, tree := range state.Drift.Trees {
		drift[key] = by.relocated(key, tree)
	}
	state.Drift.Trees = drift
	private := *d.private
	private.Trees, private.Drift = state.Trees, state.Drift
	private.Rollout = private.Rollout.Relocated(rendered)
	d.state, d.trees, d.private = &state, state.Current(), &private
	return d
}

// relocateWritten adds relocations of folders on the branch, for an assignment without a state. Their objects may also
// follow the branch under a former name, which no state knows.
func (w *wanted) relocateWritten(ctx context.Context, written folder.Trees) error {
	w.movedHosts = w.formerHosts(written)
	withObjects := w.keysWithObjects()
	moved := map[folder.Key]formerFolder{}
	for at, tree := range folder.All(written) {
		if key := w.renames.Key(at); key != at || withObjects[key] {
			moved[key] = formerFolder{tree, placeOf(w.owner.Location, at)}
		}
	}
	return w.addRelocations(ctx, moved)
}

func (w *wanted) keysWithObjects() map[folder.Key]bool {
	keys := map[folder.Key]bool{}
	for _, assignment := range w.goal.result.Schedule.Assignments {
		if render.HasObjects(assignment) {
			keys[folder.Key{Host: assignment.Host.Name, DeploymentTarget: assignment.Target.Name}] = true
		}
	}
	return keys
}

// renderAtFormerPlace returns the trees, at the former and the present place, of folders that are under way or drifted.
func (w *wanted) renderAtFormerPlace(
	ctx context.Context, from func(folder.Key) folder.Location,
) map[folder.Key][2]string {
	rendered := map[folder.Key][2]string{}
	for i, assignment := range w.goal.result.Schedule.Assignments {
		key := folder.Key{Host: assignment.Host.Name, DeploymentTarget: assignment.Target.Name}
		at, to := from(key), placeOf(w.owner.Location, key)
		_, drifted := w.before.state.Drift.Trees[key]
		if at == to || !render.HasObjects(assignment) || w.goal.rendering.Trees[i] == "" || !drifted && !w.before.private.isTouched(key) {
			continue
		}
		files, err := w.goal.rendering.Files(ctx, i)
		if err != nil {
			continue // the apply renders it again, and has the error
		}
		files, _ = render.RelocatePointers(files, to, at)
		if tree, err := git.TreeID(files); err == nil {
			rendered[key] = [2]string{tree, w.goal.rendering.Trees[i]}
		}
	}
	return rendered
}

func (m *assignmentPrivate) isTouched(key folder.Key) bool {
	return m.Rollout != nil && m.Rollout.Targets[key.DeploymentTarget] != nil &&
		m.Rollout.Targets[key.DeploymentTarget].Hosts[key.Host] != nil
}

// foldersAt returns the owner's folders at a commit, under present names and at the present place.
func (w *wanted) foldersAt(ctx context.Context, commit string) (gitops.FolderEdits, error) {
	then, err := w.asOf(ctx, commit)
	if err != nil {
		return nil, err
	}
	was := w.before.saved.Owner.Location
	hosts, moved := w.underPresentNames(then), map[folder.Key]formerFolder{}
	for at, one := range folder.All(then) {
		key := at
		key.Host = w.presentName(at.Host)
		if was == w.owner.Location && one.Tree == w.before.trees[key.Host][key.DeploymentTarget] {
			continue // it names its place already
		}
		from := placeOf(was, at)
		from.Branch = "" // the branch of that time is not known
		moved[key] = formerFolder{one.Tree, from}
	}
	if err := w.addRelocations(ctx, moved); err != nil {
		return nil, err
	}
	for key, one := range folder.All(hosts) {
		if at, moves := w.relocations[key][one.Tree]; moves {
			one.Tree = at.tree
			one.Files = func() ([]git.File, error) { return at.files, nil }
			hosts[key.Host][key.DeploymentTarget] = one
		}
	}
	return hosts, nil
}

func (w *wanted) kept(key folder.Key) gitops.FolderEdit {
	at, moves := w.relocations.at(key, w.before.trees[key.Host][key.DeploymentTarget])
	if !moves {
		return gitops.FolderEdit{Action: gitops.Keep}
	}
	return gitops.FolderEdit{Action: gitops.Relocate, Tree: at.tree, Files: func() ([]git.File, error) { return at.files, nil }}
}

// applyRenames puts the deployment under the present names of cluster types. It returns false after an error.
func (w *wanted) applyRenames() bool {
	if w.before.isNew || len(w.renames) == 0 {
		return true
	}
	w.movedHosts = w.formerHosts(w.before.trees)
	merges := w.renames.FindMerges(w.before.trees)
	for _, former := range slices.Sorted(maps.Keys(merges)) {
		tfvalue.AddErrorf(w.diagnostics, fleetvalue.Path, "Cluster types cannot become one",
			"The folders of cluster type %q would move to those of %q, which is deployed itself. Take %q out of formerly. To merge the types, "+
				"give its clusters the other type and remove it: the plan then shows the removal of its folders.", former, merges[former], former)
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
			tfvalue.AddWarningf(w.diagnostics, fleetvalue.Path, "Names on clusters change",
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
		tfvalue.AddWarningf(diagnostics, fleetvalue.Path, "Cluster type may have another name now",
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
