package gitops

import (
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

// verifyMoved verifies moved and rolled back folders with final objects. Written folders are verified when they are packed.
func (c *change) verifyMoved(ctx context.Context, w *layout) error {
	if c.edit.Verify == nil {
		return nil
	}
	var trees []git.Hash
	for _, file := range c.put {
		if file.isFolder && file.exists {
			trees = append(trees, file.id)
		}
	}
	if err := w.Need(ctx, trees); err != nil {
		return err
	}
	found := map[string][]git.Entry{}
	var blobs []git.Hash
	for _, file := range c.put {
		if !file.isFolder || !file.exists {
			continue
		}
		entries, err := w.Entries(file.id)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if entry.Name == folder.ObjectsFolder && entry.IsTree() {
				found[file.path] = entries
			}
		}
		for _, entry := range found[file.path] {
			if isYAML(entry) {
				blobs = append(blobs, entry.ID)
			}
		}
	}
	if err := w.Need(ctx, blobs); err != nil {
		return err
	}
	for at, entries := range found {
		files := []git.File{{Name: path.Join(folder.ObjectsFolder, folder.ObjectsFile)}}
		for _, entry := range entries {
			if !isYAML(entry) {
				continue
			}
			content, err := w.Blob(entry.ID)
			if err != nil {
				return err
			}
			files = append(files, git.File{Name: entry.Name, Content: content})
		}
		if err := c.edit.Verify(at, files); err != nil {
			return fmt.Errorf("folder %q: %w", at, err)
		}
	}
	return nil
}

func isYAML(e git.Entry) bool {
	return e.IsFile() && (strings.HasSuffix(e.Name, ".yaml") || strings.HasSuffix(e.Name, ".yml"))
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
			slices.SortFunc(left, strings.Compare)
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
