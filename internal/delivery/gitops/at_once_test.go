package gitops_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// applyAll applies edits through one client at the same time.
func applyAll(t *testing.T, r *repository, edits ...gitops.Edit) ([]gitops.ApplyResult, []error) {
	t.Helper()
	client := newClient(gitops.BranchOptions{})
	results, errs := make([]gitops.ApplyResult, len(edits)), make([]error, len(edits))
	var group sync.WaitGroup
	for i, edit := range edits {
		group.Go(func() { results[i], errs[i] = client.Apply(context.Background(), r.remote, edit) })
	}
	group.Wait()
	return results, errs
}

// teamEdit returns an edit with one folder. The owner and the folder have the given name.
func teamEdit(t *testing.T, name, content string) gitops.Edit {
	t.Helper()
	return gitops.Edit{
		Owner: gitops.Owner{Name: name, Environment: "dev", Path: "dev"},
		Hosts: folderEdits(t, map[string]gitops.FolderEdit{"drone/" + name: newFolder(t, "a", content)}),
	}
}

func TestConcurrentOwnersMakeOneCommitEach(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		var edits []gitops.Edit
		for i := range 10 {
			edits = append(edits, teamEdit(t, fmt.Sprintf("team-%d", i), "1"))
		}
		commits := map[string]bool{}
		results, errs := applyAll(t, r, edits...)
		for i, result := range results {
			if errs[i] != nil || !result.Committed || result.Pushes != 1 ||
				!slices.Equal(changedKeys(result, "added"), []string{fmt.Sprintf("drone/team-%d", i)}) {
				t.Errorf("edit %d: %+v, %v", i, result, errs[i])
			}
			commits[result.Commit] = true
		}
		if n := r.git("rev-list", "--count", "main"); n != "10" || len(commits) != 10 {
			t.Errorf("got %s commits, and %d in the results, want 10", n, len(commits))
		}
		r.fsck()
	})
}

// The contexts end while one owner pushes and the others wait for it.
func TestCancelledConcurrentAppliesEnd(t *testing.T) {
	t.Parallel()
	for _, serving := range []serving{servings[0], servings[2]} {
		r := newRepository(t, serving)
		client := newClient(gitops.BranchOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		first := teamEdit(t, "first", "1")
		folder := first.Hosts["drone"]["first"]
		files, begun := folder.Files, make(chan struct{})
		folder.Files = func() ([]git.File, error) {
			close(begun)
			<-ctx.Done()
			return files()
		}
		first.Hosts["drone"]["first"] = folder
		errs := make([]error, 3)
		var group sync.WaitGroup
		group.Go(func() { _, errs[0] = client.Apply(ctx, r.remote, first) })
		<-begun
		for i := 1; i < len(errs); i++ {
			group.Go(func() { _, errs[i] = client.Apply(ctx, r.remote, teamEdit(t, fmt.Sprint("team-", i), "1")) })
		}
		cancel()
		group.Wait()
		for i, err := range errs {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s, edit %d: %v", serving.name, i, err)
			}
		}
		if _, err := client.Apply(t.Context(), r.remote, teamEdit(t, "after", "1")); err != nil {
			t.Errorf("%s: the branch is still locked: %v", serving.name, err)
		}
	}
}

func TestABadEditDoesNotHarmConcurrentEdits(t *testing.T) {
	t.Parallel()
	broken := errors.New("template \"x\": line 3")
	for name, test := range map[string]struct {
		prepare func(r *repository)
		bad     func(edit *gitops.Edit)
		want    string
	}{
		"a conflict": {
			prepare: func(r *repository) { apply(r.t, r, teamEdit(t, "other", "1")) },
			bad:     func(e *gitops.Edit) { e.Hosts = teamEdit(t, "other", "2").Hosts },
			want:    `the assignment "other"`,
		},
		"a link in the way": {
			prepare: func(r *repository) {
				r.commitByHand(func(w *workTree) {
					w.write("dev/drone/x", "x")
					if err := os.Symlink("/tmp", filepath.Join(w.directory, "dev/drone/bad")); err != nil {
						t.Fatal(err)
					}
				})
			},
			want: "a symbolic link",
		},
		"files that cannot be rendered": {
			bad: func(e *gitops.Edit) {
				folder := e.Hosts["drone"]["bad"]
				folder.Files = func() ([]git.File, error) { return nil, broken }
				e.Hosts["drone"]["bad"] = folder
			},
			want: "line 3",
		},
		"a refusal by the server": {
			prepare: func(r *repository) {
				installHook(r, "pre-receive", "while read old new ref; do git cat-file -p $new | grep -q 'Assignment: bad' && { echo 'no bad things'; exit 1; }; done; exit 0")
			},
			want: "no bad things",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, serving := range []serving{servings[0], servings[2]} {
				r := newRepository(t, serving)
				if test.prepare != nil {
					test.prepare(r)
				}
				bad := teamEdit(t, "bad", "1")
				if test.bad != nil {
					test.bad(&bad)
				}
				results, errs := applyAll(t, r, teamEdit(t, "a", "1"), bad, teamEdit(t, "b", "1"))
				if errs[1] == nil || !strings.Contains(errs[1].Error(), test.want) || results[1].Committed {
					t.Errorf("bad: %+v, %v", results[1], errs[1])
				}
				files := r.files()
				for i, name := range []string{"a", "", "b"} {
					if name != "" && (errs[i] != nil || !results[i].Committed || files["dev/drone/"+name+"/a"] != "1") {
						t.Errorf("%s: %+v, %v", name, results[i], errs[i])
					}
				}
				if strings.Contains(r.git("log", "--format=%B"), "Assignment: bad") || files["dev/drone/bad/a"] != "" {
					t.Error("the refused edit changed the branch")
				}
				r.fsck()
			}
		})
	}
}

// installHook makes the repository run a shell script at an event.
func installHook(r *repository, event, script string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Join(r.directory, "hooks"), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.directory, "hooks", event), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

func TestTheEndOfOneContextEndsNoOtherApply(t *testing.T) {
	t.Parallel()
	for i, serving := range []serving{servings[0], servings[2]} {
		for j, after := range []time.Duration{0, 10 * time.Millisecond, 60 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond} {
			if !acceptancetest.All() && j != 1+i*2 { // early on a path, during the push over HTTP
				continue
			}
			r := newRepository(t, serving)
			installHook(r, "pre-receive", "sleep 0.1")
			client := newClient(gitops.BranchOptions{})
			short, cancel := context.WithTimeout(context.Background(), after)
			results, errs := make([]gitops.ApplyResult, 4), make([]error, 4)
			var group sync.WaitGroup
			for i := range results {
				group.Go(func() {
					ctx := context.Background()
					if i%2 == 0 {
						ctx = short
					}
					results[i], errs[i] = client.Apply(ctx, r.remote, teamEdit(t, fmt.Sprintf("team-%d", i), "1"))
				})
			}
			group.Wait()
			cancel()
			files := r.files()
			for i, err := range errs {
				written := files[fmt.Sprintf("dev/drone/team-%d/a", i)] == "1"
				switch {
				case err != nil && (i%2 == 1 || !errors.Is(err, context.DeadlineExceeded)):
					t.Errorf("%s, %s, edit %d: %v", serving.name, after, i, err)
				case err == nil && (!written || !results[i].Committed):
					t.Errorf("%s, %s, edit %d: a false success: %+v", serving.name, after, i, results[i])
				}
			}
			r.fsck()
		}
	}
}

func TestTwoEditsOfOneOwnerFollowEachOther(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	var edits []gitops.Edit
	for i := range 5 {
		edits = append(edits, teamEdit(t, "a", fmt.Sprint(i)))
	}
	results, errs := applyAll(t, r, edits...)
	for i := range edits {
		if errs[i] != nil || !results[i].Committed {
			t.Errorf("%d: %+v, %v", i, results[i], errs[i])
		}
	}
	if got := r.git("rev-list", "--count", "main"); got != "5" {
		t.Errorf("got %s commits, want 5", got)
	}
	r.fsck()
}
