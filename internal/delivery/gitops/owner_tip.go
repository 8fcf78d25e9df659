package gitops

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// ownerTip is a tip as the owner of an edit has it.
type ownerTip struct {
	*layout
	edit Edit
	want folder.Trees // written folders, with their trees

	atTip       map[string]git.Hash         // by host
	formerAtTip map[string]git.Hash         // under the owner's former name
	recorded    map[string]hostRecord       // under either name
	skipped     map[string]bool             // hosts whose record need not be read
	owned       map[folder.Key]bool         // folders in the records, or only in the state
	taken       map[folder.Key]folderRecord // former owners' records
	encoded     []byte                      // reused
}

func openOwnerTip(ctx context.Context, w *layout, edit Edit, proposed *layout) (*ownerTip, error) {
	if err := w.checkRollbacks(ctx, edit); err != nil {
		return nil, err
	}
	hosts := slices.Collect(maps.Keys(edit.Hosts))
	hosts = slices.AppendSeq(hosts, maps.Keys(edit.Written))
	hosts = slices.AppendSeq(hosts, maps.Keys(edit.Renames))
	t := &ownerTip{layout: w, taken: map[folder.Key]folderRecord{}}
	var err error
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

func (s *ownerTip) formerOwner() Owner {
	former := s.edit.Owner
	former.Name = s.edit.FormerName
	return former
}

func (s *ownerTip) ownership() *ownership {
	own := &ownership{s.layout, s.edit.Owner, []string{s.edit.Owner.Name}}
	if s.edit.FormerName != "" {
		own.names = append(own.names, s.edit.FormerName)
	}
	return own
}

// readOwnRecords reads the records under both names of the owner. It skips hosts with the wanted folders, if the state knows
// the record or the edit would write the same.
func (s *ownerTip) readOwnRecords(ctx context.Context) error {
	s.owned, s.skipped = map[folder.Key]bool{}, map[string]bool{}
	read := func(entries map[string]git.Hash) (map[string]hostRecord, error) {
		open := maps.Clone(entries)
		leave := func(where func(host string, id git.Hash) bool) {
			maps.DeleteFunc(open, func(host string, id git.Hash) bool {
				_, now := s.atTip[host]
				_, then := s.formerAtTip[host]
				s.skipped[host] = now && !then && where(host, id) // a record of the former name has to be read
				return s.skipped[host]
			})
		}
		leave(s.isAsLeft)
		if err := s.Need(ctx, slices.Collect(maps.Values(open))); err != nil {
			return nil, err
		}
		leave(s.isRight)
		return readRecords(ctx, s.layout, open)
	}
	var err error
	if s.recorded, err = read(s.atTip); err != nil {
		return err
	}
	formerly, err := read(s.formerAtTip)
	if err != nil {
		return err
	}
	for host, former := range formerly {
		if record, ok := s.recorded[host]; ok {
			former = record.join(former)
		}
		s.recorded[host] = former
	}
	for host, record := range s.recorded {
		for target := range record.DeploymentTargets {
			s.owned[folder.Key{Host: host, DeploymentTarget: target}] = true
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

// isRight reports whether a host has the wanted folders and record, in a third of the time of parsing the record.
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
	if bytes.Contains(header, []byte(`formerly":`)) || len(s.edit.Renames.FormerNames(host)) > 0 {
		return false
	}
	record := hostRecord{
		Format:      recordFormat,
		Environment: s.edit.Owner.Environment,
		Holder:      cmp.Or(s.edit.Holder, findMember(header, "holder")),
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
		if folder, ok := s.recorded[host].DeploymentTargets[k.DeploymentTarget]; ok {
			return folder, true
		}
	}
	folder, ok := s.taken[k]
	return folder, ok
}

func (s *ownerTip) treeOf(k folder.Key) (git.Hash, bool) {
	return s.folderTree(s.edit.Owner, k)
}

func (s *ownerTip) isOwn(host string) bool {
	_, recorded := s.atTip[host]
	_, formerly := s.formerAtTip[host]
	return recorded || formerly || len(s.edit.Written[host]) > 0
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

func (s *ownerTip) isRenamed(host string) bool {
	_, wanted := s.edit.Hosts[s.edit.Renames[host]]
	return wanted
}

// moveKept moves kept folders that are still under a former name of their host.
func (s *ownerTip) moveKept() Edit {
	edit := s.edit
	if len(edit.Renames) == 0 {
		return edit
	}
	edit.Hosts = edit.Hosts.clone()
	for k, wanted := range folder.All(edit.Hosts) {
		if _, there := s.treeOf(k); there || wanted.Action != Keep {
			continue
		}
		for _, former := range s.edit.Renames.FormerNames(k.Host) {
			if id, there := s.treeOf(folder.Key{Host: former, DeploymentTarget: k.DeploymentTarget}); there {
				wanted.Action, wanted.Tree, wanted.Files = move, id.String(), nil
				edit.Hosts[k.Host][k.DeploymentTarget] = wanted
			}
		}
	}
	return edit
}

func (s *ownerTip) hasFormerHost(host string) bool {
	return slices.ContainsFunc(s.edit.Renames.FormerNames(host), func(former string) bool {
		_, recorded := s.atTip[former]
		return recorded
	})
}
