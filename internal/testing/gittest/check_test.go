package gittest_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

// `make acceptance` compares with git, too.
func TestCheckFindsTheSameDefectsAsGit(t *testing.T) {
	t.Parallel()
	const person = "author A <a@example.com> 1 +0000\ncommitter A <a@example.com> 1 +0000\n\nx\n"
	blob := "ce013625030ba8dba906f756967f9e9ca394464a" // of "hello\n"
	raw := func(id string) string { hash := plumbing.NewHash(id); return string(hash[:]) }
	empty := "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
	for name, damage := range map[string]struct {
		kind    plumbing.ObjectType
		content string
	}{
		"nothing":              {plumbing.BlobObject, "fine"},
		"an entry that is not": {plumbing.TreeObject, "100644 a\x00" + raw(strings.Repeat("1", 40))},
		"an unsorted tree":     {plumbing.TreeObject, "100644 b\x00" + raw(blob) + "100644 a\x00" + raw(blob)},
		"a folder like a file": {plumbing.TreeObject, "40000 a\x00" + raw(empty) + "100644 a.b\x00" + raw(blob)},
		"a name twice":         {plumbing.TreeObject, "100644 a\x00" + raw(blob) + "100755 a\x00" + raw(blob)},
		"a file and a folder":  {plumbing.TreeObject, "100644 a\x00" + raw(blob) + "40000 a\x00" + raw(empty)},
		"a folder of git":      {plumbing.TreeObject, "40000 .GIT\x00" + raw(empty)},
		"a name with a slash":  {plumbing.TreeObject, "100644 a/b\x00" + raw(blob)},
		"half of an entry":     {plumbing.TreeObject, "100644 a\x00" + raw(blob)[:10]},
		"a kind that is wrong": {plumbing.TreeObject, "40000 a\x00" + raw(blob)},
		"no tree":              {plumbing.CommitObject, "tree " + strings.Repeat("1", 40) + "\n" + person},
		"no parent":            {plumbing.CommitObject, "tree " + empty + "\nparent " + strings.Repeat("1", 40) + "\n" + person},
		"no author":            {plumbing.CommitObject, "tree " + empty + "\n\nx\n"},
		"a zone that is none":  {plumbing.CommitObject, "tree " + empty + "\n" + strings.Replace(person, "+0000", "0", 1)},
		"a signed commit":      {plumbing.CommitObject, "tree " + empty + "\n" + strings.Replace(person, "\n\n", "\ngpgsig a\n b\n\n", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(t.TempDir(), "a.git")
			initBare(t, folder)
			gittest.CommitAt(t, time.Unix(1, 0), folder, "main", "main", func(checkout string) {
				writeFile(t, filepath.Join(checkout, "hello"), "hello\n")
				writeFile(t, filepath.Join(checkout, "b", "c"), "c")
				if err := os.Symlink("hello", filepath.Join(checkout, "link")); err != nil {
					t.Fatal(err)
				}
			})
			writeObject(t, folder, plumbing.TreeObject, "")
			id := writeObject(t, folder, damage.kind, damage.content)
			writeFile(t, filepath.Join(folder, "refs", "tags", "damaged"), id+"\n")
			isFine := name == "nothing" || name == "a signed commit"
			if err := gittest.Check(folder); isFine != (err == nil) {
				t.Errorf("Check finds %v", err)
			}
			if !acceptancetest.All() {
				return
			}
			if output, err := gittest.TryRun(t, folder, "git", "fsck", "--strict", "--full", "--no-dangling"); isFine != (err == nil) {
				t.Errorf("git finds %v: %s", err, output)
			}
		})
	}
}

func TestCheckFindsTheDamageOfFiles(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(folder, object string) error{
		"an object that is gone": func(_, object string) error { return os.Remove(object) },
		"another object": func(folder, object string) error {
			return os.Rename(filepath.Join(folder, "objects", "27", "fa34919ae70aa0d7eaccdfbf393cfc440e7d25"), object)
		},
		"half of an object": func(_, object string) error {
			content, err := os.ReadFile(object)
			if err != nil {
				return err
			}
			if err := os.Remove(object); err != nil {
				return err
			}
			return os.WriteFile(object, content[:len(content)/2], 0o600)
		},
		"a branch without its commit": func(folder, _ string) error {
			return os.WriteFile(filepath.Join(folder, "refs", "heads", "x"), []byte(strings.Repeat("1", 40)+"\n"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(t.TempDir(), "a.git")
			initBare(t, folder)
			gittest.Commit(t, folder, "main", "main", func(checkout string) { writeFile(t, filepath.Join(checkout, "hello"), "hello\n") })
			writeObject(t, folder, plumbing.BlobObject, "other")
			if err := gittest.Check(folder); err != nil {
				t.Fatal(err)
			}
			if err := damage(folder, filepath.Join(folder, "objects", "ce", "013625030ba8dba906f756967f9e9ca394464a")); err != nil {
				t.Fatal(err)
			}
			if err := gittest.Check(folder); err == nil {
				t.Error("it is not found")
			}
		})
	}
}

func writeFile(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func writeObject(t *testing.T, folder string, kind plumbing.ObjectType, content string) string {
	t.Helper()
	id := plumbing.ComputeHash(kind, []byte(content)).String()
	var compressed bytes.Buffer
	w := zlib.NewWriter(&compressed)
	fmt.Fprintf(w, "%s %d\x00%s", kind, len(content), content)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(folder, "objects", id[:2], id[2:]), compressed.String())
	return id
}

func initBare(t *testing.T, folder string) {
	t.Helper()
	if _, ok := gittest.Answer("", "init", "--bare", "--initial-branch", "main", folder); !ok {
		gittest.Run(t, "", "git", "init", "--quiet", "--bare", "--initial-branch", "main", folder)
	}
}
