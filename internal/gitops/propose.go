package gitops

import (
	"context"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// beyond are the commits that a branch has and the base has not.
type beyond map[git.Hash]git.CommitHead

// ahead are the commits of the branch that the edit is proposed on; own is its
// tip.
func (a *application) ahead(ctx context.Context, t *git.Tip, own git.Hash) (beyond, error) {
	if a.edit.Head == "" {
		return nil, nil
	}
	return t.Beyond(ctx, own)
}

// layout is the branch's tip; nil when the base contains it.
func (b beyond) layout(t *git.Tip, own git.Hash) *layout {
	if head, ok := b[own]; ok {
		return newLayout(t.At(own, head.Tree))
	}
	return nil
}

// propose brings the change to a branch of its own: what a pull request asks to
// be merged. Its tree is the base branch's with the edit applied, so that other
// changes on that branch are reverted. It is never forced: while the base does not
// contain the branch's tip, that is a parent of the new commit. The base's tip is
// another, also where only that is new: the base may have changed what is proposed,
// and a Git host does not merge what conflicts with its base.
func (a *application) propose(
	ctx context.Context, t *git.Tip, own git.Hash, ahead beyond, root git.Hash, c *change, pack *git.Pack,
) (done bool, err error) {
	parents := []git.Hash{t.Commit}
	if at, ok := ahead[own]; ok {
		parents = []git.Hash{own}
		if !git.HasParent(ahead, t.Commit) {
			parents = append(parents, t.Commit)
		} else if at.Tree == root {
			a.succeed(t.Commit, own, c, c)
			return true, nil
		}
	}
	commit, err := a.commit(root, parents, c, pack)
	if err != nil {
		return false, err
	}
	return a.push(ctx, t.Commit, own, commit, pack, c)
}
