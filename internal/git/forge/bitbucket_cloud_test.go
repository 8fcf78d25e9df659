package forge_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// Requests and answers have the shapes in Bitbucket Cloud's reference (developer.atlassian.com/cloud/bitbucket/rest;
// testdata/README.md has the pages). No test ran against Bitbucket itself.

const (
	cloud      = "/2.0/repositories/owner/gitops"
	cloudGet   = "GET " + cloud + "/pullrequests/7"
	cloudPut   = "PUT " + cloud + "/pullrequests/7"
	cloudPost  = "POST " + cloud + "/pullrequests"
	cloudMerge = "POST " + cloud + "/pullrequests/7/merge"
	cloudTask  = "GET " + cloud + "/pullrequests/7/merge/task-status/task-1"
	cloudURL   = "https://bitbucket.org/owner/gitops/pull-requests/7"
	cloudAnna  = "{11111111-aaaa-4aaa-8aaa-111111111111}"
	cloudBen   = "{22222222-aaaa-4aaa-8aaa-222222222222}"
	cloudBenID = "557058:0a0a0a0a-1111-2222-3333-444444444444"
)

// cloudList returns the request that lists the open pull requests from dev's branch into base, or into any branch.
func cloudList(base string) string {
	filter := `state = "OPEN" AND source.branch.name = "flotilla/dev"`
	if base != "" {
		filter += ` AND destination.branch.name = "` + base + `"`
	}
	return "GET " + cloud + "/pullrequests?" + url.Values{"q": {filter}, "sort": {"-created_on"}, "pagelen": {"50"}}.Encode()
}

func newCloud(t *testing.T, exchanges []exchange, options ...forge.HTTPOptions) *forge.GitHost {
	t.Helper()
	return newScriptedHost(t, forge.Bitbucket, "/owner/gitops.git", exchanges, options...)
}

func cloudEnd(branch, commit, repository string) fields {
	return fields{
		"branch": fields{"name": branch}, "commit": fields{"type": "commit", "hash": commit[:12]},
		"repository": fields{"type": "repository", "uuid": repository, "full_name": "owner/gitops"},
	}
}

func cloudPull(changes ...fields) fields {
	return withFields(fields{
		"type": "pullrequest", "id": 7, "title": devTitle, "description": devBody, "state": "OPEN", "draft": false, "merge_commit": nil, "close_source_branch": false,
		"author": fields{"type": "user", "uuid": cloudAnna, "display_name": "Bot"}, "comment_count": 0, "task_count": 0,
		"source": cloudEnd("flotilla/dev", newHead, "{repo}"), "destination": cloudEnd("main", oldHead, "{repo}"),
		"created_on": "2026-01-26T19:01:12.123456+00:00", "updated_on": "2026-01-26T19:01:12.123456+00:00",
		"links": fields{"html": fields{"href": cloudURL}, "self": fields{"href": "https://api.bitbucket.org/2.0/x"}},
	}, changes...)
}

func cloudPage(pulls ...fields) fields {
	return fields{"size": len(pulls), "page": 1, "pagelen": 50, "values": append([]fields{}, pulls...)}
}

func cloudRefusal(message string) fields {
	return fields{"type": "error", "error": fields{"message": message}}
}

// cloudCommit returns the request for the full id of a commit.
func cloudCommit(id string) exchange {
	return exchange{request: "GET " + cloud + "/commit/" + id[:12], answer: fields{"type": "commit", "hash": id}}
}

// cloudReads returns the requests that read the pull request once.
func cloudReads(changes ...fields) []exchange {
	pull := cloudPull(changes...)
	seen := []exchange{{request: cloudGet, answer: pull}}
	head := newHead
	if hash := pull["source"].(fields)["commit"].(fields)["hash"]; hash == oldHead[:12] {
		head = oldHead
	}
	seen = append(seen, cloudCommit(head))
	if pull["merge_commit"] != nil {
		seen = append(seen, cloudCommit(mergedAs))
	}
	return seen
}

// concat concatenates exchanges and lists of exchanges.
func concat(all ...any) (exchanges []exchange) {
	for _, one := range all {
		switch one := one.(type) {
		case exchange:
			exchanges = append(exchanges, one)
		case []exchange:
			exchanges = append(exchanges, one...)
		}
	}
	return exchanges
}

var (
	cloudMerged  = fields{"state": "MERGED", "merge_commit": fields{"type": "commit", "hash": mergedAs[:12]}}
	cloudClosed  = fields{"state": "DECLINED"}
	cloudOldHead = fields{"source": cloudEnd("flotilla/dev", oldHead, "{repo}")}
	cloudFork    = fields{"source": cloudEnd("flotilla/dev", newHead, "{fork}")}
)

func TestCloudFindPrefersTheOpenPullRequest(t *testing.T) {
	t.Parallel()
	want := func(number int, state forge.RequestState, mergeCommit string) *forge.PullRequest {
		return &forge.PullRequest{
			Number:      number,
			URL:         cloudURL,
			State:       state,
			Owner:       "dev",
			Base:        "main",
			Head:        "flotilla/dev",
			HeadCommit:  newHead,
			MergeCommit: mergeCommit,
		}
	}
	open := func(pulls ...fields) exchange {
		return exchange{request: cloudList("main"), answer: cloudPage(pulls...)}
	}
	elsewhere := cloudPage(cloudPull(cloudFork))
	// The Git host may have another name in its links. Only the query of the next page is used.
	elsewhere["next"] = "https://api.bitbucket.org/2.0/repositories/owner/gitops/pullrequests?page=z2&pagelen=50"
	for name, test := range map[string]struct {
		exchanges []exchange
		want      *forge.PullRequest
	}{
		"superseded": {concat(open(), cloudReads(fields{"state": "SUPERSEDED"})), want(7, forge.Closed, "")},
		"declined with a missing commit": {
			concat(open(), cloudReads(cloudClosed)[:1], exchange{request: cloudCommit(newHead).request, status: 404, answer: cloudRefusal("Commit not found")}),
			func() *forge.PullRequest { p := want(7, forge.Closed, ""); p.HeadCommit = newHead[:12]; return p }(),
		},
		"a deleted fork": {concat(
			open(cloudPull(fields{"source": fields{"branch": fields{"name": "flotilla/dev"}, "repository": nil, "commit": nil}})), cloudReads(cloudMerged),
		), want(7, forge.Merged, mergedAs)},
		"on the second page": {concat(
			exchange{request: cloudList("main"), answer: elsewhere},
			exchange{request: "GET " + cloud + "/pullrequests?page=z2&pagelen=50", answer: cloudPage(cloudPull())}, cloudReads(),
		), want(7, forge.Open, "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newCloud(t, test.exchanges).Find(t.Context(), dev, 7)
			if err != nil || (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

func TestCloudEnsureOpensOrUpdatesInPlace(t *testing.T) {
	t.Parallel()
	create := exchange{
		request: cloudPost, status: 201, answer: cloudPull(),
		body: `{"title": "Deploy dev", "description": ` + quoteJSON(
			devBody,
		) + `, "source": {"branch": {"name": "flotilla/dev"}}, "destination": {"branch": {"name": "main"}}}`,
	}
	refused := func(status int, answer any) exchange { e := create; e.status, e.answer = status, answer; return e }
	none := exchange{request: cloudList("main"), answer: cloudPage()}
	existing := func(changes ...fields) []exchange {
		listed := cloudPull(changes...)
		delete(listed, "reviewers")
		return concat(exchange{request: cloudList("main"), answer: cloudPage(listed)}, cloudReads(changes...))
	}
	user := func(id, uuid string) exchange {
		return exchange{request: "GET /2.0/users/" + url.PathEscape(id), answer: fields{"type": "user", "uuid": uuid, "account_id": cloudBenID}}
	}
	nobody := exchange{request: user(cloudBenID, "").request, status: 404, answer: cloudRefusal("No such user")}
	put := func(title, more string) exchange {
		return exchange{
			request: cloudPut,
			body:    `{"title": ` + quoteJSON(title) + `, "description": ` + quoteJSON(devBody) + more + `}`,
			answer:  cloudPull(),
		}
	}
	both := `, "reviewers": [{"uuid": "` + cloudAnna + `"}, {"uuid": "` + cloudBen + `"}]`
	byAnna := fields{"reviewers": []fields{{"type": "user", "uuid": cloudAnna}}}
	withReviewers := shortRequest()
	withReviewers.Reviewers = []string{strings.ToUpper(cloudAnna), cloudBenID}
	unable := put(devTitle, both)
	unable.status, unable.answer = 400, cloudRefusal("reviewers: Malformed reviewers list")
	for name, test := range map[string]struct {
		wanted      forge.Wanted
		exchanges   []exchange
		kind        error
		wantText    string
		withRequest bool
	}{
		// Bitbucket removes reviewers missing in an update.
		"an update with reviewers": {wanted: shortRequest(), exchanges: concat(existing(fields{"title": "Old"}, byAnna), put(devTitle, `, "reviewers": [{"uuid": "`+cloudAnna+`"}]`))},
		"a draft":                  {wanted: shortRequest(), exchanges: concat(existing(fields{"title": "Old", "draft": true}), put(devTitle, `, "draft": true`))},
		"reviewers":                {wanted: withReviewers, exchanges: concat(existing(byAnna), user(cloudBenID, cloudBen), user(cloudBenID, cloudBen), put(devTitle, both))},
		"reviewers of a new pull request": {wanted: func() forge.Wanted { w := withReviewers; w.Reviewers = w.Reviewers[1:]; return w }(), exchanges: concat(
			none, user(cloudBenID, cloudBen), create, cloudCommit(newHead), user(cloudBenID, cloudBen), put(devTitle, `, "reviewers": [{"uuid": "`+cloudBen+`"}]`),
		)},
		"requested reviewers": {wanted: withReviewers, exchanges: concat(
			existing(fields{"reviewers": []fields{{"type": "user", "uuid": cloudAnna}, {"type": "user", "uuid": cloudBen}}}), user(cloudBenID, cloudBen), user(cloudBenID, cloudBen),
		)},
		"an unknown reviewer": {
			wanted: withReviewers, exchanges: concat(existing(byAnna), nobody), kind: forge.ErrReviewer, wantText: `"` + cloudBenID + `" does not exist`,
		},
		"a reviewer without rights": {
			wanted: withReviewers, exchanges: concat(existing(byAnna), user(cloudBenID, cloudBen), user(cloudBenID, cloudBen), unable), kind: forge.ErrReviewer,
			wantText: "pull request #7 cannot be given the reviewers " + cloudBenID + ": the Git host answered 400 Bad Request: reviewers: Malformed reviewers list", withRequest: true,
		},
		"a token without rights": {
			wanted: shortRequest(), exchanges: concat(none, refused(403, fields{"type": "error", "error": fields{
				"message": "Your credentials lack one or more required privilege scopes.", "detail": "pullrequest:write is needed",
			}})),
			kind: forge.ErrUnauthorized, wantText: "Your credentials lack one or more required privilege scopes.; pullrequest:write is needed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantEnsured(t, newCloud(t, test.exchanges), test.wanted, test.kind, test.wantText, test.withRequest)
		})
	}
}

func TestCloudMergeNow(t *testing.T) {
	t.Parallel()
	request := &forge.PullRequest{Number: 7, Owner: "dev", Head: "flotilla/dev"}
	ways := func(all ...string) exchange {
		pull := cloudPull()
		pull["destination"].(fields)["branch"].(fields)["merge_strategies"] = all
		return exchange{request: cloudGet, answer: pull}
	}
	mergeBy := func(way string) exchange {
		return exchange{
			request: cloudMerge,
			body:    `{"close_source_branch": false, "merge_strategy": "` + way + `"}`,
			answer:  cloudPull(cloudMerged),
		}
	}
	do := concat(ways("squash", "merge_commit"), mergeBy("merge_commit"))
	refused := func(status int, message string) []exchange {
		e := mergeBy("merge_commit")
		e.status, e.answer = status, cloudRefusal(message)
		return concat(ways("merge_commit"), e)
	}
	long := mergeBy("merge_commit")
	long.status, long.answer = 202, nil
	long.header = map[string]string{
		"Location": "https://api.bitbucket.org/2.0/repositories/owner/gitops/pullrequests/7/merge/task-status/task-1",
	}
	task := func(status int, answer fields) exchange {
		return exchange{request: cloudTask, status: status, answer: answer}
	}
	pending, success := task(
		0,
		fields{"task_status": "PENDING"},
	), task(
		0,
		fields{"task_status": "SUCCESS", "merge_result": cloudPull(cloudMerged)},
	)
	const checks = "This pull request cannot be merged: 1 approval is needed"
	for name, test := range map[string]struct {
		exchanges []exchange
		kind      error
		wantText  string
	}{
		"merged":                        {concat(cloudReads(), do, cloudReads(cloudMerged)), nil, ""},
		"a strategy that keeps commits": {concat(cloudReads(), ways("squash_fast_forward", "squash", "rebase_merge"), mergeBy("rebase_merge"), cloudReads(cloudMerged)), nil, ""},
		"the only strategy":             {concat(cloudReads(), ways("squash"), mergeBy("squash"), cloudReads(cloudMerged)), nil, ""},
		"the repository's strategy": {concat(
			cloudReads(), exchange{request: cloudGet, answer: cloudPull()}, exchange{request: cloudMerge, body: `{"close_source_branch": false}`, answer: cloudPull(cloudMerged)}, cloudReads(cloudMerged),
		), nil, ""},
		"a slow merge":             {concat(cloudReads(), ways("merge_commit"), long, pending, success, cloudReads(cloudMerged)), nil, ""},
		"a timeout":                {concat(cloudReads(), refused(555, "The merge took too long"), cloudReads(), do, cloudReads(cloudMerged)), nil, ""},
		"the base moved meanwhile": {concat(cloudReads(), refused(409, "refs changed"), cloudReads(), do, cloudReads(cloudMerged)), nil, ""},
		"the base moved during a slow merge": {
			concat(cloudReads(), ways("merge_commit"), long, task(409, cloudRefusal("refs changed")), cloudReads(), do, cloudReads(cloudMerged)), nil, "",
		},
		"a failed check":          {concat(cloudReads(), refused(400, checks), cloudReads()), forge.ErrNotMergeable, checks},
		"a check that fails late": {concat(cloudReads(), ways("merge_commit"), long, pending, task(400, cloudRefusal(checks)), cloudReads()), forge.ErrNotMergeable, checks},
		"a draft": {
			concat(cloudReads(fields{"draft": true}), refused(400, "draft"), cloudReads(fields{"draft": true})), forge.ErrNotMergeable, `(its status is "draft")`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantMerged(t, newCloud(t, test.exchanges), request, forge.Now, test.kind, test.wantText)
		})
	}
}

func TestCloudHasNoAutoMergeAndNoLabels(t *testing.T) {
	t.Parallel()
	request := &forge.PullRequest{Number: 7, Owner: "dev", Head: "flotilla/dev"}
	host := newCloud(t, nil)
	if err := checkWanted(host, shortRequest(), forge.Now); err != nil {
		t.Error(err)
	}
	const wantText = `the API of Bitbucket Cloud cannot turn on auto-merge: set merge to "now", or to "none" and let people merge`
	if err := checkWanted(host, shortRequest(), forge.WhenChecksSucceed); err == nil || !strings.Contains(err.Error(), wantText) {
		t.Errorf("checked: %v", err)
	}
	if _, err := host.Merge(t.Context(), request, newHead, forge.WhenChecksSucceed); err == nil || !strings.Contains(err.Error(), wantText) {
		t.Errorf("merged: %v", err)
	}
	labelled := shortRequest()
	labelled.Labels = []string{"fleet"}
	for name, err := range map[string]error{"checked": checkWanted(host, labelled, ""), "ensured": func() error { _, err := host.Ensure(t.Context(), labelled); return err }()} {
		if err == nil || !strings.Contains(err.Error(), "pull requests of Bitbucket Cloud have no labels; remove the labels") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := host.DisableAutoMerge(t.Context(), request); err != nil { // there is nothing to turn off
		t.Error(err)
	}
}

func TestCloudReviewersAreNamedByTheirIDs(t *testing.T) {
	t.Parallel()
	host := newCloud(t, nil)
	for reviewer, good := range map[string]bool{
		cloudAnna: true, cloudBenID: true, "5b10a2844c20165700ede21g": true,
		"anna": false, "anna@example.com": false, "owner/team": false, "": false, "{anna}": false, "../../../../../../2.0/user": false,
	} {
		w := shortRequest()
		w.Reviewers = []string{reviewer}
		if err := checkWanted(host, w, ""); (err == nil) != good ||
			err != nil && !strings.Contains(err.Error(), "is not an Atlassian account ID or a UUID in braces") {
			t.Errorf("%q: %v", reviewer, err)
		}
	}
}

// An access token is a bearer token. An API token is sent with the user's email address.
func TestCloudSendsEachKindOfToken(t *testing.T) {
	t.Parallel()
	basic := func(username, password string) string {
		r := &http.Request{Header: http.Header{}}
		r.SetBasicAuth(username, password)
		return r.Header.Get("Authorization")
	}
	for _, test := range []struct {
		credentials forge.Credentials
		want        string
	}{
		{forge.Credentials{Token: canary}, "Bearer " + canary},
		{forge.Credentials{Username: "x-token-auth", Token: canary}, "Bearer " + canary},
		{forge.Credentials{Username: "x-token-auth", Password: canary}, "Bearer " + canary},
		{forge.Credentials{Username: "anna@example.com", Token: canary}, basic("anna@example.com", canary)},
		{forge.Credentials{Username: "anna@example.com", Password: canary}, basic("anna@example.com", canary)},
		{forge.Credentials{Username: "anna", Password: canary}, basic("anna", canary)},
		{forge.Credentials{}, ""},
	} {
		over := roundTripper(func(r *http.Request) (*http.Response, error) {
			if got := r.Header.Get("Authorization"); got != test.want {
				t.Errorf("%q: got credentials %q, want %q", test.credentials.Username, got, test.want)
			}
			return &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		})
		host, err := forge.NewGitHost(
			forge.HostedRepository{URL: "https://bitbucket.org/owner/gitops", Credentials: test.credentials},
			forge.HTTPOptions{Over: over},
		)
		if err != nil {
			t.Fatal(err)
		}
		_, err = host.Find(t.Context(), dev, 0)
		wantError(t, err, forge.ErrUnauthorized, "401")
	}
}
