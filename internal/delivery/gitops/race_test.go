package gitops_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

func TestConcurrentOwnersLoseNothing(t *testing.T) {
	t.Parallel()
	racing := []serving{servings[0], servings[2]}
	if acceptancetest.All() {
		racing = append(racing, gitHostImitations[0])
	}
	for _, serving := range racing {
		t.Run(serving.name, func(t *testing.T) {
			t.Parallel()
			const owners, commits = 4, 3
			r := newRepository(t, serving)
			var pushes, committed atomic.Int64
			var group sync.WaitGroup
			for i := range owners {
				group.Go(func() {
					client := newClient(gitops.BranchOptions{}) // as in another process
					owner := gitops.Owner{Name: fmt.Sprintf("owner-%d", i), Path: "dev"}
					for j := range commits {
						edit := gitops.Edit{Owner: owner, Hosts: folderEdits(t, map[string]gitops.FolderEdit{
							fmt.Sprintf("drone/app-%d", i): newFolder(t, "a", fmt.Sprintf("%d %d", i, j)),
						})}
						result, err := client.Apply(context.Background(), r.remote, edit)
						if err != nil || !result.Committed {
							t.Errorf("owner %d, commit %d: %+v, %v", i, j, result, err)
							return
						}
						pushes.Add(int64(result.Pushes))
						committed.Add(1)
					}
				})
			}
			group.Wait()
			if got := r.git("rev-list", "--count", "main"); got != fmt.Sprint(committed.Load()) || committed.Load() != owners*commits {
				t.Errorf("got %s commits on the branch, want %d", got, committed.Load())
			}
			files := r.files()
			for i := range owners {
				if got := files[fmt.Sprintf("dev/drone/app-%d/a", i)]; got != fmt.Sprintf("%d %d", i, commits-1) {
					t.Errorf("owner %d: got %q", i, got)
				}
			}
			t.Logf("%d pushes for %d commits", pushes.Load(), committed.Load())
			if pushes.Load() > 3*committed.Load() {
				t.Errorf("got %d pushes for %d commits", pushes.Load(), committed.Load())
			}
			r.fsck()
		})
	}
}

func TestOneClientDoesNotRaceItself(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	client := newClient(gitops.BranchOptions{})
	var group sync.WaitGroup
	for i := range 10 {
		group.Go(func() {
			edit := gitops.Edit{
				Owner: gitops.Owner{Name: fmt.Sprintf("o%d", i)},
				Hosts: folderEdits(t, map[string]gitops.FolderEdit{fmt.Sprintf("h%d/app", i): newFolder(t, "a", "a")}),
			}
			if result, err := client.Apply(context.Background(), r.remote, edit); err != nil || result.Pushes != 1 {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
	group.Wait()
}

func TestConcurrentFirstAppliesCreateOneRepository(t *testing.T) {
	t.Parallel()
	remote := git.Remote{IsGitOps: true, URL: filepath.Join(t.TempDir(), "a", "b.git"), Branch: "main"}
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			edit := gitops.Edit{
				Owner: gitops.Owner{Name: fmt.Sprintf("o%d", i)},
				Hosts: folderEdits(t, map[string]gitops.FolderEdit{fmt.Sprintf("h%d/app", i): newFolder(t, "a", "a")}),
			}
			if result, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), remote, edit); err != nil || !result.Committed {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
	group.Wait()
	if got := run(t, remote.URL, "git", "rev-list", "--count", "main"); got != "4\n" {
		t.Errorf("got %s commits, want 4", got)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(remote.URL), ".*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
