package gitops_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// editFromCommit returns an edit that wants the folders of a commit.
func editFromCommit(t *testing.T, r *repository, commit string) gitops.Edit {
	t.Helper()
	hosts, err := readOwner(t, r, dev).ReadFoldersAt(context.Background(), commit)
	if err != nil {
		t.Fatalf("read folders: %v", err)
	}
	return gitops.Edit{Owner: dev, Hosts: hosts}
}

func TestAnEditRollsBackToACommit(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		edit := devEdit(t, map[string]gitops.FolderEdit{
			"drone/app": withVersion(
				newFolder(t, "a", "1"),
				"v1",
			), "drone/gone": withVersion(newFolder(t, "a", "1", "b", "2"), "v1"), "clusters/one/app": withVersion(newFolder(t, "a", "1"), "v1"),
		})
		first := apply(t, r, edit)
		wantFiles := r.files()
		edit = devEdit(t, map[string]gitops.FolderEdit{"drone/app": withVersion(newFolder(t, "a", "2"), "v2"), "large/new": newFolder(t, "a", "1")})
		second := apply(t, r, edit)
		other := teamEdit(t, "other", "1")
		apply(t, r, other)
		for name, content := range r.files() {
			if strings.Contains(name, "other") {
				wantFiles[name] = content
			}
		}
		r.git("gc", "--quiet", "--prune=now")

		rollback := editFromCommit(t, r, first.Commit)
		want := deployedTrees{
			"drone":        {"app": newFolder(t, "a", "1").Tree, "gone": newFolder(t, "a", "1", "b", "2").Tree},
			"clusters/one": {"app": newFolder(t, "a", "1").Tree},
		}
		if got := rollback.Wanted(); !reflect.DeepEqual(got, want) {
			t.Errorf("the first commit: got %v\nwant %v", got, want)
		}

		rollback.Written = treesOf(edit)
		result := apply(t, r, rollback)
		if !result.Committed || len(changedKeys(result, "added")) != 2 || len(changedKeys(result, "changed")) != 1 || len(changedKeys(result, "removed")) != 1 ||
			result.Changes[1].Before != "v2" || result.Changes[1].After != "v1" {
			t.Errorf("result = %+v", result)
		}
		wantFiles["dev/large/dev.md"] = leftMarker("dev")
		if got := r.files(); !equalExceptRecords(got, wantFiles) {
			t.Errorf("files = %q\nwant %q", got, wantFiles)
		}
		if got, want := r.git("log", "-1", "--format=%s"), "dev: 2 added, 1 changed, 1 removed, 3 rolled back to "+first.Commit[:12]; got != want {
			t.Errorf("subject = %q, want %q", got, want)
		}
		if got, want := r.git("log", "-1", "--format=%b"), strings.ReplaceAll("Rolled back:\n- clusters/one/app to C\n- drone/app to C\n- drone/gone to C\n", "C", first.Commit[:12]); !strings.Contains(
			got,
			want,
		) {
			t.Errorf("body = %q, want %q", got, want)
		}
		r.fsck()
		if again := apply(t, r, rollback); again.Committed {
			t.Errorf("again: %+v", again)
		}
		if redone := apply(t, r, editFromCommit(t, r, second.Commit)); !redone.Committed || r.files()["dev/drone/app/a"] != "2" {
			t.Errorf("forth: %+v", redone)
		}
		rollback.Head = "flotilla/dev"
		if proposed := apply(t, r, rollback); !proposed.Committed || r.git("show", "flotilla/dev:dev/drone/gone/b") != "2" {
			t.Errorf("proposed: %+v", proposed)
		}
		r.fsck()
	})
}

func TestARollbackReachesOldCommitsByID(t *testing.T) {
	t.Parallel()
	r := newRepository(t, serving{config: anyObject, remote: overHTTP})
	first := apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1")}))
	commit := fmt.Sprintf("commit refs/heads/%%s\ncommitter A <a@example.com> %d +0000\ndata 1\nx\n", time.Now().Unix())
	var later strings.Builder
	fmt.Fprintf(&later, commit+"from %s\nM 100644 inline a\ndata 1\na\n", "other", first.Commit)
	fmt.Fprintf(&later, commit+"from %s\n\n", "main", first.Commit)
	later.WriteString(strings.Repeat(fmt.Sprintf(commit, "main"), git.LastDepth))
	feed(t, r.directory, []byte(later.String()), "fast-import", "--quiet")
	view := readOwner(t, r, dev)
	edits, err := view.ReadFoldersAt(t.Context(), first.Commit)
	if err != nil || edits["drone"]["app"].Tree != newFolder(t, "a", "1").Tree {
		t.Errorf("%+v, %v", edits, err)
	}
	if _, err := view.ReadFoldersAt(t.Context(), r.git("rev-parse", "other")); !errors.Is(err, git.ErrCommit) {
		t.Errorf("a commit of another branch: %v", err)
	}
}

func TestOneCommitWritesKeepsAndRollsBack(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		first := apply(t, r, devEdit(t, map[string]gitops.FolderEdit{
			"drone/back": withVersion(
				newFolder(t, "a", "1"),
				"v1",
			), "drone/keep": withVersion(newFolder(t, "a", "1"), "v1"), "drone/write": withVersion(newFolder(t, "a", "1"), "v1"),
		}))
		second := devEdit(t, map[string]gitops.FolderEdit{
			"drone/back": withVersion(
				newFolder(t, "a", "2"),
				"v2",
			), "drone/keep": withVersion(newFolder(t, "a", "2"), "v2"), "drone/write": withVersion(newFolder(t, "a", "2"), "v2"),
		})
		apply(t, r, second)
		r.commitByHand(func(w *workTree) { w.write("dev/drone/keep/by-hand", "x"); w.write("dev/drone/foreign/x", "x") })
		mixed := devEdit(t, map[string]gitops.FolderEdit{
			"drone/back":    editFromCommit(t, r, first.Commit).Hosts["drone"]["back"],
			"drone/keep":    {Action: gitops.Keep, Tree: newFolder(t, "a", "3").Tree, Record: folder.Record{ConfigVersion: "v3"}},
			"drone/foreign": {Action: gitops.Keep},
			"large/absent":  {Action: gitops.Keep},
			"drone/write":   withVersion(newFolder(t, "a", "3"), "v3"),
		})
		mixed.Written = treesOf(second)
		result, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, mixed)
		if err != nil || !slices.Equal(changedKeys(result, "changed"), []string{"drone/back", "drone/write"}) ||
			len(changedKeys(result, "added"))+len(changedKeys(result, "removed")) != 0 {
			t.Fatalf("result = %+v, %v", result, err)
		}
		files := r.files()
		if files["dev/drone/back/a"] != "1" || files["dev/drone/keep/a"] != "2" || files["dev/drone/keep/by-hand"] != "x" ||
			files["dev/drone/write/a"] != "3" ||
			files["dev/drone/foreign/x"] != "x" {
			t.Errorf("files = %v", files)
		}
		trees := readTrees(t, readOwner(t, r, dev), treesOf(mixed))
		if _, ok := trees["large"]["absent"]; ok || trees["drone"]["foreign"] == "" || trees["drone"]["write"] != newFolder(t, "a", "3").Tree {
			t.Errorf("deployed = %v", trees)
		}
		records, err := readOwner(t, r, dev).ReadRecords(context.Background(), "")
		for target, want := range map[string]string{"back": "v1", "keep": "v2", "write": "v3"} {
			if got := records.Records[folder.Key{Host: "drone", DeploymentTarget: target}].ConfigVersion; got != want || err != nil {
				t.Errorf("%s: recorded version %q, want %q, %v", target, got, want, err)
			}
		}
		if records.Trees.Has("drone", "foreign") || len(records.Records) != 3 || records.Trees["large"] == nil {
			t.Errorf("records = %v", records)
		}
		if again, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, mixed); err != nil || again.Committed {
			t.Errorf("again: %+v, %v", again, err)
		}
		r.fsck()
	})
}

func TestAKeptFolderWithALostRecordIsRecordedAgain(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": withVersion(newFolder(t, "a", "1"), "v1")})
	apply(t, r, edit)
	r.commitByHand(func(w *workTree) { w.remove("dev/.flotilla") })
	kept := devEdit(t, map[string]gitops.FolderEdit{"drone/app": {Action: gitops.Keep, Record: folder.Record{Workload: "w", ConfigVersion: "v1"}}})
	kept.Written = treesOf(edit)
	result, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, kept)
	if err != nil || !result.Committed || len(result.Changes) != 0 {
		t.Fatalf("result = %+v, %v", result, err)
	}
	records, err := readOwner(t, r, dev).ReadRecords(context.Background(), "")
	if got := records.Records[folder.Key{Host: "drone", DeploymentTarget: "app"}]; err != nil || got.Workload != "w" ||
		got.Tree != newFolder(t, "a", "1").Tree {
		t.Errorf("records = %+v, %v", records, err)
	}
}

func TestARollbackToAnInvalidCommitIsAClearError(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		r.commitByHand(func(w *workTree) { w.write("README.md", "x") })
		byHand := r.tip()
		good := apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1")})).Commit
		aside := r.git("-c", "user.name=A", "-c", "user.email=a@example.com", "commit-tree", "-p", "main", "-m", "aside", "main^{tree}")
		r.git("update-ref", "refs/heads/aside", aside)
		r.commitByHand(func(w *workTree) {
			w.write("dev/drone/app/deep/x", "by hand")
			if err := os.Symlink("x", filepath.Join(w.directory, "dev", "drone", "app", "deep", "link")); err != nil {
				t.Fatal(err)
			}
		})
		deep := r.tip()
		tree := r.git("rev-parse", "main:dev/drone/app")
		for from, want := range map[string]string{
			byHand: "has no record", aside: "not in the history", strings.Repeat("1", 40): "not in the history", deep: `"deep/link" is a symbolic link`, "main": "not an object id",
		} {
			if _, err := readOwner(t, r, dev).ReadFoldersAt(context.Background(), from); !errors.Is(err, git.ErrCommit) ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("commit %s: err = %v, want %q", from, err, want)
			}
		}
		for name, test := range map[string]struct{ from, tree, want string }{
			"aside":     {aside, tree, "not in the history"},
			"unknown":   {strings.Repeat("1", 40), tree, "not in the history"},
			"no commit": {"main", tree, "not an object id"},
			"no tree":   {good, "", "not an object id"},
		} {
			edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": {Action: gitops.RollBack, From: test.from, Tree: test.tree}})
			if _, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: err = %v, want %q", name, err, test.want)
			}
		}
		if got := r.tip(); got != deep {
			t.Error("the branch moved")
		}
	})
}

// leftMarker returns the text of the marker in a host that its owner has left.
func leftMarker(owner string) string {
	return "Nothing of the assignment `" + owner + "` is here any more. Agents that follow this folder remove what they had of it. " +
		"When no agent follows it any more, this file may be removed by hand.\n"
}

// withoutLeftMarkers returns the files without the markers of removed hosts.
func withoutLeftMarkers(files map[string]string) map[string]string {
	files = maps.Clone(files)
	maps.DeleteFunc(files, func(_, content string) bool { return strings.HasPrefix(content, "Nothing of the assignment") })
	return files
}

// equalExceptRecords compares files, but only the names of records, because records contain times.
func equalExceptRecords(got, want map[string]string) bool {
	return maps.EqualFunc(blankRecords(got), blankRecords(want), func(a, b string) bool { return a == b })
}

func blankRecords(files map[string]string) map[string]string {
	blanked := maps.Clone(files)
	for name := range blanked {
		if strings.Contains(name, ".flotilla/") {
			blanked[name] = ""
		}
	}
	return blanked
}

func TestAnEditRollsBackToACommitBeforeARename(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		first := apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1"), "large/app": newFolder(t, "a", "1")}))
		labelled := func(folder gitops.FolderEdit) gitops.FolderEdit {
			folder.Record.OwnerLabel = "dev"
			return folder
		}
		edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": labelled(newFolder(t, "a", "2")), "large/app": labelled(newFolder(t, "a", "1"))})
		edit.Written = deployedTrees{"drone": {"app": newFolder(t, "a", "1").Tree}, "large": {"app": newFolder(t, "a", "1").Tree}}
		edit = renameOwner(edit, "dev-eu")
		apply(t, r, edit)

		hosts, err := readOwner(t, r, edit.Owner).ReadFoldersAt(context.Background(), first.Commit)
		if err != nil {
			t.Fatal(err)
		}
		if folder := hosts["drone"]["app"]; folder.Tree != newFolder(t, "a", "1").Tree || folder.Record.OwnerLabel != "dev" {
			t.Errorf("the first commit: got %+v", folder)
		}
		apply(t, r, gitops.Edit{Owner: edit.Owner, Hosts: hosts, Written: treesOf(edit)})
		if files := r.files(); files["dev/drone/app/a"] != "1" ||
			!strings.Contains(files["dev/.flotilla/dev-eu/drone.json"], `"owner_label": "dev"`) {
			t.Errorf("files = %q", files)
		}
		stranger := gitops.Owner{Name: "dev-us", Environment: "dev", Path: "dev"}
		if _, err := readOwner(t, r, stranger).ReadFoldersAt(context.Background(), first.Commit); !errors.Is(err, git.ErrCommit) {
			t.Errorf("an assignment that never had this name: %v", err)
		}
	})
}
