package gitops

import (
	"context"
	"errors"
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

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
