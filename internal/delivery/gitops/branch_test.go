package gitops_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// counter counts the requests to a server: reads of the refs, and fetches.
type counter struct {
	next            http.Handler
	mu              sync.Mutex
	reads, requests int
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/info/refs"):
		c.reads++
	case strings.HasSuffix(r.URL.Path, "/git-upload-pack"):
		c.requests++
	}
	c.mu.Unlock()
	c.next.ServeHTTP(w, r)
}

// take returns the counts and resets them.
func (c *counter) take() (reads, requests int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	reads, requests = c.reads, c.requests
	c.reads, c.requests = 0, 0
	return reads, requests
}

// applyFourOwners writes the folders of four owners to a branch among foreign files. Two owners share a path. Their hosts are cluster
// types and clusters.
func applyFourOwners(t *testing.T, r *repository, above string) []gitops.Edit {
	t.Helper()
	r.commitByHand(func(w *workTree) {
		w.write("README.md", "x")
		w.write("docs/a/b/c", "x")
		w.write("dev/drone/foreign/file", "x")
	})
	var edits []gitops.Edit
	for i, owner := range []gitops.Owner{
		{Name: "dev", Path: above + "dev"}, {Name: "dev-eu", Path: above + "dev"}, {Name: "stage", Path: above + "stage"}, {Name: "prod", Path: above + "prod"},
	} {
		edit := gitops.Edit{Owner: owner, Hosts: folderEdits(t, map[string]gitops.FolderEdit{
			fmt.Sprintf("drone-%d/app", i):         newFolder(t, "a", fmt.Sprint(i), "b", "b"),
			fmt.Sprintf("large-%d/app", i):         newFolder(t, "a", "a"),
			fmt.Sprintf("clusters/store-%d/db", i): newFolder(t, "a", "a"),
		})}
		apply(t, r, edit)
		edits = append(edits, edit)
	}
	return edits
}

func TestOneReadServesAllOwnersOfABranch(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		for _, above := range []string{"", "environments/eu/"} {
			edits := applyFourOwners(t, r, above)
			branch, err := newClient(gitops.BranchOptions{}).ReadBranch(t.Context(), r.remote)
			if err != nil {
				t.Fatal(err)
			}
			tip := r.tip()
			r.commitByHand(func(w *workTree) { w.write("README.md", above) })
			if branch.Tip() != tip || branch.IsMissing() {
				t.Errorf("tip %q, missing %t; want %q", branch.Tip(), branch.IsMissing(), tip)
			}
			var group sync.WaitGroup
			for _, edit := range edits {
				for range 3 {
					group.Go(func() {
						view, err := branch.ReadOwner(t.Context(), edit.Owner)
						if err != nil {
							t.Errorf("%s: %v", edit.Owner.Name, err)
							return
						}
						if got := readTrees(t, view, treesOf(edit)); sprint(got) != sprint(treesOf(edit)) || view.Tip() != tip {
							t.Errorf("%s: deployed %v at %s, want %v at %s", edit.Owner.Name, got, view.Tip(), treesOf(edit), tip)
						}
						if n := view.Blobs(); n != 0 && !strings.HasSuffix(t.Name(), "plain") { // the plain server cannot filter blobs
							t.Errorf("%d blobs were fetched", n)
						}
						if conflicts, err := view.FindConflicts(t.Context(), treesOf(edit), treesOf(edit), ""); err != nil || len(conflicts) > 0 {
							t.Errorf("%s: %v, %v", edit.Owner.Name, conflicts, err)
						}
					})
				}
			}
			group.Wait()
		}
	})
}

func TestFourOwnersTakeAsManyRequestsAsOne(t *testing.T) {
	t.Parallel()
	for _, above := range []string{"", "environments/eu/"} {
		r := newRepository(t, serving{config: anyObject, remote: overHTTP})
		edits := applyFourOwners(t, r, above)
		count := &counter{next: backend(t, filepath.Dir(r.directory))}
		remote := git.Remote{IsGitOps: true, URL: serve(t, count) + "/gitops.git", Branch: "main"}
		one, most := map[bool]int{}, map[bool]int{
			true:  3, // for the trees, the folders of records, and the hosts below clusters
			false: 4, // and one for the commit
		}
		for i, owners := range []int{1, 4, 1, 4} {
			var readAhead []gitops.Owner
			if i < 2 {
				readAhead = append(readAhead, edits[0].Owner)
			}
			branch, err := newClient(gitops.BranchOptions{}).ReadBranch(t.Context(), remote, readAhead...)
			if err != nil {
				t.Fatal(err)
			}
			for _, edit := range edits[:owners] {
				// A plan reads twice: for the refresh and for the planned changes.
				for range 2 {
					if _, err := branch.ReadOwner(t.Context(), edit.Owner); err != nil {
						t.Fatal(err)
					}
				}
			}
			reads, requests := count.take()
			if owners == 1 {
				one[i < 2] = requests
			}
			if reads != 1 || requests > most[i < 2] || requests != one[i < 2] {
				t.Errorf("at %q: %d owners take %d reads and %d requests", above, owners, reads, requests)
			}
		}
	}
}

func TestFourOwnersOfALocalRepositoryCallGitAsOftenAsOne(t *testing.T) {
	r := newRepository(t, servings[0])
	edits := applyFourOwners(t, r, "")
	calls := recordGitCalls(t)
	var one int
	for _, owners := range []int{1, 4} {
		if err := os.WriteFile(calls, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		branch, err := newClient(gitops.BranchOptions{}).ReadBranch(t.Context(), r.remote, edits[0].Owner)
		if err != nil {
			t.Fatal(err)
		}
		for _, edit := range edits[:owners] {
			if _, err := branch.ReadOwner(t.Context(), edit.Owner); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		n := bytes.Count(text, []byte("upload-pack "))
		if owners == 1 {
			one = n
		}
		if n > 3 || n != one {
			t.Errorf("%d owners: calls of git:\n%s", owners, text)
		}
	}
}

func TestAMissingBranchIsEmpty(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		for _, remote := range []git.Remote{r.remote, {URL: filepath.Join(t.TempDir(), "new.git"), Branch: "main"}} {
			branch, err := newClient(gitops.BranchOptions{}).ReadBranch(t.Context(), remote)
			if err != nil {
				t.Fatal(err)
			}
			if branch.Tip() != "" || branch.IsMissing() != (remote.URL != r.remote.URL) {
				t.Errorf("tip %q, missing %t", branch.Tip(), branch.IsMissing())
			}
			view, err := branch.ReadOwner(t.Context(), dev)
			if err != nil || len(readTrees(t, view, deployedTrees{"drone": {"app": ""}})["drone"]) != 0 {
				t.Errorf("%+v, %v", view, err)
			}
		}
		if _, err := newClient(gitops.BranchOptions{}).ReadBranch(t.Context(), r.remote, gitops.Owner{Name: "../x"}); err == nil {
			t.Error("an invalid owner is accepted")
		}
		bad := r.remote
		bad.Branch = "a..b"
		if _, err := newClient(gitops.BranchOptions{}).ReadBranch(t.Context(), bad); err == nil {
			t.Error("an invalid branch is accepted")
		}
	})
}

// The tree of another owner's records fails git fsck.
func TestADamagedTreeOfAnotherOwnerIsNoError(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "a")})
		apply(t, r, edit)
		blob := r.git("rev-parse", "main:dev/drone/app/a")
		id, err := hex.DecodeString(blob)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "tree")
		if err := os.WriteFile(file, fmt.Appendf(nil, "100644 b\x00%s100644 a\x00%s", id, id), 0o644); err != nil {
			t.Fatal(err)
		}
		broken := r.git("hash-object", "-w", "-t", "tree", "--literally", file)
		script := fmt.Sprintf(`set -e
			export GIT_INDEX_FILE=$PWD/broken-index
			git read-tree main
			records=$(printf '040000 tree %s\t.flotilla\n100644 blob %s\tx\n' | git mktree --missing)
			root=$( (git ls-tree main; printf '040000 tree %%s\tother\n' $records) | git mktree --missing)
			git update-ref refs/heads/main $(git commit-tree -p main -m broken $root)`, broken, blob)
		run(t, r.directory, "sh", "-c", script)
		branch, err := newClient(gitops.BranchOptions{}).ReadBranch(t.Context(), r.remote, dev)
		if err != nil {
			t.Fatal(err)
		}
		view, err := branch.ReadOwner(t.Context(), dev)
		if err != nil {
			t.Fatal(err)
		}
		if got := readTrees(t, view, treesOf(edit)); sprint(got) != sprint(treesOf(edit)) {
			t.Errorf("deployed = %v", got)
		}
		if _, err := branch.ReadOwner(t.Context(), gitops.Owner{Name: "other", Path: "other"}); err == nil ||
			!strings.Contains(err.Error(), "malformed") {
			t.Errorf("the other owner: %v", err)
		}
	})
}

func TestWaitingForAnotherReadEndsWithTheContext(t *testing.T) {
	t.Parallel()
	r := newRepository(t, serving{config: anyObject, remote: overHTTP})
	applyFourOwners(t, r, "")
	entered := make(chan struct{}, 1)
	end := make(chan struct{})
	server := &faulty{next: backend(t, filepath.Dir(r.directory))}
	remote := git.Remote{IsGitOps: true, URL: serve(t, server) + "/gitops.git", Branch: "main"}
	branch, err := newClient(gitops.BranchOptions{}).ReadBranch(t.Context(), remote)
	if err != nil {
		t.Fatal(err)
	}
	server.mu.Lock()
	server.fault = eachTime("/git-upload-pack?", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		select {
		case entered <- struct{}{}:
		default:
		}
		<-end
		next.ServeHTTP(w, r)
	})
	server.mu.Unlock()
	first := make(chan error, 1)
	go func() {
		_, err := branch.ReadOwner(t.Context(), dev)
		first <- err
	}()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := branch.ReadOwner(ctx, gitops.Owner{Name: "stage", Path: "stage"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v", err)
	}
	select {
	case err := <-first:
		t.Errorf("the first ended: %v", err)
	default:
	}
	close(end)
	if err := <-first; err != nil {
		t.Errorf("the first: %v", err)
	}
}
