package gitops

import (
	"context"
	"errors"
	"fmt"
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
	// Pushes counts the packs that were sent.
	Pushes int
	// Added, Changed and Removed are the keys, "<host>/<deployment target>", of
	// the folders that the commit changed, in order.
	Added, Changed, Removed []string
}

// How long Apply goes on.
const (
	// maxRaces bounds how often others may move the branch first.
	maxRaces = 100
	// maxUnanswered bounds how often in a row a request ends without an answer
	// that makes sense, the branch being where it was.
	maxUnanswered = 4
	// The wait before the next try is anything up to what the last one took, or
	// firstWait, doubled each time until it is lastWait. A try that takes long is
	// one that others get in the way of: a fixed wait would be too short for a
	// slow server, and too long for a fast one.
	firstWait = 50 * time.Millisecond
	lastWait  = 10 * time.Second
	// settleTime is how long Apply still asks how its push went after its
	// context has ended.
	settleTime = 10 * time.Second
)

// Apply makes the tip of the branch hold exactly what the edit wants of its
// owner, by one commit, or by none when it does already. Nobody else's file
// changes. The push is a compare-and-swap and never forced; when others move
// the branch first, the edit is worked out anew on what they left.
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
	outcomes, err := c.apply(ctx, remote, []Edit{edit})
	if err != nil {
		return Result{}, leaving(remote, err)
	}
	return outcomes[0].result, leaving(remote, outcomes[0].err)
}

// outcome is what became of one edit of several.
type outcome struct {
	result Result
	err    error
}

// apply brings edits to one branch, in one commit. An edit that cannot be made
// has its own error and does not hold up the others; an error for all is
// returned as such.
func (c *Client) apply(ctx context.Context, remote Remote, edits []Edit) ([]outcome, error) {
	a := &application{client: c, remote: remote, edits: edits, outcomes: make([]outcome, len(edits))}
	sound := false
	for i, edit := range edits {
		a.outcomes[i].err = edit.check()
		sound = sound || a.outcomes[i].err == nil
	}
	if !sound {
		return a.outcomes, nil
	}
	unlock, err := c.lock(ctx, remote)
	if err != nil {
		return nil, err
	}
	defer unlock()

	for {
		start := time.Now()
		done, err := a.attempt(ctx)
		if done || err != nil {
			return a.outcomes, err
		}
		if err := c.sleep(ctx, c.jitter(a.wait(time.Since(start)))); err != nil {
			return nil, err
		}
	}
}

// application is the state of an apply across its attempts.
type application struct {
	client   *Client
	remote   Remote
	edits    []Edit
	outcomes []outcome

	pushes     int
	races      int
	unanswered int
	// unsettled are the changes of the last push, when it is not known to have
	// been refused: when the next attempt finds nothing to do, it was they.
	unsettled []*change
}

func (a *application) wait(took time.Duration) time.Duration {
	wait := max(firstWait, took)
	for range max(a.races, a.unanswered) - 1 {
		if wait *= 2; wait >= lastWait {
			break
		}
	}
	return min(wait, lastWait)
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
	work, changes, err := a.stage(ctx, t)
	if err != nil {
		return false, a.unansweredBy(ctx, err)
	}
	if len(changes) == 0 {
		a.settle(t.commit)
		return true, nil
	}
	if missing {
		if err := a.create(ctx); err != nil {
			return false, err
		}
	}
	commit, pack, err := a.build(work, changes)
	if err != nil {
		return false, err
	}
	return a.push(ctx, t.commit, commit, pack, changes)
}

func (a *application) levels() int {
	levels := 0
	for _, edit := range a.edits {
		levels = max(levels, edit.Owner.levels())
	}
	return levels
}

// stage works out all edits that have not failed, one upon the other, and
// returns those that change something.
func (a *application) stage(ctx context.Context, t *tip) (*workspace, []*change, error) {
	for {
		work := newWorkspace(t)
		var changes []*change
		failed := false
		for i, edit := range a.edits {
			if a.outcomes[i].err != nil {
				continue
			}
			c, err := work.stage(ctx, edit)
			if err == nil && !c.empty() {
				if err = work.do(ctx, c); err == nil {
					changes = append(changes, c)
				}
			}
			switch {
			case err == nil:
			case len(a.edits) == 1, classify(err) != nil:
				return nil, nil, err
			default:
				// What it may have done already goes with the workspace.
				a.outcomes[i].err, failed = err, true
			}
		}
		if !failed {
			return work, changes, nil
		}
	}
}

// settle fills in the results: commit holds what is wanted.
func (a *application) settle(commit plumbing.Hash) {
	for i := range a.outcomes {
		if a.outcomes[i].err != nil {
			continue
		}
		result := Result{Pushes: a.pushes}
		if !commit.IsZero() {
			result.Commit = commit.String()
		}
		for _, c := range a.unsettled {
			if c.edit.Owner == a.edits[i].Owner {
				result.Committed = true
				result.Added, result.Changed, result.Removed = texts(c.added), texts(c.changed), texts(c.removed)
			}
		}
		a.outcomes[i].result = result
	}
}

func (a *application) create(ctx context.Context) error {
	directory, _, err := a.remote.local()
	if err != nil {
		return err
	}
	return createLocal(ctx, directory, a.remote.Branch)
}

// build makes the commit and the pack that holds it.
func (a *application) build(work *workspace, changes []*change) (plumbing.Hash, []byte, error) {
	pack := newPackWriter()
	h := newHasher()
	for _, c := range changes {
		for _, file := range c.put {
			if file.folder == nil {
				pack.add(file.id, plumbing.BlobObject, file.content)
				continue
			}
			if err := packFolder(h, pack, file); err != nil {
				return plumbing.ZeroHash, nil, err
			}
		}
	}
	root := work.write(func(id plumbing.Hash, content []byte) { pack.add(id, plumbing.TreeObject, content) })
	commit := encodeCommit(root, work.commit, changes[0].edit.Author, a.client.now(), message(changes))
	id := h.object(plumbing.CommitObject, commit)
	pack.add(id, plumbing.CommitObject, commit)
	return id, pack.finish(), nil
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
	if a.unanswered++; a.unanswered >= maxUnanswered {
		return err
	}
	return nil
}

var errMoved = errors.New("the branch was moved by somebody else")
