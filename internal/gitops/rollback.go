package gitops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// CheckCommit tells what is wrong with the id of a commit. Only a full id will
// do: a short one may come to mean another commit when the branch grows.
func CheckCommit(text string) error {
	if _, err := parseID(text); err != nil {
		return fmt.Errorf("%w; it is the full id of a commit, 40 hexadecimal digits", err)
	}
	return nil
}

// AsOf returns what a commit in the branch's history has of the owner: the
// folders in its records there, with their tree ids. It reads these records,
// trees, and no other blob; it may fetch them.
//
// Errors: ErrCommit, or as of Inspect.
func (v *View) AsOf(ctx context.Context, commit string) (Deployed, error) {
	defer v.work.close()
	then, err := v.work.asOf(ctx, Edit{Owner: v.owner, From: commit})
	if err != nil {
		return nil, leaving(v.remote, err)
	}
	return then.want(), nil
}

// stageFrom is stage for an edit that may go back to a commit.
func (w *workspace) stageFrom(ctx context.Context, edit Edit) (*change, error) {
	if edit.From == "" {
		return w.stage(ctx, edit)
	}
	then, err := w.asOf(ctx, edit)
	if err != nil {
		return nil, err
	}
	return w.stage(ctx, then)
}

// asOf makes of an edit with From one that wants what that commit has of its
// owner. The folders are trees that the repository has, so that none of their
// files is fetched or sent.
func (w *workspace) asOf(ctx context.Context, edit Edit) (Edit, error) {
	id, err := parseID(edit.From)
	if err != nil {
		return Edit{}, fmt.Errorf("%w: %w", ErrCommit, err)
	}
	root, err := w.rootOf(ctx, id)
	if err != nil {
		return Edit{}, err
	}
	then := *w.tip
	then.commit, then.root = id, root
	at := newWorkspace(&then)
	entries, err := at.openOwner(ctx, edit.Owner, nil)
	if err != nil {
		return Edit{}, err
	}
	records, err := at.readRecords(ctx, entries)
	if err != nil {
		return Edit{}, err
	}
	w.rung = then.rung
	if len(records) == 0 {
		return Edit{}, fmt.Errorf("%w: commit %s has no record of the assignment %q at path %q", ErrCommit, id, edit.Owner.Name, edit.Owner.Path)
	}
	edit.Hosts = make(map[string]Host, len(records))
	var trees []plumbing.Hash
	for host, record := range records {
		folders := map[string]Folder{}
		for target, folder := range record.DeploymentTargets {
			if e, ok := at.hostAt(edit.Owner, host).find(target); ok && e.isTree() {
				folders[target] = Folder{Tree: e.id.String(), Record: folder.Record, there: true}
				trees = append(trees, e.id)
			}
		}
		edit.Hosts[host] = Host{Folders: folders}
	}
	if err := at.need(ctx, trees); err != nil {
		return Edit{}, err
	}
	for _, host := range slices.Sorted(maps.Keys(edit.Hosts)) {
		for target, folder := range edit.Hosts[host].Folders {
			if err := at.isFlat(folder.Tree); err != nil {
				return Edit{}, fmt.Errorf("%w: folder %q in commit %s: %w", ErrCommit, path.Join(edit.Owner.Path, host, target), id, err)
			}
		}
	}
	return edit, edit.check()
}

// isFlat checks that a folder is as Apply writes one: somebody may have put a
// link or a submodule into it since.
func (t *tip) isFlat(tree string) error {
	id, err := parseID(tree)
	if err != nil {
		return err
	}
	entries, err := t.tree(id)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := checkName(e.name); err != nil {
			return err
		}
		if e.kind() != "a file" {
			return fmt.Errorf("%q is %s", e.name, e.kind())
		}
	}
	return nil
}

// rootOf returns the tree of a commit that the tip contains, having fetched it.
func (t *tip) rootOf(ctx context.Context, commit plumbing.Hash) (plumbing.Hash, error) {
	unreachable := fmt.Errorf("%w: commit %s is not in the history of the branch", ErrCommit, commit)
	if commit == t.commit {
		return t.root, nil
	}
	if t.commit.IsZero() {
		return plumbing.ZeroHash, unreachable
	}
	if !t.takesIDs() {
		return t.rootBehind(ctx, commit, unreachable)
	}
	asked := *t // a commit that the server does not know shall cost no rung
	ahead, err := asked.commitsBeyond(ctx, commit)
	if err == nil && len(ahead) > 0 {
		return plumbing.ZeroHash, unreachable
	}
	if err == nil {
		var found map[plumbing.Hash]commitHead
		found, err = asked.fetchCommits(ctx, func() *packp.UploadPackRequest {
			request := asked.request([]plumbing.Hash{commit})
			if asked.capabilities.Supports(capability.Shallow) {
				_ = request.Capabilities.Set(capability.Shallow)
				request.Depth = packp.DepthCommits(1)
			}
			return request
		})
		if head, ok := found[commit]; err == nil && ok {
			return head.tree, nil
		}
	}
	if err != nil && (ctx.Err() != nil || errors.Is(classify(err), ErrUnauthorized)) {
		return plumbing.ZeroHash, err
	}
	if err != nil && classify(err) != nil {
		return plumbing.ZeroHash, fmt.Errorf("%w (%w)", unreachable, err)
	}
	return plumbing.ZeroHash, unreachable
}

// rootBehind is rootOf where the server gives what a branch refers to and
// nothing else.
func (t *tip) rootBehind(ctx context.Context, commit plumbing.Hash, unreachable error) (plumbing.Hash, error) {
	w := &walk{tip: t, commits: map[plumbing.Hash]commitHead{}}
	for depth := firstDepth; ; depth *= 4 {
		before := len(w.commits)
		if err := w.deepen(ctx, depth); err != nil {
			return plumbing.ZeroHash, err
		}
		if head, ok := w.commits[commit]; ok {
			return head.tree, nil
		}
		if len(w.commits) == before || depth >= lastDepth || !t.capabilities.Supports(capability.Shallow) {
			return plumbing.ZeroHash, unreachable
		}
	}
}
