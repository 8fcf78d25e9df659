package forge_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// Requests and answers have the shapes in Azure DevOps' reference (learn.microsoft.com/en-us/rest/api/azure/devops, version 7.1;
// testdata/README.md has the pages). No test ran against Azure DevOps itself.

const (
	azure      = "/org/owner/_apis/git/repositories/gitops"
	azOpen     = "GET " + azure + "/pullrequests?%24skip=0&%24top=100&api-version=7.1&searchCriteria.sourceRefName=refs%2Fheads%2Fflotilla%2Fdev&searchCriteria.status=active&searchCriteria.targetRefName=refs%2Fheads%2Fmain"
	azGet      = "GET " + azure + "/pullrequests/7?api-version=7.1"
	azPatch    = "PATCH " + azure + "/pullrequests/7?api-version=7.1"
	azPost     = "POST " + azure + "/pullrequests?api-version=7.1"
	azLabels   = azure + "/pullrequests/7/labels?api-version=7.1"
	azSelf     = "GET /org/_apis/connectionData?api-version=7.1-preview.1"
	azMe       = "11111111-aaaa-4aaa-8aaa-111111111111"
	azAnna     = "22222222-aaaa-4aaa-8aaa-222222222222"
	azTeam     = "33333333-aaaa-4aaa-8aaa-333333333333"
	azNobody   = "00000000-0000-0000-0000-000000000000"
	azQueued   = "queued"
	azConflict = "conflicts"
)

func newAzure(t *testing.T, exchanges []exchange, options ...forge.HTTPOptions) *forge.GitHost {
	t.Helper()
	return newScriptedHost(t, forge.Azure, "/org/owner/_git/gitops", exchanges, options...)
}

func azPull(changes ...fields) fields {
	return withFields(fields{
		"repository": fields{
			"id":      "repo",
			"name":    "gitops",
			"project": fields{"id": "project", "name": "owner"},
		}, "pullRequestId": 7, "status": "active",
		"createdBy": fields{"id": azMe, "displayName": "Bot", "uniqueName": "bot@example.com"}, "creationDate": "2026-01-26T19:01:12.1234567Z",
		"title": devTitle, "description": devBody, "sourceRefName": "refs/heads/flotilla/dev", "targetRefName": "refs/heads/main", "mergeStatus": "succeeded", "isDraft": false,
		"lastMergeSourceCommit": fields{
			"commitId": newHead,
		}, "lastMergeTargetCommit": fields{"commitId": oldHead}, "lastMergeCommit": fields{"commitId": "e5bd3914e2e596debea16f433f57875b5b90bcd6"},
		"reviewers": []fields{},
	}, changes...)
}

func azList(pulls ...fields) fields {
	return fields{"value": append([]fields{}, pulls...), "count": len(pulls)}
}

func azRefusal(kind, message string) fields {
	return fields{
		"$id": "1", "innerException": nil, "message": message, "typeKey": kind, "errorCode": 0, "eventId": 3000,
		"typeName": "Microsoft.TeamFoundation.Git.Server." + kind + ", Microsoft.TeamFoundation.Git.Server",
	}
}

var (
	azMerged    = fields{"status": "completed", "closedDate": "2026-01-26T19:02:12Z", "lastMergeCommit": fields{"commitId": mergedAs}}
	azClosed    = fields{"status": "abandoned", "closedDate": "2026-01-26T19:02:12Z"}
	azOldHead   = fields{"lastMergeSourceCommit": fields{"commitId": oldHead}}
	azFork      = fields{"forkSource": fields{"name": "refs/heads/flotilla/dev", "repository": fields{"id": "fork"}}}
	azAutoMerge = fields{"autoCompleteSetBy": fields{"id": azMe, "uniqueName": "bot@example.com"}}
)

func azStatus(word string) fields { return fields{"mergeStatus": word} }

func TestAzureFindPrefersTheOpenPullRequest(t *testing.T) {
	t.Parallel()
	want := func(number int, state forge.RequestState, mergeCommit string) *forge.PullRequest {
		return &forge.PullRequest{
			Number:      number,
			State:       state,
			Owner:       "dev",
			Base:        "main",
			Head:        "flotilla/dev",
			HeadCommit:  newHead,
			MergeCommit: mergeCommit,
		}
	}
	number := func(n int) fields { return fields{"pullRequestId": n} }
	long := devBody + strings.Repeat("x", 500)
	cut := fields{"description": long[:400]}
	full := azPull(azOldHead, fields{"description": long})
	var page []fields
	for i := range 100 {
		page = append(page, azPull(number(100+i), fields{"description": otherText}))
	}
	for name, test := range map[string]struct {
		exchanges []exchange
		want      *forge.PullRequest
	}{
		"the newest in any order": {
			[]exchange{{request: azOpen, answer: azList(azPull(number(8)), azPull(number(9)), azPull())}},
			want(9, forge.Open, ""),
		},
		"no description": {[]exchange{{request: azOpen, answer: azList(func() fields { p := azPull(); delete(p, "description"); return p }())}, {request: azGet, answer: azPull(fields{"description": otherText})}}, nil},
		// "Please note that description field will be truncated up to 400 symbols in the result."
		"a description cut in the list": {[]exchange{{request: azOpen, answer: azList(azPull(cut))}, {request: azGet, answer: azPull(fields{"description": long})}}, want(7, forge.Open, "")},
		"a mark in the cut part":        {[]exchange{{request: azOpen, answer: azList(azPull(fields{"description": strings.Repeat("x", 400)}))}, {request: azGet, answer: azPull(fields{"description": strings.Repeat("x", 500) + "\r\n" + devMark})}}, want(7, forge.Open, "")},
		"several cut descriptions": {[]exchange{
			{request: azOpen, answer: azList(azPull(cut, number(5)), azPull(cut, number(6)), azPull(cut))},
			{request: azGet, answer: azPull(fields{"description": long})},
		}, want(7, forge.Open, "")},
		"a change between list and read": {[]exchange{{request: azOpen, answer: azList(azPull(cut))}, {request: azGet, answer: full}}, func() *forge.PullRequest { p := want(7, forge.Open, ""); p.HeadCommit = oldHead; return p }()},
		"on the second page": {[]exchange{
			{request: azOpen, answer: azList(page...)},
			{request: strings.Replace(azOpen, "skip=0", "skip=100", 1), answer: azList(azPull())},
		}, want(7, forge.Open, "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newAzure(t, test.exchanges).Find(t.Context(), dev, 7)
			if got != nil && strings.HasSuffix(got.URL, fmt.Sprintf("/org/owner/_git/gitops/pullrequest/%d", got.Number)) {
				got.URL = "" // contains the server's address
			}
			if err != nil || (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

func TestAnIncompleteAzureListIsAnError(t *testing.T) {
	t.Parallel()
	var page []fields
	for i := range 100 {
		page = append(page, azPull(fields{"pullRequestId": 100 + i, "description": strings.Repeat("x", 400)}))
	}
	_, err := newAzure(t, []exchange{
		{request: azOpen, answer: azList(page...)},
		{
			request: strings.Replace(azOpen, "skip=0", "skip=100", 1),
			status:  403,
			answer:  fields{"message": "TF401027: You need the Git 'GenericRead' permission."},
		},
	}).Find(t.Context(), dev, 7)
	wantError(t, err, forge.ErrUnauthorized, "GenericRead")
}

func azPeople(filter, id, name, account, mail string) exchange {
	e := exchange{
		request: "GET /org/_apis/identities?api-version=7.1&filterValue=" + filter + "&queryMembership=None&searchFilter=General",
		answer:  fields{"value": []fields{}, "count": 0},
	}
	if id != "" {
		e.answer = fields{"count": 2, "value": []fields{
			{
				"id":                  "44444444-aaaa-4aaa-8aaa-444444444444",
				"providerDisplayName": "Anna Other",
				"properties":          fields{"Account": fields{"$type": "System.String", "$value": "anna.other@example.com"}},
			},
			{
				"id":                  id,
				"providerDisplayName": name,
				"properties": fields{
					"Account": fields{"$type": "System.String", "$value": account},
					"Mail":    fields{"$type": "System.String", "$value": mail},
				},
			},
		}}
	}
	return e
}

func TestAzureEnsureOpensOrUpdatesInPlace(t *testing.T) {
	t.Parallel()
	create := exchange{
		request: azPost, status: 201, answer: azPull(azStatus(azQueued)),
		body: `{"sourceRefName": "refs/heads/flotilla/dev", "targetRefName": "refs/heads/main", "title": "Deploy dev", "description": ` + quoteJSON(
			devBody,
		) + `}`,
	}
	none := exchange{request: azOpen, answer: azList()}
	existing := func(changes ...fields) exchange { return exchange{request: azOpen, answer: azList(azPull(changes...))} }
	anna := azPeople("Anna%40example.com", azAnna, "Anna", "anna@example.com", "")
	team := azPeople("%5BMy+Project%5D%5CPlatform+Team", azTeam, `[My Project]\Platform Team`, "Platform Team", "")
	put := func(id string) exchange {
		return exchange{
			request: "PUT " + azure + "/pullrequests/7/reviewers/" + id + "?api-version=7.1", body: `{"id": "` + id + `", "vote": 0}`, status: 201,
			answer: fields{"id": id, "vote": 0},
		}
	}
	label := func(name string) exchange {
		return exchange{request: "POST " + azLabels, body: `{"name": "` + name + `"}`, answer: fields{"id": "x", "name": name, "active": true}}
	}
	demanding := shortRequest()
	demanding.Labels, demanding.Reviewers = []string{"fleet", "dev stage"}, []string{"Anna@example.com", "My Project/Platform Team"}
	for name, test := range map[string]struct {
		wanted      forge.Wanted
		exchanges   []exchange
		kind        error
		wantText    string
		withRequest bool
	}{
		"labels and reviewers": {wanted: demanding, exchanges: []exchange{
			none, anna, team, create,
			{request: "GET " + azLabels, answer: fields{"count": 2, "value": []fields{{"id": "1", "name": "Fleet", "active": true}, {"id": "2", "name": "dev stage", "active": false}}}},
			label("dev stage"), anna, put(azAnna), team, put(azTeam),
		}},
		"requested reviewers and finished reviews": {
			wanted: func() forge.Wanted { w := demanding; w.Labels = nil; return w }(),
			exchanges: []exchange{existing(fields{"reviewers": []fields{
				{"id": azAnna, "displayName": "Anna", "uniqueName": "anna@example.com", "vote": 10},
				{"id": azTeam, "displayName": `[My Project]\Platform Team`, "uniqueName": `vstfs:///Classification/TeamProject/x\Platform Team`, "isContainer": true, "vote": 0},
			}})},
		},
		"an unknown reviewer": {
			wanted: demanding, exchanges: []exchange{none, azPeople("Anna%40example.com", "", "", "", "")},
			kind: forge.ErrReviewer, wantText: `"Anna@example.com" does not exist`,
		},
		"a reviewer with a similar name": {
			wanted: demanding, exchanges: []exchange{none, azPeople("Anna%40example.com", azAnna, "Anna", "anna@example.com.au", "anna@example.org")},
			kind: forge.ErrReviewer, wantText: `"Anna@example.com" does not exist`,
		},
		"a reviewer without rights": {
			wanted: func() forge.Wanted { w := demanding; w.Labels, w.Reviewers = nil, w.Reviewers[:1]; return w }(),
			exchanges: []exchange{none, anna, create, anna, func() exchange {
				e := put(azAnna)
				e.status, e.answer = 400, azRefusal("InvalidArgumentValueException", "TF400898: the identity may not review here")
				return e
			}()},
			kind: forge.ErrReviewer, wantText: "pull request #7 cannot be given the reviewers Anna@example.com: the Git host answered 400 Bad Request: TF400898", withRequest: true,
		},
		"a wrong token": {
			wanted: shortRequest(), exchanges: []exchange{{request: azOpen, status: 203, header: map[string]string{"Content-Type": "text/html; charset=utf-8"}, answer: "<html>Azure DevOps Services | Sign In</html>"}},
			kind: forge.ErrUnauthorized, wantText: "it asks to sign in with a browser: the token is missing, wrong or expired",
		},
		"an expired token": {
			wanted: shortRequest(), exchanges: []exchange{{request: azOpen, status: 302, header: map[string]string{"Location": "https://spsprodweu1.vssps.visualstudio.com/_signin?realm=dev.azure.com"}}},
			kind: forge.ErrUnauthorized, wantText: "it asks to sign in with a browser",
		},
		"a draft": {wanted: shortRequest(), exchanges: []exchange{
			existing(fields{"title": "Old", "isDraft": true}), {request: azPatch, body: `{"title": "Deploy dev", "description": ` + quoteJSON(devBody) + `}`, answer: azPull()},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantEnsured(t, newAzure(t, test.exchanges), test.wanted, test.kind, test.wantText, test.withRequest)
		})
	}
}

// A description has at most 4,000 characters, including the mark.
func TestAzureLimitsTheBody(t *testing.T) {
	t.Parallel()
	host := newAzure(t, nil)
	w := shortRequest()
	w.Owner = strings.Repeat("o", 500)
	w.Body = strings.Repeat("x", host.MaxBody())
	body := "<!-- flotilla-assignment: " + w.Owner + " -->\n\n" + w.Body + "\n"
	if len(body) != 4000 {
		t.Errorf("the longest description has %d characters", len(body))
	}
	if err := checkWanted(host, w, ""); err != nil {
		t.Error(err)
	}
	w.Body += "x"
	if _, err := host.Ensure(t.Context(), w); err == nil || !strings.Contains(err.Error(), "longer than 3467 bytes") {
		t.Errorf("err = %v", err)
	}
}

func TestAzureReviewersArePeopleAndTeams(t *testing.T) {
	t.Parallel()
	host := newAzure(t, nil)
	for reviewer, good := range map[string]bool{
		"anna@example.com": true, "Ann-Marie.O'Neil+x@example.com": true, "My Project/Platform Team": true, "p/t": true, "Проект/Команда": true,
		"anna": false, "": false, "a/b/c": false, "/t": false, "p/": false, " p/t": false, "a b@example.com": false, "a@b@c": true,
		`[p]\t`: false, "p/t\n": false, "p/<t>": false, "../t": true, strings.Repeat("p", 65) + "/t": false,
	} {
		w := shortRequest()
		w.Reviewers = []string{reviewer}
		if err := checkWanted(host, w, ""); (err == nil) != good {
			t.Errorf("%q: %v", reviewer, err)
		}
	}
}

// Azure DevOps Services has identities on another host. Only this host also gets the credentials.
func TestAzureLooksUpPeopleOnAnotherHost(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ url, api, want string }{
		{"https://dev.azure.com/org/p/_git/r", "", "https://vssps.dev.azure.com/org/_apis/identities"},
		{"https://org.visualstudio.com/DefaultCollection/p/_git/r", "", "https://org.vssps.visualstudio.com/_apis/identities"},
		{"https://azure.example.com/tfs/Collection/p/_git/r", "", "https://azure.example.com/tfs/Collection/_apis/identities"},
		{"https://dev.azure.com/org/p/_git/r", "https://proxy.example.com/org", "https://proxy.example.com/org/_apis/identities"},
	} {
		var requests []string
		over := roundTripper(func(r *http.Request) (*http.Response, error) {
			requests = append(requests, "https://"+r.URL.Host+r.URL.Path)
			if _, password, _ := r.BasicAuth(); password != canary || r.Header.Get("X-TFS-FedAuthRedirect") != "Suppress" {
				t.Errorf("%s: got headers %v", r.URL, r.Header)
			}
			answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
			answer.Body = readCloser(`{"value": []}`)
			return answer, nil
		})
		host, err := forge.NewGitHost(
			forge.HostedRepository{URL: test.url, APIURL: test.api, Forge: forge.Azure, Credentials: forge.Credentials{Token: canary}},
			forge.HTTPOptions{Over: over},
		)
		if err != nil {
			t.Fatal(err)
		}
		w := shortRequest()
		w.Reviewers = []string{"anna@example.com"}
		_, err = host.Ensure(t.Context(), w)
		wantError(t, err, forge.ErrReviewer, "does not exist")
		if len(requests) != 2 || requests[1] != test.want {
			t.Errorf("%s: got requests to %q", test.url, requests)
		}
	}
}

// A token of Microsoft Entra ID is a bearer token.
func TestAzureSendsTokensOfEntraIDAsBearer(t *testing.T) {
	t.Parallel()
	const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJ4In0.c2ln"
	for _, credentials := range []forge.Credentials{{Token: jwt}, {Username: "me", Password: jwt}} {
		over := roundTripper(func(r *http.Request) (*http.Response, error) {
			if got := r.Header.Get("Authorization"); got != "Bearer "+jwt {
				t.Errorf("got credentials %q", got)
			}
			return &http.Response{
				StatusCode: http.StatusUnauthorized, Header: http.Header{"Content-Type": {"text/plain"}}, Request: r,
				Body: readCloser("you sent " + r.Header.Get("Authorization")),
			}, nil
		})
		host, err := forge.NewGitHost(
			forge.HostedRepository{URL: "https://dev.azure.com/org/p/_git/r", Credentials: credentials},
			forge.HTTPOptions{Over: over},
		)
		if err != nil {
			t.Fatal(err)
		}
		_, err = host.Find(t.Context(), dev, 0)
		wantError(t, err, forge.ErrUnauthorized, "you sent Bearer ***")
	}
}
