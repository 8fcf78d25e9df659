package gitops

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// gatherTime is how long the first edit for a branch waits for others to share
// its commit. Terraform starts resources without open dependencies at the same
// moment; an edit that comes later shares a commit with those that were queued
// during this push.
const gatherTime = 25 * time.Millisecond

// queueKey names edits that may share a commit: they go to one branch with the
// same credentials and the same author.
type queueKey struct {
	branch branchKey
	login  git.Login
	author git.Signature
	head   string
}

// waiting is an edit on its way into a commit.
type waiting struct {
	ctx    context.Context
	edit   Edit
	queued time.Time
	// Its progress.
	pushes int
	// unconfirmed is its part of the last push, when that may have been applied:
	// when the next attempt finds nothing to do, this push was.
	unconfirmed *change
	staged      *change // what the edit changed in the last attempt

	result Result
	err    error
	done   chan struct{} // closed when result and err are final
}

func newWaiting(ctx context.Context, edit Edit) *waiting {
	return &waiting{ctx: ctx, edit: edit, queued: time.Now(), done: make(chan struct{})}
}

func (w *waiting) isDone() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// enqueue brings an edit to its branch, in a commit of its own or a shared one.
// There is no goroutine that serves the queue: of the callers that wait for a
// branch, the one that gets it makes the commit for all of them.
func (c *Client) enqueue(ctx context.Context, remote git.Remote, edit Edit) (Result, error) {
	key := queueKey{branchKey{remote.URL, remote.Branch}, remote.Credentials.For(remote.URL), edit.Author, edit.Head}
	w := newWaiting(ctx, edit)
	c.mu.Lock()
	c.queues[key] = append(c.queues[key], w)
	c.mu.Unlock()

	unlock, err := c.waitForBranch(ctx, remote, edit.Head, w.done)
	if err != nil {
		if c.withdraw(key, w) {
			return Result{}, err
		}
		// Another caller is making its commit, and knows that the context has ended.
		<-w.done
		return w.result, w.err
	}
	defer unlock()
	if w.isDone() {
		return w.result, w.err
	}
	if rest := gatherTime - time.Since(w.queued); rest > 0 && edit.Head == "" {
		// A context that ends here is seen by the attempt.
		_ = c.sleep(ctx, rest)
	}
	for !w.isDone() {
		c.serve(remote, key, w)
	}
	return w.result, w.err
}

// waitForBranch waits until the branch that is pushed to is free, or until done is closed.
func (c *Client) waitForBranch(ctx context.Context, remote git.Remote, head string, done <-chan struct{}) (unlock func(), err error) {
	key := branchKey{remote.URL, remote.Branch}
	if head != "" {
		key.branch = head
	}
	c.mu.Lock()
	free, ok := c.branches[key]
	if !ok {
		free = make(chan struct{}, 1)
		c.branches[key] = free
	}
	c.mu.Unlock()

	unlock = func() { <-free }
	select {
	case free <- struct{}{}:
		return unlock, nil
	default:
	}
	began := time.Now()
	c.git.Log(ctx, remote, "waits for other writers of this process to the branch", nil)
	defer func() {
		c.git.Log(ctx, remote, "has waited for other writers of this process", map[string]any{"took": time.Since(began)})
	}()
	select {
	case free <- struct{}{}:
		return unlock, nil
	case <-done:
		return func() {}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// withdraw takes an edit out of the queue, unless its commit is being made.
func (c *Client) withdraw(key queueKey, w *waiting) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.queues[key], w)
	if i < 0 {
		return false
	}
	c.keep(key, slices.Delete(c.queues[key], i, i+1))
	return true
}

func (c *Client) keep(key queueKey, queue []*waiting) {
	if len(queue) == 0 {
		delete(c.queues, key)
		return
	}
	c.queues[key] = queue
}

// take empties the queue of those that may join the given ones: a second edit
// of one owner waits for the next commit, and one for a pull request is alone.
func (c *Client) take(key queueKey, joined []*waiting) []*waiting {
	c.mu.Lock()
	defer c.mu.Unlock()
	owners := map[Owner]bool{}
	for _, w := range joined {
		owners[w.edit.Owner] = true
	}
	var left []*waiting
	for _, w := range c.queues[key] {
		if owners[w.edit.Owner] || key.head != "" && len(joined) > 0 {
			left = append(left, w)
			continue
		}
		owners[w.edit.Owner] = true
		joined = append(joined, w)
	}
	c.keep(key, left)
	return joined
}

// serve makes one commit of what is in the queue. It ends when the leader's edit
// has its result, so that the leader does not wait for others: the rest returns to
// the queue, and one of them leads.
func (c *Client) serve(remote git.Remote, key queueKey, leader *waiting) {
	a := &application{client: c, remote: remote}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.keep(key, append(a.open(), c.queues[key]...))
	}()
	a.run(func() bool {
		if leader.isDone() {
			return false
		}
		a.edits = c.take(key, a.open())
		return true
	})
}

// finish tells all that the result is final; those that have none get err.
func (a *application) finish(err error) {
	for _, w := range a.edits {
		if !w.isDone() {
			a.fail(w, err)
		}
	}
}

// fail gives one edit its error.
func (a *application) fail(w *waiting, err error) {
	w.result, w.err = Result{}, err
	close(w.done)
}

// succeed gives one edit its result.
func (a *application) succeed(w *waiting, result Result) {
	w.result, w.err = result, nil
	close(w.done)
}

// open are the edits without a result.
func (a *application) open() []*waiting {
	var open []*waiting
	for _, w := range a.edits {
		if !w.isDone() {
			open = append(open, w)
		}
	}
	return open
}

// run goes on until every edit has a result, or until join says to stop. Before
// each attempt join may let in those that came since the last.
func (a *application) run(join func() bool) {
	for join() {
		a.race.began = time.Now()
		again, err := a.together(func(ctx context.Context) (bool, error) {
			done, err := a.attempt(ctx)
			if done || err != nil {
				return false, err
			}
			return true, a.sleep(ctx, "waits before it tries again", a.client.jitter(a.race.wait()))
		})
		switch {
		case err == nil && !again:
			return // every edit has its result
		case err == nil:
		case errors.Is(err, git.ErrRefused) && len(a.open()) > 1:
			a.client.git.Log(a.open()[0].ctx, a.remote, "the shared commit was refused; each assignment gets its own", map[string]any{"error": err})
			a.runAlone()
			return
		default:
			a.finish(err)
			return
		}
	}
}

// together calls do with a context that ends when that of any open edit does.
// Those whose context has ended fail then, each with its own context's error; the
// others go on.
func (a *application) together(do func(context.Context) (again bool, err error)) (bool, error) {
	open := a.open()
	if len(open) == 1 {
		return do(open[0].ctx)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(open[0].ctx))
	defer cancel()
	for _, w := range open {
		deadline, ok := w.ctx.Deadline()
		if ok {
			var stop context.CancelFunc
			ctx, stop = context.WithDeadline(ctx, deadline)
			defer stop()
		}
		defer context.AfterFunc(w.ctx, func() {
			// A deadline ends both by itself, and shall not look like a cancellation.
			if !ok || !errors.Is(w.ctx.Err(), context.DeadlineExceeded) {
				cancel()
			}
		})()
	}
	again, err := do(ctx)
	if err == nil {
		return again, nil
	}
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if ctx.Err() == nil && !ended {
		return again, err
	}
	ended = ctx.Err() != nil
	for _, w := range a.open() {
		own := contextError(w.ctx)
		if own == nil {
			continue
		}
		ended = true
		if errors.Is(err, git.ErrUnknown) {
			own = &unknownOutcome{text: err.Error(), own: own}
		}
		a.fail(w, own)
	}
	if !ended {
		return again, err // no context has ended
	}
	return len(a.open()) > 0, nil
}

// contextError is the context's error, a moment before the context has it when
// its deadline has passed: timers fire later than clocks show.
func contextError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// unknownOutcome is a git.ErrUnknown of an edit whose context has ended.
type unknownOutcome struct {
	text string
	own  error
}

func (e *unknownOutcome) Error() string   { return e.text }
func (e *unknownOutcome) Unwrap() []error { return []error{git.ErrUnknown, e.own} }

// runAlone gives each edit a commit of its own, after the server refused the
// shared one: the reason may concern one edit only.
func (a *application) runAlone() {
	for _, w := range a.open() {
		alone := &application{client: a.client, remote: a.remote, edits: []*waiting{w}}
		alone.run(func() bool { return !w.isDone() })
	}
}
