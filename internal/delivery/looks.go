package delivery

import (
	"context"
	"errors"
	"sync"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// looks keeps what was read of each branch, so that a plan looks at it once, however many owners are
// there. What writes never relies on it. The zero value is ready.
type looks struct {
	locks    wait.Locks // while a branch is read
	branches sync.Map   // *branch
}

// branch is the look at one branch.
type branch struct {
	look *gitops.Branch // nil until the first one that succeeds
	// refused is the answer of a server that refuses the credentials.
	refused error
}

// nameOf is what looks know a branch by.
func nameOf(remote git.Remote) string { return remote.URL + " " + remote.Branch }

// at is the look at a branch. owner may name one whose view will be asked for.
func (l *looks) at(ctx context.Context, client *gitops.BranchClient, remote git.Remote, owner ...gitops.Owner) (*gitops.Branch, error) {
	found, _ := l.branches.LoadOrStore(nameOf(remote), &branch{})
	release, err := l.locks.Take(ctx, nameOf(remote))
	if err != nil {
		return nil, err
	}
	defer release()
	kept := found.(*branch)
	if kept.look != nil || kept.refused != nil {
		return kept.look, kept.refused
	}
	look, err := client.ReadBranch(ctx, remote, owner...)
	if errors.Is(err, git.ErrUnauthorized) {
		kept.refused = err // asked again for each owner, some servers lock the account
	}
	if err != nil {
		return nil, err // what else failed is tried again
	}
	kept.look = look
	return look, nil
}

// forget drops what was read of a branch, after something was written there.
func (l *looks) forget(remote git.Remote) { l.branches.Delete(nameOf(remote)) }
