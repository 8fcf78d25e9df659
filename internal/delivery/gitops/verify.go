package gitops

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
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
