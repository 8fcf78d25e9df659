package gitops_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
)

func TestOnlyPlannedFoldersAreRemoved(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		all := devEdit(t, map[string]gitops.FolderEdit{
			"drone/app": newFolder(t, "a", "1"), "drone/two": newFolder(t, "a", "1"), "large/app": newFolder(t, "a", "1"),
		})
		apply(t, r, all)
		before := r.files()
		applyWithRemovals := func(folders map[string]gitops.FolderEdit, remove deployedTrees) error {
			edit := devEdit(t, folders)
			edit.Remove = remove
			_, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit)
			return err
		}
		some := map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "2")}
		for name, err := range map[string]error{
			"nothing shown":    applyWithRemovals(some, nil),
			"one shown":        applyWithRemovals(some, deployedTrees{"drone": {"two": ""}}),
			"an empty host":    applyWithRemovals(some, deployedTrees{"drone": {"two": ""}, "large": {}}),
			"a destroy":        applyWithRemovals(nil, nil),
			"a destroy of one": applyWithRemovals(nil, deployedTrees{"drone": {"two": "", "app": ""}}),
		} {
			if !errors.Is(err, gitops.ErrUnplanned) || !strings.Contains(err.Error(), "large/app") ||
				!strings.Contains(err.Error(), `the branch has folders of the assignment "dev" that the plan did not show`) {
				t.Errorf("%s: err = %v", name, err)
			}
		}
		if got := r.files(); !maps.Equal(got, before) {
			t.Errorf("files = %v", got)
		}
		if err := applyWithRemovals(some, deployedTrees{"drone": {"two": ""}, "large": {"app": "", "never": ""}}); err != nil {
			t.Errorf("all shown: %v", err)
		}
		r.fsck()
	})
}

func TestUnrecordedFoldersAreRemovedOnlyIfPlanned(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1"), "drone/two": newFolder(t, "a", "1")})
	apply(t, r, edit)
	r.commitByHand(func(w *workTree) { w.remove("dev/.flotilla") })
	less := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1")})
	less.Written = treesOf(edit)
	if _, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, less); !errors.Is(err, gitops.ErrUnplanned) {
		t.Errorf("err = %v", err)
	}
	less.Remove = deployedTrees{"drone": {"two": ""}}
	if result, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, less); err != nil ||
		!slices.Equal(changedKeys(result, "removed"), []string{"drone/two"}) {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestAMissingRecordedFolderIsNoRemoval(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1"), "drone/two": newFolder(t, "a", "1")}))
	r.commitByHand(func(w *workTree) { w.remove("dev/drone/two") })
	result, err := newClient(
		gitops.BranchOptions{},
	).Apply(context.Background(), r.remote, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1")}))
	if err != nil || len(changedKeys(result, "removed")) != 0 {
		t.Errorf("%+v, %v", result, err)
	}
	if owned, err := readOwned(readOwner(t, r, dev)); err != nil || len(owned["drone"]) != 1 {
		t.Errorf("owned = %v, %v", owned, err)
	}
}

func TestADestroyKeepsUnplannedFolders(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		all := map[string]gitops.FolderEdit{
			"drone/app": newFolder(t, "a", "1"), "drone/two": newFolder(t, "a", "1"), "large/app": newFolder(t, "a", "1"), "small/": {},
		}
		apply(t, r, devEdit(t, all))
		destroy := gitops.Edit{Owner: dev, Remove: deployedTrees{"drone": {"app": ""}, "small": {}}, LeaveOthers: true}
		result, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, destroy)
		if err != nil || !slices.Equal(changedKeys(result, "removed"), []string{"drone/app"}) {
			t.Fatalf("result = %+v, %v", result, err)
		}
		owned, err := readOwned(readOwner(t, r, dev))
		want := deployedTrees{"drone": {"two": newFolder(t, "a", "1").Tree}, "large": {"app": newFolder(t, "a", "1").Tree}}
		if err != nil || sprint(owned) != sprint(want) {
			t.Errorf("owned = %v, %v", owned, err)
		}
		files := r.files()
		if files["dev/small/dev.md"] != leftMarker("dev") || files["dev/drone/dev.md"] == leftMarker("dev") || files["dev/large/app/a"] != "1" {
			t.Errorf("files = %v", files)
		}
		if again, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, destroy); err != nil || again.Committed {
			t.Errorf("again: %+v, %v", again, err)
		}
		r.fsck()
	})
}

func TestAnUnplannedErrorNamesTheFirstOfMany(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	folders := map[string]gitops.FolderEdit{}
	for i := range 12 {
		folders[fmt.Sprintf("drone/app-%02d", i)] = newFolder(t, "a", "1")
	}
	apply(t, r, devEdit(t, folders))
	_, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, gitops.Edit{Owner: dev})
	if !errors.Is(err, gitops.ErrUnplanned) || !strings.HasSuffix(err.Error(), "drone/app-08, drone/app-09 and 2 more") {
		t.Errorf("err = %v", err)
	}
}

func TestARemovedHostKeepsItsFolderWithoutAnOwner(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		edit := devEdit(
			t,
			map[string]gitops.FolderEdit{
				"drone/app":        newFolder(t, "a", "1"),
				"large/app":        newFolder(t, "a", "1"),
				"clusters/one/app": newFolder(t, "a", "1"),
			},
		)
		apply(t, r, edit)
		less := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1")})
		less.Written = treesOf(edit)
		result := apply(t, r, less)
		want := []string{"dev/.flotilla/dev/drone.json", "dev/clusters/one/dev.md", "dev/drone/app/a", "dev/drone/dev.md", "dev/large/dev.md"}
		files := r.files()
		if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) || files["dev/large/dev.md"] != leftMarker("dev") ||
			files["dev/clusters/one/dev.md"] != leftMarker("dev") {
			t.Errorf("files = %q", files)
		}
		// The remaining folder is no drift and has no owner.
		view := readOwner(t, r, dev)
		if owned, err := readOwned(view); err != nil || len(owned) != 1 || len(view.FindTouched(result.Records)) != 0 {
			t.Errorf("owned = %v, %v, touched %v", owned, err, view.FindTouched(result.Records))
		}
		for _, change := range []func(w *workTree){
			func(w *workTree) {},
			func(w *workTree) { w.write("dev/large/dev.md", "mine") },
			func(w *workTree) { w.remove("dev/large") },
		} {
			r.commitByHand(func(w *workTree) { change(w); w.write("README.md", sprint(len(r.git("log")))) })
			before := r.files()
			if again := apply(t, r, less); again.Committed || !maps.Equal(r.files(), before) {
				t.Errorf("again: %+v", again)
			}
		}
		// The owner may write the host again, and so may another owner with its name.
		apply(t, r, edit)
		if text := r.files()["dev/clusters/one/dev.md"]; text == leftMarker("dev") || !strings.Contains(text, "Flotilla writes this folder") {
			t.Errorf("marker = %q", text)
		}
		apply(t, r, gitops.Edit{Owner: dev, Written: treesOf(edit)})
		for _, host := range []string{"drone", "large", "clusters/one"} {
			if got := r.files()["dev/"+host+"/dev.md"]; got != leftMarker("dev") {
				t.Errorf("%s: %q", host, got)
			}
		}
		if again := apply(t, r, gitops.Edit{Owner: dev, Written: treesOf(edit)}); again.Committed {
			t.Errorf("destroyed again: %+v", again)
		}
		if back := apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"drone/other": newFolder(t, "a", "1")})); !back.Committed {
			t.Errorf("another owner with the name: %+v", back)
		}
		r.fsck()
	})
}

func TestAMissingHostGetsNoMarker(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1"), "large/app": newFolder(t, "a", "1")})
	apply(t, r, edit)
	r.commitByHand(func(w *workTree) {
		w.remove("dev/drone")
		w.remove("dev/large/dev.md")
		w.write("dev/large/DEV.md", "x")
	})
	apply(t, r, gitops.Edit{Owner: dev, Written: treesOf(edit)})
	if got := r.files(); len(got) != 1 || got["dev/large/DEV.md"] != "x" {
		t.Errorf("files = %q", got)
	}
	r.fsck()
}
