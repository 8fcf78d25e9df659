package gitops

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// stageEdit computes the change of an edit at a tip. proposed is the tip of the pull request's branch, if there is one. It
// only reads.
func stageEdit(ctx context.Context, w *layout, edit Edit, now time.Time, proposed *layout) (*change, error) {
	if edit.claim != nil {
		return stageClaim(ctx, w, edit, now)
	}
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
		return s.change, nil
	}
	if err := (&ownershipCheck{s}).run(ctx); err != nil {
		return nil, err
	}
	if err := s.checkSeen(); err != nil {
		return nil, err
	}
	hosts := &hostStaging{staging: s, marker: git.NewHasher().Blob(s.edit.Owner.markerText())}
	if err := hosts.readProposed(ctx, proposed); err != nil {
		return nil, err
	}
	hosts.stageAll() // first: records are packed before folders, and then need no memory
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
	return s.change, nil
}

// openOwnerTip opens the hosts and records of an edit's owner, and resolves folders that are rolled back, kept or moved.
func openOwnerTip(ctx context.Context, w *layout, edit Edit, proposed *layout) (*ownerTip, error) {
	edit, err := resolveRollbacks(ctx, w, edit)
	if err != nil {
		return nil, err
	}
	hosts := slices.Collect(maps.Keys(edit.Hosts))
	hosts = slices.AppendSeq(hosts, maps.Keys(edit.Written))
	hosts = slices.AppendSeq(hosts, maps.Keys(edit.Renames))
	t := &ownerTip{layout: w, taken: map[folder.Key]folderRecord{}}
	if t.atTip, err = w.openOwner(ctx, edit.Owner, hosts); err != nil {
		return nil, err
	}
	t.edit = keepUnseen(w, edit, proposed)
	t.edit = t.moveKept()
	t.want = t.edit.Hosts.Trees()
	if edit.FormerName != "" {
		t.formerAtTip, err = w.openOwner(ctx, t.formerOwner(), nil)
	}
	return t, err
}

func (s *ownerTip) ownership() *ownership { return &ownership{s.layout, s.edit.Owner, s.ownNames()} }

// checkHolders fails if another state holds the records. A destroy skips the hosts of that state instead.
func (s *staging) checkHolders(ctx context.Context, proposed *layout) error {
	if s.edit.LeaveOthers || s.edit.Abandon {
		return s.skipHeldHosts(ctx, proposed)
	}
	return s.checkHolder(ctx, proposed)
}

// ownerTip is a tip as the owner of an edit has it.
type ownerTip struct {
	*layout
	edit Edit
	want folder.Trees // the folders that the edit writes, with their trees

	atTip       map[string]git.Hash
	formerAtTip map[string]git.Hash         // the same under the owner's former name
	recorded    map[string]hostRecord       // the records that were read
	formerly    map[string]hostRecord       // the same under the owner's former name
	asLeft      map[string]bool             // hosts whose record need not be read
	owned       map[folder.Key]bool         // folders in the records, or only in the state
	taken       map[folder.Key]folderRecord // former owners' records of folders that are taken over
	encoded     []byte
}

type staging struct {
	*ownerTip
	now     string // time of the commit, as in records
	change  *change
	staying map[folder.Key]bool // folders that are neither wanted nor removed
}

func (s *ownerTip) formerOwner() Owner {
	former := s.edit.Owner
	former.Name = s.edit.FormerName
	return former
}

// ownNames returns the names under which the owner's records are.
func (s *ownerTip) ownNames() []string {
	if s.edit.FormerName == "" {
		return []string{s.edit.Owner.Name}
	}
	return []string{s.edit.Owner.Name, s.edit.FormerName}
}

// readOwnRecords reads the folders in the owner's records. It skips hosts with the wanted folders, if the state knows the
// record or the edit would write the same.
func (s *ownerTip) readOwnRecords(ctx context.Context) error {
	s.owned, s.asLeft = map[folder.Key]bool{}, map[string]bool{}
	read := func(entries map[string]git.Hash) (map[string]hostRecord, error) {
		open := maps.Clone(entries)
		leave := func(where func(host string, id git.Hash) bool) {
			maps.DeleteFunc(open, func(host string, id git.Hash) bool {
				_, now := s.atTip[host]
				_, then := s.formerAtTip[host]
				s.asLeft[host] = now && !then && where(host, id) // a record of the former name has to be read
				return s.asLeft[host]
			})
		}
		leave(s.isAsLeft)
		if err := s.Need(ctx, slices.Collect(maps.Values(open))); err != nil {
			return nil, err
		}
		leave(s.isRight)
		return s.readRecords(ctx, open)
	}
	var err error
	if s.recorded, err = read(s.atTip); err != nil {
		return err
	}
	if s.formerly, err = read(s.formerAtTip); err != nil {
		return err
	}
	for _, records := range []map[string]hostRecord{s.recorded, s.formerly} {
		for host, record := range records {
			for target := range record.DeploymentTargets {
				s.owned[folder.Key{Host: host, DeploymentTarget: target}] = true
			}
		}
	}
	return nil
}

// isAsLeft reports whether the host is as the last apply left it, and the edit changes nothing.
func (s *ownerTip) isAsLeft(host string, id git.Hash) bool {
	if !git.IsID(s.edit.Records[host], id) || !s.hasWanted(host) {
		return false
	}
	for target, folder := range s.edit.Hosts[host] {
		if _, known := s.edit.Written[host][target]; !known && folder.Action != Keep {
			return false
		}
	}
	return true
}

// isRight reports whether a host has the wanted folders and record. It takes a third of the time of parsing the record.
func (s *ownerTip) isRight(host string, id git.Hash) bool {
	content, err := s.Blob(id)
	if err != nil || !s.hasWanted(host) {
		return false
	}
	folders := s.edit.Hosts[host]
	if len(folders) > len(s.want[host]) { // some are kept
		return false
	}
	header, rest, _ := bytes.Cut(content, []byte("{\n    "))
	record := hostRecord{
		Format:      recordFormat,
		Environment: s.edit.Owner.Environment,
		Holder:      cmp.Or(s.edit.Holder, findMember(header, "holder")),
	}
	if bytes.Contains(header, []byte(`formerly":`)) || len(s.edit.Renames.FormerNames(host)) > 0 {
		return false
	}
	s.encoded = record.encodeFolders(s.encoded[:0], slices.Sorted(maps.Keys(folders)), func(target string) folderRecord {
		// The record has the earlier tree and the time of the change.
		var history []byte
		_, rest, _ = bytes.Cut(rest, []byte("\n      \"tree\": "))
		history, rest, _ = bytes.Cut(rest, []byte("\n    }"))
		wanted := wantedFolderRecord(folders[target])
		wanted.TreeBefore, wanted.Changed = findMember(history, "tree_before"), findMember(history, "changed")
		wanted.Source = folder.Source(findMember(history, "source"))
		return wanted
	})
	return bytes.Equal(s.encoded, content) && folder.CheckText(record.Holder) == nil
}

// hasWanted reports whether a host has the wanted folders, and the state has no others.
func (s *ownerTip) hasWanted(host string) bool {
	wanted, ok := s.edit.Hosts[host]
	if !ok {
		return false
	}
	d := s.hostDirectory(s.edit.Owner, host)
	for target, folder := range wanted {
		if e, ok := d.Look(target); folder.Action != Keep && (!ok || !e.IsTree() || !git.IsID(folder.Tree, e.ID)) {
			return false
		}
	}
	for target := range s.edit.Written[host] {
		if _, ok := wanted[target]; !ok {
			return false
		}
	}
	return true
}

func (s *ownerTip) priorRecord(k folder.Key) (folderRecord, bool) {
	for _, host := range append([]string{k.Host}, s.edit.Renames.FormerNames(k.Host)...) {
		for _, records := range []map[string]hostRecord{s.recorded, s.formerly} {
			if folder, ok := records[host].DeploymentTargets[k.DeploymentTarget]; ok {
				return folder, true
			}
		}
	}
	folder, ok := s.taken[k]
	return folder, ok
}

func (s *ownerTip) treeOf(k folder.Key) (git.Hash, bool) {
	return s.folderTree(s.edit.Owner, k)
}

// isOwn reports whether the owner already has the host.
func (s *ownerTip) isOwn(host string) bool {
	_, recorded := s.atTip[host]
	_, formerly := s.formerAtTip[host]
	return recorded || formerly || len(s.edit.Written[host]) > 0
}

// stageAbandon removes only the owner's records.
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
			s.change.letGo = append(s.change.letGo, k)
		}
	}
	slices.SortFunc(s.change.letGo, folder.Key.Compare)
}

// run checks the folders outside the owner's records: wanted ones must not belong to another owner, and those that only the
// state has are left to the owner whose record lists them. Then it finds folders that the plan did not show.
func (s *ownershipCheck) run(ctx context.Context) error {
	known := map[folder.Key]bool{}
	var lost, wanted []folder.Key
	for k := range folder.All(s.edit.Written) {
		if s.asLeft[k.Host] {
			continue
		}
		known[k] = true
		if !s.want.Has(k.Host, k.DeploymentTarget) && !s.owned[k] {
			lost = append(lost, k)
		}
	}
	for k := range folder.All(s.want) {
		if !s.asLeft[k.Host] && !s.owned[k] {
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

// findUnplanned returns existing folders that are neither wanted nor may be removed. If the edit leaves others, they stay.
func (s *staging) findUnplanned() []folder.Key {
	var unplanned []folder.Key
	for k := range s.owned {
		_, wanted := s.edit.Hosts[k.Host][k.DeploymentTarget]
		_, planned := s.edit.Remove[k.Host][k.DeploymentTarget]
		if _, there := s.treeOf(k); !there || wanted || planned || s.movesToNewName(k) {
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

// findOthersInside finds folders to be written or removed in which another owner has written since. They must stay.
func (s *ownershipCheck) findOthersInside(ctx context.Context) ([]Conflict, error) {
	var drifted []folder.Key
	var folders []string
	for k := range s.owned {
		at, ok := s.treeOf(k)
		if !ok || s.stays(k) {
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

func (s *staging) stays(k folder.Key) bool {
	return s.staying[k] || s.edit.Hosts[k.Host][k.DeploymentTarget].Action == Keep
}

func (s *staging) stageFolders() {
	for host := range s.edit.Hosts {
		if at := s.findReplacement(s.edit.Owner, host); at != "" && s.isOwn(host) {
			s.change.remove = append(s.change.remove, at)
		}
	}
	for k, wanted := range folder.All(s.edit.Hosts) {
		if wanted.Action != Keep && !s.asLeft[k.Host] {
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
		if _, ok := s.hostDirectory(s.edit.Owner, k.Host).Look(k.DeploymentTarget); ok { // a folder, or a file in its place
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
		path: s.edit.Owner.folderPath(k.Host, k.DeploymentTarget), id: id, folder: true, files: wanted.Files, there: wanted.Files == nil,
	})
}

func (s *ownerTip) movesFrom(k folder.Key) (host string, tree git.Hash, found bool) {
	for _, former := range s.edit.Renames.FormerNames(k.Host) {
		from := folder.Key{Host: former, DeploymentTarget: k.DeploymentTarget}
		if tree, there := s.treeOf(from); there && s.owned[from] {
			return former, tree, true
		}
	}
	return "", git.Hash{}, false
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
