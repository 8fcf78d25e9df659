package gittest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

func TestAnswersEqualThoseByGit(t *testing.T) {
	defer func(before bool) { gittest.GitServes = before }(gittest.GitServes)
	gittest.GitServes = false
	folder := t.TempDir()
	bare, clone := filepath.Join(folder, "a.git"), filepath.Join(folder, "clone")
	if _, ok := gittest.Answer(folder, "init", "--quiet", "--bare", "--initial-branch", "main", bare); !ok {
		t.Fatal("git makes the repository")
	}
	write := func(name, content string) {
		t.Helper()
		file := filepath.Join(clone, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	gittest.Run(t, folder, "git", "clone", "--quiet", bare, clone)
	for _, content := range []string{"one", "two"} {
		write("b/c.txt", content)
		write("b.txt", content+"\n")
		write("empty", "")
		gittest.Run(t, clone, "git", "add", "--all")
		gittest.Run(t, clone, "git", "commit", "--quiet", "--message", content)
	}
	gittest.Run(t, clone, "git", "push", "--quiet", "origin", "main", "main:dev/a")
	gittest.Commit(t, bare, "main", "hand", func(checkout string) {
		if err := os.Remove(filepath.Join(checkout, "b.txt")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(checkout, "new"), []byte("by hand"), 0o644); err != nil {
			t.Fatal(err)
		}
	})
	tip := strings.TrimSpace(gittest.Run(t, bare, "git", "rev-parse", "main"))
	for _, state := range []string{"loose", "packed"} {
		for _, question := range []string{
			"rev-parse main", "rev-parse HEAD", "rev-parse refs/heads/dev/a", "rev-parse main:b", "rev-parse main:b/c.txt",
			"rev-parse " + tip, "rev-parse " + tip + ":b", "rev-parse --verify --quiet refs/heads/main", "rev-list --count main",
			"rev-list --count hand", "for-each-ref --format=%(refname) refs/heads", "for-each-ref --format=%(objectname) refs/heads/main",
			"for-each-ref --format=%(objectname) refs/heads/none", "show main:b.txt", "show main:b.txt main:b/c.txt", "show main:empty",
			"ls-tree -r --name-only main", "ls-tree -r --name-only hand", "ls-tree " + tip + " b b.txt", "ls-tree main b/c.txt",
		} {
			got, ok := gittest.Answer(bare, strings.Split(question, " ")...)
			if want := gittest.Run(t, bare, "git", strings.Split(question, " ")...); !ok || got != want {
				t.Errorf("%s: git %s: %t\ngot\n%s\nwant\n%s", state, question, ok, got, want)
			}
		}
		for _, question := range []string{
			"rev-parse none", "rev-parse main:none", "rev-parse main^", "show main", "show main:b", "ls-tree main", "ls-tree -r main b/",
			"log -1", "init --quiet other", "init --quiet --bare --initial-branch main " + bare,
		} {
			if got, ok := gittest.Answer(bare, strings.Split(question, " ")...); ok {
				t.Errorf("%s: git %s is answered: %s", state, question, got)
			}
		}
		gittest.Run(t, bare, "git", "gc", "--quiet")
	}
	gittest.Run(t, bare, "git", "fsck", "--strict", "--no-dangling")
	if files := gittest.Files(t, bare, "hand"); len(files) != 3 || files["new"] != "by hand" || files["b/c.txt"] != "two" {
		t.Errorf("the branch has %v", files)
	}
	if files := gittest.Files(t, bare, "none"); files != nil {
		t.Errorf("no branch has %v", files)
	}
}
