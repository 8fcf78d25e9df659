package gitops

import (
	"context"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// change is what an edit comes to at one tip. It is worked out whole before
// anything of it is done, so that an edit that fails leaves no trace beside
// others that share its commit.
type change struct {
	edit    Edit
	by      *waiting
	added   []key
	changed []key
	removed []key
	kept    []key          // folders that stay and are nobody's from then on
	hosts   []string       // whose marker or record is put right
	adopted []Conflict     // folders that another owner had
	folders []FolderChange // added, changed and removed, with config versions

	remove []string // paths
	put    []putFile
}

// putFile is a file or a folder that the change writes.
type putFile struct {
	path    string
	id      git.Hash
	content []byte  // of a file
	folder  *Folder // or a folder
}

// empty reports whether the tip is already as the edit wants it. Records that
// differ only in what they say about a folder are no reason for a commit.
func (c *change) empty() bool {
	return len(c.added)+len(c.changed)+len(c.removed)+len(c.hosts)+len(c.adopted) == 0
}

// stage works out what the edit changes at this tip. It only reads.
func (w *layout) stage(ctx context.Context, edit Edit) (*change, error) {
	files := edit.recordFiles()
	want := edit.want()
	hosts := slices.Collect(maps.Keys(want))
	for host := range edit.Previously {
		hosts = append(hosts, host)
	}
	atTip, err := w.openOwner(ctx, edit.Owner, hosts)
	if err != nil {
		return nil, err
	}
	if err := w.wayIsFree(edit.Owner, want); err != nil {
		return nil, err
	}
	s := &staging{layout: w, edit: edit, want: want, files: files, atTip: atTip, formerly: map[key]string{}, change: &change{edit: edit}}
	if err := s.readOwned(ctx); err != nil {
		return nil, err
	}
	if edit.Keep {
		s.letGo()
		return s.change, nil
	}
	if err := s.checkOwnership(ctx); err != nil {
		return nil, err
	}
	s.folders()
	s.markersAndRecords()
	slices.SortFunc(s.change.added, compareKeys)
	slices.SortFunc(s.change.changed, compareKeys)
	slices.SortFunc(s.change.removed, compareKeys)
	s.versions()
	return s.change, nil
}

type staging struct {
	*layout
	edit     Edit
	want     Deployed
	files    map[string]recordFile
	atTip    map[string]git.Hash   // host to the blob of its record
	recorded map[string]hostRecord // those that can be read
	owned    map[key]bool          // by the records, or by the state and nobody's record
	formerly map[key]string        // config versions in another owner's records
	change   *change
}

// readOwned reads what the owner's records list. A record that is to the byte
// what is wanted need not be fetched.
func (s *staging) readOwned(ctx context.Context) error {
	unknown := map[string]git.Hash{}
	for host, id := range s.atTip {
		if file, ok := s.files[host]; !ok || file.id != id {
			unknown[host] = id
		}
	}
	recorded, err := s.readRecords(ctx, unknown)
	if err != nil {
		return err
	}
	s.recorded, s.owned = recorded, map[key]bool{}
	for host, record := range recorded {
		for target := range record.DeploymentTargets {
			s.owned[key{host, target}] = true
		}
	}
	for host := range s.atTip {
		if _, ok := unknown[host]; !ok {
			for target := range s.want[host] {
				s.owned[key{host, target}] = true
			}
		}
	}
	return nil
}

// letGo takes the owner's records away, and nothing else.
func (s *staging) letGo() {
	for _, host := range slices.Sorted(maps.Keys(s.atTip)) {
		s.change.hosts = append(s.change.hosts, host)
		s.change.remove = append(s.change.remove, s.edit.Owner.record(host))
	}
	for k := range s.owned {
		if e, ok := s.hostAt(s.edit.Owner, k.host).Look(k.target); ok && e.IsTree() {
			s.change.kept = append(s.change.kept, k)
		}
	}
	slices.SortFunc(s.change.kept, compareKeys)
}

// checkOwnership asks about each folder that the owner's records do not list:
// wanted ones must not be another's, and what only the state knows is left to
// those whose record has it now.
func (s *staging) checkOwnership(ctx context.Context) error {
	known := map[key]bool{}
	var former, wanted []key
	for host, targets := range s.edit.Previously {
		for target := range targets {
			k := key{host, target}
			known[k] = true
			if _, ok := s.want[host][target]; !ok && !s.owned[k] {
				former = append(former, k)
			}
		}
	}
	for host, targets := range s.want {
		for target := range targets {
			if k := (key{host, target}); !s.owned[k] {
				wanted = append(wanted, k)
			}
		}
	}
	found, err := s.conflicts(ctx, s.edit.Owner, wanted, s.want, known)
	if err != nil {
		return err
	}
	if s.edit.Adopt {
		if found, err = s.adopt(found); err != nil {
			return err
		}
	}
	settled, err := s.settledInside(ctx)
	if err != nil {
		return err
	}
	hosts, err := s.hostConflicts(ctx, s.edit.Owner, s.want, s.atTip)
	if err != nil {
		return err
	}
	if found = slices.Concat(found, settled, hosts); len(found) > 0 {
		return &OwnershipError{Conflicts: found}
	}
	if len(former) == 0 {
		return nil
	}
	claimed, err := s.claims(ctx, s.edit.Owner, former)
	if err != nil {
		return err
	}
	for _, k := range former {
		if _, ok := claimed[k]; !ok {
			s.owned[k] = true
		}
	}
	return nil
}

// settledInside finds owned folders that are not as they were left, and in which
// another owner has settled since: they are not ours to overwrite or to remove.
func (s *staging) settledInside(ctx context.Context) ([]Conflict, error) {
	var drifted []key
	var folders []string
	for k := range s.owned {
		e, ok := s.hostAt(s.edit.Owner, k.host).Look(k.target)
		left := s.recorded[k.host].DeploymentTargets[k.target].Tree
		if ok && e.IsTree() && !git.IsID(s.want[k.host][k.target], e.ID) && !git.IsID(left, e.ID) {
			drifted = append(drifted, k)
			folders = append(folders, s.edit.Owner.folder(k.host, k.target))
		}
	}
	inside, err := s.ownersInside(ctx, folders)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(drifted, compareKeys)
	var found []Conflict
	for _, k := range drifted {
		at := s.edit.Owner.folder(k.host, k.target)
		if by, ok := inside[at]; ok {
			found = append(found, Conflict{
				Host: k.host, DeploymentTarget: k.target, Folder: at, Owner: by.Name, OwnerPath: by.Path,
			})
		}
	}
	return found, nil
}

func (s *staging) folders() {
	for host, h := range s.edit.Hosts {
		d := s.hostAt(s.edit.Owner, host)
		for target, folder := range h.Folders {
			id, _ := git.ParseID(folder.Tree) // checked with the edit
			e, ok := d.Look(target)
			switch {
			case ok && e.IsTree() && e.ID == id:
				continue
			case ok:
				s.change.changed = append(s.change.changed, key{host, target})
			default:
				s.change.added = append(s.change.added, key{host, target})
			}
			s.change.put = append(s.change.put, putFile{path: s.edit.Owner.folder(host, target), id: id, folder: &folder})
		}
	}
	for k := range s.owned {
		if _, ok := s.want[k.host][k.target]; ok {
			continue
		}
		if e, ok := s.hostAt(s.edit.Owner, k.host).Look(k.target); ok && e.IsTree() {
			s.change.removed = append(s.change.removed, k)
			s.change.remove = append(s.change.remove, s.edit.Owner.folder(k.host, k.target))
		}
	}
}

// versions lists the changed folders with the config versions in the records.
func (s *staging) versions() {
	note := func(action Action, keys []key) {
		for _, k := range keys {
			after := s.edit.Hosts[k.host].Folders[k.target].Record.ConfigVersion
			before := after // a record that was not read is the wanted one
			if record, ok := s.recorded[k.host]; ok {
				before = record.DeploymentTargets[k.target].ConfigVersion
			}
			if version, ok := s.formerly[k]; ok {
				before = version
			}
			if action == Added {
				before = ""
			}
			s.change.folders = append(s.change.folders, FolderChange{
				Host: k.host, DeploymentTarget: k.target, Action: action, Before: before, After: after,
			})
		}
	}
	note(Added, s.change.added)
	note(Changed, s.change.changed)
	note(Removed, s.change.removed)
	slices.SortFunc(s.change.folders, func(a, b FolderChange) int {
		return compareKeys(key{a.Host, a.DeploymentTarget}, key{b.Host, b.DeploymentTarget})
	})
}

func (s *staging) markersAndRecords() {
	text := s.edit.Owner.markerText()
	marker := git.NewHasher().Blob(text)
	for _, host := range slices.Sorted(maps.Keys(s.edit.Hosts)) {
		kept := s.recordKept(host)
		if !s.hasMarker(s.edit.Owner, host, marker) {
			kept = false
			s.change.put = append(s.change.put, putFile{path: s.edit.Owner.marker(host), id: marker, content: text})
		}
		if !kept {
			s.change.hosts = append(s.change.hosts, host)
		}
		if file := s.files[host]; s.atTip[host] != file.id {
			s.change.put = append(s.change.put, putFile{path: s.edit.Owner.record(host), id: file.id, content: file.content})
		}
	}
	s.formerHosts(marker)
}

// recordKept reports whether the host's record at the tip lists the folders
// that are wanted.
func (s *staging) recordKept(host string) bool {
	id, ok := s.atTip[host]
	if !ok {
		return false
	}
	if id == s.files[host].id {
		return true
	}
	record, ok := s.recorded[host]
	if !ok || len(record.DeploymentTargets) != len(s.want[host]) {
		return false
	}
	for target := range s.want[host] {
		if _, ok := record.DeploymentTargets[target]; !ok {
			return false
		}
	}
	return true
}

// formerHosts takes marker and record from hosts that are not wanted any more.
func (s *staging) formerHosts(marker git.Hash) {
	former := map[string]bool{}
	for host := range s.atTip {
		former[host] = true
	}
	for host := range s.edit.Previously {
		former[host] = true
	}
	for _, host := range slices.Sorted(maps.Keys(former)) {
		if _, wanted := s.edit.Hosts[host]; wanted {
			continue
		}
		_, recorded := s.atTip[host]
		at := s.edit.Owner.marker(host)
		if e, ok := s.Lookup(at); ok && e.IsFile() && (recorded || e.ID == marker) {
			s.change.remove = append(s.change.remove, at)
			recorded = true
		}
		if recorded {
			s.change.hosts = append(s.change.hosts, host)
			s.change.remove = append(s.change.remove, s.edit.Owner.record(host))
		}
	}
}

// do edits the trees. After it the workspace shows the change to the edits that
// come next.
func (w *layout) do(ctx context.Context, c *change) error {
	places := make([]string, 0, len(c.put))
	for _, file := range c.put {
		places = append(places, git.Parent(file.path))
	}
	if err := w.Open(ctx, places); err != nil {
		return err
	}
	for _, at := range c.remove {
		w.Remove(at)
	}
	for _, file := range c.put {
		mode := git.ModeFile
		if file.folder != nil {
			mode = git.ModeTree
		}
		if err := w.tryPut(file.path, mode, file.id); err != nil {
			return err
		}
		if file.folder == nil {
			w.KeepBlob(file.id, file.content)
		}
	}
	return nil
}

func (w *layout) tryPut(at, mode string, id git.Hash) error {
	if err := w.Blocked(git.Parent(at)); err != nil {
		return err
	}
	return w.Put(at, mode, id)
}
