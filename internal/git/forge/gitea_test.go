package forge_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
)

func TestMain(m *testing.M) { os.Exit(giteatest.Main(m)) }

// project is a repository in a real Gitea, with one commit on main.
type project struct {
	t      *testing.T
	server *giteatest.Gitea
	user   giteatest.User
	url    string
	host   *forge.GitHost
}

// newProject also makes the test parallel, because a test must not be parallel when it starts the server.
func newProject(t *testing.T, options ...forge.HTTPOptions) *project {
	t.Helper()
	server := giteatest.Start(t)
	t.Parallel()
	p := &project{t: t, server: server, user: server.User(t)}
	p.url = server.Repository(t, p.user, "gitops")
	p.commit("main", "", "README.md", "hello")
	p.host = p.newHostAs(forge.Credentials{Token: p.user.Token}, options...)
	return p
}

func (p *project) newHostAs(credentials forge.Credentials, options ...forge.HTTPOptions) *forge.GitHost {
	p.t.Helper()
	host, err := forge.NewGitHost(forge.HostedRepository{URL: p.url, Forge: forge.Gitea, Credentials: credentials}, firstOptions(options))
	if err != nil {
		p.t.Fatal(err)
	}
	return host
}

func (p *project) api(method, path string, in, out any) {
	p.t.Helper()
	p.server.API(p.t, p.user, method, "/repos/"+p.user.Name+"/gitops"+path, in, out)
}

// commit adds a file to a branch and returns the commit. It creates the branch from another one unless from is "".
func (p *project) commit(branch, from, path, content string) string {
	p.t.Helper()
	in := map[string]any{
		"branch":  branch,
		"message": "Add " + path,
		"content": base64.StdEncoding.EncodeToString([]byte(content)),
	}
	if from != "" {
		in["branch"], in["new_branch"] = from, branch
	}
	var out struct {
		Commit struct{ SHA string }
	}
	p.api("POST", "/contents/"+path, in, &out)
	return out.Commit.SHA
}

// tip returns the commit of a branch.
func (p *project) tip(branch string) string {
	p.t.Helper()
	var out struct {
		Commit struct{ ID string }
	}
	p.api("GET", "/branches/"+url.PathEscape(branch), nil, &out)
	return out.Commit.ID
}

// pull is a pull request in Gitea's API.
type pull struct {
	Number int
	Title  string
	Body   string
	State  string
	Labels []struct{ Name string }

	Mergeable bool
	Head      struct{ SHA string }
}

func (p *project) pull(number int) pull {
	p.t.Helper()
	var out pull
	p.api("GET", fmt.Sprintf("/pulls/%d", number), nil, &out)
	return out
}

func (p *project) pulls() []pull {
	p.t.Helper()
	var out []pull
	p.api("GET", "/pulls?state=all", nil, &out)
	return out
}

func (p *project) findCurrent(s forge.Selector) *forge.PullRequest {
	p.t.Helper()
	newest := 0
	for _, one := range p.pulls() {
		if strings.HasPrefix(one.Body, "<!-- flotilla-assignment: "+s.Owner+" -->") {
			newest = max(newest, one.Number) // the caller knows the number from Ensure
		}
	}
	request, err := p.host.Find(p.t.Context(), s, newest)
	if err != nil {
		p.t.Fatal(err)
	}
	return request
}

func (p *project) ensure(w forge.Wanted) *forge.PullRequest {
	p.t.Helper()
	request, err := p.host.Ensure(p.t.Context(), w)
	if err != nil {
		p.t.Fatal(err)
	}
	return request
}

// shortPatience is for tests that expect an error after waiting.
var shortPatience = forge.HTTPOptions{Patience: 500 * time.Millisecond}

var dev = forge.Selector{Owner: "dev", Base: "main", Head: "flotilla/dev"}

func wantedRequest(s forge.Selector) forge.Wanted {
	return forge.Wanted{Selector: s, RequestOptions: forge.RequestOptions{Title: "Deploy " + s.Owner}, Body: forge.Body([]folder.Change{
		{Key: folder.Key{Host: "drone", DeploymentTarget: "hello-world-app-test"}, Action: folder.Added, After: "0123456789abcdef"},
	}, forge.MaxBody)}
}

func wantState(t *testing.T, request *forge.PullRequest, state forge.RequestState) {
	t.Helper()
	if request == nil || request.State != state {
		t.Fatalf("got %+v, want state %s", request, state)
	}
}

func wantError(t *testing.T, err, kind error, text string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
		t.Fatalf("got error %v, want %v with %q", err, kind, text)
	}
}

// In `make test`, the test ends after the merge, because each push to Gitea costs half a second of processor time.
func TestGiteaRequestIsOpenedUpdatedInPlaceAndMerged(t *testing.T) {
	p := newProject(t)
	head := p.commit(dev.Head, "main", "a", "1")

	if request := p.findCurrent(dev); request != nil {
		t.Fatalf("got %+v, want none", request)
	}
	opened := p.ensure(wantedRequest(dev))
	wantState(t, opened, forge.Open)
	if *opened != *p.findCurrent(dev) || opened.HeadCommit != head || opened.Owner != "dev" || opened.Base != "main" || opened.Head != dev.Head ||
		!strings.HasPrefix(opened.URL, p.server.URL) || opened.MergeCommit != "" {
		t.Errorf("got %+v, current %+v", opened, p.findCurrent(dev))
	}
	if again := p.ensure(wantedRequest(dev)); *again != *opened {
		t.Errorf("the second call: got %+v, want %+v", again, opened)
	}

	head = p.commit(dev.Head, "", "b", "2")
	changed := wantedRequest(dev)
	changed.Title, changed.Body = "Deploy\nmore", "Nothing but @everyone's text\r\n"
	updated := p.ensure(changed)
	if updated.Number != opened.Number || len(p.pulls()) != 1 {
		t.Errorf("the update opened another pull request: %+v", updated)
	}
	if got := p.pull(opened.Number); got.Title != "Deploy more" || !strings.Contains(got.Body, "Nothing but") ||
		!strings.HasPrefix(got.Body, "<!-- flotilla-assignment: dev -->\n") {
		t.Errorf("got %+v", got)
	}
	for range 2 {
		if err := p.host.SetStatus(t.Context(), head, ownStatus(forge.Success)); err != nil {
			t.Fatal(err)
		}
	}
	var statuses []any
	p.api("GET", "/commits/"+head+"/statuses", nil, &statuses)
	if got, err := p.host.Status(t.Context(), head, ownStatus(forge.Success)); err != nil || *got != ownStatus(forge.Success) || len(statuses) != 1 {
		t.Errorf("got %d statuses, %+v, %v", len(statuses), got, err)
	}

	merged, err := p.host.Merge(t.Context(), updated, head, forge.Now)
	if err != nil {
		t.Fatal(err)
	}
	wantState(t, merged, forge.Merged)
	if merged.MergeCommit != p.tip("main") || merged.HeadCommit != head {
		t.Errorf("got %+v, and main at %s", merged, p.tip("main"))
	}
	if !acceptancetest.All() {
		return
	}
	if current := p.findCurrent(dev); *current != *merged {
		t.Errorf("got %+v, want %+v", current, merged)
	}
	if again, err := p.host.Merge(t.Context(), updated, head, forge.Now); err != nil || *again != *merged {
		t.Errorf("merging again: got %+v, %v", again, err)
	}
	if err := p.host.Close(t.Context(), merged); err != nil {
		t.Errorf("closing after the merge: %v", err)
	}

	p.commit(dev.Head, "", "c", "3")
	if next := p.ensure(wantedRequest(dev)); next.Number == opened.Number {
		t.Errorf("the merged pull request was used again: %+v", next)
	}
}

func TestGiteaMergeIsPinnedToTheHead(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t, shortPatience)
	pushed := p.commit(dev.Head, "main", "a", "1")
	request := p.ensure(wantedRequest(dev))
	moved := p.commit(dev.Head, "", "b", "somebody else's")

	for _, how := range []forge.MergeMode{forge.Now, forge.WhenChecksSucceed} {
		_, err := p.host.Merge(t.Context(), request, pushed, how)
		wantError(t, err, forge.ErrHeadMoved, moved)
	}
	wantState(t, p.findCurrent(dev), forge.Open)
	if _, err := p.host.Merge(t.Context(), request, moved, forge.Now); err != nil {
		t.Fatal(err)
	}
	_, err := p.host.Merge(t.Context(), request, pushed, forge.Now)
	wantError(t, err, forge.ErrHeadMoved, "was merged at "+moved)
}

func TestGiteaTellsClosedFromMerged(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t, shortPatience)
	head := p.commit(dev.Head, "main", "a", "1")

	closedByHand := p.ensure(wantedRequest(dev))
	p.api("PATCH", fmt.Sprintf("/pulls/%d", closedByHand.Number), map[string]any{"state": "closed"}, nil)
	wantState(t, p.findCurrent(dev), forge.Closed)
	_, err := p.host.Merge(t.Context(), closedByHand, head, forge.Now)
	wantError(t, err, forge.ErrNotMergeable, "was closed")

	closedByProvider := p.ensure(wantedRequest(dev))
	if closedByProvider.Number == closedByHand.Number {
		t.Fatal("the closed pull request was used again")
	}
	for range 2 {
		if err := p.host.Close(t.Context(), closedByProvider); err != nil {
			t.Fatal(err)
		}
	}
	wantState(t, p.findCurrent(dev), forge.Closed)
	if current := p.findCurrent(dev); current.Number != closedByProvider.Number {
		t.Errorf("got %+v, want the newest", current)
	}

	// An open pull request is current even if it is older.
	p.api("PATCH", fmt.Sprintf("/pulls/%d", closedByHand.Number), map[string]any{"state": "open"}, nil)
	wantState(t, p.findCurrent(dev), forge.Open)
	if again := p.ensure(wantedRequest(dev)); again.Number != closedByHand.Number {
		t.Errorf("the open pull request was not used: %+v", again)
	}

	p.api("DELETE", "/branches/"+url.PathEscape(dev.Head), nil, nil)
	wantState(t, p.findCurrent(dev), forge.Closed)
}

func TestGiteaReportsWhyItDoesNotMerge(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t, shortPatience)
	p.commit("release/1", "main", "release", "1")
	p.api("POST", "/branch_protections", map[string]any{"rule_name": "release/*", "required_approvals": 1}, nil)

	protected := forge.Selector{Owner: "dev", Base: "release/1", Head: "flotilla/release"}
	head := p.commit(protected.Head, "release/1", "a", "1")
	_, err := p.host.Merge(t.Context(), p.ensure(wantedRequest(protected)), head, forge.Now)
	wantError(t, err, forge.ErrNotMergeable, "Does not have enough approvals")
	wantState(t, p.findCurrent(protected), forge.Open)

	conflicting := forge.Selector{Owner: "dev", Base: "main", Head: "flotilla/conflict"}
	head = p.commit(conflicting.Head, "main", "same", "one")
	p.commit("main", "", "same", "another")
	_, err = p.host.Merge(t.Context(), p.ensure(wantedRequest(conflicting)), head, forge.Now)
	wantError(t, err, forge.ErrNotMergeable, "conflicts with its base")

	_, err = p.host.Merge(t.Context(), p.findCurrent(conflicting), head, "soon")
	if err == nil || !strings.Contains(err.Error(), `not "soon"`) {
		t.Errorf("err = %v", err)
	}
}

// A prefix of the title makes a draft. It is not merged before the prefix is removed.
func TestGiteaDraftsStayDrafts(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t, shortPatience)
	head := p.commit(dev.Head, "main", "a", "1")
	request := p.ensure(wantedRequest(dev))
	retitle := func(title string) {
		t.Helper()
		p.api("PATCH", fmt.Sprintf("/pulls/%d", request.Number), map[string]any{"title": title}, nil)
	}
	retitle("WIP: " + p.pull(request.Number).Title)

	changed := wantedRequest(dev)
	changed.Title = "Deploy more"
	for range 2 {
		if p.ensure(changed); p.pull(request.Number).Title != "WIP: Deploy more" {
			t.Errorf("got title %q", p.pull(request.Number).Title)
		}
	}
	for _, how := range []forge.MergeMode{forge.Now, forge.WhenChecksSucceed} {
		_, err := p.host.Merge(t.Context(), request, head, how)
		wantError(t, err, forge.ErrNotMergeable, "Work in progress PRs cannot be merged")
	}
	wantState(t, p.findCurrent(dev), forge.Open)

	retitle("Deploy more")
	merged, err := p.host.Merge(t.Context(), request, head, forge.Now)
	if err != nil {
		t.Fatal(err)
	}
	wantState(t, merged, forge.Merged)
}

func TestGiteaMergesWhenChecksSucceed(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t)
	p.api("POST", "/branch_protections", map[string]any{
		"rule_name": "main", "enable_status_check": true, "status_check_contexts": []string{"ci"}, "enable_push": true,
	}, nil)
	head := p.commit(dev.Head, "main", "a", "1")
	request := p.ensure(wantedRequest(dev))
	status := func(commit, state string) {
		t.Helper()
		p.api("POST", "/statuses/"+commit, map[string]any{"context": "ci", "state": state}, nil)
	}
	enableAutoMerge := func(head string) {
		t.Helper()
		pending, err := p.host.Merge(t.Context(), request, head, forge.WhenChecksSucceed)
		if err != nil {
			t.Fatal(err)
		}
		wantState(t, pending, forge.Open)
	}

	status(head, "pending")
	_, err := p.newHostAs(forge.Credentials{Token: p.user.Token}, shortPatience).Merge(t.Context(), request, head, forge.Now)
	wantError(t, err, forge.ErrNotMergeable, "Not all required status checks successful")

	enableAutoMerge(head)
	enableAutoMerge(head) // each apply does so
	for range 2 {         // the second time, there is nothing to turn off
		if err := p.host.DisableAutoMerge(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	status(head, "success")
	time.Sleep(time.Second)
	wantState(t, p.findCurrent(dev), forge.Open)

	head = p.commit(dev.Head, "", "b", "2")
	status(head, "pending")
	enableAutoMerge(head)
	for range 600 { // Gitea ignores a success during its search for conflicts
		if pull := p.pull(request.Number); pull.Mergeable && pull.Head.SHA == head {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	status(head, "success")
	for range 600 {
		if current := p.findCurrent(dev); current.State == forge.Merged {
			if current.HeadCommit != head {
				t.Errorf("got %+v, want %s", current, head)
			}
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the pull request was not merged")
}

func TestGiteaMergesAtOnceWithoutChecks(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t)
	head := p.commit(dev.Head, "main", "a", "1")
	request := p.ensure(wantedRequest(dev))
	if _, err := p.host.Merge(t.Context(), request, head, forge.WhenChecksSucceed); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if p.findCurrent(dev).State == forge.Merged {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the pull request was not merged")
}

func TestGiteaMergesAsTheRepositoryAllows(t *testing.T) {
	acceptancetest.Only(t)
	for _, style := range []string{"rebase", "squash", "fast-forward-only"} {
		t.Run(style, func(t *testing.T) {
			p := newProject(t)
			p.api("PATCH", "", map[string]any{
				"has_pull_requests": true, "allow_merge_commits": false, "allow_rebase_explicit": false, "default_merge_style": style,
				"allow_rebase": style == "rebase", "allow_squash_merge": style == "squash", "allow_fast_forward_only_merge": style == "fast-forward-only",
			}, nil)
			head := p.commit(dev.Head, "main", "a", "1")
			merged, err := p.host.Merge(t.Context(), p.ensure(wantedRequest(dev)), head, forge.Now)
			if err != nil {
				t.Fatal(err)
			}
			if merged.MergeCommit != p.tip("main") {
				t.Errorf("got %+v, and main at %s", merged, p.tip("main"))
			}
		})
	}
}
