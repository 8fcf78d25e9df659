package gitops_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// withVersion sets the config version in a folder's record.
func withVersion(folder gitops.FolderEdit, version string) gitops.FolderEdit {
	folder.Record.ConfigVersion = version
	return folder
}

func TestAProposalIsTheBaseWithTheEditOnAnotherBranch(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		if acceptancetest.All() { // costs a dozen processes for each push; the parents below also show that no push is forced
			r.git("config", "receive.denyNonFastForwards", "true")
		}
		r.commitByHand(func(w *workTree) { w.write("README.md", "1"); w.write("other/x", "1") })
		apply(t, r, devEdit(t, map[string]gitops.FolderEdit{
			"drone/app": withVersion(newFolder(t, "a", "1"), "v1"), "drone/old": withVersion(newFolder(t, "a", "1"), "v1"),
		}))
		base := r.tip()
		edit := devEdit(t, map[string]gitops.FolderEdit{
			"drone/app": withVersion(newFolder(t, "a", "2"), "v2"), "drone/new": withVersion(newFolder(t, "a", "1"), "v2"),
		})
		edit.Head, edit.Source = "flotilla/dev", folder.Source("https://git.example.com/platform@"+strings.Repeat("a", 40))
		parents := func() string { return r.git("log", "-1", "--format=%P", "flotilla/dev") }
		tip := func() string { return r.git("rev-parse", "flotilla/dev") }

		first := apply(t, r, edit)
		if !first.Committed || first.HeadCommit != tip() || first.Commit != base || first.Pushes != 1 || parents() != base {
			t.Errorf("first: %+v, parents %s", first, parents())
		}
		changes := []folder.Change{
			{
				Key:    folder.Key{Host: "drone", DeploymentTarget: "app"},
				Action: folder.Changed,
				Before: "v1",
				After:  "v2",
				Was:    newFolder(t, "a", "1").Tree,
			},
			{Key: folder.Key{Host: "drone", DeploymentTarget: "new"}, Action: folder.Added, After: "v2"},
			{Key: folder.Key{Host: "drone", DeploymentTarget: "old"}, Action: folder.Removed, Before: "v1", Was: newFolder(t, "a", "1").Tree},
		}
		if !slices.Equal(first.Changes, changes) {
			t.Errorf("changes = %+v", first.Changes)
		}
		if r.tip() != base {
			t.Error("the base moved")
		}
		head := *r
		head.remote.Branch = "flotilla/dev"
		if got, want := sprint(readTrees(t, readOwner(t, &head, dev), treesOf(edit))), sprint(treesOf(edit)); got != want {
			t.Errorf("on the head: %s, want %s", got, want)
		}

		edit.Source = folder.Source("https://git.example.com/platform@" + strings.Repeat("b", 40)) // makes no commit alone
		again := apply(t, r, edit)
		if again.Committed || again.Pushes != 0 || again.HeadCommit != first.HeadCommit || !slices.Equal(again.Changes, changes) {
			t.Errorf("again: %+v", again)
		}

		edit.Hosts["drone"]["app"] = withVersion(newFolder(t, "a", "3"), "v3")
		if second := apply(t, r, edit); !second.Committed || parents() != first.HeadCommit {
			t.Errorf("with the same base: %+v, parents %s", second, parents())
		}

		// Other people move the base and commit to the proposal.
		before := tip()
		r.commitByHand(func(w *workTree) { w.write("README.md", "2") })
		base = r.tip()
		third := apply(t, r, edit)
		if !third.Committed || parents() != before+" "+base || third.Commit != base {
			t.Errorf("with a new base: %+v, parents %s", third, parents())
		}
		w := r.clone()
		run(t, w.directory, "git", "checkout", "--quiet", "flotilla/dev")
		w.write("by-hand", "x")
		run(t, w.directory, "git", "add", "--all")
		run(t, w.directory, "git", "commit", "--quiet", "--message", "by hand")
		run(t, w.directory, "git", "push", "--quiet", "origin", "HEAD:flotilla/dev")
		if fourth := apply(t, r, edit); !fourth.Committed {
			t.Errorf("after a manual commit: %+v", fourth)
		}
		diff := strings.Fields(r.git("diff", "--no-renames", "--name-only", "main", "flotilla/dev"))
		if want := []string{"dev/.flotilla/dev/drone.json", "dev/drone/app/a", "dev/drone/new/a", "dev/drone/old/a"}; !slices.Equal(diff, want) {
			t.Errorf("proposed: %v, want %v", diff, want)
		}

		// A merge and the next proposal.
		r.git("update-ref", "refs/heads/main", tip())
		merged := apply(t, r, edit)
		if merged.Committed || merged.HeadCommit != "" || merged.Commit != r.tip() || len(merged.Changes) != 0 {
			t.Errorf("merged: %+v", merged)
		}
		r.commitByHand(func(w *workTree) { w.write("README.md", "3") })
		base = r.tip()
		edit.Hosts["drone"]["app"] = withVersion(newFolder(t, "a", "4"), "v4")
		if next := apply(t, r, edit); !next.Committed || parents() != base {
			t.Errorf("after the merge: %+v, parents %s", next, parents())
		}

		// A squashed merge: the same tree without the proposal's commits.
		before = tip()
		squashed := r.git(
			"-c",
			"user.name=A",
			"-c",
			"user.email=a@example.com",
			"commit-tree",
			"-p",
			"main",
			"-m",
			"squashed",
			"flotilla/dev^{tree}",
		)
		r.git("update-ref", "refs/heads/main", squashed)
		if result := apply(t, r, edit); result.Committed || result.HeadCommit != "" {
			t.Errorf("squashed: %+v", result)
		}
		edit.Hosts["drone"]["app"] = withVersion(newFolder(t, "a", "5"), "v5")
		if next := apply(t, r, edit); !next.Committed || parents() != before+" "+squashed {
			t.Errorf("after the squash: %+v, parents %s", next, parents())
		}
		if files := r.files(); files["README.md"] != "3" || files["other/x"] != "1" || files["dev/drone/app/a"] != "4" {
			t.Errorf("files = %v", slices.Sorted(maps.Keys(files)))
		}
		r.fsck()
	})
}

// No Git host merges a proposal that conflicts with its base.
func TestTheBaseIsMergedIntoAConflictingProposal(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1")}))
	edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "2")})
	edit.Head = "flotilla/dev"
	first := apply(t, r, edit)
	r.commitByHand(func(w *workTree) { w.write("dev/drone/app/a", "3") })
	base := r.tip()

	merged := apply(t, r, edit)
	if parents := r.git("log", "-1", "--format=%P", "flotilla/dev"); !merged.Committed || parents != first.HeadCommit+" "+base {
		t.Errorf("%+v, parents %s", merged, parents)
	}
	if got := r.git("show", "flotilla/dev:dev/drone/app/a"); got != "2" {
		t.Errorf("got %q in the folder, want 2", got)
	}
	if again := apply(t, r, edit); again.Committed || again.HeadCommit != merged.HeadCommit {
		t.Errorf("again: %+v", again)
	}
	r.fsck()
}

func TestAProposalNeedsABaseAndAnotherBranch(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	for _, head := range []string{"flotilla/dev", "main", "a..b", "refs/heads/x"} {
		edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1")})
		edit.Head = head
		if result, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit); err == nil || result.HeadCommit != "" {
			t.Errorf("%s: %+v, %v", head, result, err)
		}
	}
	if got := r.git("for-each-ref"); got != "" {
		t.Errorf("refs = %s", got)
	}
}

func TestProposalsOfSeveralOwnersStayApart(t *testing.T) {
	t.Parallel()
	for _, serving := range []serving{servings[0], servings[2]} {
		r := newRepository(t, serving)
		r.commitFirst("README.md", "1")
		var edits []gitops.Edit
		for _, name := range []string{"a", "b", "c", "d"} {
			edit := teamEdit(t, name, "1")
			edit.Head = "flotilla/" + name
			edits = append(edits, edit)
		}
		results, errs := applyAll(t, r, append(edits, teamEdit(t, "e", "1"))...)
		for i, edit := range edits {
			if errs[i] != nil || !results[i].Committed || results[i].HeadCommit != r.git("rev-parse", edit.Head) {
				t.Errorf("%s: %+v, %v", edit.Head, results[i], errs[i])
			}
			if got := r.git("log", "--format=%(trailers:key=Flotilla-Assignment,valueonly)", "-1", edit.Head); got != edit.Owner.Name {
				t.Errorf("%s: %q", edit.Head, got)
			}
		}
		if errs[4] != nil || !results[4].Committed || results[4].HeadCommit != "" {
			t.Errorf("pushed at the same time: %+v, %v", results[4], errs[4])
		}
		r.fsck()
	}
}

func TestAConflictingProposalIsRefused(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	apply(t, r, teamEdit(t, "a", "1"))
	edit := teamEdit(t, "b", "1")
	edit.Hosts = teamEdit(t, "a", "2").Hosts
	edit.Head = "flotilla/b"
	if _, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit); !errors.Is(err, gitops.ErrConflict) {
		t.Errorf("err = %v", err)
	}
	if got := r.git("branch", "--list", "flotilla/*"); got != "" {
		t.Errorf("branches: %s", got)
	}
}
