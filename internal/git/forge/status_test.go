package forge_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

const (
	hubStatuses = "GET " + hub + "/commits/" + newHead + "/status?page=1&per_page=100"
	labStatuses = "GET /api/v4/projects/owner%2Fgitops/repository/commits/" + newHead + "/statuses?page=1&per_page=100"
	teaStatuses = "GET " + tea + "/commits/" + newHead + "/status?limit=50&page=1"
	azStatuses  = "GET " + azure + "/commits/" + newHead + "/statuses?api-version=7.1&latestOnly=true&skip=0&top=1000"

	cloudStatuses  = "GET " + cloud + "/commit/" + newHead + "/statuses?pagelen=100"
	centerStatuses = "GET /rest/build-status/latest/commits/" + newHead + "?limit=100&orderBy=NEWEST&start=0"
)

func hubStatusFields(id int, context, state, at string) fields {
	return fields{
		"id": id, "context": context, "state": state, "description": "said " + state, "target_url": "https://ci.example.com/" + context,
		"created_at": at, "updated_at": at,
	}
}

func hubCombined(statuses ...fields) fields {
	return fields{
		"state":       "failure",
		"sha":         newHead,
		"total_count": 4,
		"statuses":    append([]fields{}, statuses...),
		"commit_url":  "https://x/commit",
		"url":         "https://x/status",
	}
}

func labStatusFields(id int, name, status, at string, changes ...fields) fields {
	return withFields(fields{
		"id": id, "sha": newHead, "ref": "main", "status": status, "name": name, "target_url": "https://ci.example.com/" + name,
		"description": "said " + status, "created_at": "2026-01-26T19:00:00.000Z", "started_at": nil, "finished_at": at, "allow_failure": false,
		"author": fields{"id": 2, "username": "bot"},
	}, changes...)
}

func teaStatusFields(id int, context, status, at string) fields {
	return fields{
		"id": id, "context": context, "status": status, "description": "said " + status, "target_url": "https://ci.example.com/" + context,
		"url": "https://x/status", "creator": fields{"id": 2, "login": "bot"}, "created_at": "2026-01-26T19:00:00Z", "updated_at": at,
	}
}

func teaCombined(statuses ...fields) fields {
	return fields{"state": "failure", "sha": newHead, "total_count": 50, "statuses": statuses}
}

func azStatusFields(id int, genre, name, state, at string) fields {
	return fields{
		"id": id, "context": fields{"genre": genre, "name": name}, "state": state, "description": "said " + state, "targetUrl": "https://ci.example.com/" + name,
		"creationDate": "2026-01-26T19:00:00Z", "updatedDate": at, "createdBy": fields{"id": azMe, "displayName": "Bot", "uniqueName": "bot"},
	}
}

func cloudStatusFields(key, name, state, word, at string) fields {
	return fields{
		"type": "build", "key": key, "name": name, "state": state, "description": "said " + word, "url": "https://ci.example.com/" + name,
		"created_on": "2026-01-26T19:00:00.000000+00:00", "updated_on": at,
	}
}

func centerStatusFields(key, name, state, word string, minute int) fields {
	updated := time.Date(2026, 1, 26, 19, minute, 0, 0, time.UTC).UnixMilli()
	return fields{
		"key":         key,
		"name":        name,
		"state":       state,
		"description": "said " + word,
		"url":         "https://ci.example.com/" + name,
		"createdDate": updated - 1000,
		"updatedDate": updated,
	}
}

func newStatus(context string, state forge.StatusState, word, creator string, minute int) forge.Status {
	return forge.Status{
		Context: context, State: state, Description: "said " + word, Time: time.Date(2026, 1, 26, 19, minute, 0, 0, time.UTC),
		URL: "https://ci.example.com/" + context, Creator: creator,
	}
}

func TestStatusesAreTheLatestOfEachContext(t *testing.T) {
	t.Parallel()
	second := func(request string) string { return strings.Replace(request, "page=1", "page=2", 1) }
	third := func(request string) string { return strings.Replace(request, "page=1", "page=3", 1) }
	at := func(minute int) string { return fmt.Sprintf("2026-01-26T19:%02d:00Z", minute) }
	for name, test := range map[string]struct {
		kind      forge.Forge
		exchanges []exchange
		creator   string
	}{
		"github": {forge.GitHub, []exchange{
			{
				request: hubStatuses, header: map[string]string{"Link": `<https://x/status?page=2>; rel="next"`},
				answer: hubCombined(hubStatusFields(9, "b", "error", at(3)), hubStatusFields(8, "a", "success", at(2))),
			},
			{request: second(hubStatuses), answer: hubCombined(hubStatusFields(7, "d", "pending", at(4)), hubStatusFields(6, "c", "failure", at(1)))},
		}, ""},
		"gitlab": {forge.GitLab, []exchange{
			{
				request: labStatuses, header: map[string]string{"X-Next-Page": "2", "X-Page": "1"}, answer: []fields{
					labStatusFields(9, "b", "canceled", at(2)), labStatusFields(10, "b", "failed", at(2), fields{"description": "said error"}),
					labStatusFields(8, "a", "success", at(2)), labStatusFields(5, "a", "failed", at(1)),
					labStatusFields(91, "deploy", "success", at(9), fields{"target_url": "https://gitlab.example.com/owner/gitops/-/jobs/91"}),
					labStatusFields(92, "test", "failed", at(9), fields{"target_url": "https://gitlab.example.com/owner/gitops/builds/92"}),
				},
			},
			{request: second(labStatuses), answer: []fields{
				labStatusFields(7, "d", "running", "", fields{"finished_at": nil, "started_at": at(4), "description": "said pending"}),
				labStatusFields(6, "c", "failed", at(1), fields{"description": "said failure"}),
			}},
		}, "bot"},
		"gitea": {forge.Gitea, []exchange{
			{request: teaStatuses, answer: teaCombined(teaStatusFields(9, "b", "error", at(3)), teaStatusFields(8, "a", "success", at(2)))},
			{request: second(teaStatuses), answer: teaCombined(teaStatusFields(7, "d", "pending", at(4)), teaStatusFields(6, "c", "failure", at(1)))},
			{request: third(teaStatuses), answer: teaCombined()},
		}, "bot"},
		"azure": {forge.Azure, []exchange{
			{request: azStatuses, answer: azList(append(manyStatuses(998), withFields(azStatusFields(9, "fluxcd", "b", "error", at(3))), withFields(azStatusFields(8, "", "a", "succeeded", at(2)), fields{"description": "said success"}))...)},
			{request: strings.Replace(azStatuses, "skip=0", "skip=1000", 1), answer: azList(
				withFields(azStatusFields(7, "fluxcd", "d", "notSet", at(4)), fields{"description": "said pending"}),
				withFields(azStatusFields(6, "", "c", "failed", ""), fields{"description": "said failure", "updatedDate": at(1)}),
			)},
		}, "bot"},
		"bitbucket": {forge.Bitbucket, []exchange{
			{request: cloudStatuses, answer: fields{"next": "https://api.bitbucket.org/2.0/x?pagelen=100&page=2", "values": []fields{
				cloudStatusFields("KB", "b", "FAILED", "error", at(3)), cloudStatusFields("KA", "a", "SUCCESSFUL", "success", at(2)), cloudStatusFields("KA", "a", "FAILED", "failure", at(1)),
			}}},
			{request: strings.Replace(cloudStatuses, "?", "?page=2&", 1), answer: cloudPage(
				cloudStatusFields("KD", "d", "INPROGRESS", "pending", at(4)), cloudStatusFields("c", "", "STOPPED", "failure", at(1)),
			)},
		}, ""},
		"bitbucket_datacenter": {forge.BitbucketDataCenter, []exchange{
			{request: centerStatuses, answer: fields{"isLastPage": false, "nextPageStart": 61, "values": []fields{
				centerStatusFields("KB", "b", "FAILED", "error", 3), centerStatusFields("KA", "a", "SUCCESSFUL", "success", 2), centerStatusFields("KA", "a", "FAILED", "failure", 1),
			}}},
			{request: strings.Replace(centerStatuses, "start=0", "start=61", 1), answer: centerPage(
				centerStatusFields("KD", "d", "UNKNOWN", "pending", 4), centerStatusFields("c", "", "CANCELLED", "failure", 1),
			)},
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newScriptedHost(t, test.kind, repositoryPath(test.kind), test.exchanges).Statuses(t.Context(), strings.ToUpper(newHead))
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if keyed := strings.HasPrefix(name, "bitbucket"); keyed != (got[i].Key != "") {
					t.Errorf("%q: got key %q", got[i].Context, got[i].Key)
				}
				got[i].Key = ""
			}
			got = slices.DeleteFunc(got, func(s forge.Status) bool { return strings.HasPrefix(s.Context, "ci/") })
			want := []forge.Status{
				newStatus("a", forge.Success, "success", test.creator, 2), newStatus("b", forge.Error, "error", test.creator, 3),
				newStatus("c", forge.Failure, "failure", test.creator, 1), newStatus("d", forge.Pending, "pending", test.creator, 4),
			}
			switch test.kind { // some have no state for errors
			case forge.GitLab:
				want[1].State, want[1].Time = forge.Failure, want[0].Time
			case forge.Bitbucket, forge.BitbucketDataCenter:
				want[1].State, want[2].URL = forge.Failure, "https://ci.example.com/"
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestGitHubReportsCreatorsInTheListOfAllStatuses(t *testing.T) {
	t.Parallel()
	at := func(minute int) string { return fmt.Sprintf("2026-01-26T19:%02d:00Z", minute) }
	byUser := func(login string, status fields) fields {
		return withFields(status, fields{"url": "https://x", "node_id": "x", "avatar_url": nil, "creator": hubUser(login)})
	}
	list := strings.Replace(hubStatuses, "/status?", "/statuses?", 1)
	host := newScriptedHost(t, forge.GitHub, repositoryPath(forge.GitHub), []exchange{
		{request: list, header: map[string]string{"Link": `<https://x/statuses?page=2>; rel="next"`}, answer: []fields{
			byUser("mallory", hubStatusFields(9, "a", "success", at(3))), byUser("app[bot]", hubStatusFields(8, "b", "success", at(2))),
		}},
		{request: strings.Replace(list, "page=1", "page=2", 1), answer: []fields{
			byUser("bot", hubStatusFields(7, "a", "failure", at(1))), withFields(byUser("", hubStatusFields(6, "c", "success", at(1))), fields{"creator": nil}),
		}},
	})
	got, err := host.StatusesWithCreators(t.Context(), newHead)
	want := []forge.Status{
		newStatus(
			"a",
			forge.Success,
			"success",
			"mallory",
			3,
		), newStatus("b", forge.Success, "success", "app[bot]", 2), newStatus("c", forge.Success, "success", "", 1),
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
}

func TestKindsWithoutCreatorsAreRefused(t *testing.T) {
	t.Parallel()
	for _, kind := range forge.Kinds() {
		err := newScriptedHost(t, kind.Forge, repositoryPath(kind.Forge), nil).CheckCreators()
		if isSilent := strings.HasPrefix(string(kind.Forge), "bitbucket"); isSilent != (err != nil) ||
			err != nil && !strings.Contains(err.Error(), kind.Title) {
			t.Errorf("%s: %v", kind.Forge, err)
		}
	}
}

// manyStatuses returns statuses of other genres and names.
func manyStatuses(count int) []fields {
	statuses := make([]fields, count)
	for i := range statuses {
		statuses[i] = azStatusFields(1000+i, "ci", fmt.Sprintf("job-%d", i), "succeeded", "2026-01-26T19:00:00Z")
	}
	return statuses
}

// Statuses of one name with different genres differ. The genre of Flux is ignored.
func TestAzuresGenresArePartOfAContext(t *testing.T) {
	t.Parallel()
	at := "2026-01-26T19:00:00Z"
	without := azStatusFields(5, "", "x", "partiallySucceeded", at)
	without["context"] = fields{"name": "x", "genre": nil}
	without["updatedDate"] = "0001-01-01T00:00:00"
	host := newScriptedHost(t, forge.Azure, repositoryPath(forge.Azure), []exchange{{request: azStatuses, answer: azList(
		azStatusFields(
			1,
			"fluxcd",
			"kustomization/flotilla-store-17/4c2a9b1e",
			"succeeded",
			at,
		),
		azStatusFields(2, "ci", "build", "failed", at),
		azStatusFields(3, "nightly", "build", "notApplicable", at),
		without,
	)}})
	got, err := host.Statuses(t.Context(), newHead)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, s := range got {
		texts = append(texts, fmt.Sprintf("%s %s %s", s.Context, s.State, s.Time.Format(time.Kitchen)))
	}
	want := []string{
		"ci/build failure 7:00PM",
		"kustomization/flotilla-store-17/4c2a9b1e success 7:00PM",
		"nightly/build pending 7:00PM",
		"x failure 7:00PM",
	}
	if !slices.Equal(texts, want) {
		t.Errorf("got %q, want %q", texts, want)
	}
}

// On Bitbucket, Flux gives all statuses the same name, and a key for each.
func TestStatusesOfOneNameAreDistinguishedByTheirKeys(t *testing.T) {
	t.Parallel()
	const name, at = "kustomization/flotilla-cluster", "2026-01-26T19:00:00.000000+00:00"
	keys := []string{forge.StatusKey("flotilla/store-1/cluster"), forge.StatusKey("flotilla/store-2/cluster")}
	slices.Sort(keys)
	host := newScriptedHost(t, forge.Bitbucket, repositoryPath(forge.Bitbucket), []exchange{{request: cloudStatuses, answer: cloudPage(
		cloudStatusFields(keys[1], name, "FAILED", "failure", at), cloudStatusFields(keys[0], name, "SUCCESSFUL", "success", at),
	)}})
	got, err := host.Statuses(t.Context(), newHead)
	if err != nil || len(got) != 2 || got[0].Key != keys[0] || got[0].State != forge.Success || got[1].Key != keys[1] ||
		got[1].State != forge.Failure ||
		got[0].Context != name {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestOnlyTheStateSuccessCountsAsSuccess(t *testing.T) {
	t.Parallel()
	want := map[string]forge.StatusState{
		"success": forge.Success, "failed": forge.Failure, "failure": forge.Failure, "canceled": forge.Failure, "warning": forge.Failure, "error": forge.Error,
		"pending": forge.Pending, "running": forge.Pending, "created": forge.Pending, "manual": forge.Pending, "skipped": forge.Pending,
		"": forge.Pending, "SUCCESS": forge.Pending, "succeeded": forge.Pending, "new": forge.Pending,
	}
	for word, state := range want {
		host := newScriptedHost(t, forge.Gitea, "/owner/gitops.git", []exchange{
			{request: teaStatuses, answer: teaCombined(teaStatusFields(1, "a", word, "2026-01-26T19:00:00Z"))},
			{request: strings.Replace(teaStatuses, "page=1", "page=2", 1), answer: teaCombined()},
		})
		got, err := host.Statuses(t.Context(), newHead)
		if err != nil || len(got) != 1 || got[0].State != state {
			t.Errorf("%q: %+v, %v", word, got, err)
		}
	}
}

func TestACommitWithoutReportsHasNoStatuses(t *testing.T) {
	t.Parallel()
	for kind, exchanges := range map[forge.Forge][]exchange{
		forge.GitHub:              {{request: hubStatuses, answer: hubCombined()}},
		forge.GitLab:              {{request: labStatuses, answer: []fields{}}},
		forge.Gitea:               {{request: teaStatuses, answer: teaCombined()}},
		forge.Forgejo:             {{request: teaStatuses, answer: fields{"state": "", "statuses": nil}}},
		forge.Azure:               {{request: azStatuses, answer: azList()}},
		forge.Bitbucket:           {{request: cloudStatuses, answer: cloudPage()}},
		forge.BitbucketDataCenter: {{request: centerStatuses, answer: centerPage()}},
	} {
		if got, err := newScriptedHost(t, kind, repositoryPath(kind), exchanges).Statuses(t.Context(), newHead); err != nil || len(got) != 0 {
			t.Errorf("%s: %+v, %v", kind, got, err)
		}
	}
}

func TestErrorsOfStatusesNameTheMissingObject(t *testing.T) {
	t.Parallel()
	noCommit := "No commit found for SHA: " + newHead
	for name, test := range map[string]struct {
		kind      forge.Forge
		exchanges []exchange
		errorKind error
		wantText  string
	}{
		"github":    {forge.GitHub, []exchange{{request: hubStatuses, status: 404, answer: hubRefusal("Not Found")}}, forge.ErrNotFound, "404"},
		"gitlab":    {forge.GitLab, []exchange{{request: labStatuses, status: 404, answer: fields{"message": "404 Commit Not Found"}}}, forge.ErrNotFound, "Commit Not Found"},
		"azure":     {forge.Azure, []exchange{{request: azStatuses, status: 404, answer: azRefusal("GitCommitDoesNotExistException", "TF401175: The version descriptor could not be resolved")}}, forge.ErrNotFound, "TF401175"},
		"bitbucket": {forge.Bitbucket, []exchange{{request: cloudStatuses, status: 404, answer: cloudRefusal("Commit not found")}}, forge.ErrNotFound, "Commit not found"},
		"gitea's commit": {forge.Gitea, []exchange{
			{request: teaStatuses, status: 404, answer: fields{"message": noCommit}},
			{request: "GET " + tea, answer: fields{"id": 5}},
		}, forge.ErrNotFound, noCommit},
		"gitea's repository": {forge.Gitea, []exchange{
			{request: teaStatuses, status: 404, answer: fields{"message": "not this one"}},
			{request: "GET " + tea, status: 404, answer: fields{"message": "nor this"}},
			{request: "GET /api/v1/user", answer: fields{"id": 2}},
		}, forge.ErrNotFound, "nor this"},
		"gitea's user": {forge.Gitea, []exchange{
			{request: teaStatuses, status: 404, answer: fields{"message": "not this one"}},
			{request: "GET " + tea, status: 404, answer: fields{"message": "nor this"}},
			{request: "GET /api/v1/user", status: 401, answer: fields{"message": "token is required"}},
		}, forge.ErrUnauthorized, "token is required"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newScriptedHost(t, test.kind, repositoryPath(test.kind), test.exchanges).Statuses(t.Context(), newHead)
			wantError(t, err, test.errorKind, test.wantText)
			if !strings.Contains(err.Error(), "statuses of commit "+newHead) {
				t.Errorf("err = %v", err)
			}
		})
	}
	for _, commit := range []string{"", "main", newHead[:39], newHead + "2", "../../../user"} {
		host := newScriptedHost(t, forge.Gitea, "/owner/gitops.git", nil)
		if _, err := host.Statuses(t.Context(), commit); err == nil || !strings.Contains(err.Error(), "full id of a commit") {
			t.Errorf("%q: %v", commit, err)
		}
	}
}

// The Git host announces a next page on every page.
func TestStatusesWithoutEndAreAnError(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := requests.Add(1)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"statuses": [{"id": %d, "context": "c-%d", "status": "success"}]}`, n, n)
	})
	_, err := newHandlerHost(t, forge.Gitea, "/owner/gitops.git", handler).Statuses(t.Context(), newHead)
	wantError(t, err, forge.ErrRefused, "more than 200 pages")
}

func TestALimitBeyondTheDeadlineIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	const wait = 50 * time.Second
	for name, limit := range map[string]func(http.Header){
		"seconds": func(header http.Header) { header.Set("Retry-After", fmt.Sprint(wait.Seconds())) },
		"a date":  func(header http.Header) { header.Set("X-RateLimit-Reset", fmt.Sprint(time.Now().Add(wait).Unix())) },
	} {
		handler := func(w http.ResponseWriter, _ *http.Request) {
			limit(w.Header())
			w.Header().Set("X-RateLimit-Remaining", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		t.Run(name, func(t *testing.T) {
			forEachHandlerHost(t, handler, func(t *testing.T, host *forge.GitHost) {
				ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
				defer cancel()
				_, err := host.Statuses(ctx, newHead)
				if !errors.Is(err, forge.ErrRateLimited) || !strings.Contains(err.Error(), "asks to wait until") || ctx.Err() != nil {
					t.Errorf("err = %v", err)
				}
			})
		})
	}
}

// A commit in a real Gitea has more statuses than a page.
func TestAllStatusesOfManyClustersAreRead(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t)
	clusters := []int{160, 60, 60} // a page has 50
	var commits []string
	for depth := range 3 {
		commits = append(commits, p.commit("main", "", fmt.Sprintf("file-%d", depth), "x"))
	}
	setStatus := func(commit, context, state, description string) {
		p.api("POST", "/statuses/"+commit, map[string]any{"context": context, "state": state, "description": description}, nil)
	}
	for depth, commit := range commits {
		for cluster := range clusters[depth] {
			if cluster%10 == depth || cluster%10 == 5 {
				setStatus(commit, fmt.Sprintf("kustomization/apps/%08x", cluster), "pending", "Progressing")
			}
			if cluster%10 != depth {
				setStatus(commit, fmt.Sprintf("kustomization/apps/%08x", cluster), "success", "ReconciliationSucceeded")
			}
		}
	}
	for depth, commit := range commits {
		statuses, err := p.host.Statuses(t.Context(), commit)
		if err != nil {
			t.Fatal(err)
		}
		if len(statuses) != clusters[depth] {
			t.Errorf("commit %d: got %d statuses, want %d", depth, len(statuses), clusters[depth])
		}
		for i, s := range statuses {
			want := forge.Status{
				Context: fmt.Sprintf(
					"kustomization/apps/%08x",
					i,
				), State: forge.Success, Description: "ReconciliationSucceeded", Creator: p.user.Name, Time: s.Time,
			}
			if i%10 == depth {
				want.State, want.Description = forge.Pending, "Progressing"
			}
			if s != want || time.Since(s.Time).Abs() > time.Hour {
				t.Fatalf("commit %d: %+v, want %+v", depth, s, want)
			}
		}
	}
	if statuses, err := p.host.Statuses(t.Context(), p.commit("main", "", "last", "x")); err != nil || len(statuses) != 0 {
		t.Errorf("a new commit: got %v, %v", statuses, err)
	}
	_, err := p.host.Statuses(t.Context(), newHead)
	wantError(t, err, forge.ErrNotFound, "404")
	_, err = p.newHostAs(forge.Credentials{Token: "0123456789012345678901234567890123456789"}).Statuses(t.Context(), commits[0])
	wantError(t, err, forge.ErrUnauthorized, "")
}
