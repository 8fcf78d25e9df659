package gitops_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

func TestAMissingBranchIsCreatedWithOneCommit(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		r.commitByHand(func(w *workTree) { w.write("README.md", "x") })
		main := r.tip()
		r.remote.Branch = "deploy/dev"
		if view := readOwner(t, r, dev); view.Tip() != "" || view.IsMissing() || len(readTrees(t, view, deployedTrees{"drone": nil})["drone"]) != 0 {
			t.Errorf("view = %+v", view)
		}
		result := apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "a")}))
		if got := r.git("rev-list", "--count", "deploy/dev"); got != "1" || result.Commit != r.git("rev-parse", "deploy/dev") {
			t.Errorf("got %s commits, %+v", got, result)
		}
		if r.tip() != main {
			t.Error("main moved")
		}
		r.fsck()
	})
}

func TestForeignModesAndLinksAreUnchanged(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		w := r.clone()
		w.write("dev/run.sh", "x")
		w.write("dev/drone/a.b", "x")
		w.write("dev/drone/a/x", "x")
		w.write("dev/drone/a0", "x")
		if err := os.Symlink("nowhere", filepath.Join(w.directory, "dev", "drone", "link")); err != nil {
			t.Fatal(err)
		}
		run(t, w.directory, "git", "add", ".")
		run(t, w.directory, "git", "update-index", "--chmod=+x", "dev/run.sh")
		run(t, w.directory, "git", "update-index", "--add", "--cacheinfo", "160000,1111111111111111111111111111111111111111,dev/drone/module")
		run(t, w.directory, "git", "commit", "--quiet", "--message", "by hand")
		run(t, w.directory, "git", "push", "--quiet", "origin", "HEAD:main")
		before := r.git("ls-tree", "-r", "main")
		apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "a")}))
		apply(t, r, gitops.Edit{Owner: dev})
		got := slices.DeleteFunc(
			strings.Split(r.git("ls-tree", "-r", "main"), "\n"),
			func(line string) bool { return strings.HasSuffix(line, "dev/drone/dev.md") },
		)
		if got := strings.Join(got, "\n"); got != before {
			t.Errorf("after:\n%s\nbefore:\n%s", got, before)
		}
	})
}

func TestALocalRepositoryNeedsGit(t *testing.T) {
	directory := newRepository(t, servings[0]).directory
	t.Setenv("PATH", t.TempDir())
	_, err := readOwnerWith(
		context.Background(),
		gitops.NewBranchClient(gitops.BranchOptions{}),
		git.Remote{IsGitOps: true, URL: directory, Branch: "main"},
		dev,
	)
	if err == nil || !strings.Contains(err.Error(), "git, which is not on PATH") {
		t.Errorf("err = %v", err)
	}
}

func TestTheEnvironmentOfAGitHookDoesNotMatter(t *testing.T) {
	r := newRepository(t, servings[0])
	elsewhere := newRepository(t, servings[0])
	for _, variable := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"} {
		t.Setenv(variable, elsewhere.directory)
	}
	t.Setenv("GIT_OBJECT_DIRECTORY", filepath.Join(elsewhere.directory, "objects"))
	t.Setenv("GIT_QUARANTINE_PATH", elsewhere.directory)
	t.Setenv("GIT_NAMESPACE", "x")
	t.Setenv("GIT_DEFAULT_HASH", "sha256")
	missing := git.Remote{IsGitOps: true, URL: filepath.Join(t.TempDir(), "new.git"), Branch: "main"}
	for _, remote := range []git.Remote{r.remote, missing} {
		edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "a")})
		if result, err := gitops.NewBranchClient(gitops.BranchOptions{}).Apply(context.Background(), remote, edit); err != nil || !result.Committed {
			t.Errorf("%+v, %v", result, err)
		}
	}
	for _, variable := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_QUARANTINE_PATH", "GIT_NAMESPACE"} {
		if err := os.Unsetenv(variable); err != nil {
			t.Fatal(err)
		}
	}
	if r.files()["dev/drone/app/a"] != "a" || len(elsewhere.files()) != 0 {
		t.Errorf("files = %v, elsewhere %v", r.files(), elsewhere.files())
	}
	r.fsck()
}

func TestASHA256RepositoryIsAClearError(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(t.TempDir(), "other.git")
	run(t, "", "git", "init", "--quiet", "--bare", "--object-format=sha256", "--initial-branch=main", directory)
	edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "a")})
	_, err := gitops.NewBranchClient(gitops.BranchOptions{}).Apply(context.Background(), git.Remote{IsGitOps: true, URL: directory, Branch: "main"}, edit)
	if err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("err = %v", err)
	}
	remote := overHTTP(t, directory)
	remote.Branch = "main"
	if _, err = gitops.NewBranchClient(gitops.BranchOptions{}).Apply(context.Background(), remote, edit); err == nil ||
		!strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("over http: err = %v", err)
	}
}

func TestACancelledApplyReportsTheRealOutcome(t *testing.T) {
	t.Parallel()
	for i, delay := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond} {
		for j, serving := range []serving{servings[0], servings[2]} {
			if !acceptancetest.All() && i != 2+j*2 {
				continue
			}
			r := newRepository(t, serving)
			r.commitFirst("README.md", "x")
			tip := r.tip()
			slow := "#!/bin/sh\nsleep 0.05\n"
			if err := os.MkdirAll(filepath.Join(r.directory, "hooks"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(r.directory, "hooks", "pre-receive"), []byte(slow), 0o755); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), delay)
			result, err := gitops.NewBranchClient(gitops.BranchOptions{}).
				Apply(ctx, r.remote, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "a")}))
			cancel()
			now := r.tip()
			switch {
			case err == nil && (now == tip || result.Commit != now):
				t.Errorf("%s, %s: a false success: %+v", serving.name, delay, result)
			case err != nil && !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("%s, %s: err = %v", serving.name, delay, err)
			}
			// The next apply repairs any partial result.
			edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "a")})
			apply(t, r, edit)
			if got := r.files(); got["dev/drone/app/a"] != "a" || got["README.md"] != "x" {
				t.Errorf("files = %v", fileNames(got))
			}
			r.fsck()
		}
	}
}

func fileNames(files map[string]string) []string {
	var names []string
	for name := range maps.Keys(files) {
		names = append(names, name)
	}
	return names
}

func TestFilesThatDifferFromTheAnnouncedTreeAreRefused(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	folder := newFolder(t, "a", "a")
	other := newFolder(t, "a", "b")
	broken := errors.New("template \"x\": line 3")
	for name, test := range map[string]struct {
		files func() ([]git.File, error)
		want  string
	}{
		"other files": {other.Files, "was announced"},
		"an error":    {func() ([]git.File, error) { return nil, broken }, "line 3"},
		"no files":    {func() ([]git.File, error) { return nil, nil }, "no files"},
	} {
		folder.Files = test.files
		_, err := gitops.NewBranchClient(gitops.BranchOptions{}).
			Apply(context.Background(), r.remote, devEdit(t, map[string]gitops.FolderEdit{"drone/app": folder}))
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "dev/drone/app") {
			t.Errorf("%s: err = %v", name, err)
		}
	}
	if len(r.files()) != 0 {
		t.Error("the branch has files")
	}
}

func TestBadEditsAreRefusedWithoutARequest(t *testing.T) {
	t.Parallel()
	good := newFolder(t, "a", "a")
	edit := func(change func(*gitops.Edit)) gitops.Edit {
		e := devEdit(t, map[string]gitops.FolderEdit{"drone/app": good})
		change(&e)
		return e
	}
	for name, e := range map[string]gitops.Edit{
		"no owner":          edit(func(e *gitops.Edit) { e.Owner.Name = "" }),
		"a bad owner":       edit(func(e *gitops.Edit) { e.Owner.Name = "../x" }),
		"a bad path":        edit(func(e *gitops.Edit) { e.Owner.Path = "a/../b" }),
		"a bad environment": edit(func(e *gitops.Edit) { e.Owner.Environment = "a\nFlotilla-Assignment: x" }),
		"a bad author":      edit(func(e *gitops.Edit) { e.Author.Name = "a\ncommitter x" }),
		"a bad email":       edit(func(e *gitops.Edit) { e.Author.Email = "a> 0 +0000\n" }),
		"a bad release":     edit(func(e *gitops.Edit) { e.Release = "1\nx" }),
		"a bad subject":     edit(func(e *gitops.Edit) { e.Subject = "a\x00b" }),
		"a bad host":        devEdit(t, map[string]gitops.FolderEdit{"a/b/app": good}),
		"host clusters":     devEdit(t, map[string]gitops.FolderEdit{"clusters/app": good}),
		"host .flotilla":    devEdit(t, map[string]gitops.FolderEdit{".flotilla/app": good}),
		"host ..":           devEdit(t, map[string]gitops.FolderEdit{"../app": good}),
		"a bad target":      devEdit(t, map[string]gitops.FolderEdit{"drone/..": good}),
		"a device":          devEdit(t, map[string]gitops.FolderEdit{"drone/aux": good}),
		"no tree":           devEdit(t, map[string]gitops.FolderEdit{"drone/app": {Files: good.Files}}),
		"no files":          devEdit(t, map[string]gitops.FolderEdit{"drone/app": {Tree: good.Tree}}),
		"a bad state":       edit(func(e *gitops.Edit) { e.Written = deployedTrees{"drone": {"../../x": good.Tree}} }),
		"a bad state host":  edit(func(e *gitops.Edit) { e.Written = deployedTrees{"..": {}} }),
	} {
		// No server listens there, so a request would fail with another error.
		_, err := gitops.NewBranchClient(gitops.BranchOptions{}).
			Apply(context.Background(), git.Remote{IsGitOps: true, URL: "http://127.0.0.1:1/r", Branch: "main"}, e)
		if err == nil || errors.Is(err, git.ErrUnreachable) {
			t.Errorf("%s: err = %v", name, err)
		}
	}
}

// recordGitCalls replaces git on PATH by a script that records each call and then runs git. It returns the file with a line for each
// call. The test cannot be parallel.
func recordGitCalls(t *testing.T) (calls string) {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	calls = filepath.Join(folder, "calls")
	script := fmt.Sprintf("#!/bin/sh\necho \"$@\" >> '%s'\nexec '%s' \"$@\"\n", calls, program)
	if err := os.WriteFile(filepath.Join(folder, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	return calls
}
