package gitops

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/parallel"
)

// Result is the outcome of an Apply.
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
	// RolledBack are the keys of those added and changed that went back to an earlier
	// commit.
	RolledBack []string
	// Formerly is the owner's former name, when the commit took over from it.
	Formerly string
	// Records are the ids of all of the owner's records by host, for the next Edit.
	Records map[string]string
	// Deployed are the tree ids of the edit's folders after it. Those that were
	// kept are as the branch has them, or absent where it has none.
	Deployed Deployed

	claim *claimChange // the outcome of an edit of a claim
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

// Apply makes the tip of the branch hold exactly what the edit wants of its
// owner, by one commit, or by none when it does already. No file of others
// changes. The push is a compare-and-swap and never forced; when others move
// the branch first, the edit is computed again on the new tip.
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
// *UnplannedError (an
// ErrUnplanned), *git.BlockedError, git.ErrCommit, the context's, or what is
// wrong with the edit. With any of
// them, the branch does not have the commit, unless the text says that this is
// not known.
func (c *Client) Apply(ctx context.Context, remote git.Remote, edit Edit) (Result, error) {
	if err := remote.Check(); err != nil {
		return Result{}, describe(remote, err)
	}
	if err := edit.check(); err != nil {
		return Result{}, describe(remote, err)
	}
	if edit.Head == remote.Branch {
		return Result{}, describe(remote, fmt.Errorf("branch %q cannot be proposed to itself", edit.Head))
	}
	result, err := c.enqueue(ctx, remote, edit)
	return result, describe(remote, err)
}

// application is the state of an apply across its attempts.
type application struct {
	client *Client
	remote git.Remote
	edits  []*waiting // of different owners
	now    time.Time  // of the attempt

	race race
}

// attempt computes the changes at the tip, and pushes them. It is done when the
// tip holds what is wanted; not done and no error means to try again.
func (a *application) attempt(ctx context.Context) (done bool, err error) {
	t, err := a.client.git.Open(ctx, a.remote, a.levels())
	if err != nil {
		return false, a.unansweredBy(ctx, err)
	}
	defer t.Close()
	a.now = a.client.now()
	own := t.Reference(a.head())
	ahead, err := a.ahead(ctx, t, own)
	if err != nil {
		return false, a.unansweredBy(ctx, err)
	}
	work, changes, pack, err := a.stage(ctx, t, ahead.layout(t, own))
	if err != nil {
		return false, a.unansweredBy(ctx, err)
	}
	a.client.git.Log(ctx, a.remote, "prepared a commit", map[string]any{"assignments": len(a.edits), "with_changes": len(changes)})
	switch {
	case len(changes) == 0:
		a.giveResults(t.Commit, git.Hash{}, nil)
		return true, nil
	case a.head() == "":
	case t.Commit.IsZero():
		return false, fmt.Errorf("branch %q does not exist, and a pull request needs a branch to be merged into", a.remote.Branch)
	default:
		return a.propose(ctx, t, own, ahead, work, changes, pack)
	}
	if t.Missing {
		if err := a.client.git.Create(ctx, a.remote); err != nil {
			return false, err
		}
	}
	root := work.Write(pack.AddTree)
	var parents []git.Hash
	if !t.Commit.IsZero() {
		parents = []git.Hash{t.Commit}
	}
	commit, err := a.commit(root, parents, changes, pack)
	if err != nil {
		return false, err
	}
	return a.push(ctx, t.Commit, t.Commit, commit, pack, changes)
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

// stage computes the changes of all edits, each on the result of the one before,
// and returns those that change something, with their files in a pack. An edit
// that cannot be made has its own error and leaves no trace in the commit of the
// others. Before that it is tried once more after them: what blocks it may be a
// folder that another edit gives up in the same apply.
func (a *application) stage(ctx context.Context, t *git.Tip, proposed *layout) (*layout, []*change, *git.Pack, error) {
	order, last := a.open(), map[*waiting]bool{}
	for {
		work, pack := newLayout(t), git.NewPack()
		var changes []*change
		var failed *waiting
		var failure error
		for _, w := range order {
			c, err := work.stage(ctx, w.edit, a.now, proposed)
			if err == nil && !c.empty() {
				err = work.do(ctx, c)
			}
			if err != nil && git.Classify(err) != nil {
				return nil, nil, nil, err // it is the repository
			}
			if err == nil {
				w.staged = c
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
		// Its partial changes are dropped with the tree and the pack.
		order = slices.DeleteFunc(order, func(w *waiting) bool { return w == failed })
		if last[failed] || len(order) == 0 {
			a.fail(failed, failure)
			continue
		}
		last[failed] = true
		order = append(order, failed)
	}
}

// giveResults fills in the results: commit holds what is wanted, or head, which
// proposes the changes against commit.
func (a *application) giveResults(commit, head git.Hash, proposed []*change) {
	for _, w := range a.open() {
		result := Result{Pushes: w.pushes, Commit: hexOrNone(commit), HeadCommit: hexOrNone(head), Committed: w.unconfirmed != nil}
		c := w.unconfirmed
		for _, now := range proposed {
			if now.by == w {
				c = now
			}
		}
		if c != nil {
			result.Added, result.Changed, result.Removed = texts(c.added), texts(c.changed), texts(c.removed)
			result.Changes, result.Adopted = c.folders, c.adopted
			result.RolledBack, result.Formerly = texts(c.back), c.formerly
		}
		result.Deployed, result.Records, result.claim = w.staged.deployed, w.staged.recordIDs(), w.staged.claim
		a.succeed(w, result)
	}
}

// recordIDs are the owner's records with the change, by host.
func (c *change) recordIDs() map[string]string {
	records := c.records
	if c.empty() {
		records = c.atTip
	}
	ids := make(map[string]string, len(records))
	for host, id := range records {
		ids[host] = id.String()
	}
	return ids
}

func hexOrNone(id git.Hash) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

// commit makes the commit and adds it to the pack.
func (a *application) commit(
	root git.Hash, parents []git.Hash, changes []*change, pack *git.Pack,
) (git.Hash, error) {
	return pack.AddCommit(git.Commit{
		Tree: root, Parents: parents, Author: authorOr(changes[0].edit.Author), Time: a.now, Message: message(changes),
	}, a.client.signer)
}

// pack adds the files and folders that the change writes.
func (c *change) pack(pack *git.Pack) error {
	// Compressing the folders is most of the work of a large apply.
	size := max(smallestPart, (len(c.put)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	parts := slices.Collect(slices.Chunk(c.put, size))
	if len(parts) <= 1 {
		return packFiles(pack, c.put)
	}
	packs, failures := make([]*git.Pack, len(parts)), make([]error, len(parts))
	parallel.EachPart(len(parts), func(i int) {
		packs[i] = git.NewPack()
		failures[i] = packFiles(packs[i], parts[i])
	})
	for i := range parts {
		if failures[i] != nil {
			return failures[i]
		}
		pack.Join(packs[i])
	}
	return nil
}

// smallestPart is how many files and folders are worth a goroutine.
const smallestPart = 512

func packFiles(pack *git.Pack, put []putFile) error {
	h := git.NewHasher()
	for _, file := range put {
		if file.there {
			continue
		}
		if file.folder == nil {
			pack.AddFile(file.id, file.content)
			continue
		}
		if err := packFolder(h, pack, file); err != nil {
			return err
		}
	}
	return nil
}

func packFolder(h *git.Hasher, pack *git.Pack, file putFile) error {
	files, err := file.folder.Files()
	if err != nil {
		return fmt.Errorf("folder %q: %w", file.path, err)
	}
	id, err := pack.AddFolder(h, files)
	if err != nil {
		return fmt.Errorf("folder %q: %w", file.path, err)
	}
	if id != file.id {
		return fmt.Errorf("folder %q: its files are tree %s, and tree %s was announced", file.path, id, file.id)
	}
	return nil
}

// unansweredBy allows another attempt after one that failed for a passing reason,
// and returns the error when there were enough attempts.
func (a *application) unansweredBy(ctx context.Context, err error) error {
	if ctx.Err() != nil || !git.Transient(err) {
		return err
	}
	if a.race.unanswered++; a.race.unanswered >= maxUnanswered {
		return err
	}
	return nil
}
