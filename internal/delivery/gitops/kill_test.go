package gitops_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

func TestCreatingARepositoryRemovesTheRemainsOfAKilledProcess(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	for _, name := range []string{".gitops.git.new-1234567/refs", ".gitops.git.new-89", ".gitops.git.new-mine", ".other.git.new-1", "gitops.git.new-1"} {
		if err := os.MkdirAll(filepath.Join(parent, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	remote := git.Remote{IsGitOps: true, URL: filepath.Join(parent, "gitops.git"), Branch: "main"}
	edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "a")})
	if _, err := gitops.NewBranchClient(gitops.BranchOptions{}).Apply(context.Background(), remote, edit); err != nil {
		t.Fatal(err)
	}
	if got, want := listFolder(t, parent), []string{".gitops.git.new-mine", ".other.git.new-1", "gitops.git", "gitops.git.new-1"}; !slices.Equal(
		got,
		want,
	) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestConcurrentCreationLosesNoFolder(t *testing.T) {
	t.Parallel()
	const creators = 3
	{
		parent := t.TempDir()
		r := &repository{t: t, directory: filepath.Join(parent, "gitops.git")}
		r.remote = git.Remote{IsGitOps: true, URL: r.directory, Branch: "main"}
		edits := make([]gitops.Edit, creators)
		for i := range edits {
			edits[i] = devEdit(t, map[string]gitops.FolderEdit{fmt.Sprintf("host-%d/app", i): newFolder(t, "a", "a")})
			edits[i].Owner.Name = fmt.Sprintf("owner-%d", i)
		}
		var group sync.WaitGroup
		for _, edit := range edits {
			group.Go(func() {
				if _, err := gitops.NewBranchClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit); err != nil {
					t.Errorf("%s: %v", edit.Owner.Name, err)
				}
			})
		}
		group.Wait()
		written := r.files()
		for i := range edits {
			if written[fmt.Sprintf("dev/host-%d/app/a", i)] != "a" {
				t.Errorf("the folder of owner-%d is lost", i)
			}
		}
		if got := listFolder(t, parent); !slices.Equal(got, []string{"gitops.git"}) {
			t.Errorf("got %s in the folder of the repository", strings.Join(got, ", "))
		}
		r.fsck()
	}
}

// listFolder returns the names in a folder.
func listFolder(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
