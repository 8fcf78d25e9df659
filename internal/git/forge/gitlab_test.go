package forge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// Requests and answers have the shapes in GitLab's description. No test ran against GitLab itself.

const (
	lab     = "/api/v4/projects/group%2Fsub%2Fgitops/merge_requests"
	labList = "GET " + lab + "?order_by=created_at&page=1&per_page=100&sort=desc&source_branch=flotilla%2Fdev&state=all&target_branch=main"
	labGet  = "GET " + lab + "/7"
	labPut  = "PUT " + lab + "/7"
	labURL  = "https://gitlab.example.com/group/sub/gitops/-/merge_requests/7"
)

func newGitLab(t *testing.T, exchanges []exchange, options ...forge.HTTPOptions) *forge.GitHost {
	t.Helper()
	return newScriptedHost(t, forge.GitLab, "/group/sub/gitops.git", exchanges, options...)
}

// labListed is an element of a list, which lacks expensive fields.
func labListed(changes ...fields) fields {
	return withFields(fields{
		"id": 901, "iid": 7, "project_id": 5, "source_project_id": 5, "target_project_id": 5,
		"title": devTitle, "description": devBody, "state": "opened", "draft": false, "web_url": labURL,
		"source_branch": "flotilla/dev", "target_branch": "main", "sha": newHead,
		"created_at": "2026-01-26T19:01:12.000Z", "updated_at": "2026-01-26T19:01:12.000Z", "merged_at": nil, "closed_at": nil, "prepared_at": "2026-01-26T19:01:12.000Z",
		"author": fields{
			"id":       2,
			"username": "bot",
			"name":     "Bot",
			"state":    "active",
		}, "assignee": nil, "assignees": []fields{}, "reviewers": []fields{}, "labels": []string{},
		"merge_status": "can_be_merged", "detailed_merge_status": "mergeable", "merge_when_pipeline_succeeds": false, "has_conflicts": false,
		"merge_commit_sha": nil, "squash_commit_sha": nil, "squash": false, "should_remove_source_branch": nil, "force_remove_source_branch": false,
		"references":             fields{"short": "!7", "relative": "!7", "full": "group/sub/gitops!7"},
		"time_stats":             fields{"time_estimate": 0, "total_time_spent": 0, "human_time_estimate": nil, "human_total_time_spent": nil},
		"task_completion_status": fields{"count": 0, "completed_count": 0},
	}, changes...)
}

func labMerge(changes ...fields) fields {
	return withFields(labListed(fields{
		"merge_error": nil, "changes_count": "1", "user": fields{"can_merge": true}, "pipeline": nil, "head_pipeline": nil,
		"diff_refs": fields{"base_sha": oldHead, "head_sha": newHead, "start_sha": oldHead},
	}), changes...)
}

var (
	labMerged = fields{
		"state":                 "merged",
		"merged_at":             "2026-01-26T19:02:12.000Z",
		"merge_commit_sha":      mergedAs,
		"detailed_merge_status": "not_open",
	}
	labClosed    = fields{"state": "closed", "closed_at": "2026-01-26T19:02:12.000Z", "detailed_merge_status": "not_open"}
	labOldHead   = fields{"sha": oldHead}
	labFork      = fields{"source_project_id": 6}
	labAutoMerge = fields{
		"merge_when_pipeline_succeeds": true,
		"merge_user":                   fields{"id": 2, "username": "bot"},
		"detailed_merge_status":        "ci_still_running",
	}
)

func labStatus(status string) fields { return fields{"detailed_merge_status": status} }

func TestGitLabFindPrefersTheOpenPullRequest(t *testing.T) {
	t.Parallel()
	want := func(state forge.RequestState, mergeCommit string) *forge.PullRequest {
		return &forge.PullRequest{
			Number:      7,
			URL:         labURL,
			State:       state,
			Owner:       "dev",
			Base:        "main",
			Head:        "flotilla/dev",
			HeadCommit:  newHead,
			MergeCommit: mergeCommit,
		}
	}
	closed := func(known ...fields) []exchange {
		return []exchange{
			{request: labList, answer: []fields{labListed(labClosed), labListed(labMerged)}},
			{request: labGet, answer: labMerge(known...)},
		}
	}
	for name, test := range map[string]struct {
		exchanges []exchange
		want      *forge.PullRequest
	}{
		"being merged":            {[]exchange{{request: labList, answer: []fields{labListed(fields{"state": "locked"})}}}, want(forge.Open, "")},
		"merged by squashing":     {closed(labMerged, fields{"merge_commit_sha": nil, "squash_commit_sha": mergedAs}), want(forge.Merged, mergedAs)},
		"merged by fast-forward":  {closed(labMerged, fields{"merge_commit_sha": nil}), want(forge.Merged, newHead)},
		"labels with all details": {[]exchange{{request: labList, answer: []fields{labListed(fields{"labels": []fields{{"id": 1, "name": "x"}}})}}}, want(forge.Open, "")},
		"on the second page": {[]exchange{
			{request: labList, answer: []fields{labListed(fields{"description": otherText})}, header: map[string]string{"X-Next-Page": "2", "X-Page": "1"}},
			{request: strings.Replace(labList, "page=1&", "page=2&", 1), answer: []fields{labListed()}, header: map[string]string{"X-Next-Page": "", "X-Page": "2"}},
		}, want(forge.Open, "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newGitLab(t, test.exchanges).Find(t.Context(), dev, 7)
			if err != nil || (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

// The list also contains closed pull requests.
func TestGitLabClosedPullRequestsDoNotBlockTheBranch(t *testing.T) {
	t.Parallel()
	const list = "GET " + lab + "?order_by=created_at&page=1&per_page=100&sort=desc&source_branch=flotilla%2Fdev&state=all"
	closed := labListed(fields{"iid": 8, "target_branch": "prod"}, labClosed)
	wantFreeHead(t, newGitLab(t, []exchange{{request: list, answer: []fields{closed}}}), "")
}

func TestGitLabEnsureOpensOrUpdatesInPlace(t *testing.T) {
	t.Parallel()
	create := exchange{
		request: "POST " + lab, status: 201, answer: labMerge(),
		body: `{"title": "Deploy dev", "description": ` + quoteJSON(devBody) + `, "source_branch": "flotilla/dev", "target_branch": "main"}`,
	}
	refused := func(status int, answer any) exchange { e := create; e.status, e.answer = status, answer; return e }
	none := exchange{request: labList, answer: []fields{}}
	user := func(name string, id int) exchange {
		return exchange{
			request: "GET /api/v4/users?username=" + name,
			answer:  []fields{{"id": id, "username": strings.ToLower(name), "state": "active"}},
		}
	}
	anna := fields{"id": 3, "username": "anna"}
	demanding := shortRequest()
	demanding.Labels, demanding.Reviewers = []string{"fleet", "dev stage"}, []string{"Anna", "ben"}
	for name, test := range map[string]struct {
		wanted      forge.Wanted
		exchanges   []exchange
		kind        error
		wantText    string
		withRequest bool
	}{
		"labels and reviewers": {wanted: demanding, exchanges: []exchange{
			{request: labList, answer: []fields{labListed(fields{"labels": []string{"fleet", "urgent"}, "reviewers": []fields{anna}})}},
			user("ben", 4),
			{request: labPut, body: `{"add_labels": "dev stage"}`, answer: labMerge()},
			user("anna", 3), user("ben", 4),
			{request: labPut, body: `{"reviewer_ids": [3, 4]}`, answer: labMerge(fields{"reviewers": []fields{anna, {"id": 4, "username": "ben"}}})},
		}},
		"an unknown reviewer": {
			wanted:    demanding,
			exchanges: []exchange{none, {request: "GET /api/v4/users?username=Anna", answer: []fields{}}},
			kind:      forge.ErrReviewer, wantText: `"Anna" does not exist`,
		},
		"a reviewer without rights": {
			wanted: demanding,
			exchanges: []exchange{
				none, user("Anna", 3), user("ben", 4), create,
				{request: labPut, body: `{"add_labels": "fleet,dev stage"}`, answer: labMerge()},
				user("Anna", 3), user("ben", 4),
				{request: labPut, body: `{"reviewer_ids": [3, 4]}`, answer: labMerge(fields{"reviewers": []fields{anna}})},
			},
			kind: forge.ErrReviewer, wantText: "GitLab did not accept ben", withRequest: true,
		},
		"a draft": {wanted: shortRequest(), exchanges: []exchange{
			{request: labList, answer: []fields{labListed(fields{"title": "[Draft] Old", "draft": true})}},
			{request: labPut, body: `{"title": "[Draft] Deploy dev", "description": ` + quoteJSON(devBody) + `}`, answer: labMerge()},
		}},
		"an unchanged draft": {wanted: shortRequest(), exchanges: []exchange{{request: labList, answer: []fields{labListed(fields{"title": "Draft: Deploy dev", "draft": true})}}}},
		"an unnoticed branch": {wanted: shortRequest(), exchanges: []exchange{
			none, refused(400, fields{"message": fields{"validate_branches": []string{"Source branch \"flotilla/dev\" does not exist"}}}), none, create,
		}},
		"refused": {
			wanted: shortRequest(), exchanges: []exchange{none, refused(422, fields{"message": fields{"base": []string{"is bad"}, "title": []string{"is too long"}}}), none},
			kind: forge.ErrRefused, wantText: "422 Unprocessable Entity: base is bad; title is too long",
		},
		"a token without rights": {
			wanted: shortRequest(), exchanges: []exchange{none, refused(403, fields{"error": "insufficient_scope", "error_description": "The request requires higher privileges than provided by the access token.", "scope": "api"})},
			kind: forge.ErrUnauthorized, wantText: "insufficient_scope; The request requires higher privileges",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantEnsured(t, newGitLab(t, test.exchanges), test.wanted, test.kind, test.wantText, test.withRequest)
		})
	}
}

func TestGitLabMergeNow(t *testing.T) {
	t.Parallel()
	request := &forge.PullRequest{Number: 7, Owner: "dev", Head: "flotilla/dev"}
	get := func(changes ...fields) exchange { return exchange{request: labGet, answer: labMerge(changes...)} }
	put := exchange{request: labPut + "/merge", body: `{"sha": "` + newHead + `"}`, answer: labMerge(labMerged)}
	refused := func(status int, message string) exchange {
		e := put
		e.status, e.answer = status, fields{"message": message}
		return e
	}
	limited := put
	limited.status, limited.header, limited.answer = 429, map[string]string{
		"Retry-After":  "3600",
		"Content-Type": "text/plain",
	}, "Retry later\n"
	for name, test := range map[string]struct {
		exchanges []exchange
		kind      error
		wantText  string
	}{
		"slow merge":           {[]exchange{get(), put, get(fields{"state": "locked"}), get(labMerged)}, nil, ""},
		"still checking (405)": {[]exchange{get(), refused(405, "405 Method Not Allowed"), get(labStatus("checking")), put, get(labMerged)}, nil, ""},
		"still checking (422)": {[]exchange{get(), refused(422, "Branch cannot be merged"), get(labStatus("preparing")), put, get(labMerged)}, nil, ""},
		"still checking (406)": {[]exchange{get(), refused(406, "Branch cannot be merged"), get(labStatus("unchecked")), put, get(labMerged)}, nil, ""},
		"running pipeline":     {[]exchange{get(), refused(405, "405 Method Not Allowed"), get(labStatus("ci_still_running"))}, forge.ErrNotMergeable, `(its status is "ci_still_running"): the Git host answered 405`},
		"approvals":            {[]exchange{get(), refused(405, "405 Method Not Allowed"), get(labStatus("not_approved"))}, forge.ErrNotMergeable, "not_approved"},
		"conflicts (422)":      {[]exchange{get(), refused(422, "Branch cannot be merged"), get(labStatus("conflict"))}, forge.ErrNotMergeable, "conflict"},
		"conflicts (406)":      {[]exchange{get(), refused(406, "Branch cannot be merged"), get(labStatus("conflict"))}, forge.ErrNotMergeable, "Branch cannot be merged"},
		"the head moves back":  {[]exchange{get(), refused(409, "SHA does not match HEAD of source branch: "+oldHead), get()}, forge.ErrNotMergeable, "SHA does not match HEAD"},
		"a draft":              {[]exchange{get(), refused(405, "405 Method Not Allowed"), get(labStatus("draft_status"))}, forge.ErrNotMergeable, `(its status is "draft_status")`},
		"rate limit":           {[]exchange{get(), limited, get()}, forge.ErrRateLimited, "(1h0m0s): Retry later"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantMerged(t, newGitLab(t, test.exchanges), request, forge.Now, test.kind, test.wantText)
		})
	}
}

func TestGitLabMergeWhenChecksSucceed(t *testing.T) {
	t.Parallel()
	request := &forge.PullRequest{Number: 7, Owner: "dev", Head: "flotilla/dev"}
	get := func(changes ...fields) exchange { return exchange{request: labGet, answer: labMerge(changes...)} }
	put := exchange{
		request: labPut + "/merge", answer: labMerge(labAutoMerge),
		body: `{"sha": "` + newHead + `", "auto_merge": true, "merge_when_pipeline_succeeds": true}`,
	}
	failed := put
	failed.status, failed.answer = 405, fields{"message": "405 Method Not Allowed"}
	none := get(labStatus("ci_must_pass"))
	now := exchange{request: labPut + "/merge", answer: labMerge(labMerged), body: `{"sha": "` + newHead + `"}`}
	pipeline := fields{"head_pipeline": fields{"id": 40, "iid": 1, "sha": newHead, "ref": "flotilla/dev", "status": "running"}}
	for name, test := range map[string]struct {
		exchanges []exchange
		state     forge.RequestState
		kind      error
		wantText  string
	}{
		"turned on":                      {[]exchange{get(pipeline, labStatus("ci_still_running")), put, get(labAutoMerge)}, forge.Open, nil, ""},
		"a late pipeline":                {[]exchange{get(), get(pipeline), put, get(labAutoMerge)}, forge.Open, nil, ""},
		"already turned on":              {[]exchange{get(labAutoMerge, pipeline), get(labAutoMerge, pipeline)}, forge.Open, nil, ""},
		"a finished pipeline":            {[]exchange{get(pipeline), put, get(labMerged)}, forge.Merged, nil, ""},
		"no pipeline":                    {[]exchange{get(), get(), put, get(labMerged)}, forge.Merged, nil, ""},
		"no pipeline, refused by GitLab": {[]exchange{get(), get(), failed, now, get(labMerged)}, forge.Merged, nil, ""},
		"no required pipeline":           {[]exchange{get(), none, failed, none, none, failed, none}, "", forge.ErrNotMergeable, `(its status is "ci_must_pass"): there is no pipeline`},
		"a late required pipeline":       {[]exchange{none, none, failed, none, get(pipeline), put, get(labAutoMerge)}, forge.Open, nil, ""},
		"a draft":                        {[]exchange{get(pipeline, labStatus("draft_status")), failed, get(labStatus("draft_status"))}, "", forge.ErrNotMergeable, "draft_status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The patience allows one more read.
			wantAutoMerge(t, newGitLab(t, test.exchanges, forge.HTTPOptions{Patience: 300 * time.Millisecond}), request, test.state, test.kind, test.wantText)
		})
	}
	t.Run("turned off", func(t *testing.T) {
		t.Parallel()
		cancel := exchange{request: "POST " + lab + "/7/cancel_merge_when_pipeline_succeeds", status: 201, answer: labMerge()}
		late := cancel
		late.status, late.answer = 405, fields{"message": "405 Method Not Allowed"}
		host := newGitLab(t, []exchange{get(labAutoMerge), cancel, get(), get(labAutoMerge), late, get(labMerged), get(labAutoMerge), late, get(labAutoMerge)})
		for range 3 {
			if err := host.DisableAutoMerge(t.Context(), request); err != nil {
				t.Error(err)
			}
		}
		wantError(t, host.DisableAutoMerge(t.Context(), request), forge.ErrRefused, "cannot be turned off")
	})
}
