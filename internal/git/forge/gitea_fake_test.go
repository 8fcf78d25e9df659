package forge_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// These tests need much content or an organization in Gitea, so they run against scripts. The other tests run against a real Gitea.

const (
	tea     = "/api/v1/repos/owner/gitops"
	teaAny  = "GET " + tea + "/pulls/main/flotilla/dev"
	teaOpen = "GET " + tea + "/pulls?limit=50&page=1&state=open"
)

func teaPull(changes ...fields) fields {
	return withFields(fields{
		"id": 1, "number": 7, "state": "open", "title": devTitle, "body": devBody, "html_url": "https://gitea.example.com/owner/gitops/pulls/7",
		"merged": false, "mergeable": true, "merge_commit_sha": nil, "labels": []fields{}, "requested_reviewers": []fields{}, "requested_reviewers_teams": []fields{},
		"base": fields{"label": "main", "ref": "main", "sha": oldHead, "repo_id": 5},
		"head": fields{"label": "flotilla/dev", "ref": "flotilla/dev", "sha": newHead, "repo_id": 5},
	}, changes...)
}

func nextPage(page string) map[string]string {
	return map[string]string{
		"Link": `<https://gitea.example.com/x?limit=50&page=` + page + `>; rel="next",<https://gitea.example.com/x?page=9>; rel="last"`,
	}
}

func TestGiteaReadsPagesUntilThePullRequestIsFound(t *testing.T) {
	t.Parallel()
	other := teaPull(fields{"body": otherText})
	host := newScriptedHost(t, forge.Forgejo, "/owner/gitops.git", []exchange{
		{request: teaAny, answer: other},
		{request: teaOpen, answer: []fields{other}, header: nextPage("2")},
		{request: strings.Replace(teaOpen, "page=1", "page=2", 1), answer: []fields{other}, header: nextPage("3")},
		{request: strings.Replace(teaOpen, "page=1", "page=3", 1), answer: []fields{other, teaPull()}, header: nextPage("4")},
	})
	request, err := host.Find(t.Context(), dev, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantState(t, request, forge.Open)
}

// Anyone may open a huge pull request, so that a page of the list exceeds the limit of an answer.
func TestAHugePullRequestHidesNoOther(t *testing.T) {
	t.Parallel()
	closed := teaPull(fields{"state": "closed", "number": 3})
	long := teaPull(
		fields{"number": 8, "body": strings.Repeat("x", 33<<20), "head": fields{"label": "bomb", "ref": "bomb", "sha": oldHead, "repo_id": 6}},
	)
	one := func(page string) string { return "GET " + tea + "/pulls?limit=1&page=" + page + "&state=open" }
	host := newScriptedHost(t, forge.Gitea, "/owner/gitops.git", []exchange{
		{request: teaAny, answer: closed},
		{request: teaOpen, answer: []fields{teaPull(fields{"body": otherText})}, header: nextPage("2")},
		{request: strings.Replace(teaOpen, "page=1", "page=2", 1), answer: []fields{long, teaPull()}},
		{request: one("2"), answer: []fields{long}, header: nextPage("3")},
		{request: one("3"), answer: []fields{teaPull()}},
		// A repository with only huge pull requests.
		{request: teaAny, answer: long},
		{request: teaOpen, answer: []fields{long}},
		{request: one("1"), answer: []fields{long}},
		{request: one("2"), answer: []fields{}},
	})
	request, err := host.Find(t.Context(), dev, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantState(t, request, forge.Open)
	if request, err := host.Find(t.Context(), dev, 0); err != nil || request != nil {
		t.Errorf("got %+v, %v", request, err)
	}
}

// A repository may have thousands of closed pull requests, which Gitea can filter only by state. So the known one is read by number.
func TestGiteaListsNoClosedPullRequests(t *testing.T) {
	t.Parallel()
	closed := teaPull(
		fields{"state": "closed", "head": fields{"label": "flotilla/dev", "ref": "refs/pull/7/head", "sha": newHead, "repo_id": 5}},
	)
	host := newScriptedHost(t, forge.Gitea, "/owner/gitops.git", []exchange{
		{request: teaAny, answer: closed},
		{request: teaOpen, answer: []fields{}},
		{request: "GET " + tea + "/pulls/7", answer: closed},
		{request: teaAny, answer: closed},
		{request: teaOpen, answer: []fields{}},
	})
	request, err := host.Find(t.Context(), dev, 7)
	if err != nil {
		t.Fatal(err)
	}
	wantState(t, request, forge.Closed)
	if request, err := host.Find(t.Context(), dev, 0); err != nil || request != nil {
		t.Errorf("got %+v, %v", request, err)
	}
}

func TestGiteaUsesLabelsAndTeamsOfTheOrganization(t *testing.T) {
	t.Parallel()
	w := shortRequest()
	w.Labels, w.Reviewers = []string{"of the repository", "of the organization", "new"}, []string{"owner/sre", "owner/platform"}
	host := newScriptedHost(t, forge.Gitea, "/owner/gitops.git", []exchange{
		{request: teaAny, answer: teaPull()},
		{request: teaOpen, answer: []fields{teaPull(fields{"requested_reviewers_teams": []fields{{"id": 1, "name": "sre"}}})}},
		{request: "GET " + tea + "/labels?limit=50&page=1", answer: []fields{{"id": 10, "name": "other"}}, header: nextPage("2")},
		{request: "GET " + tea + "/labels?limit=50&page=2", answer: []fields{{"id": 11, "name": "Of the repository"}}},
		{
			request: "GET /api/v1/orgs/owner/labels?limit=50&page=1",
			answer:  []fields{{"id": 12, "name": "of the organization"}, {"id": 13, "name": "of the repository"}},
		},
		{
			request: "POST " + tea + "/labels", status: 201, answer: fields{"id": 14, "name": "new"},
			body: `{"name": "new", "color": "#0052cc", "description": "", "exclusive": false, "is_archived": false}`,
		},
		{request: "POST " + tea + "/issues/7/labels", body: `{"labels": [11, 12, 14]}`, answer: []fields{}},
		{
			request: "POST " + tea + "/pulls/7/requested_reviewers",
			body:    `{"reviewers": [], "team_reviewers": ["platform"]}`,
			status:  201,
			answer:  []fields{},
		},
	})
	if _, err := host.Ensure(t.Context(), w); err != nil {
		t.Fatal(err)
	}
}

// Gitea does not bind auto-merge to a commit, so the provider must notice a moved head.
func TestGiteaTurnsAutoMergeOffIfTheHeadMoves(t *testing.T) {
	t.Parallel()
	get := "GET " + tea + "/pulls/7"
	moved := teaPull(fields{"head": fields{"label": "flotilla/dev", "ref": "flotilla/dev", "sha": oldHead, "repo_id": 5}})
	host := newScriptedHost(t, forge.Gitea, "/owner/gitops.git", []exchange{
		{request: get, answer: teaPull()},
		{request: "GET " + tea, answer: fields{"id": 5, "allow_merge_commits": true, "default_merge_style": "squash"}},
		{request: "POST " + tea + "/pulls/7/merge", status: 201, body: `{
			"Do": "merge", "MergeCommitID": "", "MergeTitleField": "", "MergeMessageField": "", "force_merge": false,
			"head_commit_id": "` + newHead + `", "merge_when_checks_succeed": true}`},
		{request: get, answer: moved},
		{request: "DELETE " + tea + "/pulls/7/merge", status: 204},
	})
	_, err := host.Merge(t.Context(), &forge.PullRequest{Number: 7, Owner: "dev", Head: "flotilla/dev"}, newHead, forge.WhenChecksSucceed)
	wantError(
		t,
		err,
		forge.ErrHeadMoved,
		oldHead+", not "+newHead+", and is not merged: auto-merge was turned on, the head moved meanwhile, and auto-merge was turned off again",
	)
}

// Answers of a Git host are printed in errors and attributes.
func TestAnswersOfAGitHostAreSafeForATerminal(t *testing.T) {
	t.Parallel()
	const evil = "\x1b[2J\x1b]0;owned\x07\u202e\u009b"
	wantPrintable := func(text string) {
		t.Helper()
		if strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) }) {
			t.Errorf("got control characters in %q", text)
		}
	}
	host := newScriptedHost(t, forge.Gitea, "/owner/gitops.git", []exchange{
		{request: teaAny, answer: teaPull()},
		{request: teaOpen, answer: []fields{teaPull(fields{"html_url": "https://gitea.example.com/" + evil})}},
		{request: teaAny, status: 403, answer: fields{"message": evil}},
		{request: "GET " + tea + "/commits/" + oldHead + "/status?limit=50&page=1", answer: fields{"statuses": []fields{{
			"id": 1, "status": "success", "context": "ci" + evil, "description": evil, "target_url": "https://ci.example.com/" + evil, "creator": fields{"login": evil, "username": evil},
		}}}},
		{request: "GET " + tea + "/commits/" + oldHead + "/status?limit=50&page=2", answer: fields{"statuses": []fields{}}},
	})
	request, err := host.Find(t.Context(), dev, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantPrintable(request.URL)
	_, err = host.Find(t.Context(), dev, 0)
	wantPrintable(err.Error())
	statuses, err := host.Statuses(t.Context(), oldHead)
	if err != nil || len(statuses) != 1 {
		t.Fatal(statuses, err)
	}
	wantPrintable(statuses[0].Context + statuses[0].Description + statuses[0].URL + statuses[0].Creator)
}

// After a merge, Gitea checks all other pull requests into the branch one by one. This takes long on a busy server.
func TestGiteaMergeWaitsForALongCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start, merged := time.Now(), false
		answer := func(status int, body any) (*http.Response, error) {
			text, err := json.Marshal(body)
			return &http.Response{
				StatusCode: status,
				Header:     http.Header{"Content-Type": {"application/json"}},
				Body:       io.NopCloser(bytes.NewReader(text)),
			}, err
		}
		server := roundTripper(func(r *http.Request) (*http.Response, error) {
			switch {
			case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/gitops"):
				return answer(http.StatusOK, fields{"allow_merge_commits": true, "default_merge_style": "merge"})
			case r.Method == http.MethodGet:
				return answer(http.StatusOK, teaPull(fields{"merged": merged, "merge_commit_sha": mergedAs}))
			case time.Since(start) < 40*time.Second:
				return answer(http.StatusMethodNotAllowed, fields{"message": "Please try again later"})
			}
			merged = true
			return answer(http.StatusOK, nil)
		})
		host := newHost(t, forge.Gitea, "https://gitea.example.com/owner/gitops.git", forge.HTTPOptions{Over: server})
		wantMerged(t, host, &forge.PullRequest{Number: 7, Owner: "dev", Head: dev.Head, Base: "main"}, forge.Now, nil, "")
	})
}
