package gitops_test

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

func TestApplyWritesFoldersMarkersAndRecords(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		edit := devEdit(t, map[string]gitops.FolderEdit{
			"drone/hello-world-app-functional-test": newFolder(t, "namespace.yaml", "a: 1\n", "reconciler.yaml", "b: 2\n"),
			"large/":                                {},
			"clusters/store-17/hello":               newFolder(t, "namespace.yaml", "c: 3\n"),
		})
		result := apply(t, r, edit)
		if !result.Committed || result.Pushes != 1 || result.Commit != r.tip() {
			t.Errorf("result = %+v", result)
		}
		if want := []string{"clusters/store-17/hello", "drone/hello-world-app-functional-test"}; !slices.Equal(changedKeys(result, "added"), want) {
			t.Errorf("added = %v, want %v", changedKeys(result, "added"), want)
		}
		files := r.files()
		want := []string{
			"dev/.flotilla/dev/clusters/store-17.json",
			"dev/.flotilla/dev/drone.json",
			"dev/.flotilla/dev/large.json",
			"dev/clusters/store-17/dev.md",
			"dev/clusters/store-17/hello/namespace.yaml",
			"dev/drone/dev.md",
			"dev/drone/hello-world-app-functional-test/namespace.yaml",
			"dev/drone/hello-world-app-functional-test/reconciler.yaml",
			"dev/large/dev.md",
		}
		if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
			t.Errorf("files = %q\nwant %q", got, want)
		}
		if got := files["dev/drone/hello-world-app-functional-test/reconciler.yaml"]; got != "b: 2\n" {
			t.Errorf("reconciler.yaml = %q", got)
		}
		r.fsck()

		view := readOwner(t, r, dev)
		if got, want := sprint(readTrees(t, view, treesOf(edit))), sprint(treesOf(edit)); got != want {
			t.Errorf("deployed = %s, want %s", got, want)
		}
		owned, err := readOwned(view)
		if err != nil || sprint(owned) != sprint(treesOf(edit)) {
			t.Errorf("owned = %+v, %v", owned, err)
		}
	})
}

func TestApplyAgainMakesNoCommit(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a.yaml", "a: 1\n"), "large/": {}})
		first := apply(t, r, edit)
		edit.Subject, edit.Release, edit.Author = "another", "2", git.Signature{Name: "Another"}
		folder := edit.Hosts["drone"]["app"]
		folder.Record.Policies = []string{"another"}
		edit.Hosts["drone"]["app"] = folder
		for _, previously := range []deployedTrees{nil, treesOf(edit)} {
			edit.Written = previously
			again := apply(t, r, edit)
			if again.Committed || again.Pushes != 0 || again.Commit != first.Commit || len(changedKeys(again, "added")) != 0 {
				t.Errorf("previously %v: result = %+v", previously, again)
			}
		}
	})
}

func TestARefreshReadsNoBlob(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		r.commitByHand(func(w *workTree) { w.write("README.md", "x") })
		edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a.yaml", "a: 1\n"), "large/": {}})
		apply(t, r, edit)
		view := readOwner(t, r, dev)
		conflicts, err := view.FindConflicts(context.Background(), treesOf(edit), treesOf(edit), "")
		if err != nil || len(conflicts) != 0 || sprint(readTrees(t, view, treesOf(edit))) != sprint(treesOf(edit)) {
			t.Errorf("conflicts = %v, %v", conflicts, err)
		}
		if n := view.Blobs(); n != 0 && !strings.HasSuffix(t.Name(), "plain") { // the plain server cannot filter blobs
			t.Errorf("%d blobs were fetched", n)
		}
	})
}

func TestApplyChangesOnlyItsOwnFolders(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		r.commitByHand(func(w *workTree) {
			w.write("README.md", "ours\n")
			w.write("dev/README.md", "theirs\n")
			w.write("dev/drone/NOTES", "theirs\n")
			w.write("zz/deep/er/file", "theirs\n")
		})
		foreign := r.files()
		edit := devEdit(t, map[string]gitops.FolderEdit{
			"drone/app": newFolder(t, "a.yaml", "a: 1\n"), "drone/two": newFolder(t, "b.yaml", "b"), "large/app": newFolder(t, "a.yaml", "x"),
		})
		apply(t, r, edit)

		edit = devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a.yaml", "a: 2\n"), "drone/three": newFolder(t, "c.yaml", "c")})
		result := apply(t, r, edit)
		if got, want := sprint([][]string{changedKeys(result, "added"), changedKeys(result, "changed"), changedKeys(result, "removed")}), "[[drone/three] [drone/app] [drone/two large/app]]"; got != want {
			t.Errorf("changes = %s, want %s", got, want)
		}
		if message, want := r.git("log", "-1", "--format=%B"), "dev: 1 added, 1 changed, 2 removed\n\n"+
			"Added:\n- drone/three\n\nChanged:\n- drone/app\n\nRemoved:\n- drone/two\n- large/app\n\n"+
			"Flotilla-Assignment: dev\nFlotilla-Environment: dev"; message != want {
			t.Errorf("message = %q\nwant %q", message, want)
		}
		files := r.files()
		for _, name := range slices.Collect(maps.Keys(files)) {
			if strings.HasPrefix(name, "dev/large") && files[name] != leftMarker("dev") {
				t.Errorf("%s still exists: %q", name, files[name])
			}
		}
		r.fsck()

		removed := apply(t, r, gitops.Edit{Owner: dev})
		if !removed.Committed || len(changedKeys(removed, "removed")) != 2 {
			t.Errorf("removed = %+v", removed)
		}
		foreign["dev/drone/dev.md"], foreign["dev/large/dev.md"] = leftMarker("dev"), leftMarker("dev")
		if got := r.files(); !maps.Equal(got, foreign) {
			t.Errorf("after destroy: %q\nwant %q", got, foreign)
		}
		r.fsck()
	})
}

func TestApplyRepairsDrift(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		edit := devEdit(t, map[string]gitops.FolderEdit{
			"drone/app": newFolder(t, "a.yaml", "a: 1\n"), "drone/two": newFolder(t, "b.yaml", "b"), "large/app": newFolder(t, "a.yaml", "x"),
			"clusters/one/app": newFolder(t, "a.yaml", "y"), "small/": {},
		})
		apply(t, r, edit)
		before := r.files()
		edit.Written = treesOf(edit)

		for name, test := range map[string]struct {
			change func(w *workTree)
			remove func(d deployedTrees)
		}{
			"a file changed": {
				func(w *workTree) { w.write("dev/drone/app/a.yaml", "changed") },
				nil,
			},
			"a file added": {
				func(w *workTree) { w.write("dev/clusters/one/app/more/a.yaml", "changed") },
				nil,
			},
			"a folder removed": {
				func(w *workTree) { w.remove("dev/drone/two") },
				func(d deployedTrees) { delete(d["drone"], "two") },
			},
			"everything removed": {
				func(w *workTree) { w.remove("dev") },
				func(d deployedTrees) {
					for host := range d {
						d[host] = nil
					}
				},
			},
		} {
			r.commitByHand(test.change)
			got := readTrees(t, readOwner(t, r, dev), treesOf(edit))
			if sprint(got) == sprint(treesOf(edit)) {
				t.Errorf("%s: the drift is not found", name)
			}
			if test.remove != nil {
				want := treesOf(edit)
				test.remove(want)
				if sprint(got) != sprint(want) {
					t.Errorf("%s: deployed = %v, want %v", name, got, want)
				}
			}
			result := apply(t, r, edit)
			if !result.Committed || result.Pushes != 1 {
				t.Errorf("%s: result = %+v", name, result)
			}
			if got := r.files(); !equalExceptRecords(got, before) {
				t.Errorf("%s: after apply: %q\nwant %q", name, got, before)
			}
		}
		r.fsck()
	})
}

func TestLocalRepositoryIsCreatedOnFirstApply(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(t.TempDir(), "not", "yet", "there.git")
	for _, remote := range []git.Remote{{URL: directory, Branch: "trunk"}, {URL: fileURL(directory + "2"), Branch: "trunk"}} {
		client := newClient(gitops.BranchOptions{})
		view, err := readOwnerWith(context.Background(), client, remote, dev)
		if err != nil || !view.IsMissing() || view.Tip() != "" || len(readTrees(t, view, deployedTrees{"drone": nil})["drone"]) != 0 {
			t.Fatalf("view = %+v, %v", view, err)
		}
		if result, err := client.Apply(context.Background(), remote, gitops.Edit{Owner: dev}); err != nil || result.Committed {
			t.Fatalf("nothing to write: %+v, %v", result, err)
		}
		edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a.yaml", "a: 1\n")})
		result, err := client.Apply(context.Background(), remote, edit)
		if err != nil || !result.Committed {
			t.Fatalf("result = %+v, %v", result, err)
		}
		created := directory
		if remote.URL != directory {
			created += "2"
		}
		if head := strings.TrimSpace(run(t, created, "git", "symbolic-ref", "HEAD")); head != "refs/heads/trunk" {
			t.Errorf("HEAD = %s", head)
		}
		run(t, created, "git", "fsck", "--strict")
	}
}
