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

// applyAt applies an edit at a time.
func applyAt(t *testing.T, r *repository, at time.Time, edit gitops.Edit) gitops.ApplyResult {
	t.Helper()
	if edit.Remove == nil {
		edit.Remove = removable(t, r, edit)
	}
	result, err := newClient(gitops.BranchOptions{Now: func() time.Time { return at }}).Apply(context.Background(), r.remote, edit)
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	return result
}

func TestARecordSaysWhenAFolderChangedAndWhatItWasBefore(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.FixedZone("", 3600))
		objects := []folder.ObjectRef{
			{Kind: "Kustomization", Namespace: "flux-system", Name: "b"},
			{Kind: "GitRepository", Namespace: "flux-system", Name: "a"},
		}
		with := func(folder gitops.FolderEdit) gitops.FolderEdit {
			folder.Record.Objects = objects
			return folder
		}
		one, two, three := rendered(t, "a", "1"), rendered(t, "a", "2"), rendered(t, "a", "3")
		said := func(target string) gitops.FolderRecord {
			t.Helper()
			records, err := inspect(t, r, dev).ReadRecords(context.Background(), "")
			if err != nil {
				t.Fatal(err)
			}
			return records.Records[folder.Key{Host: "drone", DeploymentTarget: target}]
		}
		is := func(target string, changed time.Time, tree, before gitops.FolderEdit) {
			t.Helper()
			got := said(target)
			if !got.Changed.Equal(changed) || got.Tree != tree.Tree || got.TreeBefore != before.Tree || len(got.Objects) != 2 ||
				got.Objects[0].Kind != "GitRepository" {
				t.Errorf("%s: %+v", target, got)
			}
		}
		edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": with(one), "drone/two": with(one)})
		applyAt(t, r, noon, edit)
		is("app", noon, one, gitops.FolderEdit{})
		if text := r.files()["dev/.flotilla/dev/drone.json"]; !strings.Contains(text, `"changed": "2026-11-21T11:00:00Z"`) ||
			strings.Contains(text, "tree_before") ||
			!strings.Contains(text, `"format": 1,`) {
			t.Errorf("record = %s", text)
		}
		edit.Hosts["drone"]["app"] = with(two)
		applyAt(t, r, noon.Add(time.Hour), edit)
		is("app", noon.Add(time.Hour), two, one)
		is("two", noon, one, gitops.FolderEdit{})
		// Drift that is repaired is no change by the owner.
		r.byHand(func(w *workTree) { w.write("dev/drone/app/a", "by hand") })
		if result := applyAt(t, r, noon.Add(2*time.Hour), edit); !result.Committed {
			t.Errorf("%+v", result)
		}
		is("app", noon.Add(time.Hour), two, one)
		// Nor is a new name.
		edit = renamed(edit, "dev-eu")
		applyAt(t, r, noon.Add(3*time.Hour), edit)
		edit = renamed(edit, "dev")
		applyAt(t, r, noon.Add(4*time.Hour), edit)
		is("app", noon.Add(time.Hour), two, one)
		edit.Hosts["drone"]["app"] = with(three)
		applyAt(t, r, noon.Add(5*time.Hour), edit)
		is("app", noon.Add(5*time.Hour), three, two)
	})
}

func TestAProposalThatNothingChangesIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		edit := devEdit(
			t,
			map[string]gitops.FolderEdit{"drone/app": rendered(t, "a", "1"), "drone/two": rendered(t, "a", "1"), "large/app": rendered(t, "a", "1")},
		)
		first := applyAt(t, r, noon, edit)
		edit.Written, edit.Records, edit.Head = wanted(edit), first.Records, "flotilla/dev"
		edit.Hosts["drone"]["app"] = rendered(t, "a", "2")
		proposed := applyAt(t, r, noon.Add(time.Hour), edit)
		again := applyAt(t, r, noon.Add(2*time.Hour), edit)
		if !proposed.Committed || again.Committed || again.HeadCommit != proposed.HeadCommit || !maps.Equal(again.Records, proposed.Records) {
			t.Errorf("%+v\nagain: %+v", proposed, again)
		}
		// What is not proposed yet has a time of its own.
		edit.Hosts["drone"]["two"] = rendered(t, "a", "2")
		third := applyAt(t, r, noon.Add(3*time.Hour), edit)
		text := r.git("show", "flotilla/dev:dev/.flotilla/dev/drone.json")
		if !third.Committed || !strings.Contains(text, "T13:00:00Z") || !strings.Contains(text, "T15:00:00Z") {
			t.Errorf("%+v, record %s", third, text)
		}
		r.git("update-ref", "refs/heads/main", "flotilla/dev")
		edit.Written, edit.Records = wanted(edit), third.Records
		if merged := applyAt(t, r, noon.Add(4*time.Hour), edit); merged.Committed || merged.HeadCommit != "" ||
			!maps.Equal(merged.Records, third.Records) {
			t.Errorf("merged: %+v", merged)
		}
		r.fsck()
	})
}

func TestARecordWithoutAFormatIsWrittenAnew(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": rendered(t, "a", "1")})
	apply(t, r, edit)
	const record = "dev/.flotilla/dev/drone.json"
	before := r.files()
	r.byHand(func(w *workTree) { w.write(record, strings.Replace(before[record], "  \"format\": 1,\n", "", 1)) })
	if r.files()[record] == before[record] {
		t.Fatal("the record is as it was")
	}
	if found := inventory(t, lookAt(t, r.remote), gitops.InventoryFilter{}); !slices.Equal(found.Unreadable, []string{record}) {
		t.Errorf("unreadable are %q", found.Unreadable)
	}
	if result := apply(t, r, edit); !result.Committed || !strings.Contains(r.files()[record], `"format": 1,`) {
		t.Errorf("record = %s", r.files()[record])
	}
}

func TestFieldsThatAreNotKnownSurviveARewrite(t *testing.T) {
	t.Parallel()
	for _, serving := range []serving{servings[0], servings[2]} {
		r := newRepository(t, serving)
		edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": rendered(t, "a", "1"), "drone/two": rendered(t, "a", "1")})
		apply(t, r, edit)
		r.byHand(func(w *workTree) {
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
			t.Errorf("a record of a newer format alone: %+v", result)
		}
		edit.Hosts["drone"]["app"] = rendered(t, "a", "2")
		// Another owner takes one over, and the record of the first is written anew.
		apply(t, r, edit)
		heir := gitops.Edit{
			Owner: gitops.Owner{Name: "heir", Path: "dev"},
			Hosts: hosts(t, map[string]gitops.FolderEdit{"drone/two": rendered(t, "a", "1")}),
			Adopt: true,
		}
		apply(t, r, heir)
		text := r.files()["dev/.flotilla/dev/drone.json"]
		if !strings.Contains(text, `"format": 9,`) || !strings.Contains(text, `"region": {`) || strings.Count(text, "approved_by") != 1 ||
			strings.Contains(text, `"two"`) ||
			!strings.Contains(text, rendered(t, "a", "2").Tree) {
			t.Errorf("record = %s", text)
		}
		apply(t, r, renamed(devEdit(t, map[string]gitops.FolderEdit{"drone/app": rendered(t, "a", "3")}), "dev-eu"))
		if text := r.files()["dev/.flotilla/dev-eu/drone.json"]; !strings.Contains(text, "approved_by") || !strings.Contains(text, "region") {
			t.Errorf("after a rename: %s", text)
		}
	}
}

func TestRecordsOfOlderAndNewerVersionsCanBeGoneOnWith(t *testing.T) {
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
		r.byHand(func(w *workTree) {
			w.write("dev/.flotilla/dev/drone.json", string(content))
			w.write("dev/drone/dev.md", "x")
			w.write("dev/drone/hello-world-app-functional-test/a", "1")
		})
		owned, err := ownedIn(inspect(t, r, dev))
		if err != nil || owned["drone"]["hello-world-app-functional-test"] != rendered(t, "a", "1").Tree {
			t.Errorf("%s: owned = %v, %v", name.Name(), owned, err)
		}
		apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"drone/hello-world-app-functional-test": rendered(t, "a", "2")}))
		text := r.files()["dev/.flotilla/dev/drone.json"]
		if strings.Contains(string(content), "zones") != strings.Contains(text, "zones") || !strings.Contains(text, rendered(t, "a", "2").Tree) {
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
			"drone/app": rendered(t, "a", "1"), "large/app": rendered(t, "a", "1"), "clusters/one/app": rendered(t, "a", "1"), "small/": {},
		})
		first := apply(t, r, edit)
		before := r.files()
		edit.Written, edit.Records = wanted(edit), first.Records
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
			r.byHand(test.change)
			view := inspect(t, r, dev)
			if got := view.FindTouched(edit.Records); !slices.Equal(got, test.touched) {
				t.Errorf("%s: touched = %v, want %v", name, got, test.touched)
			}
			want := wanted(edit)
			switch name {
			case "a folder":
				want["drone"]["app"] = r.git("rev-parse", "main:dev/drone/app")
			case "records, a folder":
				delete(want["clusters/one"], "app")
			}
			// Never what is counted as deployed.
			if got := deployed(t, view, wanted(edit)); sprint(got) != sprint(want) {
				t.Errorf("%s: deployed = %v, want %v", name, got, want)
			}
			result, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit)
			if err != nil || result.Committed != (name != "nothing") {
				t.Errorf("%s: %+v, %v", name, result, err)
			}
			edit.Records, edit.Written = result.Records, wanted(edit)
			got := r.files()
			delete(got, "README.md")
			if !sameButRecords(got, before) {
				t.Errorf("%s: files = %q", name, got)
			}
			if again, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit); err != nil || again.Committed ||
				!maps.Equal(again.Records, result.Records) {
				t.Errorf("%s, again: %+v, %v", name, again, err)
			}
			if got := inspect(t, r, dev).FindTouched(edit.Records); len(got) != 0 {
				t.Errorf("%s: then touched = %v", name, got)
			}
		}
		if got := inspect(t, r, dev).FindTouched(map[string]string{"drone": "", "gone": ""}); !slices.Equal(got, []string{"gone"}) {
			t.Errorf("of ids that are not known: %v", got)
		}
		r.fsck()
	})
}
