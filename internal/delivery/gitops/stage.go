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
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
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
	if err := s.checkFolders(ctx); err != nil {
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

// checkFolders checks the folders outside the owner's records: wanted ones must not belong to another owner, and those only
// in the state are left to the owner whose record lists them. Then it finds folders that the plan did not show.
func (s *staging) checkFolders(ctx context.Context) error {
	known := map[folder.Key]bool{}
	var lost, wanted []folder.Key
	for k := range folder.All(s.edit.Written) {
		if s.skipped[k.Host] {
			continue
		}
		known[k] = true
		if !s.want.Has(k.Host, k.DeploymentTarget) && !s.owned[k] {
			lost = append(lost, k)
		}
	}
	for k := range folder.All(s.want) {
		if !s.skipped[k.Host] && !s.owned[k] {
			wanted = append(wanted, k)
		}
	}
	found, err := s.ownership().findConflicts(ctx, wanted, s.want, known)
	if err != nil {
		return err
	}
	disputed, err := s.dropDisputed(ctx)
	if err != nil {
		return err
	}
	found = append(found, disputed...)
	if s.edit.Adopt {
		if found, err = s.takeOver(found); err != nil {
			return err
		}
	}
	listed, err := s.ownership().findListings(ctx, lost)
	if err != nil {
		return err
	}
	for _, k := range lost {
		if _, ok := listed[k]; !ok {
			s.owned[k] = true
		}
	}
	unplanned := s.findUnplanned()
	inside, err := s.findOthersInside(ctx)
	if err != nil {
		return err
	}
	hosts, err := s.ownership().findHostConflicts(ctx, s.want, s.atTip, s.formerAtTip)
	if err != nil {
		return err
	}
	if found = slices.Concat(found, inside, hosts); len(found) > 0 {
		return &completeError{joinTexts(found, Conflict.String), ErrConflict}
	}
	if len(unplanned) > 0 {
		return &completeError{fmt.Sprintf("the branch has folders of the assignment %q that the plan did not show: %s",
			s.edit.Owner.Name, wording.List(folder.KeyTexts(unplanned), wording.Named)), ErrUnplanned}
	}
	return nil
}

// takeOver takes over whole folders of other owners and folders in no record, and returns the other conflicts. The same
// commit rewrites the records of the former owner, and no other file of theirs.
func (s *staging) takeOver(found []Conflict) ([]Conflict, error) {
	records := map[ownedHost]hostRecord{}
	var left []Conflict
	for _, c := range found {
		if !c.IsAdoptable() {
			left = append(left, c)
			continue
		}
		if c.Owner == "" {
			s.change.adopted = append(s.change.adopted, c)
			continue
		}
		from := Owner{Name: c.Owner, Path: c.OwnerPath}
		host, target, _ := from.splitFolder(c.Folder)
		at := ownedHost{from, host}
		record, ok := records[at]
		if !ok {
			var err error
			if record, err = s.readRecordOf(from, host); err != nil {
				return nil, err
			}
			records[at] = record
		}
		folder, ok := record.DeploymentTargets[target]
		if !ok {
			left = append(left, c)
			continue
		}
		delete(record.DeploymentTargets, target)
		s.change.adopted = append(s.change.adopted, c)
		s.taken[c.Key] = folder
	}
	ordered := slices.SortedFunc(maps.Keys(records), func(a, b ownedHost) int {
		return folder.Key.Compare(folder.Key{Host: a.owner.recordsPath(), DeploymentTarget: a.host},
			folder.Key{Host: b.owner.recordsPath(), DeploymentTarget: b.host})
	})
	h := git.NewHasher()
	for _, at := range ordered {
		content := records[at].encode()
		s.change.put = append(s.change.put, putFile{
			path: at.owner.RecordPath(at.host), id: h.Blob(content), content: content,
		})
	}
	return left, nil
}

func (s *staging) readRecordOf(owner Owner, host string) (hostRecord, error) {
	e, ok := s.Lookup(owner.RecordPath(host))
	if !ok {
		return hostRecord{}, fmt.Errorf("the record %q is gone", owner.RecordPath(host))
	}
	content, err := s.Blob(e.ID)
	if err != nil {
		return hostRecord{}, err
	}
	return parseRecord(content)
}

// dropDisputed drops folders that another owner's record lists, too. Wanted ones are conflicts, and removed ones are
// without Adopt and LeaveOthers.
func (s *staging) dropDisputed(ctx context.Context) ([]Conflict, error) {
	var keys []folder.Key
	for k := range s.owned {
		_, wanted := s.want[k.Host][k.DeploymentTarget]
		_, known := s.edit.Written[k.Host][k.DeploymentTarget]
		_, there := s.treeOf(k)
		_, keeps := s.edit.Hosts[k.Host][k.DeploymentTarget]
		if there && (wanted && !known || !wanted && !keeps) {
			keys = append(keys, k)
		}
	}
	for k := range folder.All(s.want) {
		if s.skipped[k.Host] && !s.edit.Written.Has(k.Host, k.DeploymentTarget) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, folder.Key.Compare)
	listed, err := s.ownership().findListedByOthers(ctx, keys)
	if err != nil {
		return nil, err
	}
	var found []Conflict
	for _, c := range listed {
		k := c.Key
		delete(s.owned, k)
		if _, wanted := s.want[k.Host][k.DeploymentTarget]; wanted {
			found = append(found, c)
			continue
		}
		if _, recorded := s.priorRecord(k); recorded && !s.edit.Adopt && !s.edit.LeaveOthers {
			c.Record = s.edit.Owner.RecordPath(k.Host)
			found = append(found, c)
		}
	}
	return found, nil
}

// findOthersInside finds folders to be changed in which another owner has written since.
func (s *staging) findOthersInside(ctx context.Context) ([]Conflict, error) {
	var drifted []folder.Key
	var folders []string
	for k := range s.owned {
		at, ok := s.treeOf(k)
		if !ok || s.staying[k] || s.edit.Hosts[k.Host][k.DeploymentTarget].Action == Keep {
			continue
		}
		left, _ := s.priorRecord(k)
		if !git.IsID(s.want[k.Host][k.DeploymentTarget], at) && !git.IsID(left.Tree, at) {
			drifted = append(drifted, k)
			folders = append(folders, s.edit.Owner.folderPath(k.Host, k.DeploymentTarget))
		}
	}
	inside, err := s.ownership().findOwnersInside(ctx, folders)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(drifted, folder.Key.Compare)
	var found []Conflict
	for _, k := range drifted {
		if by, ok := inside[s.edit.Owner.folderPath(k.Host, k.DeploymentTarget)]; ok {
			found = append(found, s.edit.Owner.newConflict(k, by))
		}
	}
	return found, nil
}
