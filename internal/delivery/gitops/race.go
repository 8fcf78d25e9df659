package gitops

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// race counts how often other writers to the branch were faster.
//
//   - The first attempt does not wait.
//   - After an attempt that was too late, the next one follows after a random wait, whose limit is that attempt's time and a
//     half. Each commit of another is a loser less, so the limit does not grow: what is left of a round would wait for nobody.
//     Where attempts disturb each other, because they share processors, they take longer, and the limit grows with them.
//   - Writers that commit all the time need more: from the fifth lost push on, a push is sent only when the branch has not
//     moved for some time. A push that loses costs the server, and everybody else, as much as one that wins.
//
// All waits are multiples of the measured times of this server: what is too short
// for a slow or busy server is too long for a fast one. A server with hooks may
// take much longer for a push than for anything else.
//
// The figures come from the simulation in race_simulation_internal_test.go, which holds them. What rounds of processes take
// is in the guide on reliability.
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
	// firstWait is the least limit of a wait after a request without a valid answer.
	firstWait = 50 * time.Millisecond
	lastWait  = 15 * time.Second
	// listenAfter is how many pushes are lost before the next one waits for silence.
	listenAfter = 5
	// longestPush limits the measured time of a push: one at the same time as many
	// others takes longer than later ones.
	longestPush = 2 * time.Second
)

// wait is the limit of the wait before the next attempt, after one that took so long.
func (r *race) waitLimit(took time.Duration) time.Duration {
	if r.unanswered > 0 {
		return min(max(firstWait, took)<<(r.unanswered-1), lastWait)
	}
	return min(took*3/2, lastWait)
}

// silence is how long the branch must not have moved before the next push, and the
// limit of the random time beyond that, in an attempt that took so long until now.
func (r *race) silenceLimits(took time.Duration) (least, more time.Duration) {
	if r.lost < listenAfter {
		return 0, 0
	}
	took = min(took+min(r.pushed, longestPush), lastWait)
	return took / 3, took * 2 / 3
}

// listen waits before a push that follows lost ones. The push itself asks then
// whether the branch has moved.
func (a *applyLoop) waitForSilence(ctx context.Context) error {
	least, more := a.race.silenceLimits(time.Since(a.race.began))
	if more == 0 {
		return nil
	}
	return a.sleep(ctx, "waits until the branch has not moved for a while", least, more)
}

// sleep waits, and says so: for a time and a random one of more at most. Without randomness, processes that collided once would
// collide again.
func (a *applyLoop) sleep(ctx context.Context, why string, least, more time.Duration) error {
	d := least + rand.N(more+1)
	a.client.options.Git.Log(ctx, a.remote, why, map[string]any{
		"wait": d, "moved": a.race.moved, "lost_pushes": a.race.lost, "unanswered": a.race.unanswered,
	})
	return wait.For(ctx, d)
}

// overtaken counts a push, or an attempt before its push, for which others were
// faster.
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
			ErrRace,
			a.targetBranch(),
			times,
		)
	}
	return nil
}
