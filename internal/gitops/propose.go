package gitops

import (
	"context"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// propose brings the changes to a branch of its own: what a pull request asks to
// be merged. Its tree is the base branch's with the edit applied, so that
// whatever else somebody did on that branch goes. It is never forced: while the
// base does not contain the branch's tip, that is a parent of the new commit.
func (a *application) propose(
	ctx context.Context, t *git.Tip, work *layout, changes []*change, pack *git.Pack,
) (done bool, err error) {
	root := work.Write(pack.AddTree)
	own := t.Reference(a.head())
	ahead, err := t.Beyond(ctx, own)
	if err != nil {
		return false, a.unansweredBy(ctx, err)
	}
	parents := []git.Hash{t.Commit}
	if at, ok := ahead[own]; ok {
		if at.Tree == root {
			a.giveResults(t.Commit, own, changes)
			return true, nil
		}
		parents = []git.Hash{own}
		if !git.HasParent(ahead, t.Commit) {
			parents = append(parents, t.Commit)
		}
	}
	commit, err := a.commit(root, parents, changes, pack)
	if err != nil {
		return false, err
	}
	return a.push(ctx, t.Commit, own, commit, pack, changes)
}
