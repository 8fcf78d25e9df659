package gitops_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

func applyAt(t *testing.T, r *repository, at time.Time, edit gitops.Edit) gitops.ApplyResult {
	t.Helper()
	if edit.Remove == nil {
		edit.Remove = removableFolders(t, r, edit)
	}
	result, err := newClient(gitops.BranchOptions{Now: func() time.Time { return at }}).Apply(context.Background(), r.remote, edit)
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	return result
}

func TestARecordHasTheTimeOfTheLastChangeAndTheFormerTree(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.FixedZone("", 3600))
		objects := []folder.ObjectRef{
			{Kind: "Kustomization", Namespace: "flux-system", Name: "b"},
			{Kind: "GitRepository", Namespace: "flux-system", Name: "a"},
		}
		withObjects := func(folder gitops.FolderEdit) gitops.FolderEdit {
			folder.Record.Objects = objects
			return folder
		}
		one, two, three := newFolder(t, "a", "1"), newFolder(t, "a", "2"), newFolder(t, "a", "3")
		readRecord := func(target string) gitops.FolderRecord {
			t.Helper()
			records, err := readOwner(t, r, dev).ReadRecords(context.Background(), "")
			if err != nil {
				t.Fatal(err)
			}
			return records.Records[folder.Key{Host: "drone", DeploymentTarget: target}]
		}
		expectRecord := func(target string, changed time.Time, tree, before gitops.FolderEdit) {
			t.Helper()
			got := readRecord(target)
			if !got.Changed.Equal(changed) || got.Tree != tree.Tree || got.TreeBefore != before.Tree || len(got.Objects) != 2 ||
				got.Objects[0].Kind != "GitRepository" {
				t.Errorf("%s: %+v", target, got)
			}
		}
		edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": withObjects(one), "drone/two": withObjects(one)})
		applyAt(t, r, noon, edit)
		expectRecord("app", noon, one, gitops.FolderEdit{})
		if text := r.files()["dev/.flotilla/dev/drone.json"]; !strings.Contains(text, `"changed": "2026-11-21T11:00:00Z"`) ||
			strings.Contains(text, "tree_before") ||
			!strings.Contains(text, `"format": 1,`) {
			t.Errorf("record = %s", text)
		}
		edit.Hosts["drone"]["app"] = withObjects(two)
		applyAt(t, r, noon.Add(time.Hour), edit)
		expectRecord("app", noon.Add(time.Hour), two, one)
		expectRecord("two", noon, one, gitops.FolderEdit{})
		// A repair of drift is no change by the owner.
		r.commitByHand(func(w *workTree) { w.write("dev/drone/app/a", "by hand") })
		if result := applyAt(t, r, noon.Add(2*time.Hour), edit); !result.Committed {
			t.Errorf("%+v", result)
		}
		expectRecord("app", noon.Add(time.Hour), two, one)
		// A rename is no change, either.
		edit = renameOwner(edit, "dev-eu")
		applyAt(t, r, noon.Add(3*time.Hour), edit)
		edit = renameOwner(edit, "dev")
		applyAt(t, r, noon.Add(4*time.Hour), edit)
		expectRecord("app", noon.Add(time.Hour), two, one)
		edit.Hosts["drone"]["app"] = withObjects(three)
		applyAt(t, r, noon.Add(5*time.Hour), edit)
		expectRecord("app", noon.Add(5*time.Hour), three, two)
	})
}

func TestAnUnchangedProposalMakesNoCommit(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		edit := devEdit(
			t,
			map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1"), "drone/two": newFolder(t, "a", "1"), "large/app": newFolder(t, "a", "1")},
		)
		first := applyAt(t, r, noon, edit)
		edit.Written, edit.Records, edit.Head = treesOf(edit), first.Records, "flotilla/dev"
		edit.Hosts["drone"]["app"] = newFolder(t, "a", "2")
		proposed := applyAt(t, r, noon.Add(time.Hour), edit)
		again := applyAt(t, r, noon.Add(2*time.Hour), edit)
		if !proposed.Committed || again.Committed || again.HeadCommit != proposed.HeadCommit || !maps.Equal(again.Records, proposed.Records) {
			t.Errorf("%+v\nagain: %+v", proposed, again)
		}
		// A folder that joins the proposal has its own time.
		edit.Hosts["drone"]["two"] = newFolder(t, "a", "2")
		third := applyAt(t, r, noon.Add(3*time.Hour), edit)
		text := r.git("show", "flotilla/dev:dev/.flotilla/dev/drone.json")
		if !third.Committed || !strings.Contains(text, "T13:00:00Z") || !strings.Contains(text, "T15:00:00Z") {
			t.Errorf("%+v, record %s", third, text)
		}
		r.git("update-ref", "refs/heads/main", "flotilla/dev")
		edit.Written, edit.Records = treesOf(edit), third.Records
		if merged := applyAt(t, r, noon.Add(4*time.Hour), edit); merged.Committed || merged.HeadCommit != "" ||
			!maps.Equal(merged.Records, third.Records) {
			t.Errorf("merged: %+v", merged)
		}
		r.fsck()
	})
}

func TestARecordWithoutAFormatIsRewritten(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1")})
	apply(t, r, edit)
	const record = "dev/.flotilla/dev/drone.json"
	before := r.files()
	r.commitByHand(func(w *workTree) { w.write(record, strings.Replace(before[record], "  \"format\": 1,\n", "", 1)) })
	if r.files()[record] == before[record] {
		t.Fatal("the record has not changed")
	}
	if found := readInventory(t, readBranch(t, r.remote), gitops.InventoryFilter{}); !slices.Equal(found.Unreadable, []string{record}) {
		t.Errorf("got unreadable %q", found.Unreadable)
	}
	if result := apply(t, r, edit); !result.Committed || !strings.Contains(r.files()[record], `"format": 1,`) {
		t.Errorf("record = %s", r.files()[record])
	}
}

func TestUnknownFieldsSurviveARewrite(t *testing.T) {
	t.Parallel()
	for _, serving := range []serving{servings[0], servings[2]} {
		r := newRepository(t, serving)
		edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1"), "drone/two": newFolder(t, "a", "1")})
		apply(t, r, edit)
		r.commitByHand(func(w *workTree) {
			var record map[string]any
			if err := json.Unmarshal([]byte(r.files()["dev/.flotilla/dev/drone.json"]), &record); err != nil {
				t.Fatal(err)
			}
			record["format"], record["region"] = 9, map[string]any{"name": "eu"}
			for _, folder := range record["deployment_targets"].(map[string]any) {
				folder.(map[string]any)["approved_by"] = "A"
			}
			content, err := json.Marshal(record)
			if err != nil {
				t.Fatal(err)
			}
			w.write("dev/.flotilla/dev/drone.json", string(content))
		})
		if result := apply(t, r, edit); result.Committed {
			t.Errorf("a newer format causes a commit: %+v", result)
		}
		edit.Hosts["drone"]["app"] = newFolder(t, "a", "2")
		// Another owner takes over a folder, so the record of the first owner is rewritten.
		apply(t, r, edit)
		heir := gitops.Edit{
			Owner: gitops.Owner{Name: "heir", Path: "dev"},
			Hosts: folderEdits(t, map[string]gitops.FolderEdit{"drone/two": newFolder(t, "a", "1")}),
			Adopt: true,
		}
		apply(t, r, heir)
		text := r.files()["dev/.flotilla/dev/drone.json"]
		if !strings.Contains(text, `"format": 9,`) || !strings.Contains(text, `"region": {`) || strings.Count(text, "approved_by") != 1 ||
			strings.Contains(text, `"two"`) ||
			!strings.Contains(text, newFolder(t, "a", "2").Tree) {
			t.Errorf("record = %s", text)
		}
		apply(t, r, renameOwner(devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "3")}), "dev-eu"))
		if text := r.files()["dev/.flotilla/dev-eu/drone.json"]; !strings.Contains(text, "approved_by") || !strings.Contains(text, "region") {
			t.Errorf("after a rename: %s", text)
		}
	}
}

func TestOwnersContinueWithRecordsOfOtherVersions(t *testing.T) {
	t.Parallel()
	names, err := os.ReadDir("testdata/records")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		content, err := os.ReadFile(path.Join("testdata/records", name.Name()))
		if err != nil {
			t.Fatal(err)
		}
		r := newRepository(t, servings[0])
		r.commitByHand(func(w *workTree) {
			w.write("dev/.flotilla/dev/drone.json", string(content))
			w.write("dev/drone/dev.md", "x")
			w.write("dev/drone/hello-world-app-functional-test/a", "1")
		})
		owned, err := readOwned(readOwner(t, r, dev))
		if err != nil || owned["drone"]["hello-world-app-functional-test"] != newFolder(t, "a", "1").Tree {
			t.Errorf("%s: owned = %v, %v", name.Name(), owned, err)
		}
		apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"drone/hello-world-app-functional-test": newFolder(t, "a", "2")}))
		text := r.files()["dev/.flotilla/dev/drone.json"]
		if strings.Contains(string(content), "zones") != strings.Contains(text, "zones") || !strings.Contains(text, newFolder(t, "a", "2").Tree) {
			t.Errorf("%s: %s", name.Name(), text)
		}
		apply(t, r, gitops.Edit{Owner: dev})
		if files := r.files(); len(files) != 1 {
			t.Errorf("%s: files = %v", name.Name(), files)
		}
	}
}

func TestTouchedMarkersAndRecordsAreReportedAndRepaired(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		edit := devEdit(t, map[string]gitops.FolderEdit{
			"drone/app": newFolder(t, "a", "1"), "large/app": newFolder(t, "a", "1"), "clusters/one/app": newFolder(t, "a", "1"), "small/": {},
		})
		first := apply(t, r, edit)
		before := r.files()
		edit.Written, edit.Records = treesOf(edit), first.Records
		for name, test := range map[string]struct {
			change  func(w *workTree)
			touched []string
		}{
			"nothing":          {func(w *workTree) { w.write("README.md", "x") }, nil},
			"a folder":         {func(w *workTree) { w.write("dev/drone/app/a", "x") }, nil},
			"a marker removed": {func(w *workTree) { w.remove("dev/small/dev.md") }, []string{"small"}},
			"a marker changed": {func(w *workTree) { w.write("dev/clusters/one/dev.md", "mine") }, []string{"clusters/one"}},
			"a record removed": {func(w *workTree) { w.remove("dev/.flotilla/dev/large.json") }, []string{"large"}},
			"a record broken":  {func(w *workTree) { w.write("dev/.flotilla/dev/large.json", "{") }, []string{"large"}},
			"a record changed": {func(w *workTree) {
				text := r.files()["dev/.flotilla/dev/drone.json"]
				w.write("dev/.flotilla/dev/drone.json", strings.Replace(text, `"environment": "dev"`, `"environment": "x"`, 1))
			}, []string{"drone"}},
			"all records":       {func(w *workTree) { w.remove("dev/.flotilla") }, []string{"clusters/one", "drone", "large", "small"}},
			"records, a folder": {func(w *workTree) { w.remove("dev/.flotilla"); w.remove("dev/clusters") }, []string{"clusters/one", "drone", "large", "small"}},
		} {
			r.commitByHand(test.change)
			view := readOwner(t, r, dev)
			if got := view.FindTouched(edit.Records); !slices.Equal(got, test.touched) {
				t.Errorf("%s: touched = %v, want %v", name, got, test.touched)
			}
			want := treesOf(edit)
			switch name {
			case "a folder":
				want["drone"]["app"] = r.git("rev-parse", "main:dev/drone/app")
			case "records, a folder":
				delete(want["clusters/one"], "app")
			}
			// Markers and records do not count as deployed.
			if got := readTrees(t, view, treesOf(edit)); sprint(got) != sprint(want) {
				t.Errorf("%s: deployed = %v, want %v", name, got, want)
			}
			result, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit)
			if err != nil || result.Committed != (name != "nothing") {
				t.Errorf("%s: %+v, %v", name, result, err)
			}
			edit.Records, edit.Written = result.Records, treesOf(edit)
			got := r.files()
			delete(got, "README.md")
			if !equalExceptRecords(got, before) {
				t.Errorf("%s: files = %q", name, got)
			}
			if again, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit); err != nil || again.Committed ||
				!maps.Equal(again.Records, result.Records) {
				t.Errorf("%s, again: %+v, %v", name, again, err)
			}
			if got := readOwner(t, r, dev).FindTouched(edit.Records); len(got) != 0 {
				t.Errorf("%s, repaired: touched = %v", name, got)
			}
		}
		if got := readOwner(t, r, dev).FindTouched(map[string]string{"drone": "", "gone": ""}); !slices.Equal(got, []string{"gone"}) {
			t.Errorf("with unknown ids: %v", got)
		}
		r.fsck()
	})
}
