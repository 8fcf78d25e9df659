package gitops_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Each commit of the branch is one entry with the assignments that made it.
func TestHistoryAttributesMergesButNoManualCommits(t *testing.T) {
	t.Parallel()
	forEachOf(t, someServings(t), func(t *testing.T, r *repository) {
		now := time.Unix(1_700_000_000, 0).UTC()
		propose := func(value, head string) {
			now = now.Add(time.Hour)
			edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", value)})
			edit.Head, edit.Release, edit.Source = head, "1."+value, folder.Source("https://git.example.com/p@"+strings.Repeat(value, 40))
			client := newClient(gitops.BranchOptions{Now: func() time.Time { return now }})
			if _, err := client.Apply(context.Background(), r.remote, edit); err != nil {
				t.Fatal(err)
			}
		}
		runByHand := func(commands ...string) {
			w := r.clone()
			for _, command := range commands {
				run(t, w.directory, "git", strings.Fields(command)...)
			}
			run(t, w.directory, "git", "push", "--quiet", "origin", "HEAD:main")
		}
		propose("1", "")
		propose("2", "proposal")
		propose("3", "proposal") // a second commit of the pull request
		runByHand("merge --quiet --no-ff -m Merge origin/proposal")
		r.commitByHand(func(w *workTree) { w.write("dev/drone/app/a", "by hand") })
		propose("4", "proposal")
		runByHand("merge --quiet --squash origin/proposal", "commit --quiet -m Squashed")
		runByHand("revert --no-edit HEAD")
		runByHand(
			"checkout --quiet -b topic",
			"rm --quiet -r dev/drone/app",
			"commit --quiet -m Topic",
			"checkout --quiet main",
			"merge --quiet --no-ff -m Topic topic",
		)

		type entry struct{ subject, owners, release, source string }
		var got []entry
		for _, c := range readHistory(t, r, dev, gitops.HistoryFilter{}).Commits {
			got = append(got, entry{c.Subject, strings.Join(c.Owners, " "), c.Release, c.Source.Commit()[:min(1, len(c.Source.Commit()))]})
		}
		want := []entry{
			{"Topic", "", "", ""}, {`Revert "Squashed"`, "", "", ""}, {"Squashed", "dev", "", "4"}, {"by hand", "", "", ""},
			{"Merge", "dev", "1.3", "3"}, {"dev: 1 added", "dev", "1.1", "1"},
		}
		if !slices.Equal(got, want) {
			t.Errorf("got history\n%+v\nwant\n%+v", got, want)
		}
	})
}
