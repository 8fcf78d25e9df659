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

func TestNothingIsRemovedThatThePlanDidNotShow(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		all := devEdit(t, map[string]gitops.FolderEdit{
			"drone/app": rendered(t, "a", "1"), "drone/two": rendered(t, "a", "1"), "large/app": rendered(t, "a", "1"),
		})
		apply(t, r, all)
		before := r.files()
		apart := func(folders map[string]gitops.FolderEdit, remove deployedTrees) error {
			edit := devEdit(t, folders)
			edit.Remove = remove
			_, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit)
			return err
		}
		some := map[string]gitops.FolderEdit{"drone/app": rendered(t, "a", "2")}
		for name, err := range map[string]error{
			"nothing shown":    apart(some, nil),
			"one shown":        apart(some, deployedTrees{"drone": {"two": ""}}),
			"an empty host":    apart(some, deployedTrees{"drone": {"two": ""}, "large": {}}),
			"a destroy":        apart(nil, nil),
			"a destroy of one": apart(nil, deployedTrees{"drone": {"two": "", "app": ""}}),
		} {
			if !errors.Is(err, gitops.ErrUnplanned) || !strings.Contains(err.Error(), "large/app") ||
				!strings.Contains(err.Error(), `the branch has folders of the assignment "dev" that the plan did not show`) {
				t.Errorf("%s: err = %v", name, err)
			}
		}
		if got := r.files(); !maps.Equal(got, before) {
			t.Errorf("files = %v", got)
		}
		if err := apart(some, deployedTrees{"drone": {"two": ""}, "large": {"app": "", "never": ""}}); err != nil {
			t.Errorf("all shown: %v", err)
		}
		r.fsck()
	})
}

func TestWhatOnlyTheStateKnowsIsGuarded(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": rendered(t, "a", "1"), "drone/two": rendered(t, "a", "1")})
	apply(t, r, edit)
	r.byHand(func(w *workTree) { w.remove("dev/.flotilla") })
	less := devEdit(t, map[string]gitops.FolderEdit{"drone/app": rendered(t, "a", "1")})
	less.Written = wanted(edit)
	if _, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, less); !errors.Is(err, gitops.ErrUnplanned) {
		t.Errorf("err = %v", err)
	}
	less.Remove = deployedTrees{"drone": {"two": ""}}
	if result, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, less); err != nil ||
		!slices.Equal(keysOf(result, "removed"), []string{"drone/two"}) {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestARecordedFolderThatIsGoneIsNoRemoval(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"drone/app": rendered(t, "a", "1"), "drone/two": rendered(t, "a", "1")}))
	r.byHand(func(w *workTree) { w.remove("dev/drone/two") })
	result, err := newClient(
		gitops.BranchOptions{},
	).Apply(context.Background(), r.remote, devEdit(t, map[string]gitops.FolderEdit{"drone/app": rendered(t, "a", "1")}))
	if err != nil || len(keysOf(result, "removed")) != 0 {
		t.Errorf("%+v, %v", result, err)
	}
	if owned, err := ownedIn(inspect(t, r, dev)); err != nil || len(owned["drone"]) != 1 {
		t.Errorf("owned = %v, %v", owned, err)
	}
}

func TestADestroyLeavesWhatThePlanDidNotShow(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		all := map[string]gitops.FolderEdit{
			"drone/app": rendered(t, "a", "1"), "drone/two": rendered(t, "a", "1"), "large/app": rendered(t, "a", "1"), "small/": {},
		}
		apply(t, r, devEdit(t, all))
		destroy := gitops.Edit{Owner: dev, Remove: deployedTrees{"drone": {"app": ""}, "small": {}}, LeaveOthers: true}
		result, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, destroy)
		if err != nil || !slices.Equal(keysOf(result, "removed"), []string{"drone/app"}) {
			t.Fatalf("result = %+v, %v", result, err)
		}
		owned, err := ownedIn(inspect(t, r, dev))
		want := deployedTrees{"drone": {"two": rendered(t, "a", "1").Tree}, "large": {"app": rendered(t, "a", "1").Tree}}
		if err != nil || sprint(owned) != sprint(want) {
			t.Errorf("owned = %v, %v", owned, err)
		}
		files := r.files()
		if files["dev/small/dev.md"] != leftText("dev") || files["dev/drone/dev.md"] == leftText("dev") || files["dev/large/app/a"] != "1" {
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
		folders[fmt.Sprintf("drone/app-%02d", i)] = rendered(t, "a", "1")
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
				"drone/app":        rendered(t, "a", "1"),
				"large/app":        rendered(t, "a", "1"),
				"clusters/one/app": rendered(t, "a", "1"),
			},
		)
		apply(t, r, edit)
		less := devEdit(t, map[string]gitops.FolderEdit{"drone/app": rendered(t, "a", "1")})
		less.Written = wanted(edit)
		result := apply(t, r, less)
		want := []string{"dev/.flotilla/dev/drone.json", "dev/clusters/one/dev.md", "dev/drone/app/a", "dev/drone/dev.md", "dev/large/dev.md"}
		files := r.files()
		if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) || files["dev/large/dev.md"] != leftText("dev") ||
			files["dev/clusters/one/dev.md"] != leftText("dev") {
			t.Errorf("files = %q", files)
		}
		// It is no drift, and nobody's.
		view := inspect(t, r, dev)
		if owned, err := ownedIn(view); err != nil || len(owned) != 1 || len(view.FindTouched(result.Records)) != 0 {
			t.Errorf("owned = %v, %v, touched %v", owned, err, view.FindTouched(result.Records))
		}
		for _, change := range []func(w *workTree){
			func(w *workTree) {},
			func(w *workTree) { w.write("dev/large/dev.md", "mine") },
			func(w *workTree) { w.remove("dev/large") },
		} {
			r.byHand(func(w *workTree) { change(w); w.write("README.md", sprint(len(r.git("log")))) })
			left := r.files()
			if again := apply(t, r, less); again.Committed || !maps.Equal(r.files(), left) {
				t.Errorf("again: %+v", again)
			}
		}
		// The owner comes back, and so does another of its name.
		apply(t, r, edit)
		if text := r.files()["dev/clusters/one/dev.md"]; text == leftText("dev") || !strings.Contains(text, "Flotilla writes this folder") {
			t.Errorf("marker = %q", text)
		}
		apply(t, r, gitops.Edit{Owner: dev, Written: wanted(edit)})
		for _, host := range []string{"drone", "large", "clusters/one"} {
			if got := r.files()["dev/"+host+"/dev.md"]; got != leftText("dev") {
				t.Errorf("%s: %q", host, got)
			}
		}
		if again := apply(t, r, gitops.Edit{Owner: dev, Written: wanted(edit)}); again.Committed {
			t.Errorf("destroyed again: %+v", again)
		}
		if back := apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"drone/other": rendered(t, "a", "1")})); !back.Committed {
			t.Errorf("another of its name: %+v", back)
		}
		r.fsck()
	})
}

func TestAHostWhoseFolderIsGoneIsLeftWithoutOne(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": rendered(t, "a", "1"), "large/app": rendered(t, "a", "1")})
	apply(t, r, edit)
	r.byHand(func(w *workTree) {
		w.remove("dev/drone")
		w.remove("dev/large/dev.md")
		w.write("dev/large/DEV.md", "x")
	})
	apply(t, r, gitops.Edit{Owner: dev, Written: wanted(edit)})
	if got := r.files(); len(got) != 1 || got["dev/large/DEV.md"] != "x" {
		t.Errorf("files = %q", got)
	}
	r.fsck()
}
