package gitops

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
)

// ApplyResult is the outcome of an Apply.
type ApplyResult struct {
	// Commit is a commit that holds what was wanted: the branch's tip when it was
	// last read; "" when the branch does not exist and nothing was to be written.
	Commit string
	// Committed says that this Apply made a commit.
	Committed bool
	// Time is that of the commit with the changes below; zero where there are none.
	Time time.Time
	// Pushes counts the packs that were sent with this edit in them.
	Pushes int
	// Changes are the folders that the commit changed, ordered by key.
	Changes []folder.Change
	// Subject is the first line of the commit's message; "" where there is none.
	Subject string
	// HeadCommit is the tip of Edit.Head, which holds what is proposed against
	// Commit; the changes above are then those of the proposal, whether this
	// Apply made a commit or an earlier one did. It is "" when there is nothing to
	// propose: Commit has it all.
	HeadCommit string
	// Held says that some or all of the owner's records have another holder, here or
	// on Edit.Head, so that a destroy left them as they are.
	Held bool
	// Records are the ids of all of the owner's records by host, for the next Edit.
	Records map[string]string

	claim *claimChange // the outcome of an edit of a claim
}

// Apply makes the tip of the branch hold exactly what the edit wants of its
// owner, by one commit, or by none when it does already. No file of others
// changes. The push is a compare-and-swap and never forced; when others move
// the branch first, the edit is computed again on the new tip.
//
// Edits that go to one branch through one Client wait for each other: each is a
// commit of its own.
//
// A local repository that does not exist is created, bare, when there is
// something to write. A branch that does not exist begins with this commit.
//
// Errors: ErrNotFound, ErrUnauthorized, ErrUnreachable, ErrRefused (with the
// server's words), ErrRace, ErrTooLarge, ErrConflict or ErrUnplanned (with the
// folders in the text; the latter may be a *ChangedError), *git.BlockedError,
// git.ErrCommit, the context's, or what is wrong with the edit. With any of
// them, the branch does not have the commit, unless the text says that this is
// not known.
func (c *BranchClient) Apply(ctx context.Context, remote git.Remote, edit Edit) (ApplyResult, error) {
	if err := cmp.Or(remote.Check(), edit.check()); err != nil {
		return ApplyResult{}, describeError(remote, err)
	}
	if edit.Head == remote.Branch {
		return ApplyResult{}, describeError(remote, fmt.Errorf("branch %q cannot be proposed to itself", edit.Head))
	}
	result, err := c.write(ctx, remote, edit)
	return result, describeError(remote, err)
}

// write brings an edit to its branch when no other edit of this Client is on its
// way there.
func (c *BranchClient) write(ctx context.Context, remote git.Remote, edit Edit) (ApplyResult, error) {
	a := &applyLoop{client: c, remote: remote, edit: edit}
	began := time.Now()
	release, err := c.branches.Take(ctx, remote.URL+" "+a.targetBranch())
	if err != nil {
		return ApplyResult{}, err
	}
	defer release()
	c.options.Git.Log(ctx, remote, "has the branch for itself in this process", map[string]any{"waited": time.Since(began)})
	for {
		a.race.began = time.Now()
		if done, err := a.attempt(ctx); done || err != nil {
			return a.result, err
		}
		if err := a.sleep(ctx, "waits before it tries again", 0, a.race.waitLimit(time.Since(a.race.began))); err != nil {
			return ApplyResult{}, err
		}
	}
}

// application is the state of an apply across its attempts.
type applyLoop struct {
	client *BranchClient
	remote git.Remote
	edit   Edit
	now    time.Time   // of the attempt
	result ApplyResult // once it is done

	race   race
	pushes int
	// unconfirmed is the change of the last push, when that may have been applied:
	// when the next attempt finds nothing to do, this push was.
	unconfirmed *change
}

// attempt computes the changes at the tip, and pushes them. It is done when the
// tip holds what is wanted; not done and no error means to try again.
func (a *applyLoop) attempt(ctx context.Context) (done bool, err error) {
	t, err := a.client.options.Git.Open(ctx, a.remote, a.edit.Owner.treeLevels())
	if err != nil {
		return false, a.retryUnanswered(ctx, err)
	}
	defer t.Close()
	if t.Commit.IsZero() && len(a.edit.Hosts) > 0 {
		switch {
		case a.edit.Head != "":
			return false, fmt.Errorf("branch %q %w, and a pull request needs a branch to go into", a.remote.Branch, git.ErrNoBranch)
		case a.edit.Seen.Count() > 0: // a new branch would have what changes, and nothing else
			return false, fmt.Errorf("branch %q %w any more, and the plan has seen it: plan again", a.remote.Branch, git.ErrNoBranch)
		}
	}
	a.now = a.client.options.Now()
	own := t.Reference(a.edit.Head)
	ahead, err := t.Beyond(ctx, own) // nothing where nothing is proposed
	if err != nil {
		return false, a.retryUnanswered(ctx, err)
	}
	var proposed *layout
	if head, ok := ahead[own]; ok {
		proposed = newLayout(t.At(own, head.Tree))
	}
	work := newLayout(t)
	c, err := stageEdit(ctx, work, a.edit, a.now, proposed)
	if err == nil && !c.isEmpty() {
		if err = c.verifyMoved(ctx, work); err == nil {
			err = c.applyTo(ctx, work)
		}
	}
	if err != nil {
		return false, a.retryUnanswered(ctx, err)
	}
	a.client.options.Git.Log(ctx, a.remote, "prepared a commit", map[string]any{"changes": !c.isEmpty()})
	switch {
	case c.isEmpty():
		a.setResult(t.Commit, git.Hash{}, c, nil)
		return true, nil
	case a.edit.Head != "" && t.Commit.IsZero(): // nothing is there to be removed
		return false, fmt.Errorf("branch %q %w", a.remote.Branch, git.ErrNoBranch)
	}
	pack := git.NewPack()
	root := work.Write(pack.AddTree) // then the trees need no memory while the folders are rendered and packed
	if err := c.addToPack(pack); err != nil {
		return false, err
	}
	if t.Missing {
		if err := a.client.options.Git.Create(ctx, a.remote); err != nil {
			return false, err
		}
	}
	old, parents := t.Commit, []git.Hash{t.Commit}
	if a.edit.Head != "" {
		old = own
		if parents = parentsOf(ahead, own, t.Commit, root); parents == nil {
			a.setResult(t.Commit, own, c, c)
			return true, nil
		}
	} else if t.Commit.IsZero() {
		parents = nil
	}
	commit, err := pack.AddCommit(git.Commit{
		Tree: root, Parents: parents, Author: withDefaultAuthor(c.edit.Author), Time: a.now, Message: c.message(),
	}, a.client.options.Signer)
	if err != nil {
		return false, err
	}
	return a.push(ctx, t.Commit, old, commit, pack, c)
}

// parentsOf are the parents of a commit with this root that is proposed on a branch; none where the branch has it already. own
// is the branch's tip, and ahead are its commits that the base has not. The tree is the base's with the edit applied, so that
// other changes on the branch are reverted. The branch is never forced: while the base does not contain its tip, that is a
// parent of the new commit. The base's tip is another, also where only that is new: the base may have changed what is proposed,
// and a Git host does not merge what conflicts with its base.
func parentsOf(ahead map[git.Hash]git.CommitHead, own, base, root git.Hash) []git.Hash {
	switch at, ok := ahead[own]; {
	case !ok:
		return []git.Hash{base}
	case !git.HasParent(ahead, base):
		return []git.Hash{own, base}
	case at.Tree == root:
		return nil
	}
	return []git.Hash{own}
}

// target is the branch that is pushed to.
func (a *applyLoop) targetBranch() string {
	if a.edit.Head != "" {
		return a.edit.Head
	}
	return a.remote.Branch
}

// succeed fills in the result: commit holds what is wanted, or head, which proposes
// the change against commit. staged is what the edit is at the tip, and made the
// change that was pushed or proposed; nil where there is none, or the tip has it.
func (a *applyLoop) setResult(commit, head git.Hash, staged, made *change) {
	a.result = ApplyResult{Pushes: a.pushes, Commit: hexOrEmpty(commit), HeadCommit: hexOrEmpty(head), Committed: a.unconfirmed != nil}
	if made == nil {
		made = a.unconfirmed
	}
	if made != nil {
		a.result.Changes, a.result.Time = made.folders, made.at
		a.result.Subject, _, _ = strings.Cut(made.subject(), "\n")
	}
	a.result.Records, a.result.claim, a.result.Held = staged.recordIDs(), staged.claim, staged.held
}

// recordIDs are the owner's records with the change, by host.
func (c *change) recordIDs() map[string]string {
	records := c.records
	if c.isEmpty() {
		records = c.atTip
	}
	ids := make(map[string]string, len(records))
	for host, id := range records {
		ids[host] = id.String()
	}
	return ids
}

func hexOrEmpty(id git.Hash) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

// pack adds the files and folders that the change writes.
func (c *change) addToPack(pack *git.Pack) error {
	failures := make([]error, len(c.put))
	// Compressing the folders is most of the work of a large apply.
	parallel.EachWith(len(c.put), func() func(int) {
		h := git.NewHasher()
		return func(i int) { failures[i] = packFile(h, pack, &c.put[i], c.edit.Verify) }
	})
	return cmp.Or(failures...)
}

func packFile(h *git.Hasher, pack *git.Pack, file *putFile, verify func(string, []git.File) error) error {
	switch {
	case file.there:
	case file.folder:
		return packFolder(h, pack, file, verify)
	default:
		pack.AddFile(file.id, file.content)
		file.content = nil
	}
	return nil
}

func packFolder(h *git.Hasher, pack *git.Pack, file *putFile, verify func(string, []git.File) error) error {
	files, err := file.files()
	if err == nil && verify != nil {
		err = verify(file.path, files)
	}
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
func (a *applyLoop) retryUnanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil || !git.Transient(err) {
		return err
	}
	if a.race.unanswered++; a.race.unanswered >= maxUnanswered {
		return err
	}
	return nil
}
