package gitops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// ApplyResult is the outcome of Apply.
type ApplyResult struct {
	// Commit is the tip with the wanted content; "" if there is no branch and nothing to write.
	Commit    string
	Committed bool
	Time      time.Time
	Pushes    int
	// Changes has the changed folders, ordered by key.
	Changes []folder.Change
	Subject string
	// HeadCommit is the tip of Edit.Head, if it proposes Changes against Commit.
	HeadCommit string
	// Held reports that some records have another holder, on the branch or on Edit.Head. A destroy left those hosts.
	Held bool
	// Records has the ids of the owner's records by host, for the next Edit.
	Records map[string]string
}

// Apply brings the owner's part of the branch to the content of the edit, with one commit or none. It changes no file of
// others. The push is a compare-and-swap, never forced: if others move the branch first, Apply computes the edit again on
// the new tip. Edits of one branch wait for each other.
//
// Apply creates a missing branch, or a missing local repository, if there is something to write.
//
// Errors: errors of package git, ErrRace, ErrConflict, ErrUnplanned (it may be a *ChangedError), ErrOtherHolder,
// ErrHostNotEmpty, a context error, or an error about the edit. After an error, the branch does not have the commit, unless
// the text says that this is unknown.
func (c *BranchClient) Apply(ctx context.Context, remote git.Remote, edit Edit) (ApplyResult, error) {
	if err := cmp.Or(remote.Check(), edit.check()); err != nil {
		return ApplyResult{}, describeError(remote, err)
	}
	if edit.Head == remote.Branch {
		return ApplyResult{}, describeError(remote, fmt.Errorf("branch %q cannot be proposed to itself", edit.Head))
	}
	result, err := c.write(ctx, remote, edit, stageEdit)
	return result, describeError(remote, err)
}

// stageFunc computes the change of an edit at a tip, without writing. proposed is the tip of the pull request's branch, or nil.
type stageFunc func(ctx context.Context, w *layout, edit Edit, now time.Time, proposed *layout) (*change, error)

func (c *BranchClient) write(ctx context.Context, remote git.Remote, edit Edit, stage stageFunc) (ApplyResult, error) {
	a := &applyLoop{client: c, remote: remote, edit: edit, stage: stage}
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

type applyLoop struct {
	client *BranchClient
	remote git.Remote
	edit   Edit
	stage  stageFunc
	now    time.Time
	result ApplyResult

	race   race
	pushes int
	// unconfirmed is the change of a push that the server may have applied. It did if the next attempt finds nothing to do.
	unconfirmed *change
}

// attempt computes the change at the tip and pushes it. Neither done nor an error means: try again.
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
		case a.edit.Seen.Count() > 0: // a new branch would lack all unchanged folders
			return false, fmt.Errorf("branch %q %w any more, and the plan has seen it: plan again", a.remote.Branch, git.ErrNoBranch)
		}
	}
	a.now = a.client.options.Now()
	own := t.Reference(a.edit.Head)
	ahead, err := t.Beyond(ctx, own) // empty without a proposal
	if err != nil {
		return false, a.retryUnanswered(ctx, err)
	}
	var proposed *layout
	if head, ok := ahead[own]; ok {
		proposed = newLayout(t.At(own, head.Tree))
	}
	work := newLayout(t)
	c, err := a.stage(ctx, work, a.edit, a.now, proposed)
	if err == nil && !c.isEmpty {
		if err = c.verifyMoved(ctx, work); err == nil {
			err = c.applyTo(ctx, work)
		}
	}
	if err != nil {
		return false, a.retryUnanswered(ctx, err)
	}
	a.client.options.Git.Log(ctx, a.remote, "prepared a commit", map[string]any{"changes": !c.isEmpty})
	switch {
	case c.isEmpty:
		a.setResult(t.Commit, git.Hash{}, c, nil)
		return true, nil
	case a.edit.Head != "" && t.Commit.IsZero(): // nothing to remove
		return false, fmt.Errorf("branch %q %w", a.remote.Branch, git.ErrNoBranch)
	}
	pack := git.NewPack()
	root := work.Write(pack.AddTree) // frees the trees' memory before folders are rendered and packed
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
	commit, err := pack.AddCommit(git.NewCommit{
		Tree: root, Parents: parents, Author: withDefaultAuthor(c.edit.Author), Time: a.now, Message: c.message(),
	}, a.client.options.Signer)
	if err != nil {
		return false, err
	}
	return a.push(ctx, t.Commit, old, commit, pack, c)
}

// parentsOf returns the parents of a proposed commit with this root; nil if the proposed branch already has it. own is the
// tip of that branch, and ahead has its commits that the base lacks. The branch is never forced, so its tip is a parent
// until the base contains it. The tip of the base always is: a Git host does not merge a request that conflicts with its
// base.
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

func (a *applyLoop) targetBranch() string {
	if a.edit.Head != "" {
		return a.edit.Head
	}
	return a.remote.Branch
}

// setResult fills in the result. made is the pushed or proposed change; nil if the tip has it.
func (a *applyLoop) setResult(commit, head git.Hash, staged, made *change) {
	a.result = ApplyResult{Pushes: a.pushes, Commit: hexOrEmpty(commit), HeadCommit: hexOrEmpty(head), Committed: a.unconfirmed != nil}
	if made == nil {
		made = a.unconfirmed
	}
	if made != nil {
		a.result.Changes, a.result.Time = made.folders, made.at
		a.result.Subject, _, _ = strings.Cut(made.subject(), "\n")
	}
	a.result.Records, a.result.Held = staged.recordIDs(), staged.held
}

func (c *change) recordIDs() map[string]string {
	records := c.records
	if c.isEmpty {
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

func (c *change) addToPack(pack *git.Pack) error {
	failures := make([]error, len(c.put))
	// Compressing the folders is most of the work of a large apply.
	parallel.EachWith(len(c.put), func() func(int) {
		h := git.NewHasher()
		return func(i int) {
			switch file := &c.put[i]; {
			case file.exists:
			case file.isFolder:
				failures[i] = packFolder(h, pack, file, c.edit.Verify)
			default:
				pack.AddFile(file.id, file.content)
				file.content = nil
			}
		}
	})
	return cmp.Or(failures...)
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

// retryUnanswered returns nil, for another attempt, after the first few transient failures.
func (a *applyLoop) retryUnanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil || !git.Transient(err) {
		return err
	}
	if a.race.unanswered++; a.race.unanswered >= maxUnanswered {
		return err
	}
	return nil
}

// race measures the competition with other writers, and sets the waits.
//
//   - The first attempt does not wait.
//   - A late attempt is followed by a random wait of at most one and a half times its duration. Each commit leaves one
//     competitor less, so the limit does not grow by itself.
//   - After five lost pushes, a push waits until the branch has not moved for some time. A lost push costs the server and
//     all writers as much as a successful one.
//
// All waits are multiples of times measured with this server: no fixed wait suits fast and slow ones.
// race_simulation_internal_test.go holds the figures.
type race struct {
	began      time.Time
	pushed     time.Duration
	moved      int // a new tip before the push
	lost       int // a new tip at the push
	unanswered int // consecutive invalid answers
}

const (
	// maxMoves bounds how often others may move the branch first. Contexts with a deadline end sooner.
	maxMoves      = 1000
	maxUnanswered = 4
	firstWait     = 50 * time.Millisecond
	lastWait      = 15 * time.Second
	listenAfter   = 5
	// longestPush caps the measured push, since concurrent pushes take longer than later ones.
	longestPush = 2 * time.Second
)

func (r *race) waitLimit(took time.Duration) time.Duration {
	if r.unanswered > 0 {
		return min(max(firstWait, took)<<(r.unanswered-1), lastWait)
	}
	return min(took*3/2, lastWait)
}

// silenceLimits returns how long the branch must not have moved before the next push, and the limit of a random wait
// beyond.
func (r *race) silenceLimits(took time.Duration) (least, more time.Duration) {
	if r.lost < listenAfter {
		return 0, 0
	}
	took = min(took+min(r.pushed, longestPush), lastWait)
	return took / 3, took * 2 / 3
}

// sleep waits for least and a random part of more, so that processes that collided do not collide again.
func (a *applyLoop) sleep(ctx context.Context, why string, least, more time.Duration) error {
	d := least + rand.N(more+1)
	a.client.options.Git.Log(ctx, a.remote, why, map[string]any{
		"wait": d, "moved": a.race.moved, "lost_pushes": a.race.lost, "unanswered": a.race.unanswered,
	})
	return wait.For(ctx, d)
}

func (a *applyLoop) countOvertaken(pushed bool) error {
	a.race.unanswered = 0
	if pushed {
		a.race.lost++
	} else {
		a.race.moved++
	}
	if times := a.race.lost + a.race.moved; times >= maxMoves {
		return fmt.Errorf(
			"%w: others moved branch %q %d times, each time before this commit was pushed; apply again when there are fewer writers",
			ErrRace, a.targetBranch(), times)
	}
	return nil
}

// push moves the branch from old to the commit, and finds out whether the server applied it.
func (a *applyLoop) push(ctx context.Context, base, old, commit git.Hash, pack *git.Pack, c *change) (done bool, err error) {
	if least, more := a.race.silenceLimits(time.Since(a.race.began)); more != 0 {
		if err := a.sleep(ctx, "waits until the branch has not moved for a while", least, more); err != nil {
			return false, err
		}
	}
	pushed, err := a.client.options.Git.Push(ctx, a.remote, a.targetBranch(), old, commit, pack)
	if pushed.Sent {
		a.race.pushed = pushed.Took
		a.pushes++
	}
	if errors.Is(err, git.ErrUnknown) || pushed.MayHaveApplied() {
		a.unconfirmed = c
	}
	switch {
	case err != nil:
		return false, err
	case pushed.Moved:
		return false, a.countOvertaken(pushed.Sent)
	case pushed.Unanswered != nil:
		if a.race.unanswered++; a.race.unanswered >= maxUnanswered {
			return false, fmt.Errorf("%w (%d times)", pushed.Unanswered, a.race.unanswered)
		}
		return false, nil
	}
	if a.edit.Head != "" {
		a.setResult(base, commit, c, c)
	} else {
		a.setResult(commit, git.Hash{}, c, nil)
	}
	return true, nil
}
