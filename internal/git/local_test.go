package git_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

// commitOf makes a pack with a commit of one file upon a tip.
func commitOf(t *testing.T, tip *git.Tip, name, content string) (git.Hash, *git.Pack) {
	t.Helper()
	tree, pack := tip.Tree(), git.NewPack()
	if err := tree.Open(t.Context(), []string{git.Parent(name)}); err != nil {
		t.Fatal(err)
	}
	id := git.BlobID([]byte(content))
	pack.AddFile(id, []byte(content))
	if err := tree.Put(name, git.ModeFile, id); err != nil {
		t.Fatal(err)
	}
	commit := git.NewCommit{
		Tree:    tree.Write(pack.AddTree),
		Author:  git.Signature{Name: "A", Email: "a@example.com"},
		Time:    time.Unix(1e9, 0),
		Message: "x\n",
	}
	if !tip.Commit.IsZero() {
		commit.Parents = []git.Hash{tip.Commit}
	}
	made, err := pack.AddCommit(commit, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made, pack
}

func TestAPathBelowTheHomeDirectoryIsALocalRepository(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Chdir(t.TempDir())
	client := git.NewConnector(git.ConnectorOptions{})
	remote := git.Remote{IsGitOps: true, URL: "~/gitops.git", Branch: "main"}
	if err := remote.Check(); err != nil {
		t.Fatal(err)
	}
	if err := client.Create(t.Context(), remote); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(home, "gitops.git", "HEAD")); err != nil {
		t.Error(err)
	}
	if _, err := client.Refs(t.Context(), remote); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("the working directory has %v: %v", left, err)
	}
}

func TestHooksOfLocalRepositoriesGetNoSecrets(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the hook is a shell script")
	}
	directory := filepath.Join(t.TempDir(), "r.git")
	gittest.Run(t, "", "git", "init", "--quiet", "--bare", "--initial-branch=main", directory)
	for _, hook := range []string{"pre-receive", "update", "post-receive", "post-update", "reference-transaction"} {
		script := "#!/bin/sh\nenv > '" + filepath.Join(directory, "saw-"+hook) + "'\n"
		if err := os.MkdirAll(filepath.Join(directory, "hooks"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(directory, "hooks", hook), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{
		"FLOTILLA_GIT_TOKEN": "canary", "FLOTILLA_SSH_PRIVATE_KEY": "canary", "TF_VAR_password": "canary", "TF_TOKEN_app_terraform_io": "canary",
		"TF_REATTACH_PROVIDERS": "canary", "AWS_SECRET_ACCESS_KEY": "canary", "GITHUB_TOKEN": "canary", "HTTPS_PROXY": "http://u:canary@proxy", "SSH_AUTH_SOCK": "/canary",
		"GIT_ASKPASS": "canary", "GIT_SSH_COMMAND": "canary", "GIT_CONFIG_PARAMETERS": "'a.b=canary'",
		"GIT_CONFIG_COUNT": "3", "GIT_CONFIG_KEY_0": "http.extraHeader", "GIT_CONFIG_VALUE_0": "Authorization: canary",
		"GIT_CONFIG_KEY_1": "safe.directory", "GIT_CONFIG_VALUE_1": "*", "GIT_CONFIG_KEY_2": "url.canary.insteadOf", "GIT_CONFIG_VALUE_2": "x",
	} {
		t.Setenv(name, value)
	}
	client := git.NewConnector(git.ConnectorOptions{})
	remote := git.Remote{
		IsGitOps:    true,
		URL:         directory,
		Branch:      "main",
		Credentials: git.Credentials{Login: git.Login{Token: "canary", SSH: git.SSHCredentials{Key: "canary"}}},
	}
	tip, err := client.Open(t.Context(), remote, 1)
	if err != nil {
		t.Fatal(err)
	}
	commit, pack := commitOf(t, tip, "a/b", "x")
	result, err := client.Push(t.Context(), remote, "main", tip.Commit, commit, pack)
	if err != nil || !result.Applied || !result.Sent || result.Moved {
		t.Fatalf("%+v, %v", result, err)
	}
	for _, hook := range []string{"pre-receive", "update", "post-receive", "post-update", "reference-transaction"} {
		saw, err := os.ReadFile(filepath.Join(directory, "saw-"+hook))
		if err != nil {
			t.Errorf("%s: %v", hook, err)
			continue
		}
		text := string(saw)
		if strings.Contains(text, "canary") || !strings.Contains(text, "PATH=") || !strings.Contains(text, "GIT_CONFIG_KEY_0=safe.directory\n") ||
			!strings.Contains(text, "GIT_CONFIG_COUNT=1\n") {
			t.Errorf("%s sees\n%s", hook, text)
		}
	}
}

// Git omits a wanted tree that is in another wanted tree, if that one has the smaller id. Need asks for it once more.
func TestNeedFetchesATreeWithinAnotherWantedTree(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]git.ConnectorOptions{"git": {}, "stand-in": gittest.Options()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := git.NewConnector(options)
			remote := git.Remote{IsGitOps: true, URL: filepath.Join(t.TempDir(), "r.git"), Branch: "main"}
			if err := client.Create(t.Context(), remote); err != nil {
				t.Fatal(err)
			}
			tree := func(name string) git.Hash {
				return plumbing.NewHash(strings.TrimSpace(gittest.Run(t, remote.URL, "git", "rev-parse", "main"+name)))
			}
			push := func(name, content string) {
				tip, err := client.Open(t.Context(), remote, 1)
				if err != nil {
					t.Fatal(err)
				}
				commit, pack := commitOf(t, tip, name, content)
				if result, err := client.Push(t.Context(), remote, "main", tip.Commit, commit, pack); err != nil || !result.Applied {
					t.Fatalf("%+v, %v", result, err)
				}
			}
			root, within := git.Hash{}, git.Hash{}
			for i := 0; bytes.Compare(root[:], within[:]) >= 0; i++ {
				push("a/f", strconv.Itoa(i))
				root, within = tree("^{tree}"), tree(":a")
			}
			push("a/f", "in neither of them")
			tip, err := client.Open(t.Context(), remote, 1)
			if err != nil {
				t.Fatal(err)
			}
			if err := tip.Need(t.Context(), []git.Hash{root, within}); err != nil || !tip.Has(root) || !tip.Has(within) {
				t.Errorf("it has the outer tree: %v, the inner tree: %v, %v", tip.Has(root), tip.Has(within), err)
			}
		})
	}
}
