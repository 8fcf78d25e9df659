package gitops

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// ownerTip is a tip as the owner of an edit has it.
type ownerTip struct {
	*layout
	edit Edit
	want folder.Trees // written folders, with their trees

	atTip       map[string]git.Hash // by host
	formerAtTip map[string]git.Hash // under the owner's former name
	recorded    map[string]hostRecord
	formerly    map[string]hostRecord
	skipped     map[string]bool             // hosts whose record need not be read
	owned       map[folder.Key]bool         // folders in the records, or only in the state
	taken       map[folder.Key]folderRecord // former owners' records
	encoded     []byte
}

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

func (s *ownerTip) formerOwner() Owner {
	former := s.edit.Owner
	former.Name = s.edit.FormerName
	return former
}

func (s *ownerTip) ownNames() []string {
	if s.edit.FormerName == "" {
		return []string{s.edit.Owner.Name}
	}
	return []string{s.edit.Owner.Name, s.edit.FormerName}
}

func (s *ownerTip) ownership() *ownership { return &ownership{s.layout, s.edit.Owner, s.ownNames()} }

// readOwnRecords reads the owner's records. It skips hosts with the wanted folders, if the state knows the record or the
// edit would write the same.
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

func (s *ownerTip) movesToNewName(k folder.Key) bool {
	_, wanted := s.edit.Hosts[s.edit.Renames[k.Host]][k.DeploymentTarget]
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

// Owner is one flotilla_assignment. Name and Path identify it.
type Owner struct {
	Name string
	// Environment is only a label.
	Environment string
	Path        string
}

func (o Owner) check() error {
	if err := git.CheckName(o.Name); err != nil {
		return fmt.Errorf("the owner's name: %w", err)
	}
	if strings.ContainsFunc(o.Environment, isControl) {
		return errors.New("the owner's environment has a control character")
	}
	return git.CheckPath(o.Path)
}

const (
	recordsFolder = ".flotilla"
	recordSuffix  = ".json"
	markerSuffix  = ".md"
	clustersHost  = "clusters"
)

func (o Owner) folderPath(host, target string) string { return path.Join(o.Path, host, target) }

func (o Owner) markerPath(host string) string { return path.Join(o.Path, host, o.Name+markerSuffix) }

func (o Owner) recordsPath() string { return path.Join(o.Path, recordsFolder, o.Name) }

// RecordPath returns the path of a record.
func (o Owner) RecordPath(host string) string { return path.Join(o.recordsPath(), host+recordSuffix) }

func (o Owner) markerText() []byte {
	return []byte("Flotilla writes this folder for the assignment `" + o.Name +
		"`. What is changed here by hand is put back by the next apply.\n")
}

func (o Owner) leftText() []byte {
	return []byte("Nothing of the assignment `" + o.Name + "` is here any more. Agents that follow this folder remove " +
		"what they had of it. " +
		"When no agent follows it any more, this file may be removed by hand.\n")
}

func checkHost(host string) error {
	name, cluster := strings.CutPrefix(host, clustersHost+"/")
	if !cluster && host == clustersHost {
		return fmt.Errorf("host %q is the name of the folder for single clusters; use another name", host)
	}
	if err := git.CheckName(name); err != nil {
		return fmt.Errorf("host %q: %w", host, err)
	}
	if len(name)+len(recordSuffix) > git.MaxSegment {
		return fmt.Errorf("host %q is too long for the name of its record", host)
	}
	return nil
}

// recordEntries returns an owner's records by host. The records folder and its clusters must be open.
func (w *layout) recordEntries(records string) map[string]git.Hash {
	return listRecords(records, w.eachEntry)
}

func listRecords(records string, each func(at string, do func(git.Entry))) map[string]git.Hash {
	hosts := map[string]git.Hash{}
	list := func(at, prefix string) {
		each(at, func(e git.Entry) {
			name, ok := strings.CutSuffix(e.Name, recordSuffix)
			if host := prefix + name; ok && e.IsFile() && checkHost(host) == nil {
				hosts[host] = e.ID
			}
		})
	}
	list(records, "")
	list(path.Join(records, clustersHost), clustersHost+"/")
	return hosts
}

func (w *layout) eachEntry(at string, do func(git.Entry)) {
	if d := w.Directory(at); d != nil {
		d.Each(do)
	}
}

// readRecords omits unreadable records.
func (w *layout) readRecords(ctx context.Context, entries map[string]git.Hash) (map[string]hostRecord, error) {
	if err := w.Need(ctx, slices.Collect(maps.Values(entries))); err != nil {
		return nil, err
	}
	read, left := make(map[string]hostRecord, len(entries)), recordBudget()
	for host, id := range entries {
		content, err := w.Blob(id)
		if err = cmp.Or(err, left.spend(len(content))); err != nil {
			return nil, err
		}
		if r, err := parseRecord(content); err == nil {
			read[host] = r
		}
	}
	return read, nil
}
