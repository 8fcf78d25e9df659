package forge_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/giteatest"
)

func TestMain(m *testing.M) { os.Exit(giteatest.Main(m)) }

// project is a repository on the real Gitea, with one commit on main.
type project struct {
	t      *testing.T
	server *giteatest.Server
	user   giteatest.User
	url    string
	host   forge.Host
}

// newProject also makes the test parallel: the server has to be started by one
// that is not.
func newProject(t *testing.T, options ...forge.Option) *project {
	t.Helper()
	server := giteatest.Start(t)
	t.Parallel()
	p := &project{t: t, server: server, user: server.User(t)}
	p.url = server.Repository(t, p.user, "gitops")
	p.commit("main", "", "README.md", "hello")
	p.host = p.as(forge.Credentials{Token: p.user.Token}, options...)
	return p
}

func (p *project) as(credentials forge.Credentials, options ...forge.Option) forge.Host {
	p.t.Helper()
	host, err := forge.NewHost(forge.Repository{URL: p.url, Forge: forge.Gitea, Credentials: credentials}, options...)
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
	request, err := p.host.Current(p.t.Context(), s)
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
var impatient = forge.WithPatience(500 * time.Millisecond)

var dev = forge.Selector{Owner: "dev", Base: "main", Head: "flotilla/dev"}

func wanted(s forge.Selector) forge.Wanted {
	return forge.Wanted{Selector: s, Title: "Deploy " + s.Owner, Body: forge.Body([]forge.Change{
		{Host: "drone", DeploymentTarget: "hello-world-app-test", Action: forge.Added, After: "0123456789abcdef"},
	})}
}

func wantState(t *testing.T, request *forge.PullRequest, state forge.State) {
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
	if got := p.pull(opened.Number); got.Title != "Deploy more" || !strings.Contains(got.Body, "Nothing but") || !strings.HasPrefix(got.Body, "<!-- flotilla-assignment: dev -->\n") {
		t.Errorf("the request is now %+v", got)
	}

	merged, err := p.host.Merge(t.Context(), updated, head, forge.Now)
	if err != nil {
		t.Fatal(err)
	}
	wantState(t, merged, forge.Merged)
	if merged.MergeCommit != p.tip("main") || merged.HeadCommit != head {
		t.Errorf("merged %+v, and main is at %s", merged, p.tip("main"))
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

func TestGiteaMergesWhenChecksSucceed(t *testing.T) {
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
		if err := p.host.Hold(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	status(head, "success")
	time.Sleep(time.Second)
	wantState(t, p.current(dev), forge.Open)

	head = p.commit(dev.Head, "", "b", "2")
	status(head, "pending")
	arrange(head)
	status(head, "success")
	for range 100 {
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

func TestGiteaOwnersAtOnceKeepToTheirOwn(t *testing.T) {
	p := newProject(t)
	const owners = 6
	heads := make([]string, owners)
	selector := func(i int) forge.Selector {
		return forge.Selector{Owner: fmt.Sprintf("team-%d", i), Base: "main", Head: fmt.Sprintf("flotilla/team-%d", i)}
	}
	for i := range owners {
		heads[i] = p.commit(selector(i).Head, "main", fmt.Sprintf("team-%d", i), "1")
	}
	var all sync.WaitGroup
	errs := make([]error, owners)
	for i := range owners {
		all.Go(func() {
			for range 2 {
				request, err := p.host.Ensure(t.Context(), wanted(selector(i)))
				if err == nil && i%2 == 0 {
					_, err = p.host.Merge(t.Context(), request, heads[i], forge.Now)
				}
				if errs[i] = err; err != nil || i%2 == 0 {
					return
				}
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if pulls := p.pulls(); len(pulls) != owners {
		t.Errorf("there are %d requests, not %d", len(pulls), owners)
	}
	for i := range owners {
		state := forge.Open
		if i%2 == 0 {
			state = forge.Merged
		}
		current := p.current(selector(i))
		wantState(t, current, state)
		if current.Owner != selector(i).Owner || current.HeadCommit != heads[i] {
			t.Errorf("current of %d is %+v", i, current)
		}
	}
}

func TestGiteaLeavesRequestsOfOthersAlone(t *testing.T) {
	p := newProject(t)
	head := p.commit(dev.Head, "main", "a", "1")
	open := func(body string) pull {
		t.Helper()
		var opened pull
		p.api("POST", "/pulls", map[string]any{"base": "main", "head": dev.Head, "title": "By hand", "body": body}, &opened)
		return opened
	}
	for _, test := range []struct{ name, body, says string }{
		{"a person's", "See [[dev]] and flotilla-assignment: dev", "was not opened by assignment"},
		{"another owner's", "<!-- flotilla-assignment: prod -->\n\ntext", `belongs to assignment "prod"`},
		{"another owner's that quotes ours", "<!-- flotilla-assignment: prod -->\n<!-- flotilla-assignment: dev -->", `belongs to assignment "prod"`},
		{"one with a longer name", "<!-- flotilla-assignment: dev2 -->", `belongs to assignment "dev2"`},
	} {
		foreign := open(test.body)
		if current := p.current(dev); current != nil {
			t.Errorf("%s: is taken for ours: %+v", test.name, current)
		}
		_, err := p.host.Ensure(t.Context(), wanted(dev))
		wantError(t, err, forge.ErrNotOwned, test.says)
		pretended := &forge.PullRequest{Number: foreign.Number, Owner: "dev", Head: dev.Head}
		wantError(t, p.host.Close(t.Context(), pretended), forge.ErrNotOwned, "is left alone")
		wantError(t, p.host.Hold(t.Context(), pretended), forge.ErrNotOwned, "is left alone")
		_, err = p.host.Merge(t.Context(), pretended, head, forge.Now)
		wantError(t, err, forge.ErrNotOwned, "is left alone")
		if got := p.pull(foreign.Number); got.State != "open" || got.Title != "By hand" || got.Body != test.body {
			t.Errorf("%s: was changed: %+v", test.name, got)
		}
		p.api("PATCH", fmt.Sprintf("/pulls/%d", foreign.Number), map[string]any{"state": "closed"}, nil)
	}

	ours := p.ensure(wanted(dev))
	elsewhere := *ours
	elsewhere.Head = "flotilla/prod"
	wantError(t, p.host.Close(t.Context(), &elsewhere), forge.ErrNotOwned, "another branch")
	elsewhere = *ours
	elsewhere.Owner = ""
	wantError(t, p.host.Close(t.Context(), &elsewhere), forge.ErrNotOwned, "no assignment's")
}

func TestGiteaForksWithOurBranchAndMarkAreForeign(t *testing.T) {
	p := newProject(t, impatient)
	p.api("PATCH", "", map[string]any{"private": false}, nil)
	head := p.commit(dev.Head, "main", "a", "1")
	stranger := p.server.User(t)
	p.server.API(t, stranger, "POST", "/repos/"+p.user.Name+"/gitops/forks", map[string]any{}, nil)
	fork := &project{t: t, server: p.server, user: stranger}
	if fork.commit(dev.Head, "", "evil", "1") == head {
		t.Fatal("the fork is not another commit")
	}
	var opened pull
	p.server.API(t, stranger, "POST", "/repos/"+p.user.Name+"/gitops/pulls", map[string]any{
		"base": "main", "head": stranger.Name + ":" + dev.Head, "title": "Evil", "body": "<!-- flotilla-assignment: dev -->",
	}, &opened)

	if current := p.current(dev); current != nil {
		t.Fatalf("a fork's request is taken for ours: %+v", current)
	}
	pretended := &forge.PullRequest{Number: opened.Number, Owner: "dev", Head: dev.Head}
	_, err := p.host.Merge(t.Context(), pretended, fork.tip(dev.Head), forge.Now)
	wantError(t, err, forge.ErrNotOwned, "another branch")
	if ours := p.ensure(wanted(dev)); ours.Number == opened.Number || ours.HeadCommit != head {
		t.Errorf("ours is %+v", ours)
	}
	if current := p.current(dev); current == nil || current.Number == opened.Number {
		t.Errorf("current is %+v", current)
	}
}

func TestGiteaLabelsAndReviewersAreAddedToThoseOfPeople(t *testing.T) {
	p := newProject(t)
	p.commit(dev.Head, "main", "a", "1")
	reviewer, other, stranger := p.server.User(t), p.server.User(t), p.server.User(t)
	for _, user := range []giteatest.User{reviewer, other} {
		p.api("PUT", "/collaborators/"+user.Name, map[string]any{"permission": "write"}, nil)
	}
	var fleet struct{ ID int64 }
	p.api("POST", "/labels", map[string]any{"name": "fleet", "color": "#ff0000"}, &fleet)

	w := wanted(dev)
	w.Reviewers = []string{"nobody-at-all"}
	request, err := p.host.Ensure(t.Context(), w)
	wantError(t, err, forge.ErrReviewer, `"nobody-at-all" does not exist`)
	if request != nil || len(p.pulls()) != 0 {
		t.Fatalf("%+v was opened with a reviewer who does not exist", request)
	}

	w.Labels, w.Reviewers = []string{"fleet", "dev stage"}, []string{reviewer.Name, reviewer.Name}
	request = p.ensure(w)
	names := func() (labels, asked string) {
		for _, label := range p.pull(request.Number).Labels {
			labels += label.Name + ","
		}
		var reviews []struct {
			State string
			User  struct{ Login string }
		}
		p.api("GET", fmt.Sprintf("/pulls/%d/reviews", request.Number), nil, &reviews)
		for _, review := range reviews {
			if review.State == "REQUEST_REVIEW" {
				asked += review.User.Login + ","
			}
		}
		return labels, asked
	}
	if labels, asked := names(); labels != "dev stage,fleet," || asked != reviewer.Name+"," {
		t.Errorf("labels %s, asked %s", labels, asked)
	}

	// People add some, and one who was asked reviews.
	p.api("POST", "/labels", map[string]any{"name": "urgent", "color": "#ff0000"}, nil)
	p.api("POST", fmt.Sprintf("/issues/%d/labels", request.Number), map[string]any{"labels": []string{"urgent"}}, nil)
	p.api("POST", fmt.Sprintf("/pulls/%d/requested_reviewers", request.Number), map[string]any{"reviewers": []string{other.Name}}, nil)
	p.server.API(t, reviewer, "POST", fmt.Sprintf("/repos/%s/gitops/pulls/%d/reviews", p.user.Name, request.Number), map[string]any{"event": "APPROVED", "body": "Fine"}, nil)
	w.Labels = append(w.Labels, "more")
	p.ensure(w)
	if labels, asked := names(); labels != "dev stage,fleet,more,urgent," || asked != other.Name+"," {
		t.Errorf("labels %s, asked %s", labels, asked)
	}

	w.Reviewers = []string{stranger.Name}
	partial, err := p.host.Ensure(t.Context(), w)
	wantError(t, err, forge.ErrReviewer, stranger.Name)
	if partial == nil || partial.Number != request.Number {
		t.Errorf("beside the error is %+v", partial)
	}
}

func TestGiteaFindsOursAmongThoseOfOthers(t *testing.T) {
	p := newProject(t)
	s := forge.Selector{Owner: "dev", Base: "env/dev", Head: "flotilla/env/dev"}
	p.commit(s.Base, "main", "base", "1")
	p.commit(s.Head, s.Base, "a", "1")
	p.commit("topic", s.Base, "b", "1")
	if current := p.current(s); current != nil {
		t.Fatalf("current is %+v", current)
	}
	request := p.ensure(wanted(s))
	if err := p.host.Close(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var other pull
		p.api("POST", "/pulls", map[string]any{"base": s.Base, "head": "topic", "title": "By hand"}, &other)
		p.api("PATCH", fmt.Sprintf("/pulls/%d", other.Number), map[string]any{"state": "closed"}, nil)
	}
	if current := p.current(s); current == nil || current.Number != request.Number {
		t.Errorf("current is %+v, not %+v", current, request)
	}
}

func TestGiteaWantsTheRightCredentials(t *testing.T) {
	p := newProject(t)
	p.commit(dev.Head, "main", "a", "1")
	if _, err := p.as(forge.Credentials{Username: p.user.Name, Password: p.user.Password}).Ensure(t.Context(), wanted(dev)); err != nil {
		t.Errorf("a password: %v", err)
	}
	stranger := p.server.User(t)
	var reading struct{ SHA1 string }
	p.server.API(t, giteatest.User{Name: p.user.Name, Password: p.user.Password}, "POST", "/users/"+p.user.Name+"/tokens",
		map[string]any{"name": "reading", "scopes": []string{"read:repository"}}, &reading)
	for name, test := range map[string]struct {
		credentials forge.Credentials
		kind        error
		text        string
	}{
		"a wrong token":          {forge.Credentials{Token: canary}, forge.ErrUnauthorized, "401"},
		"a wrong password":       {forge.Credentials{Username: p.user.Name, Password: canary}, forge.ErrUnauthorized, "401"},
		"somebody else":          {forge.Credentials{Token: stranger.Token}, forge.ErrNotFound, "404"},
		"nobody":                 {forge.Credentials{}, forge.ErrUnauthorized, "token is required"},
		"a token that may write": {forge.Credentials{Token: p.user.Token}, nil, ""},
		"a token that may read":  {forge.Credentials{Token: reading.SHA1}, forge.ErrUnauthorized, "scope"},
	} {
		w := wanted(dev)
		w.Title = "Deploy as " + name
		_, err := p.as(test.credentials).Ensure(t.Context(), w)
		if test.kind == nil {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.text) || !strings.Contains(err.Error(), p.url) {
			t.Errorf("%s: err = %v", name, err)
		}
		wantNoCanary(t, err)
	}
}

func TestGiteaCallsEndWithTheirContext(t *testing.T) {
	p := newProject(t)
	p.commit(dev.Head, "main", "a", "1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.host.Ensure(ctx, wanted(dev))
	wantError(t, err, context.Canceled, "")
}

// What a name says must not become a link, a mention or markup: Gitea itself
// renders the body.
func TestGiteaShowsHostileNamesAsTheyAre(t *testing.T) {
	p := newProject(t)
	var changes []forge.Change
	for _, name := range hostileNames(p.user.Name) {
		changes = append(changes, forge.Change{Host: name, DeploymentTarget: "target", Action: forge.Changed, Before: name, After: "b"})
	}
	rendered := p.render(forge.Body(changes))
	if strings.Count(rendered, "<tr>") != len(changes)+1 {
		t.Errorf("there are not %d rows:\n%s", len(changes)+1, rendered)
	}
	if strings.Count(rendered, "<td") != 4*len(changes) {
		t.Errorf("there are not 4 cells a row:\n%s", rendered)
	}
	for _, never := range []string{"<a ", "<img", "<script", "<b>", "<em>", "<strong>", "mention", "ref-issue", "<h1"} {
		if strings.Contains(rendered, never) {
			t.Errorf("%s is in\n%s", never, rendered)
		}
	}
	sane := p.render("@" + p.user.Name + " <b>x</b>")
	if !strings.Contains(sane, "<a ") || !strings.Contains(sane, "<b>") {
		t.Errorf("Gitea does not render what this test is about: %s", sane)
	}
}
