package provider_test

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

// bitbucket is a stand-in for Bitbucket Cloud or Data Center with one repository. It implements the API of pull requests
// according to the references in internal/git/forge/testdata.
type bitbucket struct {
	t     *testing.T
	cloud bool
	bare  string
	repo  repository

	mu      sync.Mutex
	pulls   []*bitbucketPull
	blocked bool           // whether a merge check fails
	task    *bitbucketPull // request that is being merged
	builds  []map[string]any
}

type bitbucketPull struct {
	id, version                           int
	title, description, head, base, state string
	reviewers                             []string
	merged, mergedHead                    string // commits
	autoMergeCommit                       string // commit with auto-merge
}

func newBitbucket(t *testing.T, cloud bool) *bitbucket {
	t.Helper()
	requireAcceptance(t)
	path := "scm/PLAT/gitops.git"
	if cloud {
		path = "owner/gitops.git"
	}
	root := t.TempDir()
	b := &bitbucket{t: t, cloud: cloud, bare: filepath.Join(root, filepath.FromSlash(path))}
	initHosted(t, root, path, "dev")
	gittest.Commit(t, b.bare, "dev", "dev", func(string) {})
	checkObjects(t, b.bare)
	backend := httpBackend(t, root)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/"+path) {
			backend.ServeHTTP(w, r)
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		status, answer := b.answer(w, r)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if answer != nil {
			_ = json.NewEncoder(w).Encode(answer)
		}
	}))
	t.Cleanup(server.Close)
	b.repo = repository{
		url: server.URL + "/" + path, cloneURL: server.URL + "/" + path, folder: b.bare,
		provider: fmt.Sprintf("provider \"flotilla\" {\n  git = { token = %q }\n}\n", bitbucketToken),
	}
	return b
}

func (b *bitbucket) tip(branch string) string {
	return git(b.t, b.bare, "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
}

func (b *bitbucket) refusal(message string, details map[string]any) any {
	if b.cloud {
		return map[string]any{"type": "error", "error": map[string]any{"message": message}}
	}
	one := map[string]any{"context": nil, "message": message}
	for name, value := range details {
		one[name] = value
	}
	return map[string]any{"errors": []any{one}}
}

func (b *bitbucket) page(values []any) (int, any) {
	return 200, map[string]any{"values": append([]any{}, values...), "isLastPage": true, "size": len(values)}
}

func (b *bitbucket) answer(w http.ResponseWriter, r *http.Request) (int, any) {
	if r.Header.Get("Authorization") != "Bearer "+bitbucketToken || !b.cloud && r.Header.Get("X-Atlassian-Token") != "no-check" {
		return 401, b.refusal("who asks?", nil)
	}
	path, known := strings.CutPrefix(r.URL.Path, "/rest/api/latest/projects/PLAT/repos/gitops/")
	if b.cloud {
		path, known = strings.CutPrefix(r.URL.Path, "/2.0/repositories/owner/gitops/")
	}
	switch {
	case b.cloud && r.URL.Path == "/2.0/users/"+bitbucketUser:
		return 200, map[string]any{"type": "user", "uuid": bitbucketUser}
	case !b.cloud && r.URL.Path == "/rest/api/latest/users":
		return b.page([]any{map[string]any{"name": "annabel"}, map[string]any{"name": "anna"}})
	case !b.cloud && strings.HasPrefix(r.URL.Path, "/rest/build-status/latest/commits/"), b.cloud && strings.HasSuffix(path, "/statuses"):
		return b.buildsOf(r.URL.Path)
	case b.cloud && strings.HasPrefix(path, "commit/"):
		return 200, map[string]any{"type": "commit", "hash": git(b.t, b.bare, "rev-parse", strings.TrimPrefix(path, "commit/"))}
	}
	segments := strings.Split(path, "/")
	if !known || segments[0] != "pullrequests" && segments[0] != "pull-requests" {
		return 404, b.refusal("not found", nil)
	}
	var sent struct {
		Title, Description string
		Version            *int
		Source, Destination,
		FromRef, ToRef struct {
			ID     string
			Branch struct{ Name string }
		}
		Reviewers []struct {
			UUID string
			User struct{ Name string }
		}
		User      struct{ Name string }
		AutoMerge bool
	}
	_ = json.NewDecoder(r.Body).Decode(&sent)
	if len(segments) == 1 && r.Method == http.MethodGet {
		return b.list(r)
	}
	if len(segments) == 1 {
		pull := &bitbucketPull{
			id: len(b.pulls) + 1, title: sent.Title, description: sent.Description, state: "OPEN",
			head: sent.Source.Branch.Name + strings.TrimPrefix(
				sent.FromRef.ID,
				"refs/heads/",
			), base: sent.Destination.Branch.Name + strings.TrimPrefix(sent.ToRef.ID, "refs/heads/"),
		}
		if b.tip(pull.head) == "" || b.tip(pull.base) == "" {
			return 400, b.refusal("source: there is no such branch", nil)
		}
		b.pulls = append(b.pulls, pull)
		return 201, b.show(pull, false)
	}
	number, _ := strconv.Atoi(segments[1])
	if number < 1 || number > len(b.pulls) {
		return 404, b.refusal("there is no such request", nil)
	}
	pull := b.pulls[number-1]
	if version := r.URL.Query().Get("version"); sent.Version != nil && *sent.Version != pull.version ||
		version != "" && version != strconv.Itoa(pull.version) {
		return 409, b.refusal("out of date", map[string]any{"exceptionName": "com.atlassian.bitbucket.pull.PullRequestOutOfDateException"})
	}
	switch action := r.Method + " " + strings.Join(segments[2:], "/"); {
	case action == "GET ":
		return 200, b.show(pull, false)
	case action == "PUT " && (b.cloud || sent.Version != nil):
		pull.title, pull.description, pull.reviewers = sent.Title, sent.Description, nil
		for _, reviewer := range sent.Reviewers {
			pull.reviewers = append(pull.reviewers, reviewer.UUID+reviewer.User.Name)
		}
	case action == "POST participants":
		pull.reviewers = append(pull.reviewers, sent.User.Name)
	case action == "POST decline":
		pull.state = "DECLINED"
	case action == "GET auto-merge" && pull.autoMergeCommit == "", action == "DELETE auto-merge":
		pull.autoMergeCommit = ""
		return 204, nil
	case action == "GET auto-merge":
		return 200, map[string]any{"fromHash": pull.autoMergeCommit}
	case action == "POST merge" && sent.AutoMerge:
		pull.autoMergeCommit = b.tip(pull.head)
		return 200, b.show(pull, false)
	case action == "POST merge" && b.blocked && b.cloud:
		return 400, b.refusal(blockedBecause, nil)
	case action == "POST merge" && b.blocked:
		return 409, b.refusal(
			"Merging the pull request has been vetoed.",
			map[string]any{"vetoes": []any{map[string]any{"detailedMessage": blockedBecause}}},
		)
	case action == "POST merge" && b.cloud:
		b.task = pull
		w.Header().Set("Location", "https://api.bitbucket.org"+r.URL.Path+"/task-status/1")
		return 202, nil
	case action == "GET merge/task-status/1" && b.task != nil: // the client polls twice
		b.merge(b.task)
		b.task = nil
		return 200, map[string]any{"task_status": "PENDING"}
	case action == "GET merge/task-status/1":
		return 200, map[string]any{"task_status": "SUCCESS"}
	case action == "POST merge":
		b.merge(pull)
	default:
		return 404, b.refusal(action+" is not described", nil)
	}
	pull.version++
	return 200, b.show(pull, false)
}

// list returns open requests. Bitbucket Cloud omits their reviewers.
func (b *bitbucket) list(r *http.Request) (int, any) {
	found := []any{}
	for _, pull := range slices.Backward(b.pulls) {
		wanted := r.URL.Query().Get("at") == "refs/heads/"+pull.head && r.URL.Query().Get("direction") == "OUTGOING"
		if filter := r.URL.Query().Get("q"); b.cloud {
			wanted = strings.Contains(filter, `source.branch.name = "`+pull.head+`"`) &&
				(!strings.Contains(filter, "destination") || strings.Contains(filter, `destination.branch.name = "`+pull.base+`"`))
		}
		if shown := b.show(pull, true); wanted && shown["state"] == "OPEN" {
			found = append(found, shown)
		}
	}
	return b.page(found)
}

// show returns the state of a request after it performs a pending auto-merge.
func (b *bitbucket) show(pull *bitbucketPull, listed bool) map[string]any {
	head := b.tip(pull.head)
	if pull.state == "OPEN" && pull.autoMergeCommit != "" {
		switch {
		case pull.autoMergeCommit != head:
			pull.autoMergeCommit = "" // the head moved
		case !b.blocked:
			b.merge(pull)
		}
	}
	if pull.state == "MERGED" {
		head = pull.mergedHead
	}
	reviewers := []any{}
	if b.cloud {
		for _, id := range pull.reviewers {
			reviewers = append(reviewers, map[string]any{"type": "user", "uuid": id})
		}
		side := func(branch, commit string) map[string]any {
			return map[string]any{
				"branch":     map[string]any{"name": branch, "merge_strategies": []string{"squash", "merge_commit"}},
				"commit":     map[string]any{"hash": commit[:12]},
				"repository": map[string]any{"uuid": "{1}"},
			}
		}
		shown := map[string]any{
			"type": "pullrequest", "id": pull.id, "title": pull.title, "description": pull.description, "state": pull.state, "merge_commit": nil,
			"source": side(
				pull.head,
				head,
			), "destination": side(pull.base, b.tip(pull.base)), "links": map[string]any{"html": map[string]any{"href": fmt.Sprintf("https://bitbucket.org/owner/gitops/pull-requests/%d", pull.id)}},
		}
		if !listed {
			shown["reviewers"] = reviewers
		}
		if pull.merged != "" {
			shown["merge_commit"] = map[string]any{"hash": pull.merged[:12]}
		}
		return shown
	}
	for _, name := range pull.reviewers {
		reviewers = append(reviewers, map[string]any{"user": map[string]any{"name": name}})
	}
	ref := func(branch, commit string) map[string]any {
		return map[string]any{"id": "refs/heads/" + branch, "latestCommit": commit, "repository": map[string]any{"id": 1}}
	}
	shown := map[string]any{
		"id": pull.id, "version": pull.version, "title": pull.title, "description": pull.description, "state": pull.state, "reviewers": reviewers,
		"fromRef": ref(pull.head, head), "toRef": ref(pull.base, b.tip(pull.base)),
		"links": map[string]any{
			"self": []any{map[string]any{"href": fmt.Sprintf("https://git.example.com/projects/PLAT/repos/gitops/pull-requests/%d", pull.id)}},
		},
	}
	if pull.merged != "" {
		shown["properties"] = map[string]any{"mergeCommit": map[string]any{"id": pull.merged}}
	}
	return shown
}

func (b *bitbucket) merge(pull *bitbucketPull) {
	base, head := b.tip(pull.base), b.tip(pull.head)
	tree := git(b.t, b.bare, "merge-tree", "--write-tree", base, head)
	pull.merged, pull.mergedHead, pull.state = git(b.t, b.bare, "commit-tree", "-p", base, "-p", head, "-m", "Merged", tree), head, "MERGED"
	git(b.t, b.bare, "update-ref", "refs/heads/"+pull.base, pull.merged, base)
}

// buildsOf returns the builds of the commit in a path. All builds belong to the tip of the branch.
func (b *bitbucket) buildsOf(path string) (int, any) {
	if !strings.Contains(path, b.tip("dev")) {
		return b.page(nil)
	}
	var builds []any
	for _, build := range b.builds {
		builds = append(builds, build)
	}
	return b.page(builds)
}

// addBuild adds a build as Flux' notification controller reports it.
func (b *bitbucket) addBuild(context, state, description string) {
	hash, now := sha1.Sum([]byte(context)), time.Now()
	build := map[string]any{
		"key": hex.EncodeToString(
			hash[:],
		), "name": "kustomization/flotilla-cluster", "state": state, "description": description, "url": "https://bitbucket.org",
		"updated_on": now.Format(time.RFC3339), "updatedDate": now.UnixMilli(),
	}
	if b.cloud {
		delete(build, "updatedDate")
	} else {
		delete(build, "updated_on")
	}
	b.builds = append(b.builds, build)
}
