package gitops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// ReadFoldersAt returns the owner's folders at a commit in the branch's history, as rollbacks to them. names are the
// owner's former names. It fetches records and trees only.
func (v *OwnerView) ReadFoldersAt(ctx context.Context, commit string, names ...string) (FolderEdits, error) {
	return withTip(ctx, v.Branch, func() (FolderEdits, error) {
		at, formerly, err := v.work.openPast(ctx, v.owner, commit, names)
		if err != nil {
			return nil, err
		}
		if len(at.records) == 0 {
			return nil, fmt.Errorf("%w: commit %s has no record of the assignment %q at path "+
				"%q", git.ErrCommit, commit, v.owner.Name, v.owner.Path)
		}
		hosts := make(FolderEdits, len(at.records))
		var keys []folder.Key
		for host, record := range at.records {
			folders := map[string]FolderEdit{}
			for target, recorded := range record.DeploymentTargets {
				if e, ok := at.hostDirectory(v.owner, host).Find(target); ok && e.IsTree() {
					recorded.OwnerLabel = cmp.Or(recorded.OwnerLabel, formerly)
					folders[target] = FolderEdit{Action: RollBack, Tree: e.ID.String(), From: commit, Record: recorded.Record}
					keys = append(keys, folder.Key{Host: host, DeploymentTarget: target})
				}
			}
			hosts[host] = folders
		}
		return hosts, at.checkFilesOnly(ctx, keys)
	})
}

// openPast opens a commit under the first name of the owner with records there: the present one, names, or former names in
// the records at the tip.
func (w *layout) openPast(ctx context.Context, owner Owner, commit string, names []string) (at *pastCommit, formerly string, err error) {
	at, err = w.openCommit(ctx, owner, commit)
	if err != nil || len(at.records) > 0 {
		return at, "", err
	}
	entries, err := w.openOwner(ctx, owner, nil)
	if err != nil {
		return nil, "", err
	}
	now, err := w.readRecords(ctx, entries)
	if err != nil {
		return nil, "", err
	}
	for _, record := range now {
		names = slices.Concat(names, record.OwnerFormerly)
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		former := owner
		former.Name = name
		then, err := w.openCommit(ctx, former, commit)
		if err != nil {
			return nil, "", err
		}
		if len(then.records) > 0 {
			return then, name, nil
		}
	}
	return at, "", nil
}

// pastCommit is a commit in the branch's history as one owner sees it.
type pastCommit struct {
	*layout
	owner   Owner
	commit  string
	entries map[string]git.Hash
	records map[string]hostRecord
}

func (w *layout) openTree(ctx context.Context, commit string) (*layout, error) {
	id, err := git.ParseID(commit)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", git.ErrCommit, err)
	}
	root, err := w.RootOf(ctx, id)
	if err != nil {
		return nil, err
	}
	return newLayout(w.At(id, root)), nil
}

func (w *layout) openCommit(ctx context.Context, owner Owner, commit string) (*pastCommit, error) {
	work, err := w.openTree(ctx, commit)
	if err != nil {
		return nil, err
	}
	at := &pastCommit{layout: work, owner: owner, commit: commit}
	at.entries, err = at.openOwner(ctx, owner, nil)
	if err != nil {
		return nil, err
	}
	at.records, err = at.readRecords(ctx, at.entries)
	return at, err
}

// checkFilesOnly checks that folders contain only files and folders. Links and submodules were added by hand.
func (p *pastCommit) checkFilesOnly(ctx context.Context, keys []folder.Key) error {
	slices.SortFunc(keys, folder.Key.Compare)
	level := make([]folderEntry, len(keys))
	for i, k := range keys {
		level[i].of = k
		level[i].Entry, _ = p.hostDirectory(p.owner, k.Host).Find(k.DeploymentTarget)
	}
	err := p.walkFolders(ctx, level, func(in folderEntry) error {
		if err := git.CheckName(in.Name); err != nil {
			return err
		}
		if !in.IsTree() && !in.IsFile() {
			return fmt.Errorf("%q is %s", in.name, in.Kind())
		}
		return nil
	})
	if bad, ok := errors.AsType[*folderError](err); ok {
		return fmt.Errorf("%w: folder %q in commit %s: %w", git.ErrCommit,
			p.owner.folderPath(bad.at.of.Host, bad.at.of.DeploymentTarget), p.commit, bad.error)
	}
	return err
}

// resolveRollbacks completes the rollbacks of an edit with the records of their commits.
func resolveRollbacks(ctx context.Context, w *layout, edit Edit) (Edit, error) {
	back := map[string][]folder.Key{}
	for k, wanted := range folder.All(edit.Hosts) {
		if wanted.Action == RollBack {
			back[wanted.From] = append(back[wanted.From], k)
		}
	}
	if len(back) == 0 {
		return edit, nil
	}
	edit.Hosts = edit.Hosts.clone()
	for _, commit := range slices.Sorted(maps.Keys(back)) {
		if err := resolveRollback(ctx, w, edit, commit, back[commit]); err != nil {
			return Edit{}, err
		}
	}
	return edit, nil
}

func resolveRollback(ctx context.Context, w *layout, edit Edit, commit string, keys []folder.Key) error {
	at, err := w.openCommit(ctx, edit.Owner, commit)
	if err != nil {
		return err
	}
	namesOf := func(host string) []string {
		return slices.Concat([]string{host}, edit.Renames.FormerNames(host), edit.FormerHosts.FormerNames(host))
	}
	var hosts []string
	for _, k := range keys {
		hosts = append(hosts, namesOf(k.Host)...)
	}
	if _, err := at.openOwner(ctx, edit.Owner, hosts); err != nil {
		return err
	}
	slices.SortFunc(keys, folder.Key.Compare)
	var had []folder.Key // under the host names of the commit
	for _, k := range keys {
		folder := edit.Hosts[k.Host][k.DeploymentTarget]
		then, e, ok := k, git.Entry{}, false
		for _, host := range namesOf(k.Host) {
			if !ok {
				then.Host = host
				e, ok = at.hostDirectory(edit.Owner, host).Find(k.DeploymentTarget)
			}
		}
		if !ok || !e.IsTree() || !git.IsID(cmp.Or(folder.FromTree, folder.Tree), e.ID) {
			return fmt.Errorf("%w: folder %q in commit %s is not tree %s", git.ErrCommit,
				edit.Owner.folderPath(k.Host, k.DeploymentTarget), commit, cmp.Or(folder.FromTree, folder.Tree))
		}
		if record, ok := at.records[then.Host].DeploymentTargets[k.DeploymentTarget]; ok {
			folder.Record = record.Record
		}
		edit.Hosts[k.Host][k.DeploymentTarget] = folder
		had = append(had, then)
	}
	return at.checkFilesOnly(ctx, had)
}
