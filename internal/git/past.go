package git

import (
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// FirstDepth is the depth of the first request. Each further one quadruples it, up to LastDepth: some megabytes.
const (
	FirstDepth = 64
	LastDepth  = 16 << 10
)

// lastTreesDepth is LastDepth for commits with all their trees.
const lastTreesDepth = 1 << 10

// past returns a Tip that fetches the last commits to a depth. Their refusal does not affect the original.
func (t *Tip) past(depth int) *Tip {
	same := *t.fetcher
	return &Tip{Commit: t.Commit, Root: t.Root, from: t.from, depth: depth, fetcher: &same}
}

// PastCommits fetches the last commits to a depth, without files, and without trees if NeedPast can fetch those. complete
// means that the server cannot limit the depth and sent all.
func (t *Tip) PastCommits(ctx context.Context, depth int) (commits map[Hash]CommitHead, complete bool, err error) {
	past := t.past(depth)
	commits, err = past.fetchCommits(ctx, func() *packp.UploadPackRequest { return past.shallow(past.from, depth, 0) })
	return commits, !t.capabilities.Supports(capability.Shallow), err
}

// MaxPast returns the largest useful depth for PastCommits.
func (t *Tip) MaxPast() int {
	if t.takesIDs() && t.step < allTrees {
		return LastDepth
	}
	return lastTreesDepth
}

// NeedPast is Need after PastCommits with this depth. After a refusal it fetches more of the past, not of the tip.
func (t *Tip) NeedPast(ctx context.Context, ids []Hash, depth int) error {
	return t.past(depth).Need(ctx, ids)
}

// NeedRecent is Need for objects of the tip or of recent commits. Not all servers give objects by id.
func (t *Tip) NeedRecent(ctx context.Context, ids []Hash) error {
	err := t.Need(ctx, ids)
	for depth := FirstDepth; err != nil && depth <= lastTreesDepth; depth *= 4 {
		if t.Commit.IsZero() || t.takesIDs() || ctx.Err() != nil || Classify(err) != nil {
			break
		}
		before := len(t.objectStore)
		if err = t.NeedPast(ctx, ids, depth); len(t.objectStore) == before {
			break
		}
	}
	return err
}

// OpenPast returns a commit in the history. ErrCommit means that it is not there, or not among the last LastDepth commits if
// the server gives no objects by id.
func (t *Tip) OpenPast(ctx context.Context, commit Hash) (*Tip, error) {
	unreachable := fmt.Errorf("%w: commit %s is not in the history of the branch", ErrCommit, commit)
	if commit == t.Commit {
		return t, nil
	}
	if t.Commit.IsZero() {
		return nil, unreachable
	}
	for depth, known := FirstDepth, 0; ; depth *= 4 {
		commits, complete, err := t.PastCommits(ctx, depth)
		if err != nil {
			return nil, err
		}
		if head, ok := commits[commit]; ok {
			past := t.past(depth)
			past.Commit, past.Root = commit, head.Tree
			return past, nil
		}
		if len(commits) == known || complete {
			return nil, unreachable
		}
		if depth >= LastDepth {
			return t.openByID(ctx, commit)
		}
		known = len(commits)
	}
}

// openByID is OpenPast for commits below LastDepth.
func (t *Tip) openByID(ctx context.Context, commit Hash) (*Tip, error) {
	past, heads := t.past(1), map[Hash]CommitHead{}
	if t.takesIDs() {
		newer, err := past.Beyond(ctx, commit)
		if err == nil && len(newer) == 0 {
			heads, err = past.fetchCommits(ctx, func() *packp.UploadPackRequest { return past.shallow(commit, 1, 0) })
		}
		if err != nil && (ctx.Err() != nil || Classify(err) != nil) {
			return nil, err
		}
	}
	head, ok := heads[commit]
	if !ok {
		return nil, fmt.Errorf("%w: commit %s is not among the last %d commits of the branch", ErrCommit, commit, LastDepth)
	}
	past.Commit, past.Root, past.from = commit, head.Tree, commit
	return past, nil
}
