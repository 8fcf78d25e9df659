package delivery

import (
	"context"
	"errors"
	"sync"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/wait"
)

// looks keeps what was read of each branch, so that a plan looks at it once, however many owners are
// there. What writes never relies on it. The zero value is ready.
type looks struct {
	locks    wait.Locks // by URL and branch, while it is read
	mu       sync.Mutex
	branches map[branchKey]*branch
}

type branchKey struct{ url, branch string }

// branch is the look at one branch.
type branch struct {
	look *gitops.Branch // nil until the first one that succeeds
	// refused is the answer of a server that refuses the credentials.
	refused error
}

// at is the look at a branch. owner may name one whose view will be asked for.
func (l *looks) at(ctx context.Context, client *gitops.Client, remote git.Remote, owner ...gitops.Owner) (*gitops.Branch, error) {
	key := branchKey{remote.URL, remote.Branch}
	kept := l.branch(key)
	release, err := l.locks.Take(ctx, remote.URL+" "+remote.Branch)
	if err != nil {
		return nil, err
	}
	defer release()
	if kept.look == nil {
		if kept.refused != nil {
			return nil, kept.refused
		}
		look, err := client.Branch(ctx, remote, owner...)
		if errors.Is(err, git.ErrUnauthorized) {
			kept.refused = err // asked again for each owner, some servers lock the account
		}
		if err != nil {
			return nil, err // what else failed is tried again
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
		l.branches[key] = &branch{}
	}
	return l.branches[key]
}

// forget drops what was read of a branch, after something was written there.
func (l *looks) forget(remote git.Remote) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.branches, branchKey{remote.URL, remote.Branch})
}
