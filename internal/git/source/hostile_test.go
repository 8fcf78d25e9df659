package source_test

import (
	"encoding/hex"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/source"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

// mktree writes a tree from lines "<mode> <type> <id>\t<name>".
func (r *repository) mktree(lines ...string) string {
	r.t.Helper()
	return strings.TrimSpace(gittest.Feed(r.t, r.bare, []byte(strings.Join(lines, "\n")+"\n"), "mktree"))
}

// setMain commits a tree to main of a bare repository.
func (r *repository) setMain(tree string) {
	r.t.Helper()
	commit := strings.TrimSpace(gittest.Run(r.t, r.bare, "git", "commit-tree", "-m", "bomb", tree))
	gittest.Run(r.t, r.bare, "git", "update-ref", "refs/heads/main", commit)
}

// 60 nested folders with names of 4 KiB and 5,000 files in the innermost are some hundred kilobytes of objects, but more than a
// gigabyte of paths. The test is not parallel, because it measures allocations.
func TestLongPathsAreBounded(t *testing.T) {
	r := newRepository(t)
	r.commit(map[string]string{"a": "a"})
	r.push("main")
	blob := r.git("rev-parse", "HEAD:a")
	var lines []string
	for i := range 4_999 {
		lines = append(lines, fmt.Sprintf("100644 blob %s\t%d", blob, i))
	}
	tree := r.mktree(lines...)
	for range 60 {
		tree = r.mktree(fmt.Sprintf("040000 tree %s\t%s", tree, strings.Repeat("a", 4_000)))
	}
	r.setMain(tree)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	wantError(t, source.Query{URL: r.bare}, "include", "A path may have 4096 bytes")
	runtime.ReadMemStats(&after)
	if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 256 {
		t.Errorf("it takes %d MiB", allocated)
	}
}

// A folder of 100,000 files is within the highest limit, or an error names the limit.
func TestManyFilesAreBounded(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.commit(map[string]string{"a": "a"})
	r.push("main")
	blob := r.git("rev-parse", "HEAD:a")
	limits := source.Limits{Files: acceptancetest.Count(5_000, source.MaxLimits.Files), Bytes: source.MaxLimits.Bytes}
	lines := make([]string, limits.Files+1)
	for i := range lines {
		lines[i] = fmt.Sprintf("100644 blob %s\t%06d%s", blob, i, strings.Repeat("a", 20))
	}
	r.setMain(r.mktree(lines...))
	wantError(t, source.Query{URL: r.bare}, "limits", "More than 5000 files match", "limits.files")
	wantError(t, source.Query{URL: r.bare, Limits: limits}, "limits", fmt.Sprintf("More than %d files match", limits.Files))
	wantError(t, source.Query{URL: r.bare, Limits: source.Limits{Files: 200_000, Bytes: 1 << 12}}, "limits", "more than 4096 bytes")
}

// Git itself writes no names that lead elsewhere or control a terminal, and no devices.
func TestATreeThatGitWouldNotWriteIsRefused(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.commit(map[string]string{"a": "/etc/passwd"})
	r.push("main")
	tree, blob := r.git("rev-parse", "HEAD^{tree}"), r.git("rev-parse", "HEAD:a")
	for _, name := range []string{"..", ".", ".git"} {
		r.point("40000 "+name, tree)
		if _, err := read(t, source.Query{URL: r.bare}); err == nil || !strings.Contains(err.Error(), "malformed") {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"a\x1b[2J", "a\u009b2J", "a\u202eb", "a\tb", `a\b`, "\xff"} {
		r.point("40000 "+name, tree)
		wantError(t, source.Query{URL: r.bare}, "include", "Names cannot be paths")
	}
	missing := strings.Repeat("1", 40) // git reads a device as a submodule, and pushes no blob for it
	for mode, object := range map[string]string{"20644": missing, "60644": missing, "120000": blob, "160000": blob} {
		r.point(mode+" device", object)
		if files, err := read(t, source.Query{URL: r.bare}); err == nil {
			t.Errorf("mode %s is read as %q", mode, files.Texts)
		}
	}
}

// point sets main to a tree with one entry that git would not write.
func (r *repository) point(entry, object string) {
	r.t.Helper()
	id, err := hex.DecodeString(object)
	if err != nil {
		r.t.Fatal(err)
	}
	tree := gittest.Feed(r.t, r.bare, []byte(entry+"\x00"+string(id)), "hash-object", "-t", "tree", "--literally", "-w", "--stdin")
	r.setMain(strings.TrimSpace(tree))
}
