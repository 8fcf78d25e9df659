package gitops

import (
	"context"
	"fmt"
	"time"
)

// race counts how often other writers to the branch were faster. A push is the
// costly part, for the server and for its users, so one is made when it will
// probably succeed:
//
//   - The first attempt does not wait.
//   - When the branch moved before the pack was sent, no push is made: the next
//     attempt follows after a random wait, whose limit doubles.
//   - After a push that lost, the next one is made only when the branch has not
//     moved for a random time. The limit of that time is multiplied by sixteen
//     after each lost push: a third one is rare, a fourth one rarer.
//
// All waits are multiples of the measured times of this server: what is too short
// for a slow or busy server is too long for a fast one. A server with hooks may
// take much longer for a push than for anything else.
type race struct {
	began      time.Time     // the attempt
	pushed     time.Duration // how long the last push took
	moved      int           // attempts that found the branch moved before they pushed
	lost       int           // pushes after which the branch had another writer's commit
	unanswered int           // requests in a row without a valid answer
}

const (
	// maxMoves bounds how often others may move the branch first. Contexts end
	// sooner, unless they have no deadline.
	maxMoves = 1000
	// maxUnanswered bounds how often in a row a request ends without a valid answer
	// while the branch does not move.
	maxUnanswered = 4
	firstWait     = 50 * time.Millisecond
	lastWait      = 10 * time.Second
	lastListen    = 30 * time.Second
	// The bounds of the first waits, in attempts.
	moveFactor   = 4
	listenFactor = 8
	// listenLeast is the least time without movement, in attempts: longer than the
	// pause between two commits of a writer that commits all the time.
	listenLeast = 3
	// longestPush limits the measured time of a push: one at the same time as many
	// others takes longer than later ones.
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
	return a.sleep(ctx, "waits until the branch has not moved for a while", listenLeast*took+a.client.jitter(doubled(listenFactor*took, 4*(a.race.lost-1), lastListen)))
}

// sleep waits, and says so.
func (a *application) sleep(ctx context.Context, why string, d time.Duration) error {
	a.client.git.Log(ctx, a.remote, why, map[string]any{
		"wait": d, "moved": a.race.moved, "lost_pushes": a.race.lost, "unanswered": a.race.unanswered,
	})
	return a.client.sleep(ctx, d)
}

// overtaken counts a push, or an attempt before its push, for which others were
// faster.
func (a *application) overtaken(pushed bool) error {
	a.race.unanswered = 0
	if pushed {
		a.race.lost++
	} else {
		a.race.moved++
	}
	if times := a.race.lost + a.race.moved; times >= maxMoves {
		return fmt.Errorf("%w: others moved branch %q %d times, each time before this commit was pushed; apply again when there are fewer writers",
			ErrRace, a.target(), times)
	}
	return nil
}
