package git

import (
	"context"
	"errors"
	"maps"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// FirstDepth is how many commits a caller that reads the history asks Past for
// first. Each further call asks for four times as many, up to LastDepth: some
// megabytes.
const (
	FirstDepth = 64
	LastDepth  = 16 << 10
)

// lastTreesDepth is LastDepth where commits come with all their trees.
const lastTreesDepth = 1 << 10

// Past fetches the last commits of the branch, so many of each line of them;
// some may have come before. complete says that the server has no way to give
// fewer than all, and has given them. Where the server gives no files by their
// ids, all that the commits have comes with them.
func (t *Tip) Past(ctx context.Context, depth int) (commits map[Hash]CommitHead, complete bool, err error) {
	if !t.takesIDs() {
		t.step = everything
	}
	return t.past(ctx, depth)
}

// PastCommits is Past for callers that need no files: the commits come without
// trees where NeedPast can fetch those, otherwise without files where the server
// can leave those out. What the server refuses here does not change how the tip is
// fetched.
func (t *Tip) PastCommits(ctx context.Context, depth int) (commits map[Hash]CommitHead, complete bool, err error) {
	return t.apart().past(ctx, depth)
}

func (t *Tip) past(ctx context.Context, depth int) (commits map[Hash]CommitHead, complete bool, err error) {
	shallow := t.capabilities.Supports(capability.Shallow)
	commits, err = t.fetchCommits(ctx, func() *packp.UploadPackRequest { return t.shallow(t.Commit, depth, 0) })
	return commits, !shallow, err
}

// MaxPast is how many commits PastCommits should be asked for at most.
func (t *Tip) MaxPast() int {
	if t.takesIDs() && t.step < allTrees {
		return LastDepth
	}
	return lastTreesDepth
}

// NeedPast makes sure that trees of past commits are here, of which PastCommits
// was asked for so many. It is Need, but that what the server refuses makes it
// fetch more of the past, and not of the tip.
func (t *Tip) NeedPast(ctx context.Context, ids []Hash, depth int) error {
	missing, asked := t.lacks(ids), t.apart()
	if all, err := asked.tryIDs(ctx, missing); all || err != nil {
		return err
	}
	for step := max(asked.step, allTrees); step <= everything; step++ {
		asked.stepDown(ctx, step, nil)
		objects := map[Hash]Object{}
		err := asked.fetchInto(ctx, asked.shallow(t.Commit, depth, 0), objects)
		if err != nil && (step == everything || !mayStepDown(ctx, err)) {
			return err
		}
		maps.Copy(t.objects, objects)
		if t.has(missing) {
			return nil
		}
	}
	return errors.New("the server did not send trees that past commits consist of")
}
