package provider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/webtest"
)

type gitHost interface {
	API(t testing.TB, user giteatest.User, method, path string, in, out any)
	User(t testing.TB) giteatest.User
}

// standInGitea imitates a repository of Gitea, whose changes take a second of CPU time each. `make acceptance` runs the same
// tests on Gitea.
type standInGitea struct {
	t         *testing.T
	bare, url string
	user      giteatest.User

	mu        sync.Mutex
	pulls     []*standInPull
	protected map[string]bool // by branch; merges need an approval
	users     []giteatest.User
	statuses  []standInStatus // oldest first
}

type standInStatus struct {
	commit  string
	ID      int               `json:"id"`
	Context string            `json:"context"`
	Status  string            `json:"status"`
	Creator map[string]string `json:"creator"`
}

type standInPull struct{ title, body, state, head, base, merged, mergedHead string }

type standInBody struct {
	Title, State, Base, Head, Name, Branch, Do, Context string
	Body                                                *string
	NewBranch                                           string `json:"new_branch"`
	NewBranchName                                       string `json:"new_branch_name"`
	OldBranchName                                       string `json:"old_branch_name"`
	RuleName                                            string `json:"rule_name"`
	Approvals                                           int    `json:"required_approvals"`
	HeadCommit                                          string `json:"head_commit_id"`
}

func newStandInGitea(t *testing.T) (repository, *standInGitea) {
	t.Helper()
	root := t.TempDir()
	s := &standInGitea{
		t: t, bare: initHosted(t, root, "owner/gitops.git", "main"), protected: map[string]bool{},
		user: giteatest.User{Name: "owner", Token: "a-token-of-the-owner"},
	}
	s.users = []giteatest.User{s.user}
	checkObjects(t, s.bare)
	backend := httpBackend(t, root)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/owner/gitops.git/") {
			backend.ServeHTTP(w, r)
			return
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	address := server.URL + "/owner/gitops.git"
	return repository{url: address, cloneURL: address, folder: s.bare}, s
}

// requestHost returns the stand-in, or Gitea in `make acceptance`.
func requestHost(t *testing.T) (repository, gitHost, giteatest.User) {
	t.Helper()
	if acceptancetest.All() {
		return startGitea(t)
	}
	repo, server := newStandInGitea(t)
	repo.provider = fmt.Sprintf("provider \"flotilla\" {\n  git = { token = %q }\n}\n", server.user.Token)
	return repo, server, server.user
}

func (s *standInGitea) API(t testing.TB, user giteatest.User, method, path string, in, out any) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+"/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "token "+user.Token)
	response, err := webtest.Client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s: %s %s %v", method, path, response.Status, answer, err)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			t.Fatal(err)
		}
	}
}

// User adds a user who may set statuses.
func (s *standInGitea) User(testing.TB) giteatest.User {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := fmt.Sprintf("user%d", len(s.users))
	s.users = append(s.users, giteatest.User{Name: name, Token: "a-token-of-" + name})
	return s.users[len(s.users)-1]
}

func (s *standInGitea) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status, answer := s.answer(r)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if answer != nil {
		_ = json.NewEncoder(w).Encode(answer)
	}
}

func refusal(status int, message string) (int, any) {
	return status, map[string]any{"message": message}
}

func (s *standInGitea) tip(branch string) string {
	return git(s.t, s.bare, "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
}

func (s *standInGitea) answer(r *http.Request) (int, any) {
	by := slices.IndexFunc(s.users, func(user giteatest.User) bool { return r.Header.Get("Authorization") == "token "+user.Token })
	if by < 0 {
		return refusal(http.StatusUnauthorized, "user does not exist")
	}
	path, isRepository := strings.CutPrefix(r.URL.Path, "/api/v1/repos/owner/gitops")
	var sent standInBody
	_ = json.NewDecoder(r.Body).Decode(&sent)
	kind, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch action := r.Method + " " + kind; {
	case !isRepository:
		return refusal(http.StatusNotFound, "user does not exist")
	case path == "":
		return http.StatusOK, map[string]any{"default_merge_style": "merge", "allow_merge_commits": true}
	case action == "POST contents":
		file := filepath.FromSlash(rest)
		to := sent.NewBranch
		if to == "" {
			to = sent.Branch
		}
		gittest.Commit(s.t, s.bare, sent.Branch, to, func(folder string) { writeFile(s.t, filepath.Join(folder, file), "x") })
		return http.StatusCreated, map[string]any{}
	case action == "POST branches":
		git(s.t, s.bare, "branch", sent.NewBranchName, sent.OldBranchName)
		return http.StatusCreated, map[string]any{}
	case action == "DELETE branches":
		git(s.t, s.bare, "branch", "--quiet", "-D", rest)
		s.updateRequests(rest, "")
		return http.StatusNoContent, nil
	case action == "PATCH branches":
		git(s.t, s.bare, "branch", "-m", rest, sent.Name)
		s.updateRequests(rest, sent.Name)
		return http.StatusNoContent, nil
	case action == "POST branch_protections":
		s.protected[sent.RuleName] = sent.Approvals > 0
		return http.StatusCreated, map[string]any{}
	case action == "DELETE branch_protections":
		delete(s.protected, rest)
		return http.StatusNoContent, nil
	case action == "PUT collaborators":
		return http.StatusNoContent, nil
	case action == "POST statuses":
		s.statuses = append(s.statuses, standInStatus{
			rest, len(s.statuses) + 1, sent.Context, sent.State, map[string]string{"login": s.users[by].Name},
		})
		return http.StatusCreated, s.statuses[len(s.statuses)-1]
	case action == "GET commits":
		return http.StatusOK, map[string]any{"statuses": s.latestStatuses(strings.TrimSuffix(rest, "/status"), r.URL.Query().Get("page"))}
	case action == "GET labels":
		return http.StatusOK, []any{map[string]any{"id": 1, "name": "flotilla"}}
	case action == "POST issues": // adds labels to a request
		return http.StatusOK, []any{}
	case kind == "pulls":
		return s.answerPulls(r, rest, sent)
	}
	return refusal(http.StatusNotFound, r.Method+" "+path+" is not imitated")
}

// latestStatuses returns the last status of each context. All are on page 1.
func (s *standInGitea) latestStatuses(commit, page string) []standInStatus {
	latest := map[string]standInStatus{}
	for _, status := range s.statuses {
		if status.commit == commit && page == "1" {
			latest[status.Context] = status
		}
	}
	return slices.AppendSeq([]standInStatus{}, maps.Values(latest))
}

func (s *standInGitea) answerPulls(r *http.Request, rest string, sent standInBody) (int, any) {
	switch {
	case rest != "":
	case r.Method == http.MethodGet:
		pulls := []any{}
		for i, pull := range s.pulls {
			if state := r.URL.Query().Get("state"); state == "all" || state == pull.state {
				pulls = append(pulls, s.requestJSON(i, pull))
			}
		}
		return http.StatusOK, pulls
	case s.tip(sent.Base) == "" || s.tip(sent.Head) == "":
		return refusal(http.StatusNotFound, "the branch does not exist")
	default:
		s.pulls = append(s.pulls, &standInPull{title: sent.Title, body: *sent.Body, state: "open", head: sent.Head, base: sent.Base})
		return http.StatusCreated, s.requestJSON(len(s.pulls)-1, s.pulls[len(s.pulls)-1])
	}
	number, rest, _ := strings.Cut(rest, "/")
	i, err := strconv.Atoi(number)
	if err != nil {
		return s.findRequest(number, rest)
	}
	if i--; i < 0 || i >= len(s.pulls) {
		return refusal(http.StatusNotFound, "there is no such request")
	}
	pull := s.pulls[i]
	switch r.Method + " " + rest {
	case "PATCH ":
		if sent.Title != "" {
			pull.title = sent.Title
		}
		if sent.Body != nil {
			pull.body = *sent.Body
		}
		if sent.State != "" {
			pull.state = sent.State
		}
		return http.StatusCreated, s.requestJSON(i, pull)
	case "GET ":
		return http.StatusOK, s.requestJSON(i, pull)
	case "POST merge":
		return s.merge(pull, sent)
	}
	return refusal(http.StatusNotFound, r.Method+" pulls/"+number+"/"+rest+" is not imitated")
}

func (s *standInGitea) findRequest(base, head string) (int, any) {
	for i := len(s.pulls) - 1; i >= 0; i-- {
		if pull := s.pulls[i]; pull.base == base && pull.head == head {
			return http.StatusOK, s.requestJSON(i, pull)
		}
	}
	return refusal(http.StatusNotFound, "there is no such request")
}

// updateRequests follows a renamed or deleted (to is "") branch in open requests.
func (s *standInGitea) updateRequests(branch, to string) {
	for _, pull := range s.pulls {
		switch {
		case pull.state != "open":
		case pull.head == branch && to == "":
			pull.state = "closed"
		case pull.head == branch:
			pull.head = to
		case pull.base == branch && to == "":
			pull.base = "main"
		case pull.base == branch:
			pull.base = to
		}
	}
}

func (s *standInGitea) requestJSON(i int, pull *standInPull) map[string]any {
	end := func(branch, commit string) map[string]any {
		return map[string]any{"ref": branch, "label": branch, "sha": commit, "repo_id": 1}
	}
	head := s.tip(pull.head)
	if pull.merged != "" {
		head = pull.mergedHead
	}
	request := map[string]any{
		"id": i + 1, "number": i + 1, "title": pull.title, "body": pull.body, "state": pull.state, "mergeable": true,
		"html_url": fmt.Sprintf("%s/owner/gitops/pulls/%d", s.url, i+1), "merged": pull.merged != "",
		"head": end(pull.head, head), "base": end(pull.base, s.tip(pull.base)),
	}
	if pull.merged != "" {
		request["merge_commit_sha"] = pull.merged
	}
	return request
}

func (s *standInGitea) merge(pull *standInPull, sent standInBody) (int, any) {
	base, head := s.tip(pull.base), s.tip(pull.head)
	switch {
	case s.protected[pull.base]:
		return refusal(http.StatusMethodNotAllowed, "Does not have enough approvals")
	case pull.state != "open" || base == "" || sent.HeadCommit != "" && sent.HeadCommit != head:
		return refusal(http.StatusConflict, "head out of date")
	}
	tree := git(s.t, s.bare, "merge-tree", "--write-tree", base, head)
	commit := []string{"commit-tree", "-m", "Merged", "-p", base}
	if sent.Do != "squash" {
		commit = append(commit, "-p", head)
	}
	pull.merged, pull.mergedHead, pull.state = git(s.t, s.bare, append(commit, tree)...), head, "closed"
	git(s.t, s.bare, "update-ref", "refs/heads/"+pull.base, pull.merged, base)
	return http.StatusOK, nil
}
