package gitops

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// Branch is the tip of a branch, read once for all owners. It is safe for concurrent use, with one request at a time.
type Branch struct {
	remote git.Remote
	git    *git.Connector
	lock   wait.Locks // held while the tip is in use
	tip    *git.Tip
	levels int
	opened *layout
	past   *lineage

	signers *git.Verifier // nil believes every record
}

// ReadBranch reads the tip of a branch, with the trees of the owners. A missing branch or local repository is an empty
// Branch.
//
// Errors: errors of package git, or an error about the remote or the owners.
func (c *BranchClient) ReadBranch(ctx context.Context, remote git.Remote, owners ...Owner) (*Branch, error) {
	levels, err := 1, remote.Check()
	for _, owner := range owners {
		levels, err = max(levels, owner.treeLevels()), cmp.Or(err, owner.check())
	}
	if err != nil {
		return nil, describeError(remote, err)
	}
	t, err := c.options.Git.OpenPatiently(ctx, remote, levels)
	if err != nil {
		return nil, describeError(remote, err)
	}
	t.Close()
	return &Branch{
		remote:  remote,
		git:     c.options.Git,
		tip:     t,
		levels:  levels,
		opened:  newLayout(t),
		past:    newLineage(t),
		signers: c.options.AllowedSigners,
	}, nil
}

// Tip returns the commit in hex; "" if there is no branch.
func (l *Branch) Tip() string { return hexOrEmpty(l.tip.Commit) }

// IsMissing reports that the local repository does not exist.
func (l *Branch) IsMissing() bool { return l.tip.Missing }

// Conflict returns an existing branch beside which Git cannot create this one; "" if there is none.
func (l *Branch) Conflict() string { return l.tip.Conflict }

// ConflictOf is Conflict for another branch.
func (l *Branch) ConflictOf(branch string) string { return l.tip.ConflictOf(branch) }

// ReadOwner reads the trees of an owner's path, hosts and records, and no file. It fetches them for all owners on the way,
// whose views then need no request.
//
// Errors: see ReadBranch.
func (l *Branch) ReadOwner(ctx context.Context, owner Owner) (*OwnerView, error) {
	if err := owner.check(); err != nil {
		return nil, describeError(l.remote, err)
	}
	return withTip(ctx, l, func() (view *OwnerView, err error) {
		if levels := owner.treeLevels(); levels > l.levels {
			if err := l.tip.Deepen(ctx, levels); err != nil {
				return nil, err
			}
			l.levels = levels
		}
		// Malformed trees of others are no error.
		if err := l.fetchOwners(ctx, owner.Path); err != nil && (ctx.Err() != nil || git.Classify(err) != nil) {
			return nil, err
		}
		view = &OwnerView{Branch: l, owner: owner, work: newLayout(l.tip)}
		view.records, err = view.work.openOwner(ctx, owner, nil)
		return view, err
	})
}

func withTip[T any](ctx context.Context, l *Branch, do func() (T, error)) (result T, err error) {
	release, err := l.lock.Take(ctx, "")
	if err != nil {
		return result, describeError(l.remote, err)
	}
	defer release()
	defer l.tip.Close()
	result, err = do()
	return result, describeError(l.remote, err)
}

const recordLevels = 3

func (l *Branch) fetchOwners(ctx context.Context, at string) error {
	if err := l.opened.Open(ctx, []string{at}); err != nil {
		return err
	}
	depth := 0
	if at != "" {
		depth = strings.Count(at, "/") + 1
	}
	owners, paths, err := l.findOwners(ctx, "", depth, false)
	if err != nil {
		return err
	}
	clusters := make([]string, len(paths))
	for i, p := range paths {
		clusters[i] = path.Join(p, clustersHost)
	}
	if err := l.openFolders(ctx, clusters); err != nil {
		return err
	}
	var hosts []git.Hash
	for _, owner := range owners {
		for host := range l.opened.recordEntries(owner.recordsPath()) {
			if e, ok := l.opened.Lookup(path.Join(owner.Path, host)); ok && e.IsTree() {
				hosts = append(hosts, e.ID)
			}
		}
	}
	return l.tip.Need(ctx, hosts)
}

type layout struct{ *git.Tree }

func newLayout(t *git.Tip) *layout { return &layout{t.Tree()} }

// OwnerView is one owner's part of a Branch. It is not safe for concurrent use, but several views of one Branch are.
type OwnerView struct {
	*Branch
	owner   Owner
	work    *layout
	records map[string]git.Hash
}

func (o Owner) treeLevels() int {
	if o.Path == "" {
		return 2
	}
	return strings.Count(o.Path, "/") + 3
}

// openOwner opens the owner's path, its records, and the recorded and given hosts. It returns the records by host.
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

// OwnerNames returns the owners at the owner's path, in order.
func (v *OwnerView) OwnerNames() []string { return v.work.listOwners(v.owner.Path) }

// ReadTrees returns the trees of folders that exist at the tip, recorded or not.
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

// FindTouched returns the hosts with a missing or changed marker or record, in order. known has the ids of the records, ""
// for any. It fetches nothing.
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

func (w *layout) folderTree(owner Owner, k folder.Key) (git.Hash, bool) {
	e, ok := w.hostDirectory(owner, k.Host).Look(k.DeploymentTarget)
	return e.ID, ok && e.IsTree()
}

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

// OwnerSnapshot is an owner's content in one commit.
type OwnerSnapshot struct {
	// Tip is the commit in hex; "" if there is no branch.
	Tip     string
	Holder  string
	Records map[folder.Key]FolderRecord
	// Trees are the present trees of the recorded folders. A missing folder is absent, its host is not.
	Trees  folder.Trees
	Former folder.Former
	// Unreadable has the paths of unreadable records, in order.
	Unreadable []string
}

// Label returns the owner's name in the labels of rendered objects, if it has another one.
func (w OwnerSnapshot) Label() string {
	label := ""
	for _, record := range w.Records {
		label = max(label, record.OwnerLabel)
	}
	return label
}

// ReadRecords reads the owner's records at a commit in the branch's history, or at the tip if commit is "". It omits
// unreadable ones.
func (v *OwnerView) ReadRecords(ctx context.Context, commit string) (OwnerSnapshot, error) {
	return withTip(ctx, v.Branch, func() (OwnerSnapshot, error) {
		at := v
		var records map[string]hostRecord
		var err error
		if commit == "" {
			records, err = readRecords(ctx, v.work, v.records)
		} else {
			at, records, err = v.openPast(ctx, commit, nil)
		}
		if err != nil {
			return OwnerSnapshot{}, err
		}
		written := OwnerSnapshot{
			Tip: cmp.Or(commit, v.Tip()), Records: map[folder.Key]FolderRecord{}, Trees: make(folder.Trees, len(records)),
		}
		for _, host := range slices.Sorted(maps.Keys(at.records)) {
			if _, ok := records[host]; !ok {
				written.Unreadable = append(written.Unreadable, at.owner.RecordPath(host))
			}
		}
		isHost := func(name string) bool { _, is := at.records[name]; return is }
		for host, record := range records {
			written.Holder = max(written.Holder, record.Holder)
			written.Former = written.Former.Next(record.renames(host), isHost, "", v.owner.Name)
			for _, name := range record.OwnerFormerly {
				written.Former = written.Former.Next(nil, isHost, name, v.owner.Name)
			}
			written.Trees[host] = make(map[string]string, len(record.DeploymentTargets))
			for target, recorded := range record.DeploymentTargets {
				k := folder.Key{Host: host, DeploymentTarget: target}
				written.Records[k] = recorded.toPublic()
				if tree, there := at.work.folderTree(v.owner, k); there {
					written.Trees[host][target] = tree.String()
				}
			}
		}
		return written, nil
	})
}

// FindConflicts returns the wanted folders that Apply would refuse to write at this tip, in order. want has the trees, ""
// for unknown ones. Folders in previously, and in the records of the owner's former name, are the owner's own unless
// another owner's record lists them.
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
	listed, others := map[folder.Key]bool{}, want.Without(previously) // listed in the owner's own records
	for _, records := range known {
		asked := map[string]git.Hash{}
		for host := range others {
			if id, ok := records[host]; ok {
				asked[host] = id
			}
		}
		read, err := readRecords(ctx, v.work, asked)
		if err != nil {
			return nil, err
		}
		for host, record := range read {
			for target := range record.DeploymentTargets {
				listed[folder.Key{Host: host, DeploymentTarget: target}] = true
			}
		}
	}
	found, err := own.findConflicts(ctx, others.Keys(), want, listed)
	if err != nil {
		return nil, err
	}
	more, err := own.findHostConflicts(ctx, want, known...)
	return append(found, more...), err
}

func (v *OwnerView) ownership() *ownership {
	return &ownership{v.work, v.owner, []string{v.owner.Name}}
}

func (w *layout) findReplacement(owner Owner, host string) string {
	at := path.Join(owner.Path, host)
	if e, ok := w.Lookup(at); ok && !e.IsTree() {
		return at
	}
	return ""
}

// FindListedByOthers returns the folders in records of other owners, in order, at a commit in the branch's history. It uses
// the tip if commit is "" or no longer in the history.
func (v *OwnerView) FindListedByOthers(ctx context.Context, folders folder.Trees, commit string) ([]Conflict, error) {
	return withTip(ctx, v.Branch, func() ([]Conflict, error) {
		work := v.work
		if commit != "" && commit != v.Tip() && len(folders) > 0 {
			switch past, err := v.work.openTree(ctx, commit); {
			case err == nil:
				work = past
			case !errors.Is(err, git.ErrCommit): // the history was rewritten
				return nil, err
			}
		}
		return (&ownership{work, v.owner, []string{v.owner.Name}}).findListedByOthers(ctx, folders.Keys())
	})
}

// FindTakenOver returns the hosts whose record lacks only folders that other owners took over, which rewrote it.
func (v *OwnerView) FindTakenOver(ctx context.Context, hosts []string, trees folder.Trees, holder string) (map[string]bool, error) {
	return withTip(ctx, v.Branch, func() (map[string]bool, error) {
		asked := maps.Clone(v.records)
		marker := git.NewHasher().Blob(v.owner.markerText())
		maps.DeleteFunc(asked, func(host string, _ git.Hash) bool {
			return !slices.Contains(hosts, host) || !v.work.hasMarker(v.owner, host, marker)
		})
		records, err := readRecords(ctx, v.work, asked)
		if err != nil {
			return nil, err
		}
		taken := map[string]bool{}
		var missing []folder.Key
		for host, record := range records {
			same := record.Holder == holder
			for target, folder := range record.DeploymentTargets {
				same = same && strings.EqualFold(trees[host][target], folder.Tree)
			}
			for target := range trees[host] {
				if _, ok := record.DeploymentTargets[target]; !ok && same {
					missing = append(missing, folder.Key{Host: host, DeploymentTarget: target})
					taken[host] = true
				}
			}
		}
		listed, err := v.ownership().findListings(ctx, missing)
		for _, k := range missing {
			if _, ok := listed[k]; !ok {
				taken[k.Host] = false
			}
		}
		return taken, err
	})
}
