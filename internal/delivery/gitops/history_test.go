package gitops_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

func readHistory(t *testing.T, r *repository, owner gitops.Owner, filter gitops.HistoryFilter) gitops.History {
	t.Helper()
	branch, err := newClient(gitops.BranchOptions{}).ReadBranch(context.Background(), r.remote)
	if err != nil {
		t.Fatal(err)
	}
	read, err := branch.ReadHistory(context.Background(), owner, filter)
	if err != nil {
		t.Fatalf("history: %v", err)
	}
	return read
}

func TestHistoryListsOwnersAndChangesNewestFirst(t *testing.T) {
	t.Parallel()
	forEachOf(t, slices.Concat(someServings(t), someGitHostImitations(t)), func(t *testing.T, r *repository) {
		if got := readHistory(t, r, dev, gitops.HistoryFilter{}); len(got.Commits) != 0 || !got.Complete {
			t.Errorf("an empty branch: %+v", got)
		}
		now := time.Unix(1_700_000_000, 0).UTC()
		client := newClient(gitops.BranchOptions{Now: func() time.Time { return now }})
		step := func(edit gitops.Edit) string {
			t.Helper()
			now = now.Add(time.Hour)
			edit.Remove = removableFolders(t, r, edit)
			result, err := client.Apply(context.Background(), r.remote, edit)
			if err != nil {
				t.Fatal(err)
			}
			return result.Commit
		}
		edit := devEdit(t, map[string]gitops.FolderEdit{
			"drone/app": withVersion(newFolder(t, "a", "1"), "v1"), "clusters/one/app": withVersion(newFolder(t, "a", "1"), "v1"), "large/": {},
		})
		edit.Author, edit.Release = git.Signature{Name: "Ann", Email: "ann@example.com"}, "1.0"
		first := step(edit)
		step(teamEdit(t, "other", "1"))
		edit.Hosts["drone"]["app"] = withVersion(newFolder(t, "a", "2"), "v2")
		edit.Hosts["drone"]["two"] = withVersion(newFolder(t, "b", "2"), "v2")
		edit.Subject = "roll out\n\nbecause"
		second := step(edit)
		r.commitByHand(func(w *workTree) { w.write("README.md", "x") })
		r.commitByHand(func(w *workTree) { w.write("dev/drone/app/a", "by hand") })
		byHand := r.tip()
		now = time.Now().Add(time.Hour)
		removed := step(gitops.Edit{Owner: dev})

		added := func(host string) folder.Change {
			return folder.Change{Key: folder.Key{Host: host, DeploymentTarget: "app"}, Action: folder.Added, After: "v1"}
		}
		all := readHistory(t, r, dev, gitops.HistoryFilter{})
		want := []struct {
			commit, subject, release string
			owners                   []string
			changes                  []folder.Change
		}{
			{removed, "dev: 3 removed", "", []string{"dev"}, []folder.Change{
				{Key: folder.Key{Host: "clusters/one", DeploymentTarget: "app"}, Action: folder.Removed, Before: "v1"},
				{Key: folder.Key{Host: "drone", DeploymentTarget: "app"}, Action: folder.Removed, Before: "v2"},
				{Key: folder.Key{Host: "drone", DeploymentTarget: "two"}, Action: folder.Removed, Before: "v2"},
			}},
			{
				byHand,
				"by hand",
				"",
				nil,
				[]folder.Change{{Key: folder.Key{Host: "drone", DeploymentTarget: "app"}, Action: folder.Changed, Before: "v2", After: "v2"}},
			},
			{second, "roll out", "1.0", []string{"dev"}, []folder.Change{
				{Key: folder.Key{Host: "drone", DeploymentTarget: "app"}, Action: folder.Changed, Before: "v1", After: "v2"},
				{Key: folder.Key{Host: "drone", DeploymentTarget: "two"}, Action: folder.Added, After: "v2"},
			}},
			{first, "dev: 2 added", "1.0", []string{"dev"}, []folder.Change{added("clusters/one"), added("drone")}},
		}
		if len(all.Commits) != len(want) || !all.Complete {
			t.Fatalf("history = %+v", all)
		}
		for i, w := range want {
			got := all.Commits[i]
			var changes []folder.Change
			for _, change := range got.Changes {
				if change.Owner != "dev" {
					t.Errorf("%d: %+v", i, change)
				}
				changes = append(changes, change.Change)
			}
			if got.Commit != w.commit || got.Subject != w.subject || got.Release != w.release || !slices.Equal(got.Owners, w.owners) ||
				!slices.Equal(changes, w.changes) {
				t.Errorf("%d: %+v\nwant %+v", i, got, w)
			}
		}
		if last := all.Commits[3]; last.Author != edit.Author || last.Time != time.Unix(1_700_003_600, 0).UTC() {
			t.Errorf("the first commit: %+v", last)
		}
		// All owners of the path, and filters.
		if got := readHistory(t, r, gitops.Owner{Path: "dev"}, gitops.HistoryFilter{}); len(got.Commits) != 5 ||
			got.Commits[3].Changes[0].Owner != "other" {
			t.Errorf("all owners: %+v", got)
		}
		for name, test := range map[string]struct {
			filter   gitops.HistoryFilter
			commits  []string
			complete bool
		}{
			"a host":   {gitops.HistoryFilter{Host: "clusters/one"}, []string{removed, first}, true},
			"a target": {gitops.HistoryFilter{DeploymentTarget: "two"}, []string{removed, second}, true},
			"a limit":  {gitops.HistoryFilter{Limit: 2}, []string{removed, byHand}, false},
			"since":    {gitops.HistoryFilter{Since: time.Now().Add(-time.Hour)}, []string{removed, byHand}, true},
			"nothing":  {gitops.HistoryFilter{Host: "no"}, nil, true},
		} {
			got := readHistory(t, r, dev, test.filter)
			var commits []string
			for _, c := range got.Commits {
				commits = append(commits, c.Commit)
			}
			if !slices.Equal(commits, test.commits) || got.Complete != test.complete {
				t.Errorf("%s: %v, %v, want %v", name, commits, got.Complete, test.commits)
			}
		}
	})
}

func TestHistoryFetchesOldCommits(t *testing.T) {
	t.Parallel()
	for _, serving := range []serving{servings[0], servings[2], servings[5]} {
		r := newRepository(t, serving)
		first := apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1")}))
		later := "reset refs/heads/main\nfrom " + first.Commit + "\n\n"
		for range 300 {
			later += fmt.Sprintf("commit refs/heads/main\ncommitter A <a@example.com> %d +0000\ndata 1\nx\n", time.Now().Unix())
		}
		feed(t, r.directory, []byte(later), "fast-import", "--quiet")
		if got := readHistory(t, r, dev, gitops.HistoryFilter{}); len(got.Commits) != 1 || got.Commits[0].Commit != first.Commit || !got.Complete {
			t.Errorf("%s: %+v", serving.name, got)
		}
	}
}

// The history takes one request for each level of trees, not one for each host.
func TestAHistoryOfManyHostsTakesFewRequests(t *testing.T) {
	t.Parallel()
	for name, config := range map[string][]string{"any object": anyObject, "no tree filter": noTreeFilter, "plain": nil} {
		r := newRepository(t, serving{config: config, remote: overHTTP})
		folders := map[string]gitops.FolderEdit{}
		for i := range 40 {
			folders[fmt.Sprintf("type-%02d/app", i)] = withVersion(newFolder(t, "a", fmt.Sprint(i)), "v1")
			folders[fmt.Sprintf("clusters/c%02d/app", i)] = withVersion(newFolder(t, "a", fmt.Sprint(i)), "v1")
		}
		apply(t, r, devEdit(t, folders))
		count := &counter{next: backend(t, filepath.Dir(r.directory))}
		remote := git.Remote{IsGitOps: true, URL: serve(t, count) + "/gitops.git", Branch: "main"}
		branch, err := newClient(gitops.BranchOptions{}).ReadBranch(t.Context(), remote)
		if err != nil {
			t.Fatal(err)
		}
		history, err := branch.ReadHistory(t.Context(), dev, gitops.HistoryFilter{})
		if err != nil {
			t.Fatal(err)
		}
		_, requests := count.take()
		if len(history.Commits) != 1 || len(history.Commits[0].Changes) != 80 || requests > 12 {
			t.Errorf("%s: %d requests, %+v", name, requests, history)
		}
	}
}
