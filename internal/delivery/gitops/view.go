package gitops

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// layout is the tree of a tip, as owners see it: their hosts, folders, markers
// and records. It may be edited.
type layout struct{ *git.Tree }

func newLayout(t *git.Tip) *layout { return &layout{t.Tree()} }

// OwnerView is the part of a branch's tip that one owner needs. It does not change when
// the branch moves on. It is not safe for concurrent use, but several views of one
// Branch are.
type OwnerView struct {
	*Branch // shared with other views
	owner   Owner
	work    *layout
	records map[string]git.Hash // host to the blob of the owner's record
}

// levels is how many levels of trees show the folders of the owner's hosts that
// are cluster types: those on the way to its path, its own, and the hosts'.
func (o Owner) treeLevels() int {
	if o.Path == "" {
		return 2
	}
	return strings.Count(o.Path, "/") + 3
}

// openOwner opens the owner's path, its records and the folders of the hosts in
// the records and of others that are named, and returns the records by host.
func (w *layout) openOwner(ctx context.Context, owner Owner, hosts []string) (map[string]git.Hash, error) {
	directories := []string{owner.Path, path.Join(owner.recordsPath(), clustersHost)}
	for _, host := range hosts {
		directories = append(directories, path.Join(owner.Path, host))
	}
	if err := w.Open(ctx, directories); err != nil {
		return nil, err
	}
	if err := w.Blocked(path.Join(owner.recordsPath(), clustersHost)); err != nil {
		return nil, err
	}
	records := w.recordEntries(owner.recordsPath())
	directories = directories[:0]
	for host := range records {
		directories = append(directories, path.Join(owner.Path, host))
	}
	return records, w.Open(ctx, directories)
}

// OwnerNames are the names of the owners that have records at the owner's path, in order.
func (v *OwnerView) OwnerNames() []string { return v.work.listOwners(v.owner.Path) }

// ReadTrees returns the tree ids that the given folders have at the tip, whatever
// marker and record there are. A folder that is gone is absent, and so is one with
// something else than a folder at its path. It reads nothing but the trees of
// hosts without a record.
func (v *OwnerView) ReadTrees(ctx context.Context, want folder.Trees) (folder.Trees, error) {
	return withTip(ctx, v.Branch, func() (folder.Trees, error) {
		directories := make([]string, 0, len(want))
		for host := range want {
			if checkHost(host) == nil {
				directories = append(directories, path.Join(v.owner.Path, host))
			}
		}
		if err := v.work.Open(ctx, directories); err != nil {
			return nil, err
		}
		deployed := make(folder.Trees, len(want))
		for host, targets := range want {
			deployed[host] = make(map[string]string, len(targets))
			for target := range targets {
				if tree, there := v.work.folderTree(v.owner, folder.Key{Host: host, DeploymentTarget: target}); there {
					deployed[host][target] = tree.String()
				}
			}
		}
		return deployed, nil
	})
}

// FindTouched returns which hosts have a marker or a record that is not as the owner
// left it, in order: the record is gone or has another id than is known, or the
// marker is gone or was changed. known are the ids of the records by host, as
// ApplyResult.Records has them; where one is "", the record only has to be there.
// Reads nothing from the repository.
func (v *OwnerView) FindTouched(known map[string]string) []string {
	var touched []string
	marker := git.NewHasher().Blob(v.owner.markerText())
	for _, host := range slices.Sorted(maps.Keys(known)) {
		id, ok := v.records[host]
		if !ok || known[host] != "" && !git.IsID(known[host], id) || !v.work.hasMarker(v.owner, host, marker) {
			touched = append(touched, host)
		}
	}
	return touched
}

// treeAt is the tree of a folder.
func (w *layout) folderTree(owner Owner, k folder.Key) (git.Hash, bool) {
	e, ok := w.hostDirectory(owner, k.Host).Look(k.DeploymentTarget)
	return e.ID, ok && e.IsTree()
}

// hostAt returns a host's directory; one without entries when it does not exist.
func (w *layout) hostDirectory(owner Owner, host string) *git.Directory {
	if d := w.Directory(path.Join(owner.Path, host)); d != nil {
		return d
	}
	return &git.Directory{}
}

func (w *layout) hasMarker(owner Owner, host string, marker git.Hash) bool {
	e, ok := w.hostDirectory(owner, host).Look(owner.Name + markerSuffix)
	return ok && e.ID == marker && e.Mode == git.ModeFile
}

// OwnerSnapshot is what a commit has of an owner.
type OwnerSnapshot struct {
	// Tip is the commit, in hex; "" when there is no branch, or no repository.
	Tip string
	// Holder is who has the owner; "" where no record says it.
	Holder string
	// Records are what the owner's records say of each folder.
	Records map[folder.Key]FolderRecord
	// Trees are the trees that the recorded folders have, whatever the records say of those. A folder that is gone is
	// absent, its host is not.
	Trees folder.Trees
	// Former are the former names in the records.
	Former folder.Former
	// Unreadable are the paths of records that cannot be read, in order.
	Unreadable []string
}

// Label is the owner's name in the labels of what is rendered, where that is another one than its own; else "".
func (w OwnerSnapshot) Label() string {
	label := ""
	for _, record := range w.Records {
		label = max(label, record.OwnerLabel)
	}
	return label
}

// ReadRecords reads the owner's records: those of a commit in the branch's history, none where it has none of the owner; with
// "", those at the tip. It may fetch them. One that cannot be read is left out.
//
// Errors: git.ErrCommit where the commit is not in the history, or as of Branch.
func (v *OwnerView) ReadRecords(ctx context.Context, commit string) (OwnerSnapshot, error) {
	return withTip(ctx, v.Branch, func() (OwnerSnapshot, error) {
		at := &past{layout: v.work, owner: v.owner, commit: v.Tip(), entries: v.records}
		var err error
		if commit == "" {
			at.records, err = v.work.readRecords(ctx, v.records)
		} else {
			at, _, err = v.work.openPast(ctx, v.owner, commit, nil)
		}
		if err != nil {
			return OwnerSnapshot{}, err
		}
		written := OwnerSnapshot{Tip: at.commit, Records: map[folder.Key]FolderRecord{}, Trees: make(folder.Trees, len(at.records))}
		for _, host := range slices.Sorted(maps.Keys(at.entries)) {
			if _, ok := at.records[host]; !ok {
				written.Unreadable = append(written.Unreadable, at.owner.RecordPath(host))
			}
		}
		isHost := func(name string) bool { _, is := at.entries[name]; return is }
		for host, record := range at.records {
			written.Holder = max(written.Holder, record.Holder)
			written.Former = written.Former.Next(record.renames(host), isHost, "", v.owner.Name)
			for _, name := range record.OwnerFormerly {
				written.Former = written.Former.Next(nil, isHost, name, v.owner.Name)
			}
			written.Trees[host] = make(map[string]string, len(record.DeploymentTargets))
			for target, recorded := range record.DeploymentTargets {
				k := folder.Key{Host: host, DeploymentTarget: target}
				written.Records[k] = recorded.toPublic()
				if tree, there := at.folderTree(v.owner, k); there {
					written.Trees[host][target] = tree.String()
				}
			}
		}
		return written, nil
	})
}

// FindConflicts returns which of the wanted folders Apply would refuse to write at
// this tip: those that another owner's records list, whole, in part or as a part
// of a larger folder, and those with files that no record lists, unless they are
// exactly the wanted files. want has the tree ids, or "" where they are not known
// yet; folders that are kept are not in it. What previously has counts as the
// owner's own unless another owner's records list it, and so does what the records
// of the owner's former name list, if that is not "". Ordered by folder.
//
// An error is a *git.BlockedError when something that is not a folder is in the way.
func (v *OwnerView) FindConflicts(ctx context.Context, want, previously folder.Trees, formerly string) ([]Conflict, error) {
	return withTip(ctx, v.Branch, func() ([]Conflict, error) { return v.findConflicts(ctx, want, previously, formerly) })
}

func (v *OwnerView) findConflicts(ctx context.Context, want, previously folder.Trees, formerly string) ([]Conflict, error) {
	hosts := slices.Sorted(maps.Keys(want))
	if err := checkFolders(want); err != nil {
		return nil, err
	}
	if _, err := v.work.openOwner(ctx, v.owner, hosts); err != nil {
		return nil, err
	}
	isOwn := func(host string) bool {
		_, recorded := v.records[host]
		return recorded || len(previously[host]) > 0
	}
	if err := v.ownership().checkPathsFree(want, isOwn); err != nil {
		return nil, err
	}
	if err := v.ownership().checkNamesFree(want, previously); err != nil {
		return nil, err
	}
	own, known := v.ownership(), []map[string]git.Hash{v.records}
	if formerly != "" {
		former := Owner{Name: formerly, Path: v.owner.Path}
		records, err := v.work.openOwner(ctx, former, nil)
		if err != nil {
			return nil, err
		}
		own.names, known = append(own.names, formerly), append(known, records)
	}
	listed, others := map[folder.Key]bool{}, want.Without(previously)
	for _, records := range known {
		asked := map[string]git.Hash{}
		for host := range others {
			if id, ok := records[host]; ok {
				asked[host] = id
			}
		}
		read, err := v.work.readRecords(ctx, asked)
		if err != nil {
			return nil, err
		}
		for host, record := range read {
			for target := range record.DeploymentTargets {
				listed[folder.Key{Host: host, DeploymentTarget: target}] = true
			}
		}
	}
	var keys, recorded []folder.Key // those that no record of the owner lists, and those that one does
	for _, k := range others.Keys() {
		if listed[k] {
			recorded = append(recorded, k)
		} else {
			keys = append(keys, k)
		}
	}
	found, err := own.findConflicts(ctx, keys, want, nil)
	if err != nil {
		return nil, err
	}
	disputed, err := own.findListedByOthers(ctx, recorded)
	if err != nil {
		return nil, err
	}
	found = append(found, disputed...)
	more, err := own.findHostConflicts(ctx, want, known...)
	return append(found, more...), err
}

func (v *OwnerView) ownership() *ownership {
	return &ownership{v.work, v.owner, []string{v.owner.Name}}
}

// wayIsFree checks that nothing else than a folder is where a folder has to be,
// unless the host is the owner's already: there it is drift. The owner and the
// wanted hosts must have been opened.
func (o *ownership) checkPathsFree(want folder.Trees, isOwn func(host string) bool) error {
	for _, host := range slices.Sorted(maps.Keys(want)) {
		at := path.Join(o.owner.Path, host)
		if err := o.Blocked(at); err != nil && (!isOwn(host) || o.findReplacement(o.owner, host) == "") {
			return err
		}
		d := o.hostDirectory(o.owner, host)
		for _, target := range slices.Sorted(maps.Keys(want[host])) {
			if e, ok := d.Look(target); ok && !e.IsTree() && !isOwn(host) {
				return &git.BlockedError{Path: o.owner.folderPath(host, target), Kind: e.Kind(), Want: "a folder"}
			}
		}
		if e, ok := d.Look(o.owner.Name + markerSuffix); ok && !e.IsFile() && (e.IsTree() || !isOwn(host)) {
			return &git.BlockedError{Path: o.owner.markerPath(host), Kind: e.Kind(), Want: "a file"}
		}
	}
	return nil
}

// namesAreFree checks that no folder is to be written beside one whose path differs only in case, which no apply does.
func (o *ownership) checkNamesFree(want, previously folder.Trees) error {
	goes := map[string]bool{}
	for key := range folder.All(previously.Without(want)) {
		goes[o.owner.folderPath(key.Host, key.DeploymentTarget)] = true
	}
	for _, key := range want.Keys() {
		if err := o.CheckNew(o.owner.folderPath(key.Host, key.DeploymentTarget), func(other string) bool { return goes[other] }); err != nil {
			return err
		}
	}
	return nil
}

// replaced is the path of what is in the place of a host's folder; "" where nothing
// else than a folder is.
func (w *layout) findReplacement(owner Owner, host string) string {
	at := path.Join(owner.Path, host)
	if e, ok := w.Lookup(at); ok && !e.IsTree() {
		return at
	}
	return ""
}
