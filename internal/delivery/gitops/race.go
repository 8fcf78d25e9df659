package gitops

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

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

func (a *applyLoop) waitForSilence(ctx context.Context) error {
	least, more := a.race.silenceLimits(time.Since(a.race.began))
	if more == 0 {
		return nil
	}
	return a.sleep(ctx, "waits until the branch has not moved for a while", least, more)
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
			ErrRace,
			a.targetBranch(),
			times,
		)
	}
	return nil
}

// push moves the branch from old to the commit, and finds out whether the server applied it.
func (a *applyLoop) push(ctx context.Context, base, old, commit git.Hash, pack *git.Pack, c *change) (done bool, err error) {
	if err := a.waitForSilence(ctx); err != nil {
		return false, err
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
