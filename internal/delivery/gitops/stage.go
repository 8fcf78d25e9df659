package gitops

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// stageEdit is the stageFunc of an owner.
func stageEdit(ctx context.Context, w *layout, edit Edit, now time.Time, proposed *layout) (*change, error) {
	tip, err := openOwnerTip(ctx, w, edit, proposed)
	if err != nil {
		return nil, err
	}
	s := &staging{
		ownerTip: tip, now: now.UTC().Format(time.RFC3339), staying: map[folder.Key]bool{},
		change: &change{edit: tip.edit, at: now.UTC(), atTip: tip.atTip, records: map[string]git.Hash{}},
	}
	if err := s.ownership().checkPathsFree(s.want, s.isOwn); err != nil {
		return nil, err
	}
	if err := s.checkHolders(ctx, proposed); err != nil {
		return nil, err
	}
	if err := s.readOwnRecords(ctx); err != nil {
		return nil, err
	}
	if edit.Abandon {
		s.stageAbandon()
		s.change.summarize()
		return s.change, nil
	}
	if err := (&ownershipCheck{s}).checkFolders(ctx); err != nil {
		return nil, err
	}
	if err := s.checkSeen(); err != nil {
		return nil, err
	}
	hosts := &hostStaging{staging: s, marker: git.NewHasher().Blob(s.edit.Owner.markerText())}
	if err := hosts.readProposed(ctx, proposed); err != nil {
		return nil, err
	}
	// Records are first: they are packed before folders, and then need no memory.
	for _, host := range slices.Sorted(maps.Keys(s.edit.Hosts)) {
		hosts.stageHost(host)
	}
	hosts.stageFormerHosts()
	s.stageFolders()
	if err := s.checkVanishes(); err != nil {
		return nil, err
	}
	for _, file := range s.change.put {
		if len(file.content) > maxRecord {
			return nil, fmt.Errorf("the record %q would be longer than %d MiB: the host has too many folders", file.path, maxRecord>>20)
		}
	}
	slices.SortFunc(s.change.folders, func(a, b folder.Change) int { return a.Compare(b.Key) })
	s.change.summarize()
	return s.change, nil
}

type staging struct {
	*ownerTip
	now     string // as in records
	change  *change
	staying map[folder.Key]bool // folders that are neither wanted nor removed
}

func (s *staging) stageAbandon() {
	remove := func(owner Owner, records map[string]git.Hash) {
		for _, host := range slices.Sorted(maps.Keys(records)) {
			s.change.hosts = append(s.change.hosts, host)
			s.change.remove = append(s.change.remove, owner.RecordPath(host))
		}
	}
	remove(s.edit.Owner, s.atTip)
	remove(s.formerOwner(), s.formerAtTip)
	for k := range s.owned {
		if _, ok := s.treeOf(k); ok {
			s.change.abandoned = append(s.change.abandoned, k)
		}
	}
	slices.SortFunc(s.change.abandoned, folder.Key.Compare)
}

func (s *staging) findUnplanned() []folder.Key {
	var unplanned []folder.Key
	for k := range s.owned {
		_, wanted := s.edit.Hosts[k.Host][k.DeploymentTarget]
		_, planned := s.edit.Remove[k.Host][k.DeploymentTarget]
		_, moves := s.edit.Hosts[s.edit.Renames[k.Host]][k.DeploymentTarget]
		if _, there := s.treeOf(k); !there || wanted || planned || moves {
			continue
		}
		if s.edit.LeaveOthers {
			s.staying[k] = true
			continue
		}
		unplanned = append(unplanned, k)
	}
	slices.SortFunc(unplanned, folder.Key.Compare)
	return unplanned
}

func (s *staging) stageFolders() {
	for host := range s.edit.Hosts {
		if at := s.findReplacement(s.edit.Owner, host); at != "" && s.isOwn(host) {
			s.change.remove = append(s.change.remove, at)
		}
	}
	for k, wanted := range folder.All(s.edit.Hosts) {
		if wanted.Action != Keep && !s.skipped[k.Host] {
			s.stageFolder(k, wanted)
		}
	}
	moved := map[folder.Key]bool{}
	for _, change := range s.change.folders {
		moved[change.Origin()] = true
	}
	for k := range s.owned {
		if _, ok := s.edit.Hosts[k.Host][k.DeploymentTarget]; ok || s.staying[k] {
			continue
		}
		if _, ok := s.hostDirectory(s.edit.Owner, k.Host).Look(k.DeploymentTarget); ok {
			if !moved[k] {
				s.addChange(folder.Change{Key: k, Action: folder.Removed})
			}
			s.change.remove = append(s.change.remove, s.edit.Owner.folderPath(k.Host, k.DeploymentTarget))
		}
	}
}

func (s *staging) stageFolder(k folder.Key, wanted FolderEdit) {
	e, ok := s.hostDirectory(s.edit.Owner, k.Host).Look(k.DeploymentTarget)
	id, _ := git.ParseID(wanted.Tree) // Edit.check has parsed it
	change := folder.Change{Key: k, Action: folder.Changed}
	switch {
	case ok && e.IsTree() && e.ID == id:
		return
	case ok:
	default:
		change.Action = folder.Added
		if former, tree, moves := s.movesFrom(k); moves {
			if change.From, change.Action = former, folder.Changed; tree == id {
				change.Action = folder.Moved
			}
		}
	}
	s.addChange(change)
	s.change.put = append(s.change.put, putFile{
		path: s.edit.Owner.folderPath(k.Host, k.DeploymentTarget), id: id, isFolder: true, files: wanted.Files, exists: wanted.Files == nil,
	})
}

func (s *staging) addChange(change folder.Change) {
	prior, _ := s.priorRecord(change.Key)
	change.After = s.edit.Hosts[change.Host][change.DeploymentTarget].Record.ConfigVersion
	if change.Action != folder.Added {
		change.Before = prior.ConfigVersion
	}
	if change.Action == folder.Moved {
		change.After = change.Before
	}
	if tree, there := s.treeOf(change.Origin()); there {
		change.Was = tree.String()
	}
	s.change.folders = append(s.change.folders, change)
}

// keepUnseen keeps folders that were changed after the plan saw them with the wanted content: it announced no write. An
// existing proposal is made anew as a whole, so it ignores Seen.
func keepUnseen(w *layout, edit Edit, proposed *layout) Edit {
	if proposed != nil {
		edit.Seen = nil
	}
	if edit.Seen == nil {
		return edit
	}
	var changed []folder.Key
	for k, wanted := range folder.All(edit.Hosts) {
		now, there := w.folderTree(edit.Owner, k)
		if wanted.Action != Keep && strings.EqualFold(edit.Seen[k.Host][k.DeploymentTarget], wanted.Tree) &&
			(!there || !git.IsID(wanted.Tree, now)) {
			changed = append(changed, k)
		}
	}
	if len(changed) == 0 {
		return edit
	}
	edit.Hosts = edit.Hosts.clone()
	for _, k := range changed {
		kept := edit.Hosts[k.Host][k.DeploymentTarget]
		kept.Action = Keep
		edit.Hosts[k.Host][k.DeploymentTarget] = kept
	}
	return edit
}

// checkSeen fails for folders to be written or removed that others changed after the plan.
func (s *staging) checkSeen() error {
	if s.edit.Seen == nil {
		return nil
	}
	var changed []folder.Key
	for k, wanted := range folder.All(s.edit.Hosts) {
		now, there := s.treeOf(k)
		isWanted := there && git.IsID(wanted.Tree, now)
		if wanted.Action != Keep && !isWanted && (there || s.edit.Seen.Has(k.Host, k.DeploymentTarget)) && !s.isSeen(k) {
			changed = append(changed, k)
		}
	}
	for k := range s.owned {
		_, wanted := s.edit.Hosts[k.Host][k.DeploymentTarget]
		// A file in place of a folder counts as well.
		if _, there := s.hostDirectory(s.edit.Owner, k.Host).Look(k.DeploymentTarget); there && !wanted && !s.staying[k] && !s.isSeen(k) {
			changed = append(changed, k)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.SortFunc(changed, folder.Key.Compare)
	e := &ChangedError{}
	for _, k := range changed {
		e.Folders = append(e.Folders, ChangedFolder{Key: k, Folder: s.edit.Owner.folderPath(k.Host, k.DeploymentTarget)})
	}
	return e
}

func (s *ownerTip) isSeen(k folder.Key) bool {
	seen, was := s.edit.Seen[k.Host][k.DeploymentTarget]
	now, there := s.treeOf(k)
	if !was {
		return !there || !s.owned[k]
	}
	return there && git.IsID(seen, now)
}
