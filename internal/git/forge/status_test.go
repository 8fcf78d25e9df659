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

func hubSaid(id int, context, state, at string) fields {
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

func labSaid(id int, name, status, at string, changes ...fields) fields {
	return with(fields{
		"id": id, "sha": newHead, "ref": "main", "status": status, "name": name, "target_url": "https://ci.example.com/" + name,
		"description": "said " + status, "created_at": "2026-01-26T19:00:00.000Z", "started_at": nil, "finished_at": at, "allow_failure": false,
		"author": fields{"id": 2, "username": "bot"},
	}, changes...)
}

func teaSaid(id int, context, status, at string) fields {
	return fields{
		"id": id, "context": context, "status": status, "description": "said " + status, "target_url": "https://ci.example.com/" + context,
		"url": "https://x/status", "creator": fields{"id": 2, "login": "bot"}, "created_at": "2026-01-26T19:00:00Z", "updated_at": at,
	}
}

func teaCombined(statuses ...fields) fields {
	return fields{"state": "failure", "sha": newHead, "total_count": 50, "statuses": statuses}
}

func azSaid(id int, genre, name, state, at string) fields {
	return fields{
		"id": id, "context": fields{"genre": genre, "name": name}, "state": state, "description": "said " + state, "targetUrl": "https://ci.example.com/" + name,
		"creationDate": "2026-01-26T19:00:00Z", "updatedDate": at, "createdBy": fields{"id": azMe, "displayName": "Bot", "uniqueName": "bot"},
	}
}

func cloudSaid(key, name, state, word, at string) fields {
	return fields{
		"type": "build", "key": key, "name": name, "state": state, "description": "said " + word, "url": "https://ci.example.com/" + name,
		"created_on": "2026-01-26T19:00:00.000000+00:00", "updated_on": at,
	}
}

func centerSaid(key, name, state, word string, minute int) fields {
	at := time.Date(2026, 1, 26, 19, minute, 0, 0, time.UTC).UnixMilli()
	return fields{
		"key":         key,
		"name":        name,
		"state":       state,
		"description": "said " + word,
		"url":         "https://ci.example.com/" + name,
		"createdDate": at - 1000,
		"updatedDate": at,
	}
}

func said(context string, state forge.StatusState, word, creator string, minute int) forge.Status {
	return forge.Status{
		Context: context, State: state, Description: "said " + word, Time: time.Date(2026, 1, 26, 19, minute, 0, 0, time.UTC),
		URL: "https://ci.example.com/" + context, Creator: creator,
	}
}

func TestStatusesAreTheLatestOfEachContextOfAllPages(t *testing.T) {
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
				answer: hubCombined(hubSaid(9, "b", "error", at(3)), hubSaid(8, "a", "success", at(2))),
			},
			{request: second(hubStatuses), answer: hubCombined(hubSaid(7, "d", "pending", at(4)), hubSaid(6, "c", "failure", at(1)))},
		}, ""},
		"gitlab": {forge.GitLab, []exchange{
			{
				request: labStatuses, header: map[string]string{"X-Next-Page": "2", "X-Page": "1"}, answer: []fields{
					labSaid(9, "b", "canceled", at(2)), labSaid(10, "b", "failed", at(2), fields{"description": "said error"}),
					labSaid(8, "a", "success", at(2)), labSaid(5, "a", "failed", at(1)),
					labSaid(91, "deploy", "success", at(9), fields{"target_url": "https://gitlab.example.com/owner/gitops/-/jobs/91"}),
					labSaid(92, "test", "failed", at(9), fields{"target_url": "https://gitlab.example.com/owner/gitops/builds/92"}),
				},
			},
			{request: second(labStatuses), answer: []fields{
				labSaid(7, "d", "running", "", fields{"finished_at": nil, "started_at": at(4), "description": "said pending"}),
				labSaid(6, "c", "failed", at(1), fields{"description": "said failure"}),
			}},
		}, "bot"},
		"gitea": {forge.Gitea, []exchange{
			{request: teaStatuses, answer: teaCombined(teaSaid(9, "b", "error", at(3)), teaSaid(8, "a", "success", at(2)))},
			{request: second(teaStatuses), answer: teaCombined(teaSaid(7, "d", "pending", at(4)), teaSaid(6, "c", "failure", at(1)))},
			{request: third(teaStatuses), answer: teaCombined()},
		}, "bot"},
		"azure": {forge.Azure, []exchange{
			{request: azStatuses, answer: azList(append(many(998), with(azSaid(9, "fluxcd", "b", "error", at(3))), with(azSaid(8, "", "a", "succeeded", at(2)), fields{"description": "said success"}))...)},
			{request: strings.Replace(azStatuses, "skip=0", "skip=1000", 1), answer: azList(
				with(azSaid(7, "fluxcd", "d", "notSet", at(4)), fields{"description": "said pending"}),
				with(azSaid(6, "", "c", "failed", ""), fields{"description": "said failure", "updatedDate": at(1)}),
			)},
		}, "bot"},
		"bitbucket": {forge.Bitbucket, []exchange{
			{request: cloudStatuses, answer: fields{"next": "https://api.bitbucket.org/2.0/x?pagelen=100&page=2", "values": []fields{
				cloudSaid("KB", "b", "FAILED", "error", at(3)), cloudSaid("KA", "a", "SUCCESSFUL", "success", at(2)), cloudSaid("KA", "a", "FAILED", "failure", at(1)),
			}}},
			{request: strings.Replace(cloudStatuses, "?", "?page=2&", 1), answer: cloudPage(
				cloudSaid("KD", "d", "INPROGRESS", "pending", at(4)), cloudSaid("c", "", "STOPPED", "failure", at(1)),
			)},
		}, ""},
		"bitbucket_datacenter": {forge.BitbucketDataCenter, []exchange{
			{request: centerStatuses, answer: fields{"isLastPage": false, "nextPageStart": 61, "values": []fields{
				centerSaid("KB", "b", "FAILED", "error", 3), centerSaid("KA", "a", "SUCCESSFUL", "success", 2), centerSaid("KA", "a", "FAILED", "failure", 1),
			}}},
			{request: strings.Replace(centerStatuses, "start=0", "start=61", 1), answer: centerPage(
				centerSaid("KD", "d", "UNKNOWN", "pending", 4), centerSaid("c", "", "CANCELLED", "failure", 1),
			)},
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := scripted(t, test.kind, pathOf(test.kind), test.exchanges).Statuses(t.Context(), strings.ToUpper(newHead))
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if keyed := strings.HasPrefix(name, "bitbucket"); keyed != (got[i].Key != "") {
					t.Errorf("the key of %q is %q", got[i].Context, got[i].Key)
				}
				got[i].Key = ""
			}
			got = slices.DeleteFunc(got, func(s forge.Status) bool { return strings.HasPrefix(s.Context, "ci/") })
			want := []forge.Status{
				said("a", forge.Success, "success", test.creator, 2), said("b", forge.Error, "error", test.creator, 3),
				said("c", forge.Failure, "failure", test.creator, 1), said("d", forge.Pending, "pending", test.creator, 4),
			}
			switch test.kind { // some have no errors
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
	by := func(login string, of fields) fields {
		return with(of, fields{"url": "https://x", "node_id": "x", "avatar_url": nil, "creator": hubUser(login)})
	}
	list := strings.Replace(hubStatuses, "/status?", "/statuses?", 1)
	host := scripted(t, forge.GitHub, pathOf(forge.GitHub), []exchange{
		{request: list, header: map[string]string{"Link": `<https://x/statuses?page=2>; rel="next"`}, answer: []fields{
			by("mallory", hubSaid(9, "a", "success", at(3))), by("app[bot]", hubSaid(8, "b", "success", at(2))),
		}},
		{request: strings.Replace(list, "page=1", "page=2", 1), answer: []fields{
			by("bot", hubSaid(7, "a", "failure", at(1))), with(by("", hubSaid(6, "c", "success", at(1))), fields{"creator": nil}),
		}},
	})
	got, err := host.StatusesWithCreators(t.Context(), newHead)
	want := []forge.Status{
		said(
			"a",
			forge.Success,
			"success",
			"mallory",
			3,
		), said("b", forge.Success, "success", "app[bot]", 2), said("c", forge.Success, "success", "", 1),
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
}

func TestAKindSaysWhetherItReportsCreators(t *testing.T) {
	t.Parallel()
	for _, kind := range forge.Kinds() {
		err := scripted(t, kind.Forge, pathOf(kind.Forge), nil).CheckCreators()
		if isSilent := strings.HasPrefix(string(kind.Forge), "bitbucket"); isSilent != (err != nil) ||
			err != nil && !strings.Contains(err.Error(), kind.Title) {
			t.Errorf("%s: %v", kind.Forge, err)
		}
	}
}

// many are statuses of other genres and names.
func many(count int) []fields {
	statuses := make([]fields, count)
	for i := range statuses {
		statuses[i] = azSaid(1000+i, "ci", fmt.Sprintf("job-%d", i), "succeeded", "2026-01-26T19:00:00Z")
	}
	return statuses
}

// Two of one name and of different genres are two, and Flux' genre is none.
func TestAzuresGenresArePartOfAContext(t *testing.T) {
	t.Parallel()
	at := "2026-01-26T19:00:00Z"
	without := azSaid(5, "", "x", "partiallySucceeded", at)
	without["context"] = fields{"name": "x", "genre": nil}
	without["updatedDate"] = "0001-01-01T00:00:00"
	host := scripted(t, forge.Azure, pathOf(forge.Azure), []exchange{{request: azStatuses, answer: azList(
		azSaid(
			1,
			"fluxcd",
			"kustomization/flotilla-store-17/4c2a9b1e",
			"succeeded",
			at,
		),
		azSaid(2, "ci", "build", "failed", at),
		azSaid(3, "nightly", "build", "notApplicable", at),
		without,
	)}})
	got, err := host.Statuses(t.Context(), newHead)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, s := range got {
		said = append(said, fmt.Sprintf("%s %s %s", s.Context, s.State, s.Time.Format(time.Kitchen)))
	}
	want := []string{
		"ci/build failure 7:00PM",
		"kustomization/flotilla-store-17/4c2a9b1e success 7:00PM",
		"nightly/build pending 7:00PM",
		"x failure 7:00PM",
	}
	if !slices.Equal(said, want) {
		t.Errorf("got %q, want %q", said, want)
	}
}

// Flux gives all its statuses the same name there, and a key for each.
func TestStatusesOfOneNameAreDistinguishedByTheirKeys(t *testing.T) {
	t.Parallel()
	const name, at = "kustomization/flotilla-cluster", "2026-01-26T19:00:00.000000+00:00"
	keys := []string{forge.StatusKey("flotilla/store-1/cluster"), forge.StatusKey("flotilla/store-2/cluster")}
	slices.Sort(keys)
	host := scripted(t, forge.Bitbucket, pathOf(forge.Bitbucket), []exchange{{request: cloudStatuses, answer: cloudPage(
		cloudSaid(keys[1], name, "FAILED", "failure", at), cloudSaid(keys[0], name, "SUCCESSFUL", "success", at),
	)}})
	got, err := host.Statuses(t.Context(), newHead)
	if err != nil || len(got) != 2 || got[0].Key != keys[0] || got[0].State != forge.Success || got[1].Key != keys[1] ||
		got[1].State != forge.Failure ||
		got[0].Context != name {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestNoWordOfAHostIsTakenForSuccessButSuccess(t *testing.T) {
	t.Parallel()
	want := map[string]forge.StatusState{
		"success": forge.Success, "failed": forge.Failure, "failure": forge.Failure, "canceled": forge.Failure, "warning": forge.Failure, "error": forge.Error,
		"pending": forge.Pending, "running": forge.Pending, "created": forge.Pending, "manual": forge.Pending, "skipped": forge.Pending,
		"": forge.Pending, "SUCCESS": forge.Pending, "succeeded": forge.Pending, "new": forge.Pending,
	}
	for word, state := range want {
		host := scripted(t, forge.Gitea, "/owner/gitops.git", []exchange{
			{request: teaStatuses, answer: teaCombined(teaSaid(1, "a", word, "2026-01-26T19:00:00Z"))},
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
		if got, err := scripted(t, kind, pathOf(kind), exchanges).Statuses(t.Context(), newHead); err != nil || len(got) != 0 {
			t.Errorf("%s: %+v, %v", kind, got, err)
		}
	}
}

func TestStatusesOfWhatIsNotThereSayWhat(t *testing.T) {
	t.Parallel()
	noCommit := "No commit found for SHA: " + newHead
	for name, test := range map[string]struct {
		kind      forge.Forge
		exchanges []exchange
		is        error
		says      string
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
			_, err := scripted(t, test.kind, pathOf(test.kind), test.exchanges).Statuses(t.Context(), newHead)
			wantError(t, err, test.is, test.says)
			if !strings.Contains(err.Error(), "statuses of commit "+newHead) {
				t.Errorf("err = %v", err)
			}
		})
	}
	for _, commit := range []string{"", "main", newHead[:39], newHead + "2", "../../../user"} {
		host := scripted(t, forge.Gitea, "/owner/gitops.git", nil)
		if _, err := host.Statuses(t.Context(), commit); err == nil || !strings.Contains(err.Error(), "full id of a commit") {
			t.Errorf("%q: %v", commit, err)
		}
	}
}

// A host that says of every page that there is another one.
func TestStatusesWithoutEndAreAnError(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"statuses": [{"id": %d, "context": "c-%d", "status": "success"}]}`, n, n)
	})
	_, err := hostBefore(t, forge.Gitea, "/owner/gitops.git", handler).Statuses(t.Context(), newHead)
	wantError(t, err, forge.ErrRefused, "more than 200 pages")
}

func TestALimitThatOutlastsTheDeadlineIsReportedAtOnce(t *testing.T) {
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
			forEachForgeBefore(t, handler, func(t *testing.T, host *forge.GitHost) {
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

// What controllers told a real Gitea of more clusters than a page has.
func TestAllStatusesOfManyClustersAreRead(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t)
	clusters := []int{160, 60, 60} // a page has 50
	var commits []string
	for depth := range 3 {
		commits = append(commits, p.commit("main", "", fmt.Sprintf("file-%d", depth), "x"))
	}
	tell := func(commit, context, state, description string) {
		p.api("POST", "/statuses/"+commit, map[string]any{"context": context, "state": state, "description": description}, nil)
	}
	for depth, commit := range commits {
		for cluster := range clusters[depth] {
			if cluster%10 == depth || cluster%10 == 5 {
				tell(commit, fmt.Sprintf("kustomization/apps/%08x", cluster), "pending", "Progressing")
			}
			if cluster%10 != depth {
				tell(commit, fmt.Sprintf("kustomization/apps/%08x", cluster), "success", "ReconciliationSucceeded")
			}
		}
	}
	for depth, commit := range commits {
		statuses, err := p.host.Statuses(t.Context(), commit)
		if err != nil {
			t.Fatal(err)
		}
		if len(statuses) != clusters[depth] {
			t.Errorf("commit %d has %d statuses", depth, len(statuses))
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
		t.Errorf("of a fresh commit: %v, %v", statuses, err)
	}
	_, err := p.host.Statuses(t.Context(), newHead)
	wantError(t, err, forge.ErrNotFound, "404")
	_, err = p.as(forge.Credentials{Token: "0123456789012345678901234567890123456789"}).Statuses(t.Context(), commits[0])
	wantError(t, err, forge.ErrUnauthorized, "")
}
