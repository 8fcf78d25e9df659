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
	planned  map[branchKey]*gitops.Look // for plans
}

type planning struct{}

// Planning marks requests for a plan. Terraform plans once more while it applies, and that plan must not differ:
// so all plans of a process see a branch as its first plan saw it, whatever was written since.
func Planning(ctx context.Context) context.Context { return context.WithValue(ctx, planning{}, true) }

type branchKey struct{ url, branch string }

// branch is the look at one branch.
type branch struct {
	lock lock
	look *gitops.Look // nil until the first one that succeeds
}

// at is the look at a branch. owner may name one whose view will be asked for.
func (l *looks) at(ctx context.Context, client *gitops.Client, remote git.Remote, owner ...gitops.Owner) (*gitops.Look, error) {
	key := branchKey{remote.URL, remote.Branch}
	kept := l.branch(key)
	release, err := kept.lock.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	isPlan := ctx.Value(planning{}) != nil
	if look := l.forPlans(key, nil); isPlan && look != nil {
		return look, nil
	}
	if kept.look == nil {
		look, err := client.Look(ctx, remote, owner...)
		if err != nil {
			return nil, err // what failed is tried again
		}
		kept.look = look
	}
	if isPlan {
		return l.forPlans(key, kept.look), nil
	}
	return kept.look, nil
}

// forPlans is the look at a branch for plans: the first one of the process.
func (l *looks) forPlans(key branchKey, look *gitops.Look) *gitops.Look {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.planned == nil {
		l.planned = map[branchKey]*gitops.Look{}
	}
	if l.planned[key] == nil && look != nil {
		l.planned[key] = look
	}
	return l.planned[key]
}

func (l *looks) branch(key branchKey) *branch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.branches == nil {
		l.branches = map[branchKey]*branch{}
	}
	if l.branches[key] == nil {
		l.branches[key] = &branch{lock: make(lock, 1)}
	}
	return l.branches[key]
}

// forget drops what was read of a branch, after something was written there. Plans keep using it.
func (l *looks) forget(remote git.Remote) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.branches, branchKey{remote.URL, remote.Branch})
}
