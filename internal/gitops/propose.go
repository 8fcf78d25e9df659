package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// propose brings the changes to a branch of its own: what a pull request asks to
// be merged. Its tree is the base branch's with the edit applied, so that
// whatever else somebody did on that branch goes. It is never forced: while the
// base does not contain the branch's tip, that is a parent of the new commit.
func (a *application) propose(
	ctx context.Context, t *tip, work *workspace, changes []*change, pack *packWriter,
) (done bool, err error) {
	root := work.write(func(id plumbing.Hash, content []byte) { pack.add(id, plumbing.TreeObject, content) })
	own := t.references[refName(a.head()).String()]
	ahead, err := t.commitsBeyond(ctx, own)
	if err != nil {
		return false, a.unansweredBy(ctx, err)
	}
	parents := []plumbing.Hash{t.commit}
	if at, ok := ahead[own]; ok {
		if at.tree == root {
			a.settle(t.commit, own, changes)
			return true, nil
		}
		parents = []plumbing.Hash{own}
		if !hasParent(ahead, t.commit) {
			parents = append(parents, t.commit)
		}
	}
	commit, err := a.commit(root, parents, changes, pack)
	if err != nil {
		return false, err
	}
	return a.push(ctx, t.commit, own, commit, pack.finish(), changes)
}

// commitsBeyond returns the commits that lead to the given one and that the tip
// does not contain; none when the tip contains it. It takes one request.
func (t *tip) commitsBeyond(ctx context.Context, commit plumbing.Hash) (map[plumbing.Hash]commitHead, error) {
	if commit.IsZero() || commit == t.commit {
		return nil, nil
	}
	request := func() *packp.UploadPackRequest {
		request := t.request([]plumbing.Hash{commit})
		request.Haves = []plumbing.Hash{t.commit}
		return request
	}
	commits, err := t.fetchCommits(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("its commits cannot be compared: %w", err)
	}
	return commits, nil
}

// fetchCommits fetches commits, with as little else as the server lets us leave
// out, and returns those that came.
func (t *tip) fetchCommits(
	ctx context.Context, ask func() *packp.UploadPackRequest,
) (map[plumbing.Hash]commitHead, error) {
	for {
		objects := map[plumbing.Hash]object{}
		request := ask()
		switch t.rung {
		case topTrees, treesByDepth:
			request.Filter = packp.FilterTreeDepth(0)
		case allTrees:
			request.Filter = packp.FilterBlobNone()
		case everything:
		}
		err := t.fetchInto(ctx, request, objects)
		if err == nil {
			maps.Copy(t.objects, objects)
			return commitHeads(objects)
		}
		if t.rung == everything || !mayStepDown(ctx, err) {
			return nil, err
		}
		t.rung++
	}
}

// commitHead is what a commit refers to.
type commitHead struct {
	tree    plumbing.Hash
	parents []plumbing.Hash
}

func hasParent(commits map[plumbing.Hash]commitHead, parent plumbing.Hash) bool {
	for _, c := range commits {
		if slices.Contains(c.parents, parent) {
			return true
		}
	}
	return false
}

func commitHeads(objects map[plumbing.Hash]object) (map[plumbing.Hash]commitHead, error) {
	commits := map[plumbing.Hash]commitHead{}
	for id, o := range objects {
		if o.kind != plumbing.CommitObject {
			continue
		}
		head, err := parseCommitHead(o.content)
		if err != nil {
			return nil, fmt.Errorf("commit %s: %w", id, err)
		}
		commits[id] = head
	}
	return commits, nil
}

var errMalformedCommit = errors.New("is malformed (git fsck tells more)")

func parseCommitHead(content []byte) (commitHead, error) {
	line, rest, _ := bytes.Cut(content, []byte("\n"))
	text, ok := bytes.CutPrefix(line, []byte("tree "))
	tree, err := parseID(string(text))
	if !ok || err != nil {
		return commitHead{}, errMalformedCommit
	}
	head := commitHead{tree: tree}
	for {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		text, ok := bytes.CutPrefix(line, []byte("parent "))
		if !ok {
			return head, nil
		}
		parent, err := parseID(string(text))
		if err != nil {
			return commitHead{}, errMalformedCommit
		}
		head.parents = append(head.parents, parent)
	}
}
