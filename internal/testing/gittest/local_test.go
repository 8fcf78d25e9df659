package gittest_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

// The server reads repositories written by git, and git reads pushed objects.
func TestLocalServerAndGitReadTheSameRepositories(t *testing.T) {
	defer func(before bool) { gittest.GitServes = before }(gittest.GitServes)
	gittest.GitServes = false
	t.Run("path", func(t *testing.T) {
		folder := t.TempDir()
		client := git.NewConnector(git.ConnectorOptions{Local: func(directory string) http.RoundTripper {
			over := gittest.Local(directory)
			if over == nil {
				t.Error("git serves it")
			}
			return over
		}})
		servesAsGit(t, folder, client, filepath.Join(folder, "a.git"))
	})
	t.Run("http", func(t *testing.T) {
		folder := t.TempDir()
		server := httptest.NewServer(gittest.Backend(folder, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			t.Errorf("git serves %s", r.URL)
		})))
		defer server.Close()
		servesAsGit(t, folder, git.NewConnector(git.ConnectorOptions{}), server.URL+"/a.git")
	})
}

func servesAsGit(t *testing.T, folder string, client *git.Connector, url string) {
	t.Helper()
	bare, clone := filepath.Join(folder, "a.git"), filepath.Join(folder, "clone")
	gittest.Run(t, folder, "git", "init", "--quiet", "--bare", "--initial-branch=main", bare)
	remote := git.Remote{URL: url, Branch: "main"}
	open := func() *git.Tip {
		t.Helper()
		tip, err := client.Open(t.Context(), remote, 1)
		if err != nil {
			t.Fatal(err)
		}
		return tip
	}
	if tip := open(); !tip.Commit.IsZero() {
		t.Errorf("an empty repository is at %s", tip.Commit)
	}
	gittest.Run(t, folder, "git", "clone", "--quiet", bare, clone)
	if err := os.WriteFile(filepath.Join(clone, "a.txt"), []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	gittest.Run(t, clone, "git", "add", "a.txt")
	gittest.Run(t, clone, "git", "commit", "--quiet", "--message", "first")
	gittest.Run(t, clone, "git", "tag", "--annotate", "--message", "one", "v1")
	gittest.Run(t, clone, "git", "push", "--quiet", "origin", "HEAD:main", "v1")
	first := strings.TrimSpace(gittest.Run(t, clone, "git", "rev-parse", "HEAD"))
	if tip := open(); tip.Commit.String() != first {
		t.Errorf("it is at %s, not at %s", tip.Commit, first)
	}
	refs, err := client.Refs(t.Context(), remote)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"v1", "main", "HEAD"} {
		if at, err := refs.Commit(ref); err != nil || at.String() != first {
			t.Errorf("%s is at %s, not at %s: %v", ref, at, first, err)
		}
	}
	pack := git.NewPack()
	tree, err := pack.AddFolder(git.NewHasher(), []git.File{{Name: "below/b.txt", Content: []byte("b")}})
	if err != nil {
		t.Fatal(err)
	}
	at := plumbing.NewHash(first)
	somebody := git.Signature{Name: "A Person", Email: "person@example.com"}
	second, err := pack.AddCommit(
		git.NewCommit{Tree: tree, Parents: []git.Hash{at}, Author: somebody, Time: time.Unix(0, 0), Message: "second\n"},
		nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	if result, err := client.Push(t.Context(), remote, "main", at, second, pack); err != nil || !result.Applied {
		t.Fatalf("the push: %+v, %v", result, err)
	}
	if result, err := client.Push(t.Context(), remote, "main", at, second, pack); err != nil || !result.Applied && !result.Moved {
		t.Errorf("the push of what is there: %+v, %v", result, err)
	}
	gittest.Run(t, bare, "git", "fsck", "--strict")
	if content := gittest.Run(t, bare, "git", "show", "main:below/b.txt"); content != "b" {
		t.Errorf("git shows %q", content)
	}
}

func TestLocalLeavesToGitWhatItCannotServe(t *testing.T) {
	folder := t.TempDir()
	gittest.Run(t, folder, "git", "init", "--quiet", "clone")
	gittest.Run(t, folder, "git", "init", "--quiet", "--bare", "plain.git")
	gittest.Run(t, folder, "git", "init", "--quiet", "--bare", "hooked.git")
	if err := os.WriteFile(filepath.Join(folder, "hooked.git", "hooks", "update"), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	gittest.Run(t, folder, "git", "init", "--quiet", "--bare", "configured.git")
	gittest.Run(t, filepath.Join(folder, "configured.git"), "git", "config", "receive.denyNonFastForwards", "true")
	for name, served := range map[string]bool{
		"plain.git": true, "hooked.git": false, "configured.git": false, "clone": false, "clone/.git": false, "missing.git": false,
	} {
		if got := gittest.Local(filepath.Join(folder, name)) != nil; got != served {
			t.Errorf("%s: %t", name, got)
		}
	}
}
