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
)

func TestAdoptTakesOverFoldersInOneCommit(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		// One other owner has the same path, and another one a path below it.
		theirs := gitops.Edit{Owner: gitops.Owner{Name: "theirs", Path: "dev"}, Hosts: folderEdits(t, map[string]gitops.FolderEdit{
			"drone/app": withVersion(
				newFolder(t, "a", "1"),
				"v1",
			), "drone/same": withVersion(newFolder(t, "a", "1"), "v1"), "drone/keep": newFolder(t, "a", "1"),
		})}
		below := gitops.Edit{
			Owner: gitops.Owner{Name: "below", Path: "dev/clusters"},
			Hosts: folderEdits(t, map[string]gitops.FolderEdit{"one/app": withVersion(newFolder(t, "a", "1"), "v1")}),
		}
		apply(t, r, theirs)
		apply(t, r, below)
		ours := devEdit(t, map[string]gitops.FolderEdit{
			"drone/app": withVersion(
				newFolder(t, "a", "2"),
				"v2",
			), "drone/same": withVersion(newFolder(t, "a", "1"), "v1"), "clusters/one/app": withVersion(newFolder(t, "a", "1"), "v1"),
		})
		if _, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, ours); !errors.Is(err, gitops.ErrConflict) {
			t.Errorf("without adopt: %v", err)
		}
		ours.Adopt = true
		result := apply(t, r, ours)
		if !result.Committed || !slices.Equal(result.Changes, []folder.Change{
			{
				Key:    folder.Key{Host: "drone", DeploymentTarget: "app"},
				Action: folder.Changed,
				Before: "v1",
				After:  "v2",
				Was:    newFolder(t, "a", "1").Tree,
			},
		}) {
			t.Errorf("result = %+v", result)
		}
		message := r.git("log", "-1", "--format=%B")
		if want := "Taken over:\n- clusters/one/app from below at dev/clusters\n- drone/app from theirs at dev\n- drone/same from theirs at dev\n"; !strings.Contains(
			message,
			want,
		) {
			t.Errorf("message = %q", message)
		}
		if again := apply(t, r, ours); again.Committed {
			t.Errorf("again: %+v", again)
		}
		owned, err := readOwned(readOwner(t, r, theirs.Owner))
		if want := map[string]string{"keep": newFolder(t, "a", "1").Tree}; err != nil || !maps.Equal(owned["drone"], want) {
			t.Errorf("theirs = %v, %v", owned, err)
		}
		// The former owner gets an error, and removes only its own folders.
		if _, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, theirs); !errors.Is(err, gitops.ErrConflict) ||
			!strings.Contains(err.Error(), `"dev"`) {
			t.Errorf("theirs again: %v", err)
		}
		apply(t, r, gitops.Edit{Owner: theirs.Owner, Written: treesOf(theirs)})
		apply(t, r, gitops.Edit{Owner: below.Owner, Written: treesOf(below)})
		files := r.files()
		if files["dev/drone/app/a"] != "2" || files["dev/drone/same/a"] != "1" || files["dev/clusters/one/app/a"] != "1" ||
			files["dev/drone/keep/a"] != "" {
			t.Errorf("files = %v", files)
		}
		if again := apply(t, r, ours); again.Committed {
			t.Errorf("after the former owners' removals: %+v", again)
		}
		r.fsck()
	})
}

func TestAdoptTakesNoFolderWithAnotherOwnerInside(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	apply(
		t,
		r,
		gitops.Edit{
			Owner: gitops.Owner{Name: "inside", Path: "dev/large/app"},
			Hosts: folderEdits(t, map[string]gitops.FolderEdit{"x/y": newFolder(t, "a", "1")}),
		},
	)
	before := r.files()
	edit := devEdit(t, map[string]gitops.FolderEdit{"large/app": newFolder(t, "a", "2")})
	conflicts, err := readOwner(t, r, dev).FindConflicts(context.Background(), treesOf(edit), nil, "")
	if err != nil || len(conflicts) != 1 || conflicts[0].IsAdoptable() {
		t.Errorf("conflicts = %+v, %v", conflicts, err)
	}
	edit.Adopt = true
	if _, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit); !errors.Is(err, gitops.ErrConflict) {
		t.Errorf("err = %v", err)
	}
	if got := r.files(); !maps.Equal(got, before) {
		t.Errorf("files = %v", got)
	}
}

func TestAdoptTakesAnUnrecordedFolder(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		r.commitByHand(func(w *workTree) { w.write("dev/drone/app/deep/a", "by hand"); w.write("dev/drone/other/a", "by hand") })
		edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": withVersion(newFolder(t, "a", "1"), "v1")})
		conflicts, err := readOwner(t, r, dev).FindConflicts(context.Background(), treesOf(edit), nil, "")
		if err != nil || len(conflicts) != 1 || !conflicts[0].IsAdoptable() {
			t.Errorf("conflicts = %+v, %v", conflicts, err)
		}
		edit.Adopt = true
		result := apply(t, r, edit)
		if len(result.Changes) != 1 || result.Changes[0].Before != "" || result.Changes[0].After != "v1" {
			t.Errorf("result = %+v", result)
		}
		if message := r.git("log", "-1", "--format=%B"); !strings.Contains(message, "Taken over:\n- drone/app from no owner\n") {
			t.Errorf("message = %q", message)
		}
		if files := r.files(); files["dev/drone/app/a"] != "1" || files["dev/drone/app/deep/a"] != "" || files["dev/drone/other/a"] != "by hand" {
			t.Errorf("files = %v", files)
		}
		r.fsck()
	})
}

func TestReleasedFoldersStayWithoutAnOwner(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1"), "clusters/one/app": newFolder(t, "a", "2"), "spare/": {}})
		apply(t, r, edit)
		other := teamEdit(t, "other", "1")
		apply(t, r, other)
		remaining := r.files()
		for name := range remaining {
			if strings.HasPrefix(name, "dev/.flotilla/dev/") {
				delete(remaining, name)
			}
		}
		abandon := gitops.Edit{Owner: dev, Written: treesOf(edit), Abandon: true}
		if result := apply(t, r, abandon); !result.Committed || len(result.Changes) != 0 {
			t.Errorf("result = %+v", result)
		}
		if got := r.files(); !maps.Equal(got, remaining) {
			t.Errorf("files = %v\nwant %v", got, remaining)
		}
		if message, want := r.git("log", "-1", "--format=%B"), "dev: 2 no longer managed\n\nNo longer managed:\n- clusters/one/app\n- drone/app\n\nFlotilla-Assignment: dev"; !strings.HasPrefix(
			message,
			want,
		) {
			t.Errorf("message = %q, want %q", message, want)
		}
		if again := apply(t, r, abandon); again.Committed {
			t.Errorf("again: %+v", again)
		}
		// Any owner may take the abandoned folders.
		heir := gitops.Edit{Owner: gitops.Owner{Name: "heir", Path: "dev"}, Hosts: edit.Hosts}
		if result := apply(t, r, heir); !result.Committed || len(result.Changes) != 0 {
			t.Errorf("heir: %+v", result)
		}
		if _, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit); !errors.Is(err, gitops.ErrConflict) ||
			!strings.Contains(err.Error(), `"heir"`) {
			t.Errorf("the former owner: %v", err)
		}
		if _, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, gitops.Edit{Owner: dev, Hosts: edit.Hosts, Abandon: true}); err == nil {
			t.Error("an edit with Abandon and folders is accepted")
		}
		r.fsck()
	})
}
