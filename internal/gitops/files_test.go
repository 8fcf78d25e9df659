package gitops_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
)

// printed is what a test compares: "name content" of each file, by folder.
func printed(files map[folder.Key][]git.File) map[string]string {
	texts := map[string]string{}
	for key, list := range files {
		var lines []string
		for _, file := range list {
			lines = append(lines, file.Name+" "+string(file.Content))
		}
		texts[key.String()] = strings.Join(lines, "; ")
	}
	return texts
}

func TestTheFilesOfFoldersAreThoseOfTheTip(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		edit := devEdit(t, map[string]gitops.Folder{
			"drone/app":        rendered(t, "b", "2", "a", "1"),
			"drone/other":      rendered(t, "a", "not asked for"),
			"clusters/tor/app": rendered(t, "a", "1"),
		})
		apply(t, r, edit)
		w := r.clone()
		w.write("dev/drone/app/inside/deep/file", "3")
		w.write("dev/drone/app/empty", "")
		w.write("dev/large/by-hand/x", "4")
		if err := os.Symlink("b", filepath.Join(w.directory, "dev", "drone", "app", "link")); err != nil {
			t.Fatal(err)
		}
		run(t, w.directory, "git", "update-index", "--add", "--cacheinfo", "160000,1111111111111111111111111111111111111111,dev/drone/app/module")
		run(t, w.directory, "git", "add", "dev/drone", "dev/large")
		run(t, w.directory, "git", "update-index", "--add", "--cacheinfo", "160000,1111111111111111111111111111111111111111,dev/drone/app/module")
		run(t, w.directory, "git", "commit", "--quiet", "--message", "by hand")
		run(t, w.directory, "git", "push", "--quiet", "origin", "HEAD:main")
		view := inspect(t, r, dev)
		folders, err := view.Deployed(t.Context(), deployedTrees{
			"drone": {"app": "", "none": ""}, "clusters/tor": {"app": ""}, "nowhere": {"app": ""}, "large": {"by-hand": ""},
		})
		if err != nil {
			t.Fatal(err)
		}
		files, err := view.Files(t.Context(), folders, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			"drone/app":        "a 1; b 2; empty ; inside/deep/file 3; link b; module ",
			"clusters/tor/app": "a 1",
			"large/by-hand":    "x 4",
		}
		if got := printed(files); sprint(got) != sprint(want) {
			t.Errorf("files = %v\nwant %v", got, want)
		}
	})
}

func TestFilesThatAreKnownAreNotFetched(t *testing.T) {
	t.Parallel()
	r := newRepository(t, serving{config: anyObject, remote: overHTTP})
	apply(t, r, devEdit(t, map[string]gitops.Folder{
		"drone/app": rendered(t, "a", "same", "b", "old"), "large/app": rendered(t, "a", "same", "b", "old too"),
	}))
	count := &counter{next: backend(t, filepath.Dir(r.directory))}
	remote := git.Remote{URL: serve(t, count) + "/gitops.git", Branch: "main"}
	view, err := inspectBy(t.Context(), gitops.NewClient(), remote, dev)
	if err != nil {
		t.Fatal(err)
	}
	count.take()
	same := []byte("same")
	folders := deployedTrees{
		"drone": {"app": rendered(t, "a", "same", "b", "old").Tree}, "large": {"app": rendered(t, "a", "same", "b", "old too").Tree},
	}
	files, err := view.Files(t.Context(), folders, func(id git.Hash) ([]byte, bool) {
		return same, id == git.BlobID(same)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"drone/app": "a same; b old", "large/app": "a same; b old too"}
	if got := printed(files); sprint(got) != sprint(want) {
		t.Errorf("files = %v", got)
	}
	if looks, requests := count.take(); looks != 0 || requests != 2 {
		t.Errorf("%d looks, %d requests", looks, requests)
	}
	if n := view.Blobs(); n != 2 {
		t.Errorf("%d blobs were fetched", n)
	}
	if _, err := view.Files(t.Context(), deployedTrees{"x": {"app": "no id"}}, nil); err == nil {
		t.Error("a tree that is no id was taken")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := inspect(t, r, dev).Files(ended, folders, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
}
