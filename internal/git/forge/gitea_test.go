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

// project is a repository on the real Gitea, with one commit on main.
type project struct {
	t      *testing.T
	server *giteatest.Gitea
	user   giteatest.User
	url    string
	host   *forge.GitHost
}

// newProject also makes the test parallel: the server has to be started by one
// that is not.
func newProject(t *testing.T, options ...forge.HTTPOptions) *project {
	t.Helper()
	server := giteatest.Start(t)
	t.Parallel()
	p := &project{t: t, server: server, user: server.User(t)}
	p.url = server.Repository(t, p.user, "gitops")
	p.commit("main", "", "README.md", "hello")
	p.host = p.as(forge.Credentials{Token: p.user.Token}, options...)
	return p
}

func (p *project) as(credentials forge.Credentials, options ...forge.HTTPOptions) *forge.GitHost {
	p.t.Helper()
	host, err := forge.NewGitHost(forge.HostedRepository{URL: p.url, Forge: forge.Gitea, Credentials: credentials}, only(options))
	if err != nil {
		p.t.Fatal(err)
	}
	return host
}

func (p *project) api(method, path string, in, out any) {
	p.t.Helper()
	p.server.API(p.t, p.user, method, "/repos/"+p.user.Name+"/gitops"+path, in, out)
}

// commit adds a file to a branch, which is made from another unless that is "",
// and returns the commit.
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

// tip is the commit that a branch is at.
func (p *project) tip(branch string) string {
	p.t.Helper()
	var out struct {
		Commit struct{ ID string }
	}
	p.api("GET", "/branches/"+url.PathEscape(branch), nil, &out)
	return out.Commit.ID
}

// pull is what the API says of a pull request.
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

func (p *project) current(s forge.Selector) *forge.PullRequest {
	p.t.Helper()
	newest := 0
	for _, one := range p.pulls() {
		if strings.HasPrefix(one.Body, "<!-- flotilla-assignment: "+s.Owner+" -->") {
			newest = max(newest, one.Number) // as the caller knows it from Ensure
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

// impatient is for tests of what does not come about.
var impatient = forge.HTTPOptions{Patience: 500 * time.Millisecond}

var dev = forge.Selector{Owner: "dev", Base: "main", Head: "flotilla/dev"}

func wanted(s forge.Selector) forge.Wanted {
	return forge.Wanted{Selector: s, RequestOptions: forge.RequestOptions{Title: "Deploy " + s.Owner}, Body: forge.Body([]folder.Change{
		{Key: folder.Key{Host: "drone", DeploymentTarget: "hello-world-app-test"}, Action: folder.Added, After: "0123456789abcdef"},
	}, forge.MaxBody)}
}

func wantState(t *testing.T, request *forge.PullRequest, state forge.RequestState) {
	t.Helper()
	if request == nil || request.State != state {
		t.Fatalf("the request is %+v, and not %s", request, state)
	}
}

func wantError(t *testing.T, err, kind error, text string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
		t.Fatalf("the error is %v, not %v with %q", err, kind, text)
	}
}

// `make test` ends with the merge, because each push costs Gitea half a second of a processor.
func TestGiteaRequestIsOpenedUpdatedInPlaceAndMerged(t *testing.T) {
	p := newProject(t)
	head := p.commit(dev.Head, "main", "a", "1")

	if request := p.current(dev); request != nil {
		t.Fatalf("there is a request already: %+v", request)
	}
	opened := p.ensure(wanted(dev))
	wantState(t, opened, forge.Open)
	if *opened != *p.current(dev) || opened.HeadCommit != head || opened.Owner != "dev" || opened.Base != "main" || opened.Head != dev.Head ||
		!strings.HasPrefix(opened.URL, p.server.URL) || opened.MergeCommit != "" {
		t.Errorf("opened %+v, current %+v", opened, p.current(dev))
	}
	if again := p.ensure(wanted(dev)); *again != *opened {
		t.Errorf("a second time gives %+v, not %+v", again, opened)
	}

	head = p.commit(dev.Head, "", "b", "2")
	changed := wanted(dev)
	changed.Title, changed.Body = "Deploy\nmore", "Nothing but @everyone's text\r\n"
	updated := p.ensure(changed)
	if updated.Number != opened.Number || len(p.pulls()) != 1 {
		t.Errorf("the update opened another request: %+v", updated)
	}
	if got := p.pull(opened.Number); got.Title != "Deploy more" || !strings.Contains(got.Body, "Nothing but") ||
		!strings.HasPrefix(got.Body, "<!-- flotilla-assignment: dev -->\n") {
		t.Errorf("the request is now %+v", got)
	}
	for range 2 {
		if err := p.host.SetStatus(t.Context(), head, ours(forge.Success)); err != nil {
			t.Fatal(err)
		}
	}
	var statuses []any
	p.api("GET", "/commits/"+head+"/statuses", nil, &statuses)
	if got, err := p.host.Status(t.Context(), head, ours(forge.Success)); err != nil || *got != ours(forge.Success) || len(statuses) != 1 {
		t.Errorf("of %d statuses got %+v, %v", len(statuses), got, err)
	}

	merged, err := p.host.Merge(t.Context(), updated, head, forge.Now)
	if err != nil {
		t.Fatal(err)
	}
	wantState(t, merged, forge.Merged)
	if merged.MergeCommit != p.tip("main") || merged.HeadCommit != head {
		t.Errorf("merged %+v, and main is at %s", merged, p.tip("main"))
	}
	if !acceptancetest.All() {
		return
	}
	if current := p.current(dev); *current != *merged {
		t.Errorf("current is %+v, not %+v", current, merged)
	}
	if again, err := p.host.Merge(t.Context(), updated, head, forge.Now); err != nil || *again != *merged {
		t.Errorf("merging what is merged: %+v, %v", again, err)
	}
	if err := p.host.Close(t.Context(), merged); err != nil {
		t.Errorf("closing what is merged: %v", err)
	}

	p.commit(dev.Head, "", "c", "3")
	if next := p.ensure(wanted(dev)); next.Number == opened.Number {
		t.Errorf("a merged request was used again: %+v", next)
	}
}

func TestGiteaMergeIsPinnedToTheHead(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t, impatient)
	pushed := p.commit(dev.Head, "main", "a", "1")
	request := p.ensure(wanted(dev))
	moved := p.commit(dev.Head, "", "b", "somebody else's")

	for _, how := range []forge.MergeMode{forge.Now, forge.WhenChecksSucceed} {
		_, err := p.host.Merge(t.Context(), request, pushed, how)
		wantError(t, err, forge.ErrHeadMoved, moved)
	}
	wantState(t, p.current(dev), forge.Open)
	if _, err := p.host.Merge(t.Context(), request, moved, forge.Now); err != nil {
		t.Fatal(err)
	}
	_, err := p.host.Merge(t.Context(), request, pushed, forge.Now)
	wantError(t, err, forge.ErrHeadMoved, "was merged at "+moved)
}

func TestGiteaTellsClosedFromMerged(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t, impatient)
	head := p.commit(dev.Head, "main", "a", "1")

	byHand := p.ensure(wanted(dev))
	p.api("PATCH", fmt.Sprintf("/pulls/%d", byHand.Number), map[string]any{"state": "closed"}, nil)
	wantState(t, p.current(dev), forge.Closed)
	_, err := p.host.Merge(t.Context(), byHand, head, forge.Now)
	wantError(t, err, forge.ErrNotMergeable, "was closed")

	byUs := p.ensure(wanted(dev))
	if byUs.Number == byHand.Number {
		t.Fatal("the closed request was used again")
	}
	for range 2 {
		if err := p.host.Close(t.Context(), byUs); err != nil {
			t.Fatal(err)
		}
	}
	wantState(t, p.current(dev), forge.Closed)
	if current := p.current(dev); current.Number != byUs.Number {
		t.Errorf("current is %+v, not the newest", current)
	}

	// An open one is current, however old.
	p.api("PATCH", fmt.Sprintf("/pulls/%d", byHand.Number), map[string]any{"state": "open"}, nil)
	wantState(t, p.current(dev), forge.Open)
	if again := p.ensure(wanted(dev)); again.Number != byHand.Number {
		t.Errorf("the open request was not used: %+v", again)
	}

	p.api("DELETE", "/branches/"+url.PathEscape(dev.Head), nil, nil)
	wantState(t, p.current(dev), forge.Closed)
}

func TestGiteaSaysWhyItDoesNotMerge(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t, impatient)
	p.commit("release/1", "main", "release", "1")
	p.api("POST", "/branch_protections", map[string]any{"rule_name": "release/*", "required_approvals": 1}, nil)

	protected := forge.Selector{Owner: "dev", Base: "release/1", Head: "flotilla/release"}
	head := p.commit(protected.Head, "release/1", "a", "1")
	_, err := p.host.Merge(t.Context(), p.ensure(wanted(protected)), head, forge.Now)
	wantError(t, err, forge.ErrNotMergeable, "Does not have enough approvals")
	wantState(t, p.current(protected), forge.Open)

	conflicting := forge.Selector{Owner: "dev", Base: "main", Head: "flotilla/conflict"}
	head = p.commit(conflicting.Head, "main", "same", "one")
	p.commit("main", "", "same", "another")
	_, err = p.host.Merge(t.Context(), p.ensure(wanted(conflicting)), head, forge.Now)
	wantError(t, err, forge.ErrNotMergeable, "conflicts with its base")

	_, err = p.host.Merge(t.Context(), p.current(conflicting), head, "soon")
	if err == nil || !strings.Contains(err.Error(), `not "soon"`) {
		t.Errorf("err = %v", err)
	}
}

// Who prefixes the title makes a draft, which is not merged before that is undone.
func TestGiteaDraftsStayDrafts(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t, impatient)
	head := p.commit(dev.Head, "main", "a", "1")
	request := p.ensure(wanted(dev))
	retitle := func(title string) {
		t.Helper()
		p.api("PATCH", fmt.Sprintf("/pulls/%d", request.Number), map[string]any{"title": title}, nil)
	}
	retitle("WIP: " + p.pull(request.Number).Title)

	changed := wanted(dev)
	changed.Title = "Deploy more"
	for range 2 {
		if p.ensure(changed); p.pull(request.Number).Title != "WIP: Deploy more" {
			t.Errorf("the title is %q", p.pull(request.Number).Title)
		}
	}
	for _, how := range []forge.MergeMode{forge.Now, forge.WhenChecksSucceed} {
		_, err := p.host.Merge(t.Context(), request, head, how)
		wantError(t, err, forge.ErrNotMergeable, "Work in progress PRs cannot be merged")
	}
	wantState(t, p.current(dev), forge.Open)

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
	request := p.ensure(wanted(dev))
	status := func(commit, state string) {
		t.Helper()
		p.api("POST", "/statuses/"+commit, map[string]any{"context": "ci", "state": state}, nil)
	}
	arrange := func(head string) {
		t.Helper()
		pending, err := p.host.Merge(t.Context(), request, head, forge.WhenChecksSucceed)
		if err != nil {
			t.Fatal(err)
		}
		wantState(t, pending, forge.Open)
	}

	status(head, "pending")
	_, err := p.as(forge.Credentials{Token: p.user.Token}, impatient).Merge(t.Context(), request, head, forge.Now)
	wantError(t, err, forge.ErrNotMergeable, "Not all required status checks successful")

	arrange(head)
	arrange(head) // as every apply does
	for range 2 { // nothing to take back the second time
		if err := p.host.DisableAutoMerge(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	status(head, "success")
	time.Sleep(time.Second)
	wantState(t, p.current(dev), forge.Open)

	head = p.commit(dev.Head, "", "b", "2")
	status(head, "pending")
	arrange(head)
	for range 600 { // Gitea forgets a success that comes while it still looks for conflicts
		if at := p.pull(request.Number); at.Mergeable && at.Head.SHA == head {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	status(head, "success")
	for range 600 {
		if current := p.current(dev); current.State == forge.Merged {
			if current.HeadCommit != head {
				t.Errorf("merged %+v, not %s", current, head)
			}
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the request was not merged")
}

func TestGiteaMergesAtOnceWithoutChecks(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t)
	head := p.commit(dev.Head, "main", "a", "1")
	request := p.ensure(wanted(dev))
	if _, err := p.host.Merge(t.Context(), request, head, forge.WhenChecksSucceed); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if p.current(dev).State == forge.Merged {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the request was not merged")
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
			merged, err := p.host.Merge(t.Context(), p.ensure(wanted(dev)), head, forge.Now)
			if err != nil {
				t.Fatal(err)
			}
			if merged.MergeCommit != p.tip("main") {
				t.Errorf("merged %+v, and main is at %s", merged, p.tip("main"))
			}
		})
	}
}
