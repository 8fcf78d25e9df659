package gitops

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// ownership finds folders at a tip that belong to other owners. Anybody with push access can write records, so a folder that
// two records list may be removed by neither.
type ownership struct {
	*layout
	owner Owner
	names []string // of the owner's own records
}

// findConflicts checks wanted folders. Known ones, from the state or the owner's records, conflict if another owner's record
// lists them or an owner is inside. Others must have the wanted content, or none.
func (o *ownership) findConflicts(
	ctx context.Context, keys []folder.Key, want folder.Trees, known map[folder.Key]bool,
) ([]Conflict, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	slices.SortFunc(keys, folder.Key.Compare)
	listed, err := o.findListings(ctx, keys)
	if err != nil {
		return nil, err
	}
	var filled []string
	hasOther := map[string]bool{}
	for _, k := range keys {
		folder := o.owner.folderPath(k.Host, k.DeploymentTarget)
		e, ok := o.Lookup(folder)
		if hasOther[folder] = ok && e.ID.String() != want[k.Host][k.DeploymentTarget]; hasOther[folder] && e.IsTree() {
			filled = append(filled, folder)
		}
	}
	inside, err := o.findOwnersInside(ctx, filled)
	if err != nil {
		return nil, err
	}
	var found []Conflict
	for _, k := range keys {
		folder := o.owner.folderPath(k.Host, k.DeploymentTarget)
		by, isTaken := listed[k]
		if !isTaken {
			by, isTaken = inside[folder]
		}
		if isTaken || hasOther[folder] && !known[k] {
			found = append(found, o.owner.newConflict(k, by))
		}
	}
	return found, nil
}

// findHostConflicts finds new hosts without folders inside another owner's folder, which a marker would change. Hosts with
// folders conflict through those.
func (o *ownership) findHostConflicts(ctx context.Context, want folder.Trees, known ...map[string]git.Hash) ([]Conflict, error) {
	var keys []folder.Key
	for _, host := range slices.Sorted(maps.Keys(want)) {
		has := func(records map[string]git.Hash) bool { _, ok := records[host]; return ok }
		if !slices.ContainsFunc(known, has) && len(want[host]) == 0 {
			keys = append(keys, folder.Key{Host: host})
		}
	}
	return o.findListedByOthers(ctx, keys)
}

// findOwnersInside finds owners at or below the folders. It reads all trees there: Flotilla's folders are flat, so nested
// ones are rare.
func (o *ownership) findOwnersInside(ctx context.Context, folders []string) (map[string]Owner, error) {
	inside := map[string]Owner{}
	at := map[string]string{}
	for _, folder := range folders {
		at[folder] = folder
	}
	for len(at) > 0 {
		level := slices.Sorted(maps.Keys(at))
		var directories []string
		for _, directory := range level {
			directories = append(directories, path.Join(directory, recordsFolder))
		}
		if err := o.Open(ctx, directories); err != nil {
			return nil, err
		}
		below := map[string]string{}
		for _, directory := range level {
			folder := at[directory]
			if names := o.listOwners(directory); len(names) > 0 && inside[folder].Name == "" {
				inside[folder] = Owner{Name: names[0], Path: directory}
			}
			if inside[folder].Name != "" || strings.Count(directory, "/") >= git.MaxDepth {
				continue
			}
			o.eachEntry(directory, func(e git.Entry) {
				if e.IsTree() && e.Name != recordsFolder {
					below[path.Join(directory, e.Name)] = folder
				}
			})
		}
		at = below
	}
	return inside, nil
}

func (o *ownership) findListings(ctx context.Context, keys []folder.Key) (map[folder.Key]Owner, error) {
	above, err := o.openAbove(ctx, keys)
	if err != nil {
		return nil, err
	}
	var others []Owner
	var directories []string
	for _, at := range above {
		for _, name := range o.listOwners(at) {
			if at == o.owner.Path && slices.Contains(o.names, name) {
				continue
			}
			other := Owner{Name: name, Path: at}
			others = append(others, other)
			directories = append(directories, path.Join(other.recordsPath(), clustersHost))
		}
	}
	if err := o.Open(ctx, directories); err != nil {
		return nil, err
	}
	return o.matchListings(ctx, others, keys)
}

func (o *ownership) openAbove(ctx context.Context, keys []folder.Key) ([]string, error) {
	seen := map[string]bool{}
	for _, k := range keys {
		for at := git.Parent(o.owner.folderPath(k.Host, k.DeploymentTarget)); !seen[at]; at = git.Parent(at) {
			seen[at] = true
			if at == "" {
				break
			}
		}
	}
	above := slices.Sorted(maps.Keys(seen))
	directories := make([]string, len(above))
	for i, at := range above {
		directories[i] = path.Join(at, recordsFolder)
	}
	return above, o.Open(ctx, directories)
}

func (o *ownership) matchListings(ctx context.Context, others []Owner, keys []folder.Key) (map[folder.Key]Owner, error) {
	var open []listing
	listed := map[folder.Key]Owner{}
	for _, other := range others {
		records := o.recordEntries(other.recordsPath())
		for _, k := range keys {
			host, target, inside := other.splitFolder(o.owner.folderPath(k.Host, k.DeploymentTarget))
			if !inside || k.DeploymentTarget == "" && target == "" { // hosts may be shared
				continue
			}
			if id, ok := records[host]; ok {
				open = append(open, listing{key: k, other: other, record: id, target: target})
			} else if host == clustersHost && target == "" && slices.ContainsFunc(slices.Collect(maps.Keys(records)), folder.IsCluster) {
				listed[k] = other
			}
		}
	}
	var ids []git.Hash
	for _, c := range open {
		if c.target != "" {
			ids = append(ids, c.record)
		}
	}
	if err := o.Need(ctx, ids); err != nil {
		return nil, err
	}
	targets := map[git.Hash]map[string]folderRecord{}
	for _, c := range open {
		if c.target == "" {
			listed[c.key] = c.other
			continue
		}
		if _, ok := targets[c.record]; !ok {
			content, err := o.Blob(c.record)
			if err != nil {
				return nil, err
			}
			record, err := parseRecord(content)
			if err != nil {
				// The record may list the folder, so it has to be repaired first.
				return nil, fmt.Errorf("the record of the assignment %q at %q: %w", c.other.Name, c.other.Path, err)
			}
			targets[c.record] = record.DeploymentTargets
		}
		if _, ok := targets[c.record][c.target]; ok {
			listed[c.key] = c.other
		}
	}
	return listed, nil
}

type listing struct {
	key    folder.Key
	other  Owner
	record git.Hash
	target string // "" if the existence of the record decides
}

func (o *ownership) findListedByOthers(ctx context.Context, keys []folder.Key) ([]Conflict, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	listed, err := o.findListings(ctx, keys)
	if err != nil {
		return nil, err
	}
	var found []Conflict
	for _, k := range keys {
		if by, ok := listed[k]; ok {
			found = append(found, o.owner.newConflict(k, by))
		}
	}
	return found, nil
}

// checkPathsFree checks that no file is in place of a folder. On a host of the owner, that is drift.
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

// checkNamesFree checks that no two paths differ only in case. Apply does not write such folders.
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

// Conflict is one wanted folder that the owner must not write.
type Conflict struct {
	// Key has no DeploymentTarget if the host itself would be inside another owner's folder.
	folder.Key
	// Folder is the path in the repository.
	Folder string
	// Owner and OwnerPath are the owner whose record lists the folder; "" if the folder has files and is in no record.
	Owner     string
	OwnerPath string
	// Record is the owner's own record, if it lists the folder as well.
	Record string
}

func (c Conflict) String() string {
	if c.Owner == "" {
		return fmt.Sprintf("folder %q has files that no assignment's record lists", c.Folder)
	}
	at := fmt.Sprintf("path %q", c.OwnerPath)
	if c.OwnerPath == "" {
		at = "the root of the repository"
	}
	text := fmt.Sprintf("folder %q belongs to the assignment %q at %s", c.Folder, c.Owner, at)
	if c.Record != "" {
		text += fmt.Sprintf(", and the record %q lists it, too: repair or remove that record, or set adopt = true to write it again "+
			"without the folder", path.Clean(c.Record))
	}
	return text
}

// IsAdoptable reports whether Edit.Adopt takes the folder over: no other owner's folder or path is in or around it.
func (c Conflict) IsAdoptable() bool {
	from := Owner{Name: c.Owner, Path: c.OwnerPath}
	host, target, inside := from.splitFolder(c.Folder)
	return c.Owner == "" || c.DeploymentTarget != "" && inside && target != "" && from.folderPath(host, target) == c.Folder
}

func (o Owner) newConflict(k folder.Key, by Owner) Conflict {
	return Conflict{Key: k, Folder: o.folderPath(k.Host, k.DeploymentTarget), Owner: by.Name, OwnerPath: by.Path}
}

func (w *layout) listOwners(at string) []string {
	var names []string
	w.eachEntry(path.Join(at, recordsFolder), func(e git.Entry) {
		if e.IsTree() && git.CheckSegment(e.Name) == nil {
			names = append(names, e.Name)
		}
	})
	slices.Sort(names)
	return names
}

// splitFolder splits a folder below the owner's path. target is "" on the level of hosts.
func (o Owner) splitFolder(folder string) (host, target string, inside bool) {
	rest := folder
	if o.Path != "" {
		var ok bool
		if rest, ok = strings.CutPrefix(folder, o.Path+"/"); !ok {
			return "", "", false
		}
	}
	host, rest, _ = strings.Cut(rest, "/")
	if host == clustersHost && rest != "" {
		var cluster string
		cluster, rest, _ = strings.Cut(rest, "/")
		host = path.Join(host, cluster)
	}
	target, _, _ = strings.Cut(rest, "/")
	return host, target, true
}
