package gitops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// Result is what an Apply came to.
type Result struct {
	// Commit is a commit that holds what was wanted: the branch's tip when it was
	// last read; "" when the branch does not exist and nothing was to be written.
	Commit string
	// Committed says that this Apply made a commit.
	Committed bool
	// Pushes counts the packs that were sent with this edit in them.
	Pushes int
	// Added, Changed and Removed are the keys, "<host>/<deployment target>", of
	// the folders that the commit changed, in order.
	Added, Changed, Removed []string
	// Changes are the same with their config versions, ordered by key.
	Changes []FolderChange
	// Adopted are the folders that were taken over, with the owner that had them.
	Adopted []Conflict
	// HeadCommit is the tip of Edit.Head, which holds what is proposed against
	// Commit; the changes above are then those of the proposal, whether this
	// Apply made a commit or an earlier one did. It is "" when there is nothing to
	// propose: Commit has it all.
	HeadCommit string
}

// FolderChange is one folder that a commit adds, changes or removes.
type FolderChange struct {
	Host, DeploymentTarget string
	Action                 Action
	// Before and After are the config versions that the records say, "" where
	// they say none.
	Before, After string
}

// Action is what happens to a folder.
type Action string

// The actions.
const (
	Added   Action = "added"
	Changed Action = "changed"
	Removed Action = "removed"
)

// settleTime is how long Apply still asks how its push went after its context
// has ended.
const settleTime = 10 * time.Second

// Apply makes the tip of the branch hold exactly what the edit wants of its
// owner, by one commit, or by none when it does already. Nobody else's file
// changes. The push is a compare-and-swap and never forced; when others move
// the branch first, the edit is worked out anew on what they left.
//
// Edits that go to one branch through one Client at the same time, with the
// same credentials and author, share a commit that has a section for each. Each
// has its own result; one that fails fails alone, and the context of one does
// not end the others.
//
// A local repository that does not exist is created, bare, when there is
// something to write. A branch that does not exist begins with this commit.
//
// Errors: ErrNotFound, ErrUnauthorized, ErrUnreachable, ErrRefused (with the
// server's words), ErrRace, ErrTooLarge, *OwnershipError (an ErrConflict),
// *BlockedError, the context's, or what is wrong with the edit. With any of
// them, the branch does not have the commit, unless the text says that this is
// not known.
func (c *Client) Apply(ctx context.Context, remote Remote, edit Edit) (Result, error) {
	if err := remote.check(); err != nil {
		return Result{}, leaving(remote, err)
	}
	if err := edit.check(); err != nil {
		return Result{}, leaving(remote, err)
	}
	if edit.Head == remote.Branch {
		return Result{}, leaving(remote, fmt.Errorf("branch %q cannot be proposed to itself", edit.Head))
	}
	result, err := c.enqueue(ctx, remote, edit)
	return result, leaving(remote, err)
}

// application is the state of an apply across its attempts.
type application struct {
	client *Client
	remote Remote
	edits  []*waiting // of different owners

	race race
}

// attempt works the edits out at the tip, and pushes. It is done when the tip
// holds what is wanted; not done and no error means to try again.
func (a *application) attempt(ctx context.Context) (done bool, err error) {
	t, err := a.client.openRemote(ctx, a.remote, a.levels())
	if err != nil {
		return false, a.unansweredBy(ctx, err)
	}
	missing := t == nil
	if missing {
		t = &tip{objects: map[plumbing.Hash]object{}}
	}
	defer t.close()
	work, changes, pack, err := a.stage(ctx, t)
	if err != nil {
		return false, a.unansweredBy(ctx, err)
	}
	switch {
	case len(changes) == 0:
		a.settle(t.commit, plumbing.ZeroHash, nil)
		return true, nil
	case a.head() == "":
	case t.commit.IsZero():
		return false, fmt.Errorf("branch %q does not exist, and a pull request needs a branch to be merged into", a.remote.Branch)
	default:
		return a.propose(ctx, t, work, changes, pack)
	}
	if missing {
		if err := a.create(ctx); err != nil {
			return false, err
		}
	}
	root := work.write(func(id plumbing.Hash, content []byte) { pack.add(id, plumbing.TreeObject, content) })
	var parents []plumbing.Hash
	if !t.commit.IsZero() {
		parents = []plumbing.Hash{t.commit}
	}
	commit, err := a.commit(root, parents, changes, pack)
	if err != nil {
		return false, err
	}
	return a.push(ctx, t.commit, t.commit, commit, pack.finish(), changes)
}

// head is the branch that the edit goes to for a pull request; such an edit
// shares its commit with no other.
func (a *application) head() string {
	return a.edits[0].edit.Head
}

// target is the branch that is pushed to.
func (a *application) target() string {
	if head := a.head(); head != "" {
		return head
	}
	return a.remote.Branch
}

func (a *application) levels() int {
	levels := 0
	for _, w := range a.edits {
		levels = max(levels, w.edit.Owner.levels())
	}
	return levels
}

// stage works out all edits, one upon the other, and returns those that change
// something, with their files in a pack. An edit that cannot be made has its
// own error and leaves no trace in the commit of the others. Before that it is
// tried once more after them: what stands in its way may be a folder that
// another hands over in the same apply.
func (a *application) stage(ctx context.Context, t *tip) (*workspace, []*change, *packWriter, error) {
	order, last := a.open(), map[*waiting]bool{}
	for {
		work, pack := newWorkspace(t), newPackWriter()
		var changes []*change
		var failed *waiting
		var failure error
		for _, w := range order {
			c, err := work.stageFrom(ctx, w.edit)
			if err == nil && !c.empty() {
				err = work.do(ctx, c)
			}
			if err != nil && classify(err) != nil {
				return nil, nil, nil, err // it is the repository
			}
			if err == nil && !c.empty() {
				c.by = w
				changes = append(changes, c)
				err = c.pack(pack)
			}
			if err != nil {
				failed, failure = w, err
				break
			}
		}
		if failed == nil {
			return work, changes, pack, nil
		}
		// What it may have done already goes with the workspace and the pack.
		order = slices.DeleteFunc(order, func(w *waiting) bool { return w == failed })
		if last[failed] || len(order) == 0 {
			a.fail(failed, failure)
			continue
		}
		last[failed] = true
		order = append(order, failed)
	}
}

// settle fills in the results: commit holds what is wanted, or head, which
// proposes the changes against commit.
func (a *application) settle(commit, head plumbing.Hash, proposed []*change) {
	for _, w := range a.open() {
		result := Result{Pushes: w.pushes, Commit: hexOrNone(commit), HeadCommit: hexOrNone(head), Committed: w.unsettled != nil}
		c := w.unsettled
		for _, now := range proposed {
			if now.by == w {
				c = now
			}
		}
		if c != nil {
			result.Added, result.Changed, result.Removed = texts(c.added), texts(c.changed), texts(c.removed)
			result.Changes, result.Adopted = c.folders, c.adopted
		}
		a.succeed(w, result)
	}
}

func hexOrNone(id plumbing.Hash) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

func (a *application) create(ctx context.Context) error {
	directory, _, err := a.remote.local()
	if err != nil {
		return err
	}
	return createLocal(ctx, directory, a.remote.Branch)
}

// commit makes the commit and adds it to the pack.
func (a *application) commit(
	root plumbing.Hash, parents []plumbing.Hash, changes []*change, pack *packWriter,
) (plumbing.Hash, error) {
	now := a.client.now()
	commit := encodeCommit(root, parents, changes[0].edit.Author, now, message(changes))
	if signer := a.client.signer; signer != nil {
		signature, err := signer.sign(commit, now)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		commit = withSignature(commit, signature)
	}
	id := newHasher().object(plumbing.CommitObject, commit)
	pack.add(id, plumbing.CommitObject, commit)
	return id, nil
}

// pack adds the files and folders that the change writes.
func (c *change) pack(pack *packWriter) error {
	h := newHasher()
	for _, file := range c.put {
		if file.folder == nil {
			pack.add(file.id, plumbing.BlobObject, file.content)
			continue
		}
		if file.folder.there {
			continue
		}
		if err := packFolder(h, pack, file); err != nil {
			return err
		}
	}
	return nil
}

func packFolder(h *hasher, pack *packWriter, file putFile) error {
	files, err := file.folder.Files()
	if err != nil {
		return fmt.Errorf("folder %q: %w", file.path, err)
	}
	content, id, err := folderTree(h, files, func(id plumbing.Hash, content []byte) {
		pack.add(id, plumbing.BlobObject, content)
	})
	if err != nil {
		return fmt.Errorf("folder %q: %w", file.path, err)
	}
	if id != file.id {
		return fmt.Errorf("folder %q: its files are tree %s, and tree %s was announced", file.path, id, file.id)
	}
	pack.add(id, plumbing.TreeObject, content)
	return nil
}

// unansweredBy lets an attempt that failed for a passing reason be followed by
// another, and returns the error when there were enough.
func (a *application) unansweredBy(ctx context.Context, err error) error {
	if ctx.Err() != nil || !passing(err) {
		return err
	}
	if a.race.unanswered++; a.race.unanswered >= maxUnanswered {
		return err
	}
	return nil
}

var (
	errMoved = errors.New("the branch was moved by somebody else")
	// errUnknown: a push was sent, and nobody could be asked what came of it.
	errUnknown = errors.New("is not known")
)
