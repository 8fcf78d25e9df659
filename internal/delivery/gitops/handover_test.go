package gitops_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
)

// renameOwner returns the edit with a new name for its owner.
func renameOwner(edit gitops.Edit, name string) gitops.Edit {
	edit.FormerName, edit.Owner.Name = edit.Owner.Name, name
	return edit
}

// filesAfterRename returns the expected files after a rename.
func filesAfterRename(files map[string]string, from, to string) map[string]string {
	after := map[string]string{}
	for name, content := range files {
		switch {
		case strings.Contains(name, ".flotilla/"+from+"/"):
			name = strings.Replace(name, ".flotilla/"+from+"/", ".flotilla/"+to+"/", 1)
			content = strings.Replace(
				content,
				`  "deployment_targets"`,
				"  \"owner_formerly\": [\n    \""+from+"\"\n  ],\n  \"deployment_targets\"",
				1,
			)
		case strings.HasSuffix(name, "/"+from+".md"):
			name = strings.TrimSuffix(name, from+".md") + to + ".md"
			content = strings.ReplaceAll(content, "`"+from+"`", "`"+to+"`")
		}
		after[name] = content
	}
	return after
}

func TestARenameMovesRecordsAndMarkersButNoFolder(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		r.commitByHand(func(w *workTree) { w.write("README.md", "x"); w.write("dev/drone/foreign/x", "x") })
		edit := devEdit(t, map[string]gitops.FolderEdit{
			"drone/app": withVersion(newFolder(t, "a", "1"), "v1"), "large/": {}, "clusters/one/app": withVersion(newFolder(t, "a", "1"), "v1"),
		})
		first := apply(t, r, edit)
		other := teamEdit(t, "other", "1")
		apply(t, r, other)
		before := r.files()
		commits := r.git("rev-list", "--count", "main")

		edit.Written, edit.Records = treesOf(edit), first.Records
		edit = renameOwner(edit, "dev-eu")
		conflicts, err := readOwner(t, r, edit.Owner).FindConflicts(context.Background(), treesOf(edit), nil, "dev")
		if err != nil || len(conflicts) != 0 {
			t.Errorf("conflicts = %v, %v", conflicts, err)
		}
		result, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit)
		if err != nil || len(result.Changes) != 0 || result.Pushes != 1 {
			t.Fatalf("result = %+v, %v", result, err)
		}
		if got, want := r.files(), filesAfterRename(before, "dev", "dev-eu"); !maps.Equal(got, want) {
			t.Errorf("files = %q\nwant %q", got, want)
		}
		if message := r.git("log", "-1", "--format=%B"); !strings.HasPrefix(
			message,
			"dev-eu: takes over from dev\n\nHosts:\n- clusters/one\n- drone\n- large\n",
		) {
			t.Errorf("message = %q", message)
		}
		if len(result.Records) != 3 {
			t.Errorf("records = %v", result.Records)
		}
		for _, records := range []map[string]string{nil, result.Records} {
			edit.Records = records
			if again := apply(t, r, edit); again.Committed {
				t.Errorf("again: %+v", again)
			}
		}
		if touched := readOwner(t, r, edit.Owner).FindTouched(result.Records); len(touched) != 0 {
			t.Errorf("touched = %v", touched)
		}
		if n := r.git("rev-list", "--count", "main"); n == commits {
			t.Error("the rename made no commit")
		}
		for _, owner := range []gitops.Owner{dev, edit.Owner, {Path: "dev"}} {
			for _, commit := range readHistory(t, r, owner, gitops.HistoryFilter{}).Commits {
				if commit.Commit == result.Commit {
					t.Errorf("the history of %q has the rename: %+v", owner.Name, commit)
				}
			}
		}
		r.fsck()
	})
}

func TestARenameMayAccompanyOtherChanges(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		edit := devEdit(t, map[string]gitops.FolderEdit{
			"drone/app": withVersion(newFolder(t, "a", "1"), "v1"), "drone/old": newFolder(t, "a", "1"), "gone/app": newFolder(t, "a", "1"),
		})
		first := apply(t, r, edit)
		next := renameOwner(
			devEdit(t, map[string]gitops.FolderEdit{"drone/app": withVersion(newFolder(t, "a", "2"), "v2"), "large/new": newFolder(t, "a", "1")}),
			"dev-eu",
		)
		next.Written, next.Records = treesOf(edit), first.Records
		if _, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, next); !errors.Is(err, gitops.ErrUnplanned) ||
			!strings.HasSuffix(err.Error(), "drone/old, gone/app") {
			t.Errorf("err = %v", err)
		}
		next.Remove = deployedTrees{"drone": {"old": ""}, "gone": {"app": ""}}
		result, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, next)
		if err != nil || len(changedKeys(result, "added")) != 1 || len(changedKeys(result, "changed")) != 1 || len(changedKeys(result, "removed")) != 2 ||
			result.Changes[0].Before != "v1" {
			t.Fatalf("result = %+v, %v", result, err)
		}
		want := []string{
			"dev/.flotilla/dev-eu/drone.json", "dev/.flotilla/dev-eu/large.json", "dev/drone/app/a", "dev/drone/dev-eu.md",
			"dev/gone/dev-eu.md", "dev/large/dev-eu.md", "dev/large/new/a",
		}
		files := r.files()
		if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) || files["dev/gone/dev-eu.md"] != leftMarker("dev-eu") {
			t.Errorf("files = %q", files)
		}
		if got, want := r.git("log", "-1", "--format=%s"), "dev-eu: takes over from dev, 1 added, 1 changed, 2 removed"; got != want {
			t.Errorf("subject = %q", got)
		}
		r.fsck()
	})
}

func TestARenameToANameWithRecordsMergesBoth(t *testing.T) {
	t.Parallel()
	for _, serving := range []serving{servings[0], servings[2]} {
		r := newRepository(t, serving)
		old := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1"), "drone/both": newFolder(t, "a", "1"), "large/": {}})
		apply(t, r, old)
		heir := gitops.Owner{Name: "heir", Environment: "dev", Path: "dev"}
		apply(
			t,
			r,
			gitops.Edit{
				Owner: heir,
				Hosts: folderEdits(t, map[string]gitops.FolderEdit{"drone/mine": newFolder(t, "a", "1"), "small/mine": newFolder(t, "a", "1")}),
			},
		)
		edit := gitops.Edit{Owner: heir, FormerName: "dev", Written: treesOf(old), Hosts: old.Hosts}
		if _, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit); !errors.Is(err, gitops.ErrUnplanned) ||
			!strings.HasSuffix(err.Error(), ": drone/mine, small/mine") {
			t.Errorf("err = %v", err)
		}
		edit.LeaveOthers = true
		if result, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit); err != nil || len(result.Changes) != 0 {
			t.Fatalf("result = %+v, %v", result, err)
		}
		if got, want := r.git("log", "-1", "--format=%s"), "heir: takes over from dev"; got != want {
			t.Errorf("subject = %q", got)
		}
		owned, err := readOwned(readOwner(t, r, heir))
		if err != nil || len(owned["drone"]) != 3 || len(owned["small"]) != 1 || owned["large"] == nil {
			t.Errorf("owned = %v, %v", owned, err)
		}
		if again, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit); err != nil || again.Committed {
			t.Errorf("again: %+v, %v", again, err)
		}
		r.fsck()
	}
}

func TestARenameMergesAnEmptyRecord(t *testing.T) {
	t.Parallel()
	old := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1")})
	for _, record := range []string{`{"format":1}`, `{"format":1,"deployment_targets":null}`} {
		r := newRepository(t, servings[0])
		apply(t, r, old)
		r.commitByHand(func(w *workTree) { w.write("dev/.flotilla/heir/drone.json", record) })
		heir := gitops.Owner{Name: "heir", Environment: "dev", Path: "dev"}
		edit := gitops.Edit{Owner: heir, FormerName: "dev", Written: treesOf(old), Hosts: old.Hosts}
		if _, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit); err != nil {
			t.Fatalf("%s: %v", record, err)
		}
		owned, err := readOwned(readOwner(t, r, heir))
		if err != nil || len(owned["drone"]) != 1 {
			t.Errorf("%s: owned = %v, %v", record, owned, err)
		}
	}
}

func TestTheFormerNameMayBeReusedInTheSameApply(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	old := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1")})
	first := apply(t, r, old)
	edit := renameOwner(old, "dev-eu")
	edit.Written, edit.Records = treesOf(old), first.Records
	successor := devEdit(t, map[string]gitops.FolderEdit{"drone/new": newFolder(t, "a", "1")})
	results, errs := applyAll(t, r, successor, edit)
	if errs[1] != nil || errs[0] != nil && !errors.Is(errs[0], gitops.ErrUnplanned) {
		t.Fatalf("%+v, %v", results, errs)
	}
	apply(t, r, successor)
	files := r.files()
	if files["dev/drone/app/a"] != "1" || files["dev/drone/new/a"] != "1" {
		t.Errorf("files = %q", files)
	}
	r.fsck()
}

func TestARenameRemovesFormerMarkersFromItsHosts(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	apply(
		t,
		r,
		devEdit(
			t,
			map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1"), "large/app": newFolder(t, "a", "1"), "small/app": newFolder(t, "a", "1")},
		),
	)
	old := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1")})
	apply(t, r, old)
	edit := renameOwner(devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1"), "large/app": newFolder(t, "a", "1")}), "dev-eu")
	apply(t, r, edit)
	files := r.files()
	if _, ok := files["dev/large/dev.md"]; ok || files["dev/small/dev.md"] != leftMarker("dev") {
		t.Errorf("files = %q", files)
	}
}
