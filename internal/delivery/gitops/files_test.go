package gitops_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// fileTexts returns "name content" of each file, by folder.
func fileTexts(files map[folder.Key][]git.File) map[string]string {
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

func TestFilesAreReadFromTheTip(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		edit := devEdit(t, map[string]gitops.FolderEdit{
			"drone/app":        newFolder(t, "b", "2", "a", "1"),
			"drone/other":      newFolder(t, "a", "not asked for"),
			"clusters/tor/app": newFolder(t, "a", "1"),
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
		view := readOwner(t, r, dev)
		folders, err := view.ReadTrees(t.Context(), deployedTrees{
			"drone": {"app": "", "none": ""}, "clusters/tor": {"app": ""}, "nowhere": {"app": ""}, "large": {"by-hand": ""},
		})
		if err != nil {
			t.Fatal(err)
		}
		files, err := view.ReadFiles(t.Context(), folders, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			"drone/app":        "a 1; b 2; empty ; inside/deep/file 3; link b; module ",
			"clusters/tor/app": "a 1",
			"large/by-hand":    "x 4",
		}
		if got := fileTexts(files); sprint(got) != sprint(want) {
			t.Errorf("files = %v\nwant %v", got, want)
		}
	})
}

func TestFoldersMayHaveSubfolders(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		for _, names := range [][]string{
			{"a", "1", "objects/objects.yaml", "2", "objects/templates/x", "3"},
			{"a", "1", "objects/objects.yaml", "4", "objects.d", "5"},
			{"a", "1", "objects", "a file now"},
			{"a", "1", "objects/objects.yaml", "2"},
		} {
			edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, names...)})
			apply(t, r, edit)
			r.fsck()
			view := readOwner(t, r, dev)
			folders, err := view.ReadTrees(t.Context(), deployedTrees{"drone": {"app": ""}})
			if err != nil {
				t.Fatal(err)
			}
			if tree := folders["drone"]["app"]; tree != edit.Hosts["drone"]["app"].Tree {
				t.Errorf("%q is deployed as tree %s, want %s", names, tree, edit.Hosts["drone"]["app"].Tree)
			}
			files, err := view.ReadFiles(t.Context(), folders, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, file := range files[folder.Key{Host: "drone", DeploymentTarget: "app"}] {
				got = append(got, file.Name, string(file.Content))
			}
			slices.Sort(got)
			want := slices.Sorted(slices.Values(names))
			if !slices.Equal(got, want) {
				t.Errorf("files = %q, want %q", got, want)
			}
		}
	})
}

func TestKnownFilesAreNotFetched(t *testing.T) {
	t.Parallel()
	r := newRepository(t, serving{config: anyObject, remote: overHTTP})
	apply(t, r, devEdit(t, map[string]gitops.FolderEdit{
		"drone/app": newFolder(t, "a", "same", "b", "old"), "large/app": newFolder(t, "a", "same", "b", "old too"),
	}))
	count := &counter{next: backend(t, filepath.Dir(r.directory))}
	remote := git.Remote{IsGitOps: true, URL: serve(t, count) + "/gitops.git", Branch: "main"}
	view, err := readOwnerWith(t.Context(), newClient(gitops.BranchOptions{}), remote, dev)
	if err != nil {
		t.Fatal(err)
	}
	count.take()
	same := []byte("same")
	folders := deployedTrees{
		"drone": {"app": newFolder(t, "a", "same", "b", "old").Tree}, "large": {"app": newFolder(t, "a", "same", "b", "old too").Tree},
	}
	files, err := view.ReadFiles(t.Context(), folders, nil, func(id git.Hash) ([]byte, bool) {
		return same, id == git.BlobID(same)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"drone/app": "a same; b old", "large/app": "a same; b old too"}
	if got := fileTexts(files); sprint(got) != sprint(want) {
		t.Errorf("files = %v", got)
	}
	if reads, requests := count.take(); reads != 0 || requests != 2 {
		t.Errorf("got %d reads, %d requests, want 0 and 2", reads, requests)
	}
	if n := view.Blobs(); n != 2 {
		t.Errorf("%d blobs were fetched", n)
	}
	if _, err := view.ReadFiles(t.Context(), deployedTrees{"x": {"app": "no id"}}, nil, nil); err == nil {
		t.Error("an invalid tree id is accepted")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := readOwner(t, r, dev).ReadFiles(ended, folders, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
}

// Each kind of server serves the records of a past commit, and the requested files of its folders.
func TestFilesOfAPastCommitAreReadByName(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		apply(
			t,
			r,
			devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "config", "1", "other", "old"), "large/app": newFolder(t, "config", "2")}),
		)
		past := r.tip()
		apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "config", "3", "other", "new")}))
		w := r.clone()
		w.write(dev.Path+"/.flotilla/"+dev.Name+"/torn.json", "{")
		w.push()
		view := readOwner(t, r, dev)
		written, err := view.ReadRecords(t.Context(), past)
		if err != nil || len(written.Records) != 2 || len(written.Unreadable) > 0 || written.Tip != past {
			t.Fatalf("%+v, %v", written, err)
		}
		files, err := view.ReadFiles(t.Context(), written.Trees, func(name string) bool { return name == "config" }, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fileTexts(files), map[string]string{"drone/app": "config 1", "large/app": "config 2"}; sprint(got) != sprint(want) {
			t.Errorf("files = %v", got)
		}
		if now, err := view.ReadRecords(t.Context(), ""); err != nil ||
			!slices.Equal(now.Unreadable, []string{dev.Path + "/.flotilla/" + dev.Name + "/torn.json"}) {
			t.Errorf("got unreadable %v, %v", now.Unreadable, err)
		}
		if got := view.OwnerNames(); !slices.Equal(got, []string{dev.Name}) {
			t.Errorf("got owners %v", got)
		}
	})
}

func TestOnlyRequestedFilesAreFetched(t *testing.T) {
	t.Parallel()
	r := newRepository(t, serving{config: anyObject, remote: overHTTP})
	folders := deployedTrees{"drone": {"app": newFolder(t, "a", "one", "b", "two").Tree}}
	apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "one", "b", "two")}))
	view := readOwner(t, r, dev)
	if _, err := view.ReadFiles(t.Context(), folders, func(name string) bool { return name == "b" }, nil); err != nil || view.Blobs() != 1 {
		t.Errorf("%d blobs were fetched, %v", view.Blobs(), err)
	}
}

// Each kind of server serves folders of earlier commits.
func TestFilesOfReplacedFoldersAreRead(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		old := newFolder(t, "a", "1", "objects/b", "2")
		apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"drone/app": old}))
		apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "3")}))
		files, err := readOwner(t, r, dev).ReadFiles(t.Context(), deployedTrees{"drone": {"app": old.Tree}}, nil, nil)
		if want := map[string]string{"drone/app": "a 1; objects/b 2"}; err != nil || sprint(fileTexts(files)) != sprint(want) {
			t.Errorf("files = %v, %v", fileTexts(files), err)
		}
		missing := git.BlobID([]byte("never written")).String()
		if _, err := readOwner(t, r, dev).ReadFiles(t.Context(), deployedTrees{"drone": {"app": missing}}, nil, nil); err == nil {
			t.Error("a folder that never existed is read")
		}
	})
}
