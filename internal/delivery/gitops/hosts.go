package gitops

import (
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
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// hostStaging computes the markers and records of a change.
type hostStaging struct {
	*staging
	marker   git.Hash
	proposed map[string]hostRecord
}

// readProposed reads the owner's records on the branch of the pull request. Proposed folders keep their time, so an
// unchanged proposal needs no new commit.
func (s *hostStaging) readProposed(ctx context.Context, proposed *layout) error {
	if proposed == nil {
		return nil
	}
	entries, err := proposed.openOwner(ctx, s.edit.Owner, nil)
	if err != nil {
		return err
	}
	maps.DeleteFunc(entries, func(host string, _ git.Hash) bool { return s.skipped[host] })
	s.proposed, err = readRecords(ctx, proposed, entries)
	return err
}

func (s *hostStaging) stageHost(host string) {
	right := s.stageRecord(host)
	if !s.hasMarker(s.edit.Owner, host, s.marker) {
		right = false
		s.change.put = append(s.change.put, putFile{path: s.edit.Owner.markerPath(host), id: s.marker, content: s.edit.Owner.markerText()})
	}
	if !right && !s.hasFormerHost(host) { // a renamed host counts under its former name
		s.change.hosts = append(s.change.hosts, host)
		if !s.isOwn(host) {
			s.change.newHosts++
		}
	}
	s.removeFormerMarker(host)
}

func (s *hostStaging) wantedRecord(host string) hostRecord {
	before, ok := s.recorded[host]
	for _, former := range s.edit.Renames.FormerNames(host) {
		if !ok {
			before, ok = s.recorded[former]
		}
	}
	record := hostRecord{
		Format: max(recordFormat, before.Format), Environment: s.edit.Owner.Environment, Holder: cmp.Or(s.edit.Holder, before.Holder),
		DeploymentTargets: map[string]folderRecord{}, more: before.more,
	}
	isHost := func(name string) bool { _, is := s.edit.Hosts[name]; return is }
	for _, name := range append([]string{host}, s.edit.Renames.FormerNames(host)...) {
		record.addNames(s.recorded[name].Formerly, s.recorded[name].OwnerFormerly, s.edit.Owner.Name, isHost)
	}
	record.addNames(s.edit.Renames.FormerNames(host), []string{s.edit.FormerName}, s.edit.Owner.Name, isHost)
	for target, wanted := range s.edit.Hosts[host] {
		k := folder.Key{Host: host, DeploymentTarget: target}
		if wanted.Action == Write || wanted.Action == RollBack {
			record.DeploymentTargets[target] = s.newFolderRecord(k, wanted)
		} else if kept, ok := s.keptRecord(k, wanted.Record); ok {
			record.DeploymentTargets[target] = kept
		}
	}
	for k := range s.staying {
		if prior, ok := s.priorRecord(k); ok && k.Host == host {
			record.DeploymentTargets[k.DeploymentTarget] = prior
		}
	}
	return record
}

// newFolderRecord returns the record of a written folder. The time of change stays if the record already has the tree.
func (s *hostStaging) newFolderRecord(k folder.Key, folder FolderEdit) folderRecord {
	prior, known := s.priorRecord(k)
	record := wantedFolderRecord(folder)
	record.more = prior.more
	if known && strings.EqualFold(prior.Tree, record.Tree) {
		record.Changed, record.TreeBefore, record.Source = prior.Changed, prior.TreeBefore, prior.Source
		return record
	}
	record.Changed, record.TreeBefore, record.Source = s.now, prior.Tree, s.edit.Source
	if at, ok := s.treeOf(k); !known && ok && at.String() != record.Tree {
		record.TreeBefore = at.String()
	}
	if proposed, ok := s.proposed[k.Host].DeploymentTargets[k.DeploymentTarget]; ok && proposed.Changed != "" &&
		proposed.Tree == record.Tree && proposed.TreeBefore == record.TreeBefore {
		record.Changed, record.Source = proposed.Changed, proposed.Source
	}
	return record
}

func wantedFolderRecord(folder FolderEdit) folderRecord {
	record := folderRecord{Record: folder.Record, Tree: strings.ToLower(folder.Tree)}
	if !slices.IsSortedFunc(record.Objects, compareObjects) {
		record.Objects = slices.SortedFunc(slices.Values(record.Objects), compareObjects)
	}
	return record
}

func (s *hostStaging) keptRecord(k folder.Key, record folder.Record) (folderRecord, bool) {
	prior, ok := s.priorRecord(k)
	if wanted := s.edit.Hosts[k.Host][k.DeploymentTarget]; wanted.Action == Relocate {
		if !ok {
			prior = folderRecord{Record: record, Changed: s.now, Source: s.edit.Source}
		}
		prior.Tree, prior.TreeBefore = strings.ToLower(wanted.Tree), "" // it names the former place
		return prior, true
	}
	if ok {
		return prior, true
	}
	at, ok := s.treeOf(k)
	if !ok || !s.owned[k] {
		return folderRecord{}, false
	}
	return folderRecord{Record: record, Tree: at.String(), Changed: s.now, Source: s.edit.Source}, true
}

// stageRecord stages a host's record and reports whether it was right. Statements about folders in the owner's own record
// are corrected along with other changes only. A record by others is always rewritten: duplicate members can be read in two
// ways.
func (s *hostStaging) stageRecord(host string) (right bool) {
	id, there := s.atTip[host]
	if former, moves := s.formerAtTip[host]; moves {
		s.change.formerly = s.edit.FormerName
		s.change.remove = append(s.change.remove, s.formerOwner().RecordPath(host))
		if !there {
			id = former
		}
	}
	s.change.records[host] = id
	if s.skipped[host] {
		return true
	}
	wanted := s.wantedRecord(host)
	content := wanted.encode()
	s.change.records[host] = git.NewHasher().Blob(content)
	if there && s.change.records[host] == id {
		return true
	}
	s.change.put = append(s.change.put, putFile{path: s.edit.Owner.RecordPath(host), id: s.change.records[host], content: content})
	before, readable := s.recorded[host]
	known := s.edit.Records[host]
	return readable && before.hasSameFolders(wanted) && before.Holder == wanted.Holder && (known == "" || git.IsID(known, id))
}

func (s *hostStaging) removeFormerMarker(host string) {
	if s.edit.FormerName == "" {
		return
	}
	former := s.formerOwner()
	e, ok := s.hostDirectory(former, host).Look(former.Name + markerSuffix)
	if !ok || !e.IsFile() {
		return
	}
	_, recorded := s.formerAtTip[host]
	h := git.NewHasher()
	if recorded || e.ID == h.Blob(former.markerText()) || e.ID == h.Blob(former.leftText()) {
		s.change.formerly = former.Name
		s.change.remove = append(s.change.remove, former.markerPath(host))
	}
}

// stageFormerHosts stages hosts that are no longer wanted. They keep a folder with a marker: an agent whose folder vanishes
// stops, and removes nothing.
func (s *hostStaging) stageFormerHosts() {
	others := slices.Collect(maps.Keys(s.atTip))
	others = slices.AppendSeq(others, maps.Keys(s.formerAtTip))
	others = slices.AppendSeq(others, maps.Keys(s.edit.Written))
	slices.Sort(others)
	stays := map[string]bool{}
	for k := range s.staying {
		stays[k.Host] = true
	}
	for _, host := range slices.Compact(others) {
		if _, wanted := s.edit.Hosts[host]; wanted {
			continue
		}
		_, recorded := s.atTip[host]
		_, former := s.formerAtTip[host]
		switch {
		case stays[host] && former:
			s.stageHost(host)
			continue
		case stays[host]:
			if recorded && !s.stageRecord(host) {
				s.change.hosts = append(s.change.hosts, host)
			}
			s.removeFormerMarker(host)
			continue
		}
		own := recorded || former
		if s.isRenamed(host) {
			s.removeMarker(host, own)
			s.change.hosts = append(s.change.hosts, host)
			s.change.renamedHosts++
		} else if s.markLeft(host, own) || own {
			s.change.hosts = append(s.change.hosts, host)
			s.change.goneHosts++
		}
		if recorded {
			s.change.remove = append(s.change.remove, s.edit.Owner.RecordPath(host))
		}
		if former {
			s.change.formerly = s.edit.FormerName
			s.change.remove = append(s.change.remove, s.formerOwner().RecordPath(host))
			s.removeFormerMarker(host)
		}
	}
}

// markLeft makes the marker say that nothing is left on a host. own is false if others may have written the marker.
func (s *hostStaging) markLeft(host string, own bool) bool {
	text := s.edit.Owner.leftText()
	left := git.NewHasher().Blob(text)
	d := s.Directory(path.Join(s.edit.Owner.Path, host))
	name := s.edit.Owner.Name + markerSuffix
	if d == nil {
		return false
	}
	e, ok := d.Look(name)
	switch {
	case ok && (!e.IsFile() || e.ID == left && e.Mode == git.ModeFile):
		return false
	case ok && e.ID == s.marker, own:
	default:
		return false
	}
	free := true
	d.Each(func(e git.Entry) { free = free && (e.Name == name || !strings.EqualFold(e.Name, name)) })
	if free {
		s.change.put = append(s.change.put, putFile{path: s.edit.Owner.markerPath(host), id: left, content: text})
	}
	return free
}

// ErrHostNotEmpty reports files of others in the folder of a renamed host. It would stay, and its agents would remove the
// moved content.
var ErrHostNotEmpty = errors.New("others have something in the folder of a host that has another name now")

func (s *hostStaging) removeMarker(host string, own bool) {
	e, ok := s.hostDirectory(s.edit.Owner, host).Look(s.edit.Owner.Name + markerSuffix)
	if ok && e.IsFile() && (own || e.ID == s.marker) {
		s.change.remove = append(s.change.remove, s.edit.Owner.markerPath(host))
	}
}

func (s *staging) checkVanishes() error {
	for _, host := range slices.Sorted(maps.Keys(s.edit.Renames)) {
		_, recorded := s.atTip[host]
		if !s.isRenamed(host) || !recorded && len(s.edit.Written[host]) == 0 {
			continue
		}
		at := path.Join(s.edit.Owner.Path, host)
		var left []string
		if d := s.Directory(at); d != nil {
			d.Each(func(e git.Entry) {
				if in := path.Join(at, e.Name); !slices.Contains(s.change.remove, in) {
					left = append(left, in)
				}
			})
		}
		if len(left) > 0 {
			slices.Sort(left)
			return fmt.Errorf("%w: %s", ErrHostNotEmpty, wording.List(wording.Quoted(left), wording.Named))
		}
	}
	return nil
}

// FindForeignEntries returns the paths in the hosts' folders that are neither folders nor markers of the owner.
func (v *OwnerView) FindForeignEntries(ctx context.Context, own folder.Trees) ([]string, error) {
	return withTip(ctx, v.Branch, func() (found []string, err error) {
		hosts := slices.Sorted(maps.Keys(own))
		if _, err := v.work.openOwner(ctx, v.owner, hosts); err != nil {
			return nil, err
		}
		for _, host := range hosts {
			v.work.hostDirectory(v.owner, host).Each(func(e git.Entry) {
				if in := path.Join(v.owner.Path, host, e.Name); !own.Has(host, e.Name) && in != v.owner.markerPath(host) {
					found = append(found, in)
				}
			})
		}
		return found, nil
	})
}
