package gitops

import (
	"context"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// change is what an edit changes at one tip. It is computed completely before any
// part is applied.
type change struct {
	edit     Edit
	at       time.Time       // of its commit
	letGo    []folder.Key    // folders that stay and have no owner from then on
	hosts    []string        // whose marker or record is written or removed
	adopted  []Conflict      // folders that another owner had
	formerly string          // the name that the owner had until then; "" when nothing is of it
	claim    *claimChange    // nil where the edit is of an owner
	folders  []folder.Change // with config versions, in order

	newHosts, renamedHosts, goneHosts int // of hosts; the others are repaired

	held bool // by another holder: some or all hosts stay as they are

	atTip   map[string]git.Hash // the owner's records before, by host
	records map[string]git.Hash // and after

	remove []string // paths
	put    []putFile
}

// putFile is a file or a folder that the change writes.
type putFile struct {
	path    string
	id      git.Hash
	content []byte                     // of a file
	folder  bool                       // it is a folder
	files   func() ([]git.File, error) // of a folder
	there   bool                       // the repository has it already
}

// empty reports whether the tip is already as the edit wants it. Records that
// differ only in what they say about a folder are no reason for a commit.
func (c *change) isEmpty() bool {
	if c.claim != nil {
		return len(c.put)+len(c.remove) == 0
	}
	return len(c.folders)+len(c.hosts)+len(c.adopted) == 0 && c.formerly == ""
}

// with are the folders with which the change does one of these, in order.
func (c *change) keysWith(actions ...folder.Action) []folder.Key {
	var keys []folder.Key
	for _, change := range c.folders {
		if slices.Contains(actions, change.Action) {
			keys = append(keys, change.Key)
		}
	}
	return keys
}

// back are the folders that are rolled back, of those added and changed.
func (c *change) rolledBackKeys() []folder.Key {
	return slices.DeleteFunc(c.keysWith(folder.Added, folder.Changed, folder.Moved), func(k folder.Key) bool {
		return c.edit.Hosts[k.Host][k.DeploymentTarget].Action != RollBack
	})
}

// do edits the trees. After it the layout has the change.
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
		if file.folder {
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
