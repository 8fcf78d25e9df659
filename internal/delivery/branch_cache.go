package delivery

import (
	"context"
	"errors"
	"sync"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// branchCache fetches each branch once for all owners. Writers do not rely on it.
type branchCache struct {
	locks    wait.Locks
	branches sync.Map // branchKey to *cachedBranch
}

type cachedBranch struct {
	branch *gitops.Branch // nil until a fetch succeeds
	// refused is the error of a server that refuses the credentials. Some servers lock the account after several tries.
	refused error
}

func branchKey(remote git.Remote) string { return remote.URL + " " + remote.Branch }

func (c *branchCache) read(
	ctx context.Context, client *gitops.BranchClient, remote git.Remote, owner ...gitops.Owner,
) (*gitops.Branch, error) {
	found, _ := c.branches.LoadOrStore(branchKey(remote), &cachedBranch{})
	release, err := c.locks.Take(ctx, branchKey(remote))
	if err != nil {
		return nil, err
	}
	defer release()
	cached := found.(*cachedBranch)
	if cached.branch != nil || cached.refused != nil {
		return cached.branch, cached.refused
	}
	branch, err := client.ReadBranch(ctx, remote, owner...)
	if errors.Is(err, git.ErrUnauthorized) {
		cached.refused = err
	}
	if err != nil {
		return nil, err
	}
	cached.branch = branch
	return branch, nil
}

func (c *branchCache) forget(remote git.Remote) { c.branches.Delete(branchKey(remote)) }
