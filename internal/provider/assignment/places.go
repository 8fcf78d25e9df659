package assignment

import (
	"context"
	"path"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// A folder with final objects names its own place: the object that follows them has their path, and for Argo CD the branch and the
// repository. When the place changes, so does the tree of the folder, and its content is the same. relocations hold both trees, so
// that a folder that is kept or goes back names its present place, and no comparison takes the change for new content.

// relocation is a folder at its present place.
type relocation struct {
	tree  string
	files []git.File
}

// relocations are folders by their key and by the tree that they had at the former place.
type relocations map[folder.Key]map[string]relocation

// relocated returns the tree of a folder at its present place.
func (r relocations) relocated(key folder.Key, tree string) string {
	if one, ok := r[key][tree]; ok {
		return one.tree
	}
	return tree
}

// trees returns folders with their trees at the present place.
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

// at returns the relocation that has led to a tree; false if there is none.
func (r relocations) at(key folder.Key, tree string) (relocation, bool) {
	for _, one := range r[key] {
		if one.tree == tree {
			return one, true
		}
	}
	return relocation{}, false
}

// formerFolder is a folder at a former place.
type formerFolder struct {
	tree string
	from folder.Location // of the folder itself
}

// placeOf is the place of a folder below a location.
func placeOf(at folder.Location, key folder.Key) folder.Location {
	at.Path = path.Join(at.Path, key.String())
	return at
}

// addRelocations reads folders, and adds those that name a former place. It reads the files of no others but those at their top.
func (o *operation) addRelocations(ctx context.Context, folders map[folder.Key]formerFolder) error {
	asked := folder.Trees{}
	for key, of := range folders {
		if _, known := o.relocations[key][of.tree]; !known && of.tree != "" {
			folder.Put(asked, key, of.tree)
		}
	}
	if asked.Count() == 0 {
		return nil
	}
	isTop := func(name string) bool {
		return !strings.Contains(name, "/") && (path.Ext(name) == ".yaml" || path.Ext(name) == ".yml")
	}
	tops, err := o.connection.Delivery.ReadFilesNamed(ctx, o.formerOwner(), asked, isTop)
	if err != nil {
		return err
	}
	moving := folder.Trees{}
	for key, files := range tops {
		if _, isSame := render.RelocatePointers(files, folders[key].from, placeOf(o.intent.Owner.Location, key)); !isSame {
			folder.Put(moving, key, folders[key].tree)
		}
	}
	if moving.Count() == 0 {
		return nil
	}
	all, err := o.connection.Delivery.ReadFiles(ctx, o.formerOwner(), moving, nil)
	if err != nil {
		return err
	}
	if o.relocations == nil {
		o.relocations = relocations{}
	}
	for key, files := range all {
		files, _ := render.RelocatePointers(files, folders[key].from, placeOf(o.intent.Owner.Location, key))
		tree, err := git.TreeID(files)
		if err != nil {
			return err
		}
		if o.relocations[key] == nil {
			o.relocations[key] = map[string]relocation{}
		}
		o.relocations[key][folders[key].tree] = relocation{tree, files}
	}
	return nil
}

// followPlaces takes folders of the state whose place has changed to be as they are at the present place. It returns an error of a
// look.
func (o *operation) followPlaces(ctx context.Context) error {
	was := o.formerLocation()
	if o.known == nil || !o.locationKnown || !o.connection.CanAsk() || was.Path != o.intent.Owner.Location.Path {
		return nil
	}
	if o.known.Owner.Location != o.intent.Owner.Location { // or else it is the same location by another name, which has the folders
		if identity, err := o.connection.Delivery.Identify(ctx, o.known, o.intent.Owner); err != nil || identity == delivery.Moved {
			return nil //nolint:nilerr // the look at the location reports it
		}
	}
	from := func(key folder.Key) folder.Location {
		if former, renamed := o.renamedNow[key.Host]; renamed {
			key.Host = former
		}
		return placeOf(was, key)
	}
	moved := map[folder.Key]formerFolder{}
	for key, tree := range folder.All(o.current) {
		if at := from(key); at != placeOf(o.intent.Owner.Location, key) {
			moved[key] = formerFolder{tree, at}
		}
	}
	if err := o.addRelocations(ctx, moved); err != nil {
		return err
	}
	wanted := o.wantedAt(ctx, from)
	known := *o.known
	known.Trees = o.relocations.trees(known.Trees)
	for key, tree := range folder.All(known.Trees) {
		if was, isWanted := wanted[key]; isWanted && was[0] == tree {
			folder.Put(known.Trees, key, was[1])
		}
	}
	drift := map[folder.Key]string{}
	for key, tree := range known.Drift.Trees {
		drift[key] = o.relocations.relocated(key, tree)
	}
	known.Drift.Trees = drift
	o.known, o.current = &known, known.Current()
	if o.private != nil {
		private := *o.private
		private.Trees, private.Drift = known.Trees, known.Drift
		private.Rollout = private.Rollout.Relocated(wanted)
		o.private = &private
	}
	return nil
}

// followWritten is followPlaces without a state, of the folders that the branch has.
func (o *operation) followWritten(ctx context.Context, written folder.Trees) error {
	o.renamedNow = o.formerHosts(written)
	moved := map[folder.Key]formerFolder{}
	for at, tree := range folder.All(written) {
		if now, renamed := o.intent.Renames[at.Host]; renamed {
			moved[folder.Key{Host: now, DeploymentTarget: at.DeploymentTarget}] = formerFolder{tree, placeOf(o.intent.Owner.Location, at)}
		}
	}
	return o.addRelocations(ctx, moved)
}

// formerLocation is the location in the state, before a branch or a repository was renamed.
func (o *operation) formerLocation() folder.Location {
	if o.inState != nil {
		return o.inState.Owner.Location
	}
	return o.intent.Owner.Location
}

// formerHosts maps the present names of hosts to those under which the owner has them.
func (o *operation) formerHosts(has folder.Trees) map[string]string {
	former := map[string]string{}
	for name, now := range o.intent.Renames {
		if _, is := has[name]; is {
			former[now] = name
		}
	}
	return former
}

// wantedAt renders folders whose place has changed, and which are under way or drifted, as they would be at the former place. It
// returns their trees there and at the present place.
func (o *operation) wantedAt(ctx context.Context, from func(folder.Key) folder.Location) map[folder.Key][2]string {
	wanted := map[folder.Key][2]string{}
	if o.rendering == nil {
		return wanted
	}
	for i, assignment := range o.result.Schedule.Assignments {
		key := folder.Key{Host: assignment.Host.Name, DeploymentTarget: assignment.Target.Name}
		at, to := from(key), placeOf(o.intent.Owner.Location, key)
		_, drifted := o.known.Drift.Trees[key]
		if at == to || !render.HasObjects(assignment) || o.rendering.Trees[i] == "" || !drifted && !o.private.isTouched(key) {
			continue
		}
		files, err := o.rendering.Files(ctx, i)
		if err != nil {
			continue // the apply renders it again, and has the error
		}
		files, _ = render.RelocatePointers(files, to, at)
		if tree, err := git.TreeID(files); err == nil {
			wanted[key] = [2]string{tree, o.rendering.Trees[i]}
		}
	}
	return wanted
}

// isTouched reports whether a rollout that is under way reaches a folder.
func (m *assignmentPrivate) isTouched(key folder.Key) bool {
	return m != nil && m.Rollout != nil && m.Rollout.Targets[key.DeploymentTarget] != nil &&
		m.Rollout.Targets[key.DeploymentTarget].Hosts[key.Host] != nil
}

// goBack returns what the owner had at a commit, as it is at the present place.
func (o *operation) goBack(ctx context.Context, commit string) (gitops.FolderEdits, error) {
	then, err := o.asOf(ctx, commit)
	if err != nil {
		return nil, err
	}
	was := o.formerLocation()
	hosts, moved := o.underPresentNames(then), map[folder.Key]formerFolder{}
	for at, one := range folder.All(then) {
		key := at
		key.Host = o.presentName(at.Host)
		if was == o.intent.Owner.Location && one.Tree == o.current[key.Host][key.DeploymentTarget] {
			continue // it names its place already
		}
		from := placeOf(was, at)
		from.Branch = "" // which it had then is not known
		moved[key] = formerFolder{one.Tree, from}
	}
	if err := o.addRelocations(ctx, moved); err != nil {
		return nil, err
	}
	for key, one := range folder.All(hosts) {
		if at, moves := o.relocations[key][one.Tree]; moves {
			one.Tree, one.FromTree = at.tree, one.Tree
			one.Files = func() ([]git.File, error) { return at.files, nil }
			hosts[key.Host][key.DeploymentTarget] = one
		}
	}
	return hosts, nil
}

// kept is a folder that stays as it is, at its present place.
func (o *operation) kept(key folder.Key) gitops.FolderEdit {
	at, moves := o.relocations.at(key, o.current[key.Host][key.DeploymentTarget])
	if !moves {
		return gitops.FolderEdit{Action: gitops.Keep}
	}
	return gitops.FolderEdit{Action: gitops.Relocate, Tree: at.tree, Files: func() ([]git.File, error) { return at.files, nil }}
}
