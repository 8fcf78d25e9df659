package gitops

import (
	"context"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// change is the effect of an edit on one tip. It is complete before any part is applied.
type change struct {
	edit      Edit
	at        time.Time
	abandoned []folder.Key // folders that stay without an owner
	hosts     []string     // with a changed marker or record
	adopted   []Conflict
	formerly  string // former name of the owner, if its records are handed over
	folders   []folder.Change

	newHosts, renamedHosts, goneHosts int // subsets of hosts

	held bool

	atTip   map[string]git.Hash // before the change, by host
	records map[string]git.Hash // and after it

	remove []string
	put    []putFile
	// isEmpty reports that the tip needs no commit. Records that differ only in statements about folders need none.
	isEmpty bool

	summary, body string // of the message; summary is the default subject
	trailer       string // names the owner or the claim
}

type putFile struct {
	path     string
	id       git.Hash
	content  []byte
	isFolder bool
	files    func() ([]git.File, error)
	exists   bool // in the repository already
}

func (c *change) keysWith(actions ...folder.Action) []folder.Key {
	var keys []folder.Key
	for _, change := range c.folders {
		if slices.Contains(actions, change.Action) {
			keys = append(keys, change.Key)
		}
	}
	return keys
}

func (c *change) rolledBackKeys() []folder.Key {
	return slices.DeleteFunc(c.keysWith(folder.Added, folder.Changed, folder.Moved), func(k folder.Key) bool {
		return c.edit.Hosts[k.Host][k.DeploymentTarget].Action != RollBack
	})
}

func (c *change) applyTo(ctx context.Context, w *layout) error {
	directories := make([]string, 0, len(c.put))
	for _, file := range c.put {
		directories = append(directories, git.Parent(file.path))
	}
	if err := w.Open(ctx, directories); err != nil {
		return err
	}
	for _, at := range c.remove {
		w.Remove(at)
	}
	for _, file := range c.put {
		mode := git.ModeFile
		if file.isFolder {
			mode = git.ModeTree
		}
		if err := w.Blocked(git.Parent(file.path)); err != nil {
			return err
		}
		if err := w.Put(file.path, mode, file.id); err != nil {
			return err
		}
	}
	return nil
}
