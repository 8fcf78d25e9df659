package forge_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// Requests and answers have the shapes that Bitbucket Cloud's reference describes
// (developer.atlassian.com/cloud/bitbucket/rest; testdata/README.md has the pages). Bitbucket itself was not asked.

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

// cloudList is the request for the open requests from dev's branch into another, or into any.
func cloudList(base string) string {
	filter := `state = "OPEN" AND source.branch.name = "flotilla/dev"`
	if base != "" {
		filter += ` AND destination.branch.name = "` + base + `"`
	}
	return "GET " + cloud + "/pullrequests?" + url.Values{"q": {filter}, "sort": {"-created_on"}, "pagelen": {"50"}}.Encode()
}

func onCloud(t *testing.T, exchanges []exchange, options ...forge.HTTPOptions) *forge.GitHost {
	t.Helper()
	return scripted(t, forge.Bitbucket, "/owner/gitops.git", exchanges, options...)
}

func cloudEnd(branch, commit, repository string) fields {
	return fields{
		"branch": fields{"name": branch}, "commit": fields{"type": "commit", "hash": commit[:12]},
		"repository": fields{"type": "repository", "uuid": repository, "full_name": "owner/gitops"},
	}
}

func cloudPull(changes ...fields) fields {
	return with(fields{
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

// cloudCommit is the request for the full id of a commit.
func cloudCommit(id string) exchange {
	return exchange{request: "GET " + cloud + "/commit/" + id[:12], answer: fields{"type": "commit", "hash": id}}
}

// cloudSees are the requests that read the request once.
func cloudSees(changes ...fields) []exchange {
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

// flat puts requests one after the other.
func flat(all ...any) (exchanges []exchange) {
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

func TestCloudCurrentIsTheOpenOneElseTheKnownOne(t *testing.T) {
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
	// The Git host's name for itself need not be that by which it is reached; of the page only the query counts.
	elsewhere["next"] = "https://api.bitbucket.org/2.0/repositories/owner/gitops/pullrequests?page=z2&pagelen=50"
	for name, test := range map[string]struct {
		exchanges []exchange
		want      *forge.PullRequest
	}{
		"superseded": {flat(open(), cloudSees(fields{"state": "SUPERSEDED"})), want(7, forge.Closed, "")},
		"declined, and its commit is gone": {
			flat(open(), cloudSees(cloudClosed)[:1], exchange{request: cloudCommit(newHead).request, status: 404, answer: cloudRefusal("Commit not found")}),
			func() *forge.PullRequest { p := want(7, forge.Closed, ""); p.HeadCommit = newHead[:12]; return p }(),
		},
		"a fork that is gone": {flat(
			open(cloudPull(fields{"source": fields{"branch": fields{"name": "flotilla/dev"}, "repository": nil, "commit": nil}})), cloudSees(cloudMerged),
		), want(7, forge.Merged, mergedAs)},
		"on the second page": {flat(
			exchange{request: cloudList("main"), answer: elsewhere},
			exchange{request: "GET " + cloud + "/pullrequests?page=z2&pagelen=50", answer: cloudPage(cloudPull())}, cloudSees(),
		), want(7, forge.Open, "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := onCloud(t, test.exchanges).Find(t.Context(), dev, 7)
			if err != nil || (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
				t.Errorf("current is %+v, %v", got, err)
			}
		})
	}
}

func TestCloudEnsureOpensOrUpdatesInPlace(t *testing.T) {
	t.Parallel()
	create := exchange{
		request: cloudPost, status: 201, answer: cloudPull(),
		body: `{"title": "Deploy dev", "description": ` + quoted(
			devBody,
		) + `, "source": {"branch": {"name": "flotilla/dev"}}, "destination": {"branch": {"name": "main"}}}`,
	}
	refused := func(status int, answer any) exchange { e := create; e.status, e.answer = status, answer; return e }
	none := exchange{request: cloudList("main"), answer: cloudPage()}
	there := func(changes ...fields) []exchange {
		listed := cloudPull(changes...)
		delete(listed, "reviewers")
		return flat(exchange{request: cloudList("main"), answer: cloudPage(listed)}, cloudSees(changes...))
	}
	user := func(id, uuid string) exchange {
		return exchange{request: "GET /2.0/users/" + url.PathEscape(id), answer: fields{"type": "user", "uuid": uuid, "account_id": cloudBenID}}
	}
	nobody := exchange{request: user(cloudBenID, "").request, status: 404, answer: cloudRefusal("No such user")}
	put := func(title, more string) exchange {
		return exchange{
			request: cloudPut,
			body:    `{"title": ` + quoted(title) + `, "description": ` + quoted(devBody) + more + `}`,
			answer:  cloudPull(),
		}
	}
	both := `, "reviewers": [{"uuid": "` + cloudAnna + `"}, {"uuid": "` + cloudBen + `"}]`
	byAnna := fields{"reviewers": []fields{{"type": "user", "uuid": cloudAnna}}}
	asking := simply()
	asking.Reviewers = []string{strings.ToUpper(cloudAnna), cloudBenID}
	unable := put(devTitle, both)
	unable.status, unable.answer = 400, cloudRefusal("reviewers: Malformed reviewers list")
	for name, test := range map[string]struct {
		wanted    forge.Wanted
		exchanges []exchange
		kind      error
		says      string
		beside    bool
	}{
		// Reviewers that are not sent are removed.
		"updates, and keeps reviewers": {wanted: simply(), exchanges: flat(there(fields{"title": "Old"}, byAnna), put(devTitle, `, "reviewers": [{"uuid": "`+cloudAnna+`"}]`))},
		"a draft stays one":            {wanted: simply(), exchanges: flat(there(fields{"title": "Old", "draft": true}), put(devTitle, `, "draft": true`))},
		"reviewers":                    {wanted: asking, exchanges: flat(there(byAnna), user(cloudBenID, cloudBen), user(cloudBenID, cloudBen), put(devTitle, both))},
		"reviewers of a new one": {wanted: func() forge.Wanted { w := asking; w.Reviewers = w.Reviewers[1:]; return w }(), exchanges: flat(
			none, user(cloudBenID, cloudBen), create, cloudCommit(newHead), user(cloudBenID, cloudBen), put(devTitle, `, "reviewers": [{"uuid": "`+cloudBen+`"}]`),
		)},
		"reviewers who were asked": {wanted: asking, exchanges: flat(
			there(fields{"reviewers": []fields{{"type": "user", "uuid": cloudAnna}, {"type": "user", "uuid": cloudBen}}}), user(cloudBenID, cloudBen), user(cloudBenID, cloudBen),
		)},
		"a reviewer who does not exist": {
			wanted: asking, exchanges: flat(there(byAnna), nobody), kind: forge.ErrReviewer, says: `"` + cloudBenID + `" does not exist`,
		},
		"a reviewer who may not": {
			wanted: asking, exchanges: flat(there(byAnna), user(cloudBenID, cloudBen), user(cloudBenID, cloudBen), unable), kind: forge.ErrReviewer,
			says: "pull request #7 cannot be given the reviewers " + cloudBenID + ": the Git host answered 400 Bad Request: reviewers: Malformed reviewers list", beside: true,
		},
		"a token that may not": {
			wanted: simply(), exchanges: flat(none, refused(403, fields{"type": "error", "error": fields{
				"message": "Your credentials lack one or more required privilege scopes.", "detail": "pullrequest:write is needed",
			}})),
			kind: forge.ErrUnauthorized, says: "Your credentials lack one or more required privilege scopes.; pullrequest:write is needed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantEnsured(t, onCloud(t, test.exchanges), test.wanted, test.kind, test.says, test.beside)
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
	by := func(way string) exchange {
		return exchange{
			request: cloudMerge,
			body:    `{"close_source_branch": false, "merge_strategy": "` + way + `"}`,
			answer:  cloudPull(cloudMerged),
		}
	}
	do := flat(ways("squash", "merge_commit"), by("merge_commit"))
	refused := func(status int, message string) []exchange {
		e := by("merge_commit")
		e.status, e.answer = status, cloudRefusal(message)
		return flat(ways("merge_commit"), e)
	}
	long := by("merge_commit")
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
		says      string
	}{
		"merged":                      {flat(cloudSees(), do, cloudSees(cloudMerged)), nil, ""},
		"in a way that keeps commits": {flat(cloudSees(), ways("squash_fast_forward", "squash", "rebase_merge"), by("rebase_merge"), cloudSees(cloudMerged)), nil, ""},
		"in the only way":             {flat(cloudSees(), ways("squash"), by("squash"), cloudSees(cloudMerged)), nil, ""},
		"in the way of the repository": {flat(
			cloudSees(), exchange{request: cloudGet, answer: cloudPull()}, exchange{request: cloudMerge, body: `{"close_source_branch": false}`, answer: cloudPull(cloudMerged)}, cloudSees(cloudMerged),
		), nil, ""},
		"merged after a while":     {flat(cloudSees(), ways("merge_commit"), long, pending, success, cloudSees(cloudMerged)), nil, ""},
		"it took too long":         {flat(cloudSees(), refused(555, "The merge took too long"), cloudSees(), do, cloudSees(cloudMerged)), nil, ""},
		"the base moved meanwhile": {flat(cloudSees(), refused(409, "refs changed"), cloudSees(), do, cloudSees(cloudMerged)), nil, ""},
		"the base moved, after a while": {
			flat(cloudSees(), ways("merge_commit"), long, task(409, cloudRefusal("refs changed")), cloudSees(), do, cloudSees(cloudMerged)), nil, "",
		},
		"a check fails":               {flat(cloudSees(), refused(400, checks), cloudSees()), forge.ErrNotMergeable, checks},
		"a check fails after a while": {flat(cloudSees(), ways("merge_commit"), long, pending, task(400, cloudRefusal(checks)), cloudSees()), forge.ErrNotMergeable, checks},
		"a draft": {
			flat(cloudSees(fields{"draft": true}), refused(400, "draft"), cloudSees(fields{"draft": true})), forge.ErrNotMergeable, `(its status is "draft")`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantMerged(t, onCloud(t, test.exchanges), request, forge.Now, test.kind, test.says)
		})
	}
}

func TestCloudHasNoAutoMergeAndNoLabels(t *testing.T) {
	t.Parallel()
	request := &forge.PullRequest{Number: 7, Owner: "dev", Head: "flotilla/dev"}
	host := onCloud(t, nil)
	if err := checkWanted(host, simply(), forge.Now); err != nil {
		t.Error(err)
	}
	const says = `the API of Bitbucket Cloud cannot turn on auto-merge: set merge to "now", or to "none" and let people merge`
	if err := checkWanted(host, simply(), forge.WhenChecksSucceed); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("checked: %v", err)
	}
	if _, err := host.Merge(t.Context(), request, newHead, forge.WhenChecksSucceed); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("merged: %v", err)
	}
	labelled := simply()
	labelled.Labels = []string{"fleet"}
	for name, err := range map[string]error{"checked": checkWanted(host, labelled, ""), "ensured": func() error { _, err := host.Ensure(t.Context(), labelled); return err }()} {
		if err == nil || !strings.Contains(err.Error(), "pull requests of Bitbucket Cloud have no labels; remove the labels") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := host.DisableAutoMerge(t.Context(), request); err != nil { // there is nothing to take back
		t.Error(err)
	}
}

func TestCloudReviewersAreNamedByTheirIDs(t *testing.T) {
	t.Parallel()
	host := onCloud(t, nil)
	for reviewer, good := range map[string]bool{
		cloudAnna: true, cloudBenID: true, "5b10a2844c20165700ede21g": true,
		"anna": false, "anna@example.com": false, "owner/team": false, "": false, "{anna}": false, "../../../../../../2.0/user": false,
	} {
		w := simply()
		w.Reviewers = []string{reviewer}
		if err := checkWanted(host, w, ""); (err == nil) != good ||
			err != nil && !strings.Contains(err.Error(), "is not an Atlassian account ID or a UUID in braces") {
			t.Errorf("%q: %v", reviewer, err)
		}
	}
}

// An access token is a bearer's; an API token goes with its user's address of mail.
func TestCloudTakesEachKindOfToken(t *testing.T) {
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
				t.Errorf("of %q the credentials are %q, want %q", test.credentials.Username, got, test.want)
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
