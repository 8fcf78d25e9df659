package gitops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// reachableObject configures a server that serves objects of its branches by id.
var reachableObject = []string{
	"uploadpack.allowFilter=true", "uploadpack.allowReachableSHA1InWant=true", "uploadpack.allowTipSHA1InWant=true",
}

var devFolders = deployedTrees{
	"drone": {"app": "", "db": ""}, "large": {"app": ""}, "clusters/store-1": {"app": ""}, "never": {"app": ""},
}

// importCommits adds commits to a branch, an hour apart. Every fifth commit changes clusters/store-1, and every seventh drone.
func importCommits(r *repository, branch string, from string, count int) {
	r.t.Helper()
	var stream bytes.Buffer
	for i := range count {
		fmt.Fprintf(&stream, "commit refs/heads/%s\ncommitter A <a@example.com> %d +0000\ndata 1\nx\n", branch, 1_700_000_000+3600*i)
		if i == 0 && from != "" {
			fmt.Fprintf(&stream, "from %s\n", from)
		}
		file := func(path, content string) {
			fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", path, len(content), content)
		}
		file("elsewhere/file", strconv.Itoa(i))
		if i%5 == 0 {
			file("dev/clusters/store-1/app/a", branch+strconv.Itoa(i))
		}
		if i%7 == 0 {
			file("dev/drone/app/a", branch+strconv.Itoa(i))
		}
		if i == 3 {
			file("dev/drone/db/a", "a")
		}
		if i == 9 {
			stream.WriteString("D dev/drone/db\n")
		}
	}
	feed(r.t, r.directory, stream.Bytes(), "-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", "--force")
}

// readDev reads the branch and the owner dev with a new client.
func readDev(t *testing.T, remote git.Remote) *gitops.OwnerView {
	t.Helper()
	branch, err := newClient(gitops.BranchOptions{}).ReadBranch(t.Context(), remote, dev)
	if err != nil {
		t.Fatal(err)
	}
	view, err := branch.ReadOwner(t.Context(), dev)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

// checkCommits compares reported commits with git.
func checkCommits(r *repository, tip string, commits map[string]gitops.ReportedCommit) {
	r.t.Helper()
	times, parents := map[string]int64{}, map[string][]string{}
	for line := range strings.Lines(r.git("rev-list", "--all", "--parents", "--timestamp")) {
		fields := strings.Fields(line)
		times[fields[1]], _ = strconv.ParseInt(fields[0], 10, 64)
		parents[fields[1]] = fields[2:]
	}
	history := func(id string) map[string]bool {
		found := map[string]bool{}
		for queue := []string{id}; len(queue) > 0; queue = queue[1:] {
			if !found[queue[0]] {
				found[queue[0]] = true
				queue = append(queue, parents[queue[0]]...)
			}
		}
		return found
	}
	all := history(r.git("rev-parse", tip))
	wantTrees := treesByGit(r, slices.Sorted(maps.Keys(commits))...)
	for requested, commit := range commits {
		if !strings.HasPrefix(commit.ID, strings.ToLower(requested)) || commit.Reason != "" {
			r.t.Errorf("%s: got %+v, want a commit", requested, commit)
			continue
		}
		behind, since := history(commit.ID), int64(0)
		ahead := 0
		for id := range all {
			if behind[id] {
				continue
			}
			if ahead++; ahead == 1 || times[id] < since {
				since = times[id]
			}
		}
		if commit.Behind != ahead || ahead > 0 && commit.Since.Unix() != since {
			r.t.Errorf("%s: got %d behind since %s, want %d since %d", requested, commit.Behind, commit.Since, ahead, since)
		}
		if sprint(commit.Trees) != sprint(wantTrees[requested]) {
			r.t.Errorf("%s: got %v, want %v", requested, commit.Trees, wantTrees[requested])
		}
	}
}

// compareTrees describes the difference between the given trees and git's, "" for none.
func compareTrees(r *repository, commit string, got deployedTrees) string {
	r.t.Helper()
	if want := treesByGit(r, commit)[commit]; sprint(got) != sprint(want) {
		return fmt.Sprintf("%s: got %v, want %v", commit, got, want)
	}
	return ""
}

// treesByGit returns the folders of devFolders in commits, according to git.
func treesByGit(r *repository, commits ...string) map[string]deployedTrees {
	r.t.Helper()
	r.update()
	var questions strings.Builder
	var add []func(id string)
	all := map[string]deployedTrees{}
	for _, commit := range commits {
		all[commit] = deployedTrees{}
		for host, targets := range devFolders {
			found := map[string]string{}
			all[commit][host] = found
			for target := range targets {
				fmt.Fprintf(&questions, "%s:dev/%s/%s\n", commit, host, target)
				add = append(add, func(id string) { found[target] = id })
			}
		}
	}
	answers := strings.Split(feed(r.t, r.directory, []byte(questions.String()), "cat-file", "--batch-check=%(objectname) %(objecttype)"), "\n")
	for i, answer := range answers[:len(add)] {
		if id, isTree := strings.CutSuffix(answer, " tree"); isTree {
			add[i](id)
		}
	}
	return all
}

func TestReportedCommitsHaveTheTreesOfGit(t *testing.T) {
	t.Parallel()
	for _, serving := range append(someServings(t), serving{name: "http reachable object", config: reachableObject, remote: overHTTP}) {
		t.Run(serving.name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t, serving)
			importCommits(r, "main", "", 12)
			apply(t, r, devEdit(t, map[string]gitops.FolderEdit{"large/app": newFolder(t, "a", "a")}))
			importCommits(r, "side", "main~6", 4)
			w := r.clone()
			run(t, w.directory, "git", "merge", "--quiet", "--strategy", "ours", "--message", "merge", "origin/side")
			run(t, w.directory, "git", "push", "--quiet", "origin", "HEAD:main")
			view := readDev(t, r.remote)
			ids := strings.Fields(r.git("rev-list", "main"))
			requested := append(slices.Clone(ids[1:]), ids[0][:7], strings.ToUpper(ids[3][:12]), ids[0], ids[0])
			commits, err := view.FindCommits(t.Context(), requested, devFolders)
			if err != nil {
				t.Fatal(err)
			}
			if len(commits) != len(ids)+2 {
				t.Errorf("got %d commits, want %d", len(commits), len(ids)+2)
			}
			checkCommits(r, "main", commits)
			if n := view.Blobs(); n != 0 && serving.name != "http plain" {
				t.Errorf("%d blobs were fetched", n)
			}
		})
	}
}

func TestUnknownCommitsAreNoError(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		importCommits(r, "main", "", 70)
		importCommits(r, "other", "main~3", 2)
		rewritten := r.tip()
		r.git("update-ref", "refs/heads/main", "main~2")
		view := readDev(t, r.remote)
		tip := r.tip()
		commits, err := view.FindCommits(t.Context(), []string{
			r.git(
				"rev-parse",
				"other",
			), rewritten, "1234567890123456789012345678901234567890", "1234567", "123456", "", "main", strings.Repeat("a", 64), tip,
		}, devFolders)
		if err != nil {
			t.Fatal(err)
		}
		if len(commits) != 9 {
			t.Errorf("commits = %+v", commits)
		}
		for id, commit := range commits {
			want := "is not in the history of the branch, which may have been rewritten"
			switch id {
			case "123456", "", "main", strings.Repeat("a", 64):
				want = "is not the id of a commit"
			case tip:
				checkCommits(r, "main", map[string]gitops.ReportedCommit{id: commit})
				continue
			}
			if commit.ID != "" || !strings.Contains(commit.Reason, want) || commit.Trees != nil {
				t.Errorf("%s: %+v", id, commit)
			}
		}
	})
}

func TestCommitsOfAnEmptyBranchAreUnknown(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		for _, remote := range []git.Remote{r.remote, {URL: filepath.Join(t.TempDir(), "new.git"), Branch: "main"}} {
			const id = "1234567890123456789012345678901234567890"
			commits, err := readDev(t, remote).FindCommits(t.Context(), []string{id}, devFolders)
			if err != nil || commits[id].Reason != "the branch has no commits" {
				t.Errorf("%+v, %v", commits, err)
			}
		}
		// The branch gets commits before the next question.
		view := readDev(t, r.remote)
		importCommits(r, "main", "", 3)
		id := r.git("rev-parse", "main~1")
		commits, err := view.FindCommits(t.Context(), []string{id}, devFolders)
		if err != nil || commits[id].ID != id || compareTrees(r, id, commits[id].Trees) != "" {
			t.Errorf("%+v, %v", commits, err)
		}
	})
}

func TestCommitsAfterTheReadAreFound(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		importCommits(r, "main", "", 80)
		view := readDev(t, r.remote)
		before := r.tip()
		importCommits(r, "main", "main", 5)
		newer, between, older, oldest := r.git(
			"rev-parse",
			"main",
		), r.git(
			"rev-parse",
			"main~2",
		), r.git(
			"rev-parse",
			before+"~3",
		), r.git(
			"rev-parse",
			before+"~75",
		)
		requested := []string{newer, between, older, before, oldest}
		for range 2 {
			commits, err := view.FindCommits(t.Context(), requested, devFolders)
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{newer, between} {
				if commit := commits[id]; !commit.Ahead || commit.Behind != 0 || !commit.Since.IsZero() || compareTrees(r, id, commit.Trees) != "" {
					t.Errorf("%s: %+v", id, commit)
				}
				delete(commits, id)
			}
			for id, commit := range commits {
				if commit.Ahead {
					t.Errorf("%s: %+v", id, commit)
				}
			}
			checkCommits(r, before, commits)
		}
		// The branch is rewritten.
		importCommits(r, "fresh", "", 2)
		r.git("update-ref", "refs/heads/main", "fresh")
		fresh := r.git("rev-parse", "main~1")
		commits, err := view.FindCommits(t.Context(), []string{fresh, newer}, devFolders)
		if err != nil || commits[fresh].Behind != 1 || compareTrees(r, fresh, commits[fresh].Trees) != "" || commits[newer].ID != "" {
			t.Errorf("%+v, %v", commits, err)
		}
	})
}

// reportedCommits returns the commits that a thousand clusters report: forty of the last fifty.
func reportedCommits(r *repository) []string {
	r.t.Helper()
	commits := strings.Fields(r.git("rev-list", "--max-count=50", "main"))
	var ids []string
	for i := range 1000 {
		ids = append(ids, commits[i*7%40+i%2*10])
	}
	return ids
}

func TestAThousandClustersAtFortyCommitsTakeFewRequests(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config []string
		most   int
	}{
		// For the history, the root trees, the owner's trees, its hosts and the hosts below clusters.
		"any object": {anyObject, 6},
		"reachable":  {reachableObject, 6},
		// For the history with its trees.
		"blob filter": {blobNone, 1},
		"plain":       {nil, 1},
	} {
		r := newRepository(t, serving{config: test.config, remote: overHTTP})
		importCommits(r, "main", "", 200)
		count := &counter{next: backend(t, filepath.Dir(r.directory))}
		view := readDev(t, git.Remote{IsGitOps: true, URL: serve(t, count) + "/gitops.git", Branch: "main"})
		count.take()
		commits, err := view.FindCommits(t.Context(), reportedCommits(r), devFolders)
		if err != nil {
			t.Fatal(err)
		}
		reads, requests := count.take()
		t.Logf("%s: %d commits take %d reads and %d requests", name, len(commits), reads, requests)
		if reads != 0 || requests > test.most {
			t.Errorf("%s: %d reads, %d requests", name, reads, requests)
		}
		if id := r.git("rev-parse", "main~17"); len(commits) != 40 || compareTrees(r, id, commits[id].Trees) != "" || commits[id].Behind != 17 {
			t.Errorf("%s: %d commits, and %+v", name, len(commits), commits[id])
		}
		if _, err := view.FindCommits(t.Context(), reportedCommits(r), devFolders); err != nil {
			t.Fatal(err)
		}
		if reads, requests := count.take(); reads+requests > 0 {
			t.Errorf("%s: the second time, %d reads, %d requests", name, reads, requests)
		}
		// An old commit and an unknown one.
		far := []string{r.git("rev-parse", "main~190"), "1234567890123456789012345678901234567890"}
		if commits, err = view.FindCommits(t.Context(), far, devFolders); err != nil || commits[far[0]].Behind != 190 || commits[far[1]].ID != "" {
			t.Errorf("%s: %+v, %v", name, commits, err)
		}
		if reads, requests := count.take(); reads > 1 || requests > 8 {
			t.Errorf("%s: an old commit, %d reads, %d requests", name, reads, requests)
		}
		// The trees of the tip are fetched already.
		view = readDev(t, git.Remote{IsGitOps: true, URL: serve(t, count) + "/gitops.git", Branch: "main"})
		count.take()
		tip := r.tip()
		if commits, err = view.FindCommits(t.Context(), []string{tip}, deployedTrees{"drone": {"app": ""}}); err != nil ||
			commits[tip].Trees["drone"]["app"] == "" {
			t.Errorf("%s: %+v, %v", name, commits, err)
		}
		if reads, requests := count.take(); reads+requests > 0 {
			t.Errorf("%s: the tip, %d reads, %d requests", name, reads, requests)
		}
	}
}

func TestAThousandClustersAtFortyCommitsCallGitAFewTimes(t *testing.T) {
	r := newRepository(t, servings[0]) // not parallel, since it sets PATH
	r.serveByGit()
	importCommits(r, "main", "", 200)
	ids := reportedCommits(r)
	calls := recordGitCalls(t)
	view := readDev(t, r.remote)
	if err := os.WriteFile(calls, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	commits, err := view.FindCommits(t.Context(), ids, devFolders)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("upload-pack ")); n == 0 || n > 6 || len(commits) != 40 {
		t.Errorf("%d commits: calls of git:\n%s", len(commits), text)
	}
}

func TestPastTreesComeWithCommitsIfTheServerRefusesTheirIDs(t *testing.T) {
	t.Parallel()
	r := newRepository(t, serving{config: anyObject, remote: overHTTP})
	importCommits(r, "main", "", 30)
	tip := r.tip()
	server := &faulty{next: backend(t, filepath.Dir(r.directory))}
	server.fault = eachTime("/git-upload-pack?", func(w http.ResponseWriter, request *http.Request, next http.Handler) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		if !bytes.Contains(body, []byte("want "+tip)) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
			fmt.Fprint(w, "001dERR not a commit of mine\n")
			return
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, request)
	})
	branch, err := newClient(
		gitops.BranchOptions{},
	).ReadBranch(t.Context(), git.Remote{IsGitOps: true, URL: serve(t, server) + "/gitops.git", Branch: "main"})
	if err != nil {
		t.Fatal(err)
	}
	view, err := branch.ReadOwner(t.Context(), gitops.Owner{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	id := r.git("rev-parse", "main~8")
	commits, err := view.FindCommits(t.Context(), []string{id}, deployedTrees{"elsewhere": {"x": ""}, "dev": {"drone": "", "clusters": ""}})
	if err != nil || commits[id].Trees["dev"]["drone"] != r.git("rev-parse", id+":dev/drone") {
		t.Errorf("%+v, %v", commits, err)
	}
}

func TestFindCommitsFailsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	r := newRepository(t, serving{config: anyObject, remote: overHTTP})
	importCommits(r, "main", "", 3)
	id := r.git("rev-parse", "main~1")
	var isDown atomic.Bool
	serving := backend(t, filepath.Dir(r.directory))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if isDown.Load() {
			panic(http.ErrAbortHandler)
		}
		serving.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	view := readDev(t, git.Remote{IsGitOps: true, URL: server.URL + "/gitops.git", Branch: "main"})
	if _, err := view.FindCommits(t.Context(), []string{id}, deployedTrees{"../x": nil}); err == nil || !strings.Contains(err.Error(), "../x") {
		t.Errorf("an invalid host: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := view.FindCommits(ended, []string{id}, devFolders); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
	isDown.Store(true)
	if _, err := view.FindCommits(t.Context(), []string{id}, devFolders); !errors.Is(err, git.ErrUnreachable) {
		t.Errorf("a server that is down: %v", err)
	}
}

func TestRecentCommitsAreReadFromThePresentTip(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		listRecent := func(branch *gitops.Branch, limit int) string {
			t.Helper()
			commits, err := branch.ListRecentCommits(t.Context(), limit)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Join(commits, "\n")
		}
		branch, err := newClient(gitops.BranchOptions{}).ReadBranch(t.Context(), r.remote)
		if err != nil {
			t.Fatal(err)
		}
		if got := listRecent(branch, 20); got != "" {
			t.Errorf("an empty branch: got %s", got)
		}
		importCommits(r, "main", "", 70)
		importCommits(r, "side", "main~6", 4)
		w := r.clone()
		run(t, w.directory, "git", "merge", "--quiet", "--strategy", "ours", "--message", "merge", "origin/side")
		run(t, w.directory, "git", "push", "--quiet", "origin", "HEAD:main")
		if branch, err = newClient(gitops.BranchOptions{}).ReadBranch(t.Context(), r.remote); err != nil {
			t.Fatal(err)
		}
		for _, limit := range []int{1, 20, 68, 1000} {
			if got, want := listRecent(branch, limit), r.git("rev-list", "--date-order", fmt.Sprintf("--max-count=%d", limit), "main"); got != want {
				t.Errorf("the last %d: got\n%s\nwant\n%s", limit, got, want)
			}
		}
		r.commitByHand(func(w *workTree) { w.write("README.md", "y") })
		if got, want := listRecent(branch, 1), r.tip(); got != want {
			t.Errorf("the last commit: got %s, want %s", got, want)
		}
	})
}
