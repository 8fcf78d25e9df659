package forge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
)

func TestGiteaConcurrentOwnersChangeOnlyTheirPullRequests(t *testing.T) {
	acceptancetest.Only(t)
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
				request, err := p.host.Ensure(t.Context(), wantedRequest(selector(i)))
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
		t.Errorf("got %d pull requests, want %d", len(pulls), owners)
	}
	for i := range owners {
		state := forge.Open
		if i%2 == 0 {
			state = forge.Merged
		}
		current := p.findCurrent(selector(i))
		wantState(t, current, state)
		if current.Owner != selector(i).Owner || current.HeadCommit != heads[i] {
			t.Errorf("owner %d: got %+v", i, current)
		}
	}
}

func TestGiteaForeignPullRequestsAreNotChanged(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t)
	head := p.commit(dev.Head, "main", "a", "1")
	open := func(body string) pull {
		t.Helper()
		var opened pull
		p.api("POST", "/pulls", map[string]any{"base": "main", "head": dev.Head, "title": "By hand", "body": body}, &opened)
		return opened
	}
	for _, test := range []struct{ name, body, wantText string }{
		{"a person's", "See [[dev]] and flotilla-assignment: dev", "was not opened by assignment"},
		{"another owner's", "<!-- flotilla-assignment: prod -->\n\ntext", `belongs to assignment "prod"`},
		{"another owner's that quotes ours", "<!-- flotilla-assignment: prod -->\n<!-- flotilla-assignment: dev -->", `belongs to assignment "prod"`},
		{"one with a longer name", "<!-- flotilla-assignment: dev2 -->", `belongs to assignment "dev2"`},
	} {
		foreign := open(test.body)
		if current := p.findCurrent(dev); current != nil {
			t.Errorf("%s: got %+v, want none", test.name, current)
		}
		wantError(t, p.host.CheckHead(t.Context(), dev), forge.ErrNotOwned, test.wantText)
		_, err := p.host.Ensure(t.Context(), wantedRequest(dev))
		wantError(t, err, forge.ErrNotOwned, test.wantText)
		pretended := &forge.PullRequest{Number: foreign.Number, Owner: "dev", Head: dev.Head}
		wantError(t, p.host.Close(t.Context(), pretended), forge.ErrNotOwned, "is not changed")
		wantError(t, p.host.DisableAutoMerge(t.Context(), pretended), forge.ErrNotOwned, "is not changed")
		_, err = p.host.Merge(t.Context(), pretended, head, forge.Now)
		wantError(t, err, forge.ErrNotOwned, "is not changed")
		if got := p.pull(foreign.Number); got.State != "open" || got.Title != "By hand" || got.Body != test.body {
			t.Errorf("%s: the pull request was changed: %+v", test.name, got)
		}
		p.api("PATCH", fmt.Sprintf("/pulls/%d", foreign.Number), map[string]any{"state": "closed"}, nil)
	}

	for range 2 {
		if err := p.host.CheckHead(t.Context(), dev); err != nil {
			t.Error(err)
		}
		p.ensure(wantedRequest(dev))
	}
	p.api("POST", "/branches", map[string]any{"new_branch_name": "other", "old_branch_name": "main"}, nil)
	otherBase := dev
	otherBase.Base = "other"
	wantError(
		t,
		p.host.CheckHead(t.Context(), otherBase),
		forge.ErrNotOwned,
		`of assignment "dev" goes from "flotilla/dev" into "main", not into "other"`,
	)
	ours := p.findCurrent(dev)
	elsewhere := *ours
	elsewhere.Head = "flotilla/prod"
	wantError(t, p.host.Close(t.Context(), &elsewhere), forge.ErrNotOwned, "does not come from branch")
	elsewhere = *ours
	elsewhere.Owner = ""
	wantError(t, p.host.Close(t.Context(), &elsewhere), forge.ErrNotOwned, "does not belong to an assignment")
}

func TestGiteaForksWithOurBranchAndMarkAreForeign(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t, shortPatience)
	p.api("PATCH", "", map[string]any{"private": false}, nil)
	head := p.commit(dev.Head, "main", "a", "1")
	stranger := p.server.User(t)
	p.server.API(t, stranger, "POST", "/repos/"+p.user.Name+"/gitops/forks", map[string]any{}, nil)
	fork := &project{t: t, server: p.server, user: stranger}
	if fork.commit(dev.Head, "", "evil", "1") == head {
		t.Fatal("the fork has the same commit")
	}
	var opened pull
	p.server.API(t, stranger, "POST", "/repos/"+p.user.Name+"/gitops/pulls", map[string]any{
		"base": "main", "head": stranger.Name + ":" + dev.Head, "title": "Evil", "body": "<!-- flotilla-assignment: dev -->",
	}, &opened)

	if current := p.findCurrent(dev); current != nil {
		t.Fatalf("got the pull request of a fork: %+v", current)
	}
	pretended := &forge.PullRequest{Number: opened.Number, Owner: "dev", Head: dev.Head}
	_, err := p.host.Merge(t.Context(), pretended, fork.tip(dev.Head), forge.Now)
	wantError(t, err, forge.ErrNotOwned, "does not come from branch")
	if ours := p.ensure(wantedRequest(dev)); ours.Number == opened.Number || ours.HeadCommit != head {
		t.Errorf("got %+v", ours)
	}
	if current := p.findCurrent(dev); current == nil || current.Number == opened.Number {
		t.Errorf("got %+v", current)
	}
}

func TestGiteaLabelsAndReviewersOfPeopleAreKept(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t)
	p.commit(dev.Head, "main", "a", "1")
	reviewer, other, stranger := p.server.User(t), p.server.User(t), p.server.User(t)
	for _, user := range []giteatest.User{reviewer, other} {
		p.api("PUT", "/collaborators/"+user.Name, map[string]any{"permission": "write"}, nil)
	}
	var fleet struct{ ID int64 }
	p.api("POST", "/labels", map[string]any{"name": "fleet", "color": "#ff0000"}, &fleet)

	w := wantedRequest(dev)
	w.Reviewers = []string{"nobody-at-all"}
	request, err := p.host.Ensure(t.Context(), w)
	wantError(t, err, forge.ErrReviewer, `"nobody-at-all" does not exist`)
	if request != nil || len(p.pulls()) != 0 {
		t.Fatalf("%+v was opened with an unknown reviewer", request)
	}

	w.Labels, w.Reviewers = []string{"fleet", "dev stage"}, []string{reviewer.Name, reviewer.Name}
	request = p.ensure(w)
	names := func() (labels, reviewers string) {
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
				reviewers += review.User.Login + ","
			}
		}
		return labels, reviewers
	}
	if labels, reviewers := names(); labels != "dev stage,fleet," || reviewers != reviewer.Name+"," {
		t.Errorf("got labels %s, reviewers %s", labels, reviewers)
	}

	// People add a label and a reviewer, and a requested reviewer approves.
	p.api("POST", "/labels", map[string]any{"name": "urgent", "color": "#ff0000"}, nil)
	p.api("POST", fmt.Sprintf("/issues/%d/labels", request.Number), map[string]any{"labels": []string{"urgent"}}, nil)
	p.api("POST", fmt.Sprintf("/pulls/%d/requested_reviewers", request.Number), map[string]any{"reviewers": []string{other.Name}}, nil)
	p.server.API(
		t,
		reviewer,
		"POST",
		fmt.Sprintf("/repos/%s/gitops/pulls/%d/reviews", p.user.Name, request.Number),
		map[string]any{"event": "APPROVED", "body": "Fine"},
		nil,
	)
	w.Labels = append(w.Labels, "more")
	p.ensure(w)
	if labels, reviewers := names(); labels != "dev stage,fleet,more,urgent," || reviewers != other.Name+"," {
		t.Errorf("got labels %s, reviewers %s", labels, reviewers)
	}

	w.Reviewers = []string{stranger.Name}
	partial, err := p.host.Ensure(t.Context(), w)
	wantError(t, err, forge.ErrReviewer, stranger.Name)
	if partial == nil || partial.Number != request.Number {
		t.Errorf("got %+v with the error", partial)
	}
}

func TestGiteaFindsThePullRequestAmongForeignOnes(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t)
	s := forge.Selector{Owner: "dev", Base: "env/dev", Head: "flotilla/env/dev"}
	p.commit(s.Base, "main", "base", "1")
	p.commit(s.Head, s.Base, "a", "1")
	p.commit("topic", s.Base, "b", "1")
	if current := p.findCurrent(s); current != nil {
		t.Fatalf("got %+v, want none", current)
	}
	request := p.ensure(wantedRequest(s))
	if err := p.host.Close(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var other pull
		p.api("POST", "/pulls", map[string]any{"base": s.Base, "head": "topic", "title": "By hand"}, &other)
		p.api("PATCH", fmt.Sprintf("/pulls/%d", other.Number), map[string]any{"state": "closed"}, nil)
	}
	if current := p.findCurrent(s); current == nil || current.Number != request.Number {
		t.Errorf("got %+v, want %+v", current, request)
	}
}

func TestGiteaRequiresTheRightCredentials(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t)
	p.commit(dev.Head, "main", "a", "1")
	if _, err := p.newHostAs(forge.Credentials{Username: p.user.Name, Password: p.user.Password}).Ensure(t.Context(), wantedRequest(dev)); err != nil {
		t.Errorf("a password: %v", err)
	}
	stranger := p.server.User(t)
	token := func(scopes ...string) string {
		t.Helper()
		var created struct{ SHA1 string }
		p.server.API(t, giteatest.User{Name: p.user.Name, Password: p.user.Password}, "POST", "/users/"+p.user.Name+"/tokens",
			map[string]any{"name": strings.Join(scopes, " "), "scopes": scopes}, &created)
		return created.SHA1
	}
	for name, test := range map[string]struct {
		credentials forge.Credentials
		kind        error
		text        string
	}{
		"a wrong token":       {forge.Credentials{Token: canary}, forge.ErrUnauthorized, "401"},
		"a wrong password":    {forge.Credentials{Username: p.user.Name, Password: canary}, forge.ErrUnauthorized, "401"},
		"another user":        {forge.Credentials{Token: stranger.Token}, forge.ErrNotFound, "404"},
		"no credentials":      {forge.Credentials{}, forge.ErrUnauthorized, "token is required"},
		"a token for writing": {forge.Credentials{Token: p.user.Token}, nil, ""},
		"a token for reading": {forge.Credentials{Token: token("read:repository")}, forge.ErrUnauthorized, "scope"},
	} {
		w := wantedRequest(dev)
		w.Title = "Deploy as " + name
		_, err := p.newHostAs(test.credentials).Ensure(t.Context(), w)
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

	// The scopes in the guide.
	w := wantedRequest(dev)
	w.Title = "Deploy with scopes"
	if _, err := p.newHostAs(forge.Credentials{Token: token("write:repository")}).Ensure(t.Context(), w); err != nil {
		t.Errorf("without labels and reviewers: %v", err)
	}
	reviewer := p.server.User(t)
	p.api("PUT", "/collaborators/"+reviewer.Name, map[string]any{"permission": "write"}, nil)
	w.Labels, w.Reviewers = []string{"fleet"}, []string{reviewer.Name}
	host := p.newHostAs(forge.Credentials{Token: token("write:repository", "write:issue", "read:user")})
	request, err := host.Ensure(t.Context(), w)
	if err != nil {
		t.Fatalf("with labels and reviewers: %v", err)
	}
	if _, err := host.Merge(t.Context(), request, request.HeadCommit, forge.Now); err != nil {
		t.Errorf("merging: %v", err)
	}

	// An account with only write access turns on auto-merge with the scopes for pull requests.
	other := forge.Selector{Owner: "other", Base: "main", Head: "flotilla/other"}
	p.commit(other.Head, "main", "b", "2")
	var created struct{ SHA1 string }
	p.server.API(t, giteatest.User{Name: reviewer.Name, Password: reviewer.Password}, "POST", "/users/"+reviewer.Name+"/tokens",
		map[string]any{"name": "writer", "scopes": []string{"write:repository"}}, &created)
	host = p.newHostAs(forge.Credentials{Token: created.SHA1})
	if request, err = host.Ensure(t.Context(), wantedRequest(other)); err != nil {
		t.Fatalf("a collaborator: %v", err)
	}
	if _, err := host.Merge(t.Context(), request, request.HeadCommit, forge.WhenChecksSucceed); err != nil {
		t.Errorf("auto-merge by a collaborator: %v", err)
	}
}

func TestGiteaCallsEndWithTheirContext(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t)
	p.commit(dev.Head, "main", "a", "1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.host.Ensure(ctx, wantedRequest(dev))
	wantError(t, err, context.Canceled, "")
}

// Gitea must not render names as links, mentions or markup.
func TestGiteaShowsHostileNamesLiterally(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t)
	var changes []folder.Change
	for _, name := range hostileNames(p.user.Name) {
		changes = append(
			changes,
			folder.Change{Key: folder.Key{Host: name, DeploymentTarget: "target"}, Action: folder.Changed, Before: name, After: "b"},
		)
	}
	rendered := p.render(forge.Body(changes, forge.MaxBody))
	if strings.Count(rendered, "<tr>") != len(changes)+1 {
		t.Errorf("want %d rows:\n%s", len(changes)+1, rendered)
	}
	if strings.Count(rendered, "<td") != 4*len(changes) {
		t.Errorf("want 4 cells in each row:\n%s", rendered)
	}
	for _, markup := range []string{"<a ", "<img", "<script", "<b>", "<em>", "<strong>", "mention", "ref-issue", "<h1"} {
		if strings.Contains(rendered, markup) {
			t.Errorf("got %s in\n%s", markup, rendered)
		}
	}
	control := p.render("@" + p.user.Name + " <b>x</b>")
	if !strings.Contains(control, "<a ") || !strings.Contains(control, "<b>") {
		t.Errorf("Gitea does not render mentions and markup: %s", control)
	}
}

// A first deployment may exceed the size of a body.
func TestGiteaShowsTheBeginningOfAVeryLargeChange(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t)
	p.commit(dev.Head, "main", "a", "1")
	names := hostileNames(p.user.Name)
	var changes []folder.Change
	for i := range 20_000 {
		name := names[i%len(names)]
		changes = append(changes, folder.Change{
			Key: folder.Key{
				Host:             fmt.Sprintf("type-%03d-%s", i%500, name),
				DeploymentTarget: fmt.Sprintf("%05d-%s", i, name),
			}, Action: folder.Added, After: "0123456789abcdef",
		})
	}
	w := wantedRequest(dev)
	w.Body = forge.Body(changes, forge.MaxBody)
	kept := p.pull(p.ensure(w).Number).Body
	if !strings.HasSuffix(strings.TrimSpace(kept), strings.TrimSpace(w.Body)) {
		t.Errorf("Gitea keeps %d bytes of %d", len(kept), len(w.Body))
	}
	rendered := p.render(kept)
	rows := strings.Count(rendered, "<tr>") - 1
	if rows < 100 || strings.Count(rendered, "<td") != 4*rows {
		t.Errorf("got %d rows and %d cells", rows, strings.Count(rendered, "<td"))
	}
	if more := fmt.Sprintf(">And %d more: %d added.</p>", len(changes)-rows, len(changes)-rows); !strings.Contains(rendered, more) {
		t.Errorf("%q is missing after %d rows: %s", more, rows, rendered[max(0, len(rendered)-300):])
	}
	if again := p.ensure(w); again.Number != p.findCurrent(dev).Number || len(p.pulls()) != 1 {
		t.Errorf("the same body gives %+v", again)
	}
}
