package gitops_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// newFolder returns a folder with the given files: name, content, name, content.
func newFolder(t testing.TB, files ...string) gitops.FolderEdit {
	t.Helper()
	var list []git.File
	for i := 0; i < len(files); i += 2 {
		list = append(list, git.File{Name: files[i], Content: []byte(files[i+1])})
	}
	id, err := git.TreeID(list)
	if err != nil {
		t.Fatal(err)
	}
	return gitops.FolderEdit{
		Tree:   id,
		Files:  func() ([]git.File, error) { return list, nil },
		Record: folder.Record{Workload: "hello-world-app", DeploymentTarget: "test", Policies: []string{"a", "b"}, ConfigVersion: "1"},
	}
}

// folderEdits groups folders with keys such as "host/target" by host. A key with a final slash is a host without folders.
func folderEdits(t testing.TB, folders map[string]gitops.FolderEdit) gitops.FolderEdits {
	t.Helper()
	grouped := gitops.FolderEdits{}
	for key, folder := range folders {
		i := strings.LastIndexByte(key, '/')
		if host := key[:i]; grouped[host] == nil {
			grouped[host] = map[string]gitops.FolderEdit{}
		}
		if target := key[i+1:]; target != "" {
			grouped[key[:i]][target] = folder
		}
	}
	return grouped
}

var dev = gitops.Owner{Name: "dev", Environment: "dev", Path: "dev"}

func devEdit(t testing.TB, folders map[string]gitops.FolderEdit) gitops.Edit {
	t.Helper()
	return gitops.Edit{Owner: dev, Hosts: folderEdits(t, folders)}
}

func treesOf(edit gitops.Edit) deployedTrees {
	want := deployedTrees{}
	for host, h := range edit.Hosts {
		want[host] = map[string]string{}
		for target, folder := range h {
			want[host][target] = folder.Tree
		}
	}
	return want
}

// changedKeys returns the folders with the given action, in order.
func changedKeys(result gitops.ApplyResult, action folder.Action) []string {
	var keys []string
	for _, change := range result.Changes {
		if change.Action == action {
			keys = append(keys, change.String())
		}
	}
	return keys
}

func apply(t testing.TB, r *repository, edit gitops.Edit) gitops.ApplyResult {
	t.Helper()
	if edit.Remove == nil {
		edit.Remove = removableFolders(t, r, edit)
	}
	result, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit)
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	return result
}

// removableFolders returns all folders of the edit's owner, so that the apply may remove any of them.
func removableFolders(t testing.TB, r *repository, edit gitops.Edit) deployedTrees {
	t.Helper()
	folders := deployedTrees{}
	add := func(more deployedTrees) {
		for host, targets := range more {
			if folders[host] == nil {
				folders[host] = map[string]string{}
			}
			maps.Copy(folders[host], targets)
		}
	}
	add(edit.Written)
	names := []string{edit.Owner.Name}
	if edit.FormerName != "" {
		names = append(names, edit.FormerName)
	}
	for _, name := range names {
		owned, err := readOwned(readOwner(t, r, gitops.Owner{Name: name, Path: edit.Owner.Path}))
		if err != nil {
			t.Fatalf("owned: %v", err)
		}
		add(owned)
	}
	return folders
}

func readTrees(t testing.TB, view *gitops.OwnerView, want deployedTrees) deployedTrees {
	t.Helper()
	trees, err := view.ReadTrees(context.Background(), want)
	if err != nil {
		t.Fatalf("read trees: %v", err)
	}
	return trees
}

func readOwner(t testing.TB, r *repository, owner gitops.Owner) *gitops.OwnerView {
	t.Helper()
	view, err := readOwnerWith(context.Background(), newClient(gitops.BranchOptions{}), r.remote, owner)
	if err != nil {
		t.Fatalf("read owner: %v", err)
	}
	return view
}

func sprint(v any) string { return fmt.Sprintf("%+v", v) }
