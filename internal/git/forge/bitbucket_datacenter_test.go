package forge_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// Requests and answers have the shapes in Bitbucket Data Center's reference (developer.atlassian.com/server/bitbucket/rest;
// testdata/README.md has the pages). No test ran against Bitbucket itself.

const (
	center      = "/rest/api/latest/projects/PLAT/repos/gitops/pull-requests"
	centerList  = "GET " + center + "?at=refs%2Fheads%2Fflotilla%2Fdev&direction=OUTGOING&limit=100&order=NEWEST&start=0&state=OPEN"
	centerGet   = "GET " + center + "/7"
	centerPut   = "PUT " + center + "/7"
	centerMerge = "POST " + center + "/7/merge?version=3"
	centerAuto  = center + "/7/auto-merge"
	centerURL   = "https://bitbucket.example.com/projects/PLAT/repos/gitops/pull-requests/7"
)

func newDataCenter(t *testing.T, exchanges []exchange, options ...forge.HTTPOptions) *forge.GitHost {
	t.Helper()
	return newScriptedHost(t, forge.BitbucketDataCenter, repositoryPath(forge.BitbucketDataCenter), exchanges, options...)
}

func centerRef(branch, commit string, repository int) fields {
	return fields{
		"id": "refs/heads/" + branch, "displayId": branch, "latestCommit": commit, "type": "BRANCH",
		"repository": fields{"id": repository, "slug": "gitops", "name": "gitops", "project": fields{"key": "PLAT", "id": 1}},
	}
}

func centerPull(changes ...fields) fields {
	return withFields(fields{
		"id": 7, "version": 3, "title": devTitle, "description": devBody, "state": "OPEN", "open": true, "closed": false, "draft": false, "locked": false,
		"createdDate": 1769454072000, "updatedDate": 1769454072000, "author": fields{"user": fields{"name": "bot"}, "role": "AUTHOR"},
		"fromRef": centerRef(
			"flotilla/dev",
			newHead,
			5,
		), "toRef": centerRef("main", oldHead, 5), "reviewers": []fields{}, "participants": []fields{},
		"links": fields{"self": []fields{{"href": centerURL}}},
	}, changes...)
}

func centerPage(values ...fields) fields {
	return fields{"size": len(values), "limit": 100, "start": 0, "isLastPage": true, "values": append([]fields{}, values...)}
}

func centerRefusal(kind, message string, more ...fields) fields {
	return fields{
		"errors": []fields{withFields(fields{"context": nil, "message": message, "exceptionName": "com.atlassian.bitbucket.pull." + kind}, more...)},
	}
}

var (
	centerMerged = fields{
		"state":      "MERGED",
		"version":    4,
		"properties": fields{"mergeCommit": fields{"id": mergedAs, "displayId": mergedAs[:11]}},
	}
	centerClosed  = fields{"state": "DECLINED", "version": 4}
	centerOldHead = fields{"fromRef": centerRef("flotilla/dev", oldHead, 5)}
	centerFork    = fields{"fromRef": centerRef("flotilla/dev", newHead, 6)}
	centerLater   = fields{"version": 4}
	centerAnna    = fields{"reviewers": []fields{{"user": fields{"name": "anna"}, "role": "REVIEWER", "status": "APPROVED"}}}
	centerStale   = centerRefusal(
		"PullRequestOutOfDateException",
		"You are attempting to modify a pull request based on out-of-date information.",
		fields{"currentVersion": 4, "expectedVersion": 3},
	)
)

func TestDataCenterFindPrefersTheOpenPullRequest(t *testing.T) {
	t.Parallel()
	want := func(state forge.RequestState, mergeCommit string) *forge.PullRequest {
		return &forge.PullRequest{
			Number:      7,
			URL:         centerURL,
			State:       state,
			Owner:       "dev",
			Base:        "main",
			Head:        "flotilla/dev",
			HeadCommit:  newHead,
			MergeCommit: mergeCommit,
		}
	}
	open := func(pulls ...fields) exchange { return exchange{request: centerList, answer: centerPage(pulls...)} }
	get := func(changes ...fields) exchange { return exchange{request: centerGet, answer: centerPull(changes...)} }
	first := centerPage(centerPull(fields{"id": 9, "description": otherText}))
	first["isLastPage"], first["nextPageStart"] = false, 37 // not 100, because the page may omit some
	for name, test := range map[string]struct {
		exchanges []exchange
		want      *forge.PullRequest
	}{
		"foreign pull requests": {[]exchange{
			open(centerPull(centerFork), centerPull(fields{"description": prodMark}), centerPull(fields{"toRef": centerRef("prod", oldHead, 5)})),
			get(centerClosed, fields{"description": prodMark}),
		}, nil},
		"no description": {[]exchange{open(func() fields { p := centerPull(); delete(p, "description"); return p }()), get(fields{"description": otherText})}, nil},
		"on the second page": {[]exchange{
			{request: centerList, answer: first}, {request: strings.Replace(centerList, "start=0", "start=37", 1), answer: centerPage(centerPull())},
		}, want(forge.Open, "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newDataCenter(t, test.exchanges).Find(t.Context(), dev, 7)
			if err != nil || (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
	wantFreeHead(t, newDataCenter(t, []exchange{open(centerPull(), centerPull(centerFork, fields{"description": prodMark}))}), "")
	wantFreeHead(
		t,
		newDataCenter(t, []exchange{open(centerPull(fields{"toRef": centerRef("prod", oldHead, 5)}))}),
		`pull request #7 of assignment "dev" goes from "flotilla/dev" into "prod"`,
	)
}

func TestDataCenterEnsureOpensOrUpdatesInPlace(t *testing.T) {
	t.Parallel()
	create := exchange{
		request: "POST " + center, status: 201, answer: centerPull(),
		body: `{"title": "Deploy dev", "description": ` + quoteJSON(
			devBody,
		) + `, "fromRef": {"id": "refs/heads/flotilla/dev"}, "toRef": {"id": "refs/heads/main"}}`,
	}
	none := exchange{request: centerList, answer: centerPage()}
	existing := func(changes ...fields) exchange {
		return exchange{request: centerList, answer: centerPage(centerPull(changes...))}
	}
	get := func(changes ...fields) exchange { return exchange{request: centerGet, answer: centerPull(changes...)} }
	put := func(version, more string) exchange {
		return exchange{
			request: centerPut,
			body:    `{"version": ` + version + `, "title": "Deploy dev", "description": ` + quoteJSON(devBody) + more + `}`,
			answer:  centerPull(),
		}
	}
	stale := put("3", "")
	stale.status, stale.answer = 409, centerStale
	users := func(filter string, names ...string) exchange {
		var found []fields
		for _, name := range names {
			found = append(found, fields{"name": name, "slug": name, "active": true})
		}
		return exchange{request: "GET /rest/api/latest/users?filter=" + filter + "&limit=100&start=0", answer: centerPage(found...)}
	}
	ask := exchange{
		request: "POST " + center + "/7/participants",
		body:    `{"user": {"name": "Ben"}, "role": "REVIEWER"}`,
		answer:  fields{"user": fields{"name": "ben"}, "role": "REVIEWER"},
	}
	unable := ask
	unable.status, unable.answer = 409, centerRefusal(
		"InvalidPullRequestReviewersException",
		"Errors encountered while adding some reviewers to this pull request.",
	)
	withReviewers := shortRequest()
	withReviewers.Reviewers = []string{"Anna", "Ben"}
	ben := shortRequest()
	ben.Reviewers = []string{"Ben"}
	for name, test := range map[string]struct {
		wanted      forge.Wanted
		exchanges   []exchange
		kind        error
		wantText    string
		withRequest bool
	}{
		// Bitbucket removes reviewers missing in an update.
		"an update with reviewers": {wanted: shortRequest(), exchanges: []exchange{existing(fields{"title": "Old"}, centerAnna), put("3", `, "reviewers": [{"user": {"name": "anna"}}]`)}},
		"a draft":                  {wanted: shortRequest(), exchanges: []exchange{existing(fields{"title": "Old", "draft": true}), put("3", `, "draft": true`)}},
		"a concurrent change": {wanted: shortRequest(), exchanges: []exchange{
			existing(fields{"title": "Old"}), stale, get(centerLater, centerAnna), put("4", `, "reviewers": [{"user": {"name": "anna"}}]`),
		}},
		"a concurrent removal of the mark": {
			wanted: shortRequest(), exchanges: []exchange{existing(fields{"title": "Old"}), stale, get(centerLater, fields{"description": otherText})},
			kind: forge.ErrRefused, wantText: "pull request #7 cannot be updated: the Git host answered 409 Conflict: You are attempting",
		},
		"reviewers": {wanted: withReviewers, exchanges: []exchange{existing(centerAnna), users("Ben", "benedict", "ben"), ask}},
		"an unknown reviewer": {
			wanted: ben, exchanges: []exchange{none, users("Ben", "benedict")}, kind: forge.ErrReviewer, wantText: `reviewer "Ben" does not exist, or is hidden from this credential`,
		},
		"a reviewer without rights": {
			wanted: ben, exchanges: []exchange{none, users("Ben", "ben"), create, unable}, kind: forge.ErrReviewer,
			wantText: "pull request #7 cannot be given the reviewers Ben: the Git host answered 409 Conflict: Errors encountered", withRequest: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantEnsured(t, newDataCenter(t, test.exchanges), test.wanted, test.kind, test.wantText, test.withRequest)
		})
	}
}

func TestDataCenterMergeNow(t *testing.T) {
	t.Parallel()
	request := &forge.PullRequest{Number: 7, Owner: "dev", Head: "flotilla/dev"}
	get := func(changes ...fields) exchange { return exchange{request: centerGet, answer: centerPull(changes...)} }
	do := exchange{request: centerMerge, body: `{}`, answer: centerPull(centerMerged)}
	doLater := do
	doLater.request = strings.Replace(centerMerge, "version=3", "version=4", 1)
	refused := func(status int, answer any) exchange { e := do; e.status, e.answer = status, answer; return e }
	vetoed := refused(
		409,
		centerRefusal(
			"PullRequestMergeVetoedException",
			"Merging the pull request has been vetoed.",
			fields{"conflicted": false, "vetoes": []fields{
				{
					"summaryMessage":  "Not all required builds are successful yet",
					"detailedMessage": "You still need a minimum of one successful build.",
				}, {"summaryMessage": "2 approvals are needed"},
			}},
		),
	)
	for name, test := range map[string]struct {
		exchanges []exchange
		kind      error
		wantText  string
	}{
		"a concurrent change":      {[]exchange{get(), refused(409, centerStale), get(centerLater), doLater, get(centerMerged)}, nil, ""},
		"vetoed":                   {[]exchange{get(), vetoed, get()}, forge.ErrNotMergeable, "has been vetoed.; You still need a minimum of one successful build.; 2 approvals are needed"},
		"a draft":                  {[]exchange{get(fields{"draft": true}), vetoed, get(fields{"draft": true})}, forge.ErrNotMergeable, `(its status is "draft")`},
		"the head moved meanwhile": {[]exchange{get(), refused(409, centerStale), get(centerLater, centerOldHead)}, forge.ErrHeadMoved, "the head of pull request #7 is " + oldHead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantMerged(t, newDataCenter(t, test.exchanges), request, forge.Now, test.kind, test.wantText)
		})
	}
}

func TestDataCenterMergeWhenChecksSucceed(t *testing.T) {
	t.Parallel()
	request := &forge.PullRequest{Number: 7, Owner: "dev", Head: "flotilla/dev"}
	get := func(changes ...fields) exchange { return exchange{request: centerGet, answer: centerPull(changes...)} }
	notSet := exchange{request: "GET " + centerAuto, status: 204}
	unknown := exchange{request: "GET " + centerAuto, status: 404, answer: centerRefusal("NoSuchEntityException", "null for uri")}
	before := func(commit string) exchange {
		return exchange{request: "GET " + centerAuto, answer: fields{"fromHash": commit, "toRefId": "refs/heads/main"}}
	}
	turnOn := exchange{request: centerMerge, body: `{"autoMerge": true}`, answer: centerPull()}
	off := exchange{request: "DELETE " + centerAuto, status: 204}
	refused := func(status int, answer any) exchange { e := turnOn; e.status, e.answer = status, answer; return e }
	for name, test := range map[string]struct {
		exchanges []exchange
		state     forge.RequestState
		kind      error
		wantText  string
	}{
		"turned on":                    {[]exchange{get(), notSet, turnOn, get()}, forge.Open, nil, ""},
		"turned on in older versions":  {[]exchange{get(), unknown, turnOn, get()}, forge.Open, nil, ""},
		"already turned on":            {[]exchange{get(), before(newHead), get()}, forge.Open, nil, ""},
		"turned on for another commit": {[]exchange{get(), before(oldHead), turnOn, get()}, forge.Open, nil, ""},
		"nothing to wait for":          {[]exchange{get(), notSet, turnOn, get(centerMerged)}, forge.Merged, nil, ""},
		"off in the settings": {
			[]exchange{get(), notSet, refused(403, centerRefusal("AutoMergeDisabledException", "Auto-merge is not enabled")), get()}, "", forge.ErrNotMergeable,
			"auto-merge may be off in the settings of the repository: the Git host answered 403 Forbidden: Auto-merge is not enabled",
		},
		"the head moved meanwhile": {
			[]exchange{get(), notSet, turnOn, get(centerOldHead), off}, "", forge.ErrHeadMoved, "auto-merge was turned on, the head moved meanwhile, and auto-merge was turned off again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantAutoMerge(t, newDataCenter(t, test.exchanges), request, test.state, test.kind, test.wantText)
		})
	}
	t.Run("turned off", func(t *testing.T) {
		t.Parallel()
		failed, before815 := off, off
		failed.status, failed.answer = 500, "oh no"
		before815.status, before815.answer = 404, centerRefusal("NoSuchEntityException", "null for uri")
		host := newDataCenter(t, []exchange{get(), off, get(), before815, get(), failed, get(centerMerged), get(), failed, get()})
		for range 3 {
			if err := host.DisableAutoMerge(t.Context(), request); err != nil {
				t.Error(err)
			}
		}
		wantError(t, host.DisableAutoMerge(t.Context(), request), forge.ErrUnreachable, "cannot be turned off")
	})
}

func TestDataCenterClosesAChangedPullRequest(t *testing.T) {
	t.Parallel()
	get := func(changes ...fields) exchange { return exchange{request: centerGet, answer: centerPull(changes...)} }
	decline := func(version string) exchange {
		return exchange{request: "POST " + center + "/7/decline?version=" + version, answer: centerPull(centerClosed)}
	}
	stale := decline("3")
	stale.status, stale.answer = 409, centerStale
	request := devRequest
	if err := newDataCenter(t, []exchange{get(), stale, get(centerLater), decline("4")}).Close(t.Context(), &request); err != nil {
		t.Error(err)
	}
}

// A description has at most 32,768 characters, including the mark.
func TestDataCenterLimitsBodiesLabelsAndReviewers(t *testing.T) {
	t.Parallel()
	host := newDataCenter(t, nil)
	w := shortRequest()
	w.Owner = strings.Repeat("o", 500)
	w.Body = strings.Repeat("x", host.MaxBody())
	if body := "<!-- flotilla-assignment: " + w.Owner + " -->\n\n" + w.Body + "\n"; len(body) != 32768 {
		t.Errorf("the longest description has %d characters", len(body))
	}
	w.Labels = []string{"fleet"}
	if err := checkWanted(host, w, forge.WhenChecksSucceed); err == nil || !strings.Contains(err.Error(), "have no labels") {
		t.Errorf("labels: %v", err)
	}
	for reviewer, good := range map[string]bool{
		"anna": true, "anna@example.com": true, "Ann-Marie.O'Neil": true, "": false, "a b": false, "project/team": false, "a\n": false,
		strings.Repeat("ä", 255): true, strings.Repeat("a", 256): false,
	} {
		w.Labels, w.Reviewers = nil, []string{reviewer}
		if err := checkWanted(host, w, forge.WhenChecksSucceed); (err == nil) != good ||
			err != nil && !strings.Contains(err.Error(), "is not a username") {
			t.Errorf("%q: %v", reviewer, err)
		}
	}
}

// Each request has the header X-Atlassian-Token. Without it, Bitbucket refuses changes without a body as cross-site requests.
func TestDataCenterSendsTokensAndPasswords(t *testing.T) {
	t.Parallel()
	for _, credentials := range []forge.Credentials{{Username: "anna", Token: canary}, {Username: "anna", Password: canary}, {}} {
		over := roundTripper(func(r *http.Request) (*http.Response, error) {
			username, password, _ := r.BasicAuth()
			good := r.Header.Get("Authorization") == "Bearer "+canary
			if credentials.Token == "" {
				good = username == credentials.Username && password == credentials.Password
			}
			if !good || r.Header.Get("X-Atlassian-Token") != "no-check" {
				t.Errorf("got headers %v", r.Header)
			}
			return &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		})
		host, err := forge.NewGitHost(
			forge.HostedRepository{URL: "https://git.example.com/scm/plat/gitops.git", Forge: forge.BitbucketDataCenter, Credentials: credentials},
			forge.HTTPOptions{Over: over},
		)
		if err != nil {
			t.Fatal(err)
		}
		_, err = host.Find(t.Context(), dev, 0)
		wantError(t, err, forge.ErrUnauthorized, "401")
	}
}
