package delivery

import (
	"context"
	"sync"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
)

// looks keeps what was read of each branch, so that a plan looks at it once, however many owners are
// there. What writes never relies on it. The zero value is ready.
type looks struct {
	mu       sync.Mutex
	branches map[branchKey]*branch
}

type branchKey struct{ url, branch string }

// branch is the look at one branch.
type branch struct {
	turn turn
	look *gitops.Look // nil until the first one that succeeds
}

// at is the look at a branch. owner may name one whose view will be asked for.
func (l *looks) at(ctx context.Context, client *gitops.Client, remote git.Remote, owner ...gitops.Owner) (*gitops.Look, error) {
	kept := l.branch(branchKey{remote.URL, remote.Branch})
	release, err := kept.turn.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if kept.look == nil {
		look, err := client.Look(ctx, remote, owner...)
		if err != nil {
			return nil, err // what failed is tried again
		}
		kept.look = look
	}
	return kept.look, nil
}

func (l *looks) branch(key branchKey) *branch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.branches == nil {
		l.branches = map[branchKey]*branch{}
	}
	if l.branches[key] == nil {
		l.branches[key] = &branch{turn: make(turn, 1)}
	}
	return l.branches[key]
}

// forget drops what was read of a branch, after something was written there.
func (l *looks) forget(remote git.Remote) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.branches, branchKey{remote.URL, remote.Branch})
}
