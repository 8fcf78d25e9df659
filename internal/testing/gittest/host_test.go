package gittest_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

func TestHostServesRepositoriesByTheirNames(t *testing.T) {
	t.Parallel()
	for _, filters := range []bool{true, false} {
		host := gittest.NewHost()
		repository := host.Create("team/gitops", filters)
		host.Alias("mirror", repository)
		repository.Write("dev", map[string]string{"README": "x"})
		client := gitops.NewBranchClient(gitops.BranchOptions{Git: git.NewConnector(git.ConnectorOptions{Over: host})})
		for i, url := range []string{"https://git.example.com/team/gitops.git", "https://other.example.com/mirror/"} {
			previously := repository.Tip("dev")
			edit := gitops.Edit{Owner: gitops.Owner{Name: "dev"}, Subject: "subject", Hosts: gitops.FolderEdits{"large": {}}}
			if i > 0 {
				edit.Owner.Name = "other"
			}
			if _, err := client.Apply(t.Context(), git.Remote{URL: url, Branch: "dev"}, edit); err != nil {
				t.Fatal(err)
			}
			if got := repository.Commits("dev", previously); got != 1 {
				t.Errorf("%s has %d commits more", url, got)
			}
		}
		if repository.Files("dev")["README"] != "x" || repository.Commits("dev", git.Hash{}) != 3 {
			t.Errorf("the branch has %v", repository.Files("dev"))
		}
		branch, err := client.ReadBranch(t.Context(), git.Remote{URL: "https://x/mirror", Branch: "dev"})
		if err != nil {
			t.Fatal(err)
		}
		history, err := branch.ReadHistory(t.Context(), gitops.Owner{}, gitops.HistoryFilter{})
		if err != nil || !history.Complete {
			t.Errorf("the history is %v: %v", history, err)
		}
		if _, err := client.Apply(t.Context(), git.Remote{URL: "https://x/none", Branch: "dev"}, gitops.Edit{Owner: gitops.Owner{Name: "dev"}}); err == nil {
			t.Error("a repository that is not there takes commits")
		}
		directory := t.TempDir()
		gittest.Run(t, directory, "git", "init", "--quiet", "--bare")
		gittest.Feed(t, directory, gittest.Pack(repository), "index-pack", "--strict", "--stdin")
	}
}
