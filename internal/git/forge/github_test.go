package forge_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// Requests and answers have the shapes in GitHub's OpenAPI description and GraphQL schema. No test ran against GitHub itself.

const (
	hub        = "/api/v3/repos/owner/gitops"
	hubOpen    = "GET " + hub + "/pulls?base=main&direction=desc&head=owner%3Aflotilla%2Fdev&page=1&per_page=100&sort=created&state=open"
	hubGet     = "GET " + hub + "/pulls/7"
	hubMerge   = "PUT " + hub + "/pulls/7/merge"
	hubGraphQL = "POST /api/graphql"
)

func newGitHub(t *testing.T, exchanges []exchange, options ...forge.HTTPOptions) *forge.GitHost {
	t.Helper()
	return newScriptedHost(t, forge.GitHub, "/owner/gitops.git", exchanges, options...)
}

type fields = map[string]any

// withFields returns a copy of an object with changed fields.
func withFields(object fields, changes ...fields) fields {
	object = maps.Clone(object)
	for _, change := range changes {
		maps.Copy(object, change)
	}
	return object
}

// hubListed is an element of a list, which lacks the merge status.
func hubListed(changes ...fields) fields {
	return withFields(fields{
		"id": 1, "node_id": "PR_node", "number": 7, "state": "open", "locked": false, "draft": false,
		"url": "https://github.example.com/api/v3/repos/owner/gitops/pulls/7", "html_url": "https://github.example.com/owner/gitops/pull/7",
		"title": devTitle, "body": devBody, "user": fields{"login": "bot", "id": 2, "type": "User"},
		"created_at": "2026-01-26T19:01:12Z", "updated_at": "2026-01-26T19:01:12Z", "closed_at": nil, "merged_at": nil,
		"merge_commit_sha": "e5bd3914e2e596debea16f433f57875b5b90bcd6", // of GitHub's test merge
		"labels":           []fields{}, "requested_reviewers": []fields{}, "requested_teams": []fields{}, "auto_merge": nil, "author_association": "OWNER",
		"head": fields{
			"label": "owner:flotilla/dev",
			"ref":   "flotilla/dev",
			"sha":   newHead,
			"user":  fields{"login": "owner"},
			"repo":  fields{"id": 5, "full_name": "owner/gitops"},
		},
		"base": fields{
			"label": "owner:main",
			"ref":   "main",
			"sha":   oldHead,
			"user":  fields{"login": "owner"},
			"repo":  fields{"id": 5, "full_name": "owner/gitops"},
		},
	}, changes...)
}

func hubPull(changes ...fields) fields {
	return withFields(
		hubListed(
			fields{
				"merged":          false,
				"mergeable":       true,
				"rebaseable":      true,
				"mergeable_state": "clean",
				"merged_by":       nil,
				"comments":        0,
				"commits":         1,
			},
		),
		changes...)
}

var (
	hubMerged  = fields{"state": "closed", "merged": true, "merged_at": "2026-01-26T19:02:12Z", "merge_commit_sha": mergedAs}
	hubOldHead = fields{"head": fields{"ref": "flotilla/dev", "sha": oldHead, "repo": fields{"id": 5}}}
	hubFork    = fields{"head": fields{"ref": "flotilla/dev", "sha": newHead, "repo": fields{"id": 6}}}
)

func hubUser(login string) fields {
	return fields{"login": login, "id": 3, "type": "User", "user_view_type": "public"}
}

func hubRefusal(message string) fields {
	return fields{"message": message, "documentation_url": "https://docs.github.com/rest", "status": "405"}
}

func hubRepository(merge, rebase, squash bool) exchange {
	return exchange{request: "GET " + hub, answer: fields{
		"id": 5, "full_name": "owner/gitops", "allow_merge_commit": merge, "allow_rebase_merge": rebase, "allow_squash_merge": squash,
	}}
}

func hubMutation(name, input string) string {
	capital := string(name[0]-'a'+'A') + name[1:]
	query := fmt.Sprintf("mutation($input: %sInput!) {\n  %s(input: $input) { pullRequest { number } }\n}", capital, name)
	return fmt.Sprintf(`{"query": %s, "variables": {"input": %s}}`, quoteJSON(query), input)
}

var (
	hubAsk    = `{"sha": "` + newHead + `", "merge_method": "merge"}`
	hubEnable = hubMutation(
		"enablePullRequestAutoMerge",
		`{"pullRequestId": "PR_node", "expectedHeadOid": "`+newHead+`", "mergeMethod": "MERGE"}`,
	)
	hubDisable = hubMutation("disablePullRequestAutoMerge", `{"pullRequestId": "PR_node"}`)
)

func hubGraphQLError(kind, message string) fields {
	return fields{"data": fields{"enablePullRequestAutoMerge": nil}, "errors": []fields{
		{"type": kind, "path": []string{"enablePullRequestAutoMerge"}, "locations": []fields{{"line": 2, "column": 3}}, "message": message},
	}}
}

func TestGitHubFindPrefersTheOpenPullRequest(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		exchanges []exchange
		want      *forge.PullRequest
	}{
		"on the second page": {
			[]exchange{
				{request: hubOpen, answer: []fields{hubListed(fields{"body": otherText})}, header: map[string]string{
					"Link": `<https://elsewhere.example.com/repositories/5/pulls?page=2>; rel="next", <https://elsewhere.example.com/repositories/5/pulls?page=2>; rel="last"`,
				}},
				{request: "GET " + hub + "/pulls?base=main&direction=desc&head=owner%3Aflotilla%2Fdev&page=2&per_page=100&sort=created&state=open", answer: []fields{hubListed()}},
			},
			&forge.PullRequest{
				Number: 7, URL: "https://github.example.com/owner/gitops/pull/7", State: forge.Open, Owner: "dev", Base: "main", Head: "flotilla/dev", HeadCommit: newHead,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newGitHub(t, test.exchanges).Find(t.Context(), dev, 7)
			if err != nil || (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

// The description does not mention deleted forks.
func TestGitHubDeletedForksAreForeign(t *testing.T) {
	t.Parallel()
	deleted := `[{"number": 7, "body": ` + quoteJSON(
		devBody,
	) + `, "head": {"ref": "flotilla/dev", "repo": null}, "base": {"ref": "main", "repo": {"id": 5}}}]`
	got, err := newGitHub(t, []exchange{{request: hubOpen, answer: deleted}}).Find(t.Context(), dev, 0)
	if err != nil || got != nil {
		t.Errorf("got %+v, %v, want none", got, err)
	}
}

func TestGitHubEnsureOpensOrUpdatesInPlace(t *testing.T) {
	t.Parallel()
	create := exchange{
		request: "POST " + hub + "/pulls",
		status:  201,
		answer:  hubPull(),
		body:    `{"title": "Deploy dev", "head": "flotilla/dev", "base": "main", "body": ` + quoteJSON(devBody) + `}`,
	}
	refused := func(status int, answer any) exchange { e := create; e.status, e.answer = status, answer; return e }
	validation := func(changes fields) fields {
		return fields{
			"message":           "Validation Failed",
			"errors":            []fields{withFields(fields{"resource": "PullRequest", "code": "custom"}, changes)},
			"documentation_url": "x",
		}
	}
	demanding := shortRequest()
	demanding.Labels, demanding.Reviewers = []string{"Fleet", "dev"}, []string{"Anna", "ben", "carl", "owner/platform", "owner/sre"}
	for name, test := range map[string]struct {
		wanted      forge.Wanted
		exchanges   []exchange
		kind        error
		wantText    string
		withRequest bool // with the error
	}{
		"a body with CRLF": {wanted: shortRequest(), exchanges: []exchange{{request: hubOpen, answer: []fields{hubListed(fields{"body": devMark + "\r\n\r\nchanges"})}}}},
		"labels and reviewers": {wanted: demanding, exchanges: []exchange{
			{request: hubOpen, answer: []fields{hubListed(fields{
				"labels": []fields{{"id": 1, "name": "fleet"}, {"id": 2, "name": "urgent"}}, "requested_reviewers": []fields{{"login": "anna"}}, "requested_teams": []fields{{"slug": "sre"}},
			})}},
			{request: "GET /api/v3/users/ben", answer: hubUser("ben")},
			{request: "GET /api/v3/users/carl", answer: hubUser("carl")},
			{request: "POST " + hub + "/issues/7/labels", body: `{"labels": ["dev"]}`, answer: []fields{{"name": "dev"}}},
			{
				request: "GET " + hub + "/pulls/7/reviews?page=1&per_page=100", answer: []fields{{"id": 80, "state": "APPROVED", "user": fields{"login": "ben"}}, {"id": 81, "user": nil}},
				header: map[string]string{"Link": `<https://x/?page=2>; rel="next"`},
			},
			{request: "GET " + hub + "/pulls/7/reviews?page=2&per_page=100", answer: []fields{}},
			{request: "POST " + hub + "/pulls/7/requested_reviewers", body: `{"reviewers": ["carl"], "team_reviewers": ["platform"]}`, status: 201, answer: hubListed()},
		}},
		"an unknown reviewer": {
			wanted:    demanding,
			exchanges: []exchange{{request: hubOpen, answer: []fields{}}, {request: "GET /api/v3/users/Anna", status: 404, answer: hubRefusal("Not Found")}},
			kind:      forge.ErrReviewer, wantText: `"Anna" does not exist`,
		},
		"a reviewer without rights": {
			wanted: func() forge.Wanted { w := shortRequest(); w.Reviewers = []string{"anna"}; return w }(),
			exchanges: []exchange{
				{request: hubOpen, answer: []fields{}}, {request: "GET /api/v3/users/anna", answer: hubUser("anna")}, create,
				{request: "GET " + hub + "/pulls/7/reviews?page=1&per_page=100", answer: []fields{}},
				{request: "POST " + hub + "/pulls/7/requested_reviewers", body: `{"reviewers": ["anna"]}`, status: 422, answer: hubRefusal(
					"Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator of the owner/gitops repository.")},
			},
			kind: forge.ErrReviewer, wantText: "pull request #7 cannot be given the reviewers anna: the Git host answered 422 Unprocessable Entity: Reviews may only be requested from collaborators.", withRequest: true,
		},
		"nothing to merge": {
			wanted: shortRequest(), exchanges: []exchange{
				{request: hubOpen, answer: []fields{}}, refused(422, validation(fields{"message": "No commits between main and flotilla/dev"})), {request: hubOpen, answer: []fields{}},
			},
			kind: forge.ErrRefused, wantText: "Validation Failed; No commits between main and flotilla/dev",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantEnsured(t, newGitHub(t, test.exchanges), test.wanted, test.kind, test.wantText, test.withRequest)
		})
	}
}

func TestGitHubMergeNow(t *testing.T) {
	t.Parallel()
	request := &forge.PullRequest{Number: 7, Owner: "dev", Head: "flotilla/dev"}
	merging := []exchange{{request: hubGet, answer: hubPull()}, hubRepository(true, true, true)}
	refused := func(status int, message string) exchange {
		return exchange{request: hubMerge, body: hubAsk, status: status, answer: hubRefusal(message)}
	}
	done := exchange{
		request: hubMerge,
		body:    hubAsk,
		answer:  fields{"sha": mergedAs, "merged": true, "message": "Pull Request successfully merged"},
	}
	for name, test := range map[string]struct {
		exchanges []exchange
		kind      error
		wantText  string
	}{
		"rebase only": {[]exchange{
			{request: hubGet, answer: hubPull()}, hubRepository(false, true, true),
			{request: hubMerge, body: `{"sha": "` + newHead + `", "merge_method": "rebase"}`, answer: fields{"sha": mergedAs, "merged": true}},
			{request: hubGet, answer: hubPull(hubMerged)},
		}, nil, ""},
		"squash only": {[]exchange{
			{request: hubGet, answer: hubPull()}, hubRepository(false, false, true),
			{request: hubMerge, body: `{"sha": "` + newHead + `", "merge_method": "squash"}`, answer: fields{"sha": mergedAs, "merged": true}},
			{request: hubGet, answer: hubPull(hubMerged)},
		}, nil, ""},
		"hidden merge methods": {append([]exchange{{request: hubGet, answer: hubPull()}, {request: "GET " + hub, answer: fields{"id": 5, "full_name": "owner/gitops"}}}, done, exchange{request: hubGet, answer: hubPull(hubMerged)}), nil, ""},
		"a running check for conflicts": {append(merging,
			refused(405, "Pull Request is not mergeable"), exchange{request: hubGet, answer: hubPull(fields{"mergeable": nil, "mergeable_state": "unknown"})},
			hubRepository(true, true, true), done, exchange{request: hubGet, answer: hubPull(hubMerged)}), nil, ""},
		"the base moved": {append(merging,
			refused(405, "Base branch was modified. Review and try the merge again."), exchange{request: hubGet, answer: hubPull()},
			hubRepository(true, true, true), done, exchange{request: hubGet, answer: hubPull(hubMerged)}), nil, ""},
		"conflicts": {append(merging,
			refused(405, "Pull Request is not mergeable"), exchange{request: hubGet, answer: hubPull(fields{"mergeable": false, "mergeable_state": "dirty"})}),
			forge.ErrNotMergeable, `pull request #7 cannot be merged (its status is "dirty"): the Git host answered 405 Method Not Allowed: Pull Request is not mergeable`},
		"missing reviews": {append(merging,
			refused(405, "At least 1 approving review is required by reviewers with write access."), exchange{request: hubGet, answer: hubPull(fields{"mergeable_state": "blocked"})}),
			forge.ErrNotMergeable, "At least 1 approving review"},
		"running checks": {append(merging,
			refused(405, `Required status check "ci" is in progress.`), exchange{request: hubGet, answer: hubPull(fields{"mergeable_state": "blocked"})}),
			forge.ErrNotMergeable, `Required status check "ci" is in progress.`},
		"a draft": {append(merging,
			refused(405, "Pull Request is still a draft"), exchange{request: hubGet, answer: hubPull(fields{"draft": true, "mergeable_state": "draft"})}),
			forge.ErrNotMergeable, `(its status is "draft"): the Git host answered 405 Method Not Allowed: Pull Request is still a draft`},
		"a protected branch": {append(merging,
			refused(405, "Changes must be made through the merge queue"), exchange{request: hubGet, answer: hubPull(fields{"mergeable_state": "blocked"})}),
			forge.ErrNotMergeable, "Changes must be made through the merge queue"},
		"a rate limit": {append(merging,
			exchange{request: hubMerge, body: hubAsk, status: 403, header: map[string]string{"Retry-After": "3600"}, answer: hubRefusal("You have exceeded a secondary rate limit.")},
			exchange{request: hubGet, answer: hubPull()}),
			forge.ErrRateLimited, "(1h0m0s): You have exceeded a secondary rate limit."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantMerged(t, newGitHub(t, test.exchanges), request, forge.Now, test.kind, test.wantText)
		})
	}
}

func TestGitHubMergeWhenChecksSucceed(t *testing.T) {
	t.Parallel()
	request := &forge.PullRequest{Number: 7, Owner: "dev", Head: "flotilla/dev"}
	autoMerge := fields{
		"auto_merge": fields{"enabled_by": fields{"login": "bot"}, "merge_method": "merge", "commit_title": "x", "commit_message": "x"},
	}
	blocked := fields{"mergeable_state": "blocked"}
	enabling := func(answer any) []exchange {
		return []exchange{
			{request: hubGet, answer: hubPull(blocked)},
			hubRepository(true, true, true),
			{request: hubGraphQL, body: hubEnable, answer: answer},
		}
	}
	for name, test := range map[string]struct {
		exchanges []exchange
		state     forge.RequestState
		kind      error
		wantText  string
	}{
		"turned on": {
			append(enabling(fields{"data": fields{"enablePullRequestAutoMerge": fields{"pullRequest": fields{"number": 7}}}}), exchange{request: hubGet, answer: hubPull(blocked, autoMerge)}),
			forge.Open, nil, "",
		},
		"already turned on": {[]exchange{{request: hubGet, answer: hubPull(blocked, autoMerge)}, {request: hubGet, answer: hubPull(blocked, autoMerge)}}, forge.Open, nil, ""},
		"nothing to wait for": {
			append(enabling(hubGraphQLError("UNPROCESSABLE", "Pull request Pull request is in clean status")),
				hubRepository(true, true, true), exchange{request: hubMerge, body: hubAsk, answer: fields{"sha": mergedAs, "merged": true}}, exchange{request: hubGet, answer: hubPull(hubMerged)}),
			forge.Merged, nil, "",
		},
		"optional checks": {
			append(enabling(hubGraphQLError("UNPROCESSABLE", "Pull request Pull request is in unstable status")), exchange{request: hubGet, answer: hubPull(fields{"mergeable_state": "unstable"})}),
			"", forge.ErrNotMergeable, "require them in the protection of the base branch",
		},
		"auto-merge turned off in the settings": {
			append(enabling(hubGraphQLError("UNPROCESSABLE", "Pull request Auto merge is not allowed for this repository")), exchange{request: hubGet, answer: hubPull(blocked)}),
			"", forge.ErrNotMergeable, "allow auto-merge in the settings",
		},
		"the head moved": {
			append(enabling(hubGraphQLError("UNPROCESSABLE", "Head branch is out of date.")), exchange{request: hubGet, answer: hubPull(hubOldHead)}),
			"", forge.ErrHeadMoved, oldHead,
		},
		"not allowed": {
			append(enabling(hubGraphQLError("FORBIDDEN", "Resource not accessible by personal access token")), exchange{request: hubGet, answer: hubPull(blocked)}),
			"", forge.ErrUnauthorized, "by personal access token",
		},
		"a rate limit": {
			append(enabling(hubGraphQLError("RATE_LIMITED", "API rate limit exceeded for user ID 1.")), exchange{request: hubGet, answer: hubPull(blocked)}),
			"", forge.ErrRateLimited, "API rate limit exceeded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantAutoMerge(t, newGitHub(t, test.exchanges), request, test.state, test.kind, test.wantText)
		})
	}

	t.Run("turned off", func(t *testing.T) {
		t.Parallel()
		host := newGitHub(t, []exchange{
			{
				request: hubGet,
				answer:  hubPull(autoMerge),
			}, {request: hubGraphQL, body: hubDisable, answer: fields{"data": fields{"disablePullRequestAutoMerge": fields{"pullRequest": fields{"number": 7}}}}},
			{request: hubGet, answer: hubPull()},
			{
				request: hubGet,
				answer:  hubPull(autoMerge),
			}, {request: hubGraphQL, body: hubDisable, answer: hubGraphQLError("UNPROCESSABLE", "Can't disable auto-merge")}, {request: hubGet, answer: hubPull()},
			{
				request: hubGet,
				answer:  hubPull(autoMerge),
			}, {request: hubGraphQL, body: hubDisable, answer: hubGraphQLError("FORBIDDEN", "no")}, {request: hubGet, answer: hubPull(autoMerge)},
		})
		for range 3 {
			if err := host.DisableAutoMerge(t.Context(), request); err != nil {
				t.Error(err)
			}
		}
		wantError(t, host.DisableAutoMerge(t.Context(), request), forge.ErrUnauthorized, "cannot be turned off")
	})
}
