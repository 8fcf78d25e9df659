package gitops

import (
	"context"
	"fmt"
	"time"
)

// race is how an application fares against others that go to the same branch.
// A push is the costly part, for the server and for those who watch it, so it is
// made when it will probably win:
//
//   - The first attempt waits for nobody.
//   - A branch that has moved before the pack was sent costs no push: the next
//     attempt follows after a random wait, whose bound doubles.
//   - Whoever lost a push listens before the next one: only when the branch has
//     stood still for a random while is the pack sent. The bound of that is sixteen
//     times as high after each push lost: a third one is rare, a fourth one more so.
//
// All waits are multiples of how long things take here, and now: what would be
// too short for a slow or busy server is too long for a fast one. A server with
// hooks may take much longer over a push than all else does.
type race struct {
	began      time.Time     // the attempt
	pushed     time.Duration // how long the last push took
	moved      int           // attempts that found the branch moved before they pushed
	lost       int           // pushes that somebody else's was faster than
	unanswered int           // requests in a row without an answer that makes sense
}

const (
	// maxMoves bounds how often others may move the branch first. Contexts end
	// sooner, unless they have no deadline.
	maxMoves = 1000
	// maxUnanswered bounds how often in a row a request ends without an answer
	// that makes sense, the branch being where it was.
	maxUnanswered = 4
	firstWait     = 50 * time.Millisecond
	lastWait      = 10 * time.Second
	lastListen    = 30 * time.Second
	// The bounds of the first waits, in attempts.
	moveFactor   = 4
	listenFactor = 8
	// listenLeast is how long one listens at least, in attempts: longer than
	// somebody who commits without a pause stands still.
	listenLeast = 3
	// longestPush is what is believed of how long a push takes: one that many
	// others came with takes longer than those that follow.
	longestPush = 2 * time.Second
)

// doubled is d doubled n times, up to last.
func doubled(d time.Duration, n int, last time.Duration) time.Duration {
	for ; n > 0 && d < last; n-- {
		d *= 2
	}
	return min(d, last)
}

// wait is the bound of the wait before the next attempt; 0 for one that has lost
// pushes only, since it listens before the next.
func (r *race) wait() time.Duration {
	took := max(firstWait, time.Since(r.began))
	switch {
	case r.unanswered > 0:
		return doubled(took, r.unanswered-1, lastWait)
	case r.moved > 0:
		return doubled(moveFactor*took, r.moved-1, lastWait)
	}
	return 0
}

// listen waits before a push that follows a lost one. The push itself asks then
// whether the branch has moved.
func (a *application) listen(ctx context.Context) error {
	if a.race.lost == 0 {
		return nil
	}
	took := max(firstWait, time.Since(a.race.began)+min(a.race.pushed, longestPush))
	return a.sleep(ctx, "waits until the branch has stood still", listenLeast*took+a.client.jitter(doubled(listenFactor*took, 4*(a.race.lost-1), lastListen)))
}

// sleep waits, and says so.
func (a *application) sleep(ctx context.Context, why string, d time.Duration) error {
	a.client.git.Log(ctx, a.remote, why, map[string]any{
		"wait": d, "moved": a.race.moved, "lost_pushes": a.race.lost, "unanswered": a.race.unanswered,
	})
	return a.client.sleep(ctx, d)
}

// overtaken counts what others were faster than: a push, or an attempt that had
// not got there.
func (a *application) overtaken(pushed bool) error {
	a.race.unanswered = 0
	if pushed {
		a.race.lost++
	} else {
		a.race.moved++
	}
	if times := a.race.lost + a.race.moved; times >= maxMoves {
		return fmt.Errorf("%w: branch %q was moved by others %d times, each time before this commit got there",
			ErrRace, a.target(), times)
	}
	return nil
}
