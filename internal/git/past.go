package git

import (
	"context"
	"errors"
	"maps"

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

// Past fetches the last commits to a depth. complete means that the server cannot limit it and sent all. If it gives no files
// by id, all objects come, too.
func (t *Tip) Past(ctx context.Context, depth int) (commits map[Hash]CommitHead, complete bool, err error) {
	if !t.takesIDs() {
		t.step = everything
	}
	return t.past(ctx, depth)
}

// PastCommits is Past without files, and without trees if NeedPast can fetch those. A refusal does not affect the tip.
func (t *Tip) PastCommits(ctx context.Context, depth int) (commits map[Hash]CommitHead, complete bool, err error) {
	return t.apart().past(ctx, depth)
}

func (t *Tip) past(ctx context.Context, depth int) (commits map[Hash]CommitHead, complete bool, err error) {
	shallow := t.capabilities.Supports(capability.Shallow)
	commits, err = t.fetchCommits(ctx, func() *packp.UploadPackRequest { return t.shallow(t.Commit, depth, 0) })
	return commits, !shallow, err
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
	missing, asked := t.missing(ids), t.apart()
	if all, err := asked.tryIDs(ctx, missing); all || err != nil {
		return err
	}
	for step := max(asked.step, allTrees); step <= everything; step++ {
		asked.stepDown(ctx, step, nil)
		objects := map[Hash]RawObject{}
		err := asked.fetchInto(ctx, asked.shallow(t.Commit, depth, 0), objects)
		if err != nil && (step == everything || !mayStepDown(ctx, err)) {
			return err
		}
		maps.Copy(t.objectStore, objects)
		if t.hasAll(missing) {
			return nil
		}
	}
	return errors.New("the server did not send trees that past commits consist of")
}
