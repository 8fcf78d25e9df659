package provider_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const (
	statusAddress = "flotilla_commit_status.test"
	aCommit       = "2222222222222222222222222222222222222222"
)

// statusGitea is a repository on a real Gitea, with commits that have statuses.
type statusGitea struct {
	hostedRepository
	gitea   *giteatest.Gitea
	url     string
	commits []string
}

func newStatusGitea(t *testing.T) *statusGitea {
	t.Helper()
	repo, server, user := giteaWithUser(t)
	t.Parallel()
	g := &statusGitea{hostedRepository: hostedRepository{t, server, user}, gitea: server, url: repo.url}
	for i := range 2 {
		var created struct{ Commit struct{ SHA string } }
		g.callAPI(
			http.MethodPost,
			fmt.Sprintf("/contents/file-%d", i),
			map[string]any{"message": "By hand", "content": "eA==", "branch": "main"},
			&created,
		)
		g.commits = append(g.commits, created.Commit.SHA)
	}
	return g
}

func (g *statusGitea) attributes(further ...any) map[string]any {
	return with(
		map[string]any{"url": g.url, "forge": "gitea", "commit": g.commits[0], "context": "flotilla/dev", "state": "pending"},
		further...)
}

// statusConfiguration configures statuses, and the token for their servers: plain credentials are for the GitOps repository
// alone.
func statusConfiguration(token string, all ...map[string]any) providertest.Configuration {
	configuration := providertest.Configuration{Resources: map[string]providertest.Resource{}}
	var urls []string
	for i, attributes := range all {
		address, _ := attributes["url"].(string)
		urls = append(urls, address)
		configuration.Resources[statusAddress+strings.Repeat("x", i)] = providertest.Resource{Attributes: attributes}
	}
	configuration.Provider = map[string]any{"git": tokenFor(token, urls...)}
	return configuration
}

// tokenFor returns the provider's git with a token for the servers of the URLs.
func tokenFor(token string, urls ...string) map[string]any {
	servers := map[string]any{}
	for _, address := range urls {
		if parsed, err := url.Parse(address); err == nil && parsed.Host != "" && strings.HasPrefix(parsed.Scheme, "http") {
			server := parsed.Scheme + "://" + parsed.Host
			servers[server] = map[string]any{"url": server, "token": token}
		}
	}
	return map[string]any{"token": "of-the-gitops-repository", "credentials": slices.Collect(maps.Values(servers))}
}

func (g *statusGitea) configuration(all ...map[string]any) providertest.Configuration {
	result := statusConfiguration(g.user.Token, all...)
	result.Provider = map[string]any{"git": tokenFor(g.user.Token, g.url, "http://127.0.0.1:1")}
	return result
}

// history returns the statuses of a commit and a context on Gitea, oldest first.
func (g *statusGitea) history(commit int, context string) (received []string) {
	g.t.Helper()
	var all []struct {
		ID                           int
		Context, Status, Description string
		TargetURL                    string `json:"target_url"`
	}
	g.callAPI(http.MethodGet, "/commits/"+g.commits[commit]+"/statuses?limit=50", nil, &all)
	slices.SortFunc(all, func(a, b struct {
		ID                           int
		Context, Status, Description string
		TargetURL                    string `json:"target_url"`
	},
	) int {
		return a.ID - b.ID
	})
	for _, one := range all {
		if one.Context == context {
			received = append(received, strings.TrimSpace(one.Status+" "+one.Description+" "+one.TargetURL))
		}
	}
	return received
}

func planStatus(
	t *testing.T,
	w providertest.Runner,
	configuration providertest.Configuration,
	options ...providertest.Option,
) (providertest.Action, providertest.Diagnostics) {
	t.Helper()
	plan, diags := w.Plan(t.Context(), configuration, options...)
	if diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	if change := plan.Change(statusAddress); change != nil {
		return change.Action, diags
	}
	return providertest.NoOp, diags
}

func TestACommitStatusThroughItsLife(t *testing.T) {
	g := newStatusGitea(t)
	w := providertest.New(startProvider)
	step := func(name string, action providertest.Action, attributes map[string]any, history ...string) {
		t.Helper()
		configuration := g.configuration(attributes)
		if got, _ := planStatus(t, w, configuration); got != action {
			t.Errorf("%s: the plan is to %s, want %s", name, got, action)
		}
		for range 2 {
			apply(t, w, configuration)
		}
		if got, diags := planStatus(t, w, configuration); got != providertest.NoOp || len(diags) > 0 {
			t.Errorf("%s: a second plan is to %s: %s", name, got, diags)
		}
		if plan, diags := w.Plan(t.Context(), configuration, providertest.RefreshOnly()); diags.Err() != nil || len(plan.Drifted) > 0 {
			t.Errorf("%s: a refresh finds %q: %s", name, plan.Drifted, diags)
		}
		if got := g.history(0, "flotilla/dev"); !slices.Equal(got, history) {
			t.Errorf("%s: Gitea has %q, want %q", name, got, history)
		}
	}
	attributes := func(state, description, link string) map[string]any {
		return g.attributes("state", state, "description", description, "link", link)
	}
	const link = "https://ci.example.com/7"
	received := []string{"pending"}
	step("created", providertest.Create, g.attributes(), received...)
	received = append(received, "pending 1 of 3 stages https://ci.example.com/7")
	step("a text and a link", providertest.Update, attributes("pending", "1 of 3 stages", link), received...)
	received = append(received, "error 1 of 3 stages https://ci.example.com/7")
	step("another state", providertest.Update, attributes("error", "1 of 3 stages", link), received...)
	received = append(received, "success rolled out https://ci.example.com/7")
	step("success", providertest.Update, attributes("success", "rolled\nout", link), received...)
	step("the same text with other white space", providertest.Update, attributes("success", "rolled out ", link), received...)
	received = append(received, "success")
	step("neither text nor link", providertest.Update, g.attributes("state", "success"), received...)

	// A change by others is drift, and the next apply repairs it.
	g.callAPI(
		http.MethodPost,
		"/statuses/"+g.commits[0],
		map[string]any{"context": "flotilla/dev", "state": "failure", "description": "by hand", "target_url": link},
		nil,
	)
	plan, diags := w.Plan(t.Context(), g.configuration(g.attributes("state", "success")))
	change := plan.Change(statusAddress)
	if diags.Err() != nil || change.Before["state"] != "failure" || change.Before["description"] != "by hand" ||
		change.Before["link"] != link ||
		change.After["state"] != "success" {
		t.Errorf("the plan is %+v: %s", change, diags)
	}
	received = append(received, "failure by hand https://ci.example.com/7", "success")
	step("changed by hand", providertest.Update, g.attributes("state", "success"), received...)
	g.callAPI(http.MethodPost, "/statuses/"+g.commits[0], map[string]any{"context": "ci", "state": "failure"}, nil)
	step("the status of others", providertest.NoOp, g.attributes("state", "success"), received...)

	// After a lost state, the apply does not set the existing status again. The status can be imported.
	w.Lose(statusAddress)
	step("a lost state", providertest.Create, g.attributes("state", "success"), received...)
	w.Lose(statusAddress)
	id := g.url + "?forge=gitea#" + g.commits[0] + ":flotilla/dev"
	if diags := w.Import(t.Context(), g.configuration(g.attributes("state", "success")), statusAddress, id); diags.Err() != nil {
		t.Error(diags)
	}
	step("imported", providertest.NoOp, g.attributes("state", "success"), received...)

	// Another commit or context has a status of its own, and the former status stays.
	step("another commit", providertest.Update, g.attributes("state", "success", "commit", g.commits[1]), received...)
	step("another context", providertest.Update, g.attributes("state", "success", "commit", g.commits[1], "context", "flotilla/prod"), received...)
	// The status of a destroyed resource stays, too.
	action, diags := planStatus(t, w, g.configuration())
	if action != providertest.Delete || !diags.Has("Status stays on the commit") ||
		!strings.Contains(diags.String(), `the status "flotilla/prod" of commit `+g.commits[1]+" stays success") {
		t.Errorf("the plan of a destroy is to %s, and says %s", action, diags)
	}
	apply(t, w, g.configuration())
	if len(w.State) > 0 {
		t.Errorf("the state has %v", w.State)
	}
	for _, context := range []string{"flotilla/dev", "flotilla/prod"} {
		if got := g.history(1, context); !slices.Equal(got, []string{"success"}) {
			t.Errorf("the status %s is %q", context, got)
		}
	}
	if got := g.history(0, "flotilla/dev"); !slices.Equal(got, received) {
		t.Errorf("in the end Gitea has %q", got)
	}
}

func TestACommitStatusWithValuesKnownAtApply(t *testing.T) {
	g := newStatusGitea(t)
	later := func(value any) providertest.Unknown { return providertest.Unknown{Then: value} }
	w := providertest.New(startProvider)
	apply(t, w, g.configuration(g.attributes(
		"commit",
		later(g.commits[1]),
		"state",
		later("success"),
		"description",
		later("rolled out"),
		"link",
		later("https://ci.example.com/"),
		"context",
		later("late"),
		"url",
		later(g.url),
		"forge",
		later("gitea"),
	)))
	if got := g.history(1, "late"); !slices.Equal(got, []string{"success rolled out https://ci.example.com/"}) {
		t.Errorf("Gitea has %q", got)
	}
	// The apply reports all mistakes at once and sets nothing.
	for attribute, value := range map[string]string{"commit": "main", "state": "done", "link": "javascript:alert(1)", "context": " ", "forge": "sourceforge", "url": "git@git.example.com:a/b"} {
		_, diags := providertest.New(startProvider).
			Apply(t.Context(), g.configuration(g.attributes("commit", later(g.commits[0]), attribute, later(value))))
		if !slices.ContainsFunc(diags, func(d providertest.Diagnostic) bool {
			return d.Error && d.Summary == "Invalid "+attribute && d.At == fmt.Sprintf("AttributeName(%q)", attribute)
		}) {
			t.Errorf("for %s %q, got diagnostics %s", attribute, value, diags)
		}
	}
	if got := g.history(0, "flotilla/dev"); len(got) > 0 {
		t.Errorf("Gitea has %q", got)
	}
}

func TestMistakesInACommitStatusAreErrorsOfThePlan(t *testing.T) {
	t.Parallel()
	right := map[string]any{"url": "https://github.com/team/app", "commit": aCommit, "context": "flotilla/dev", "state": "success"}
	type mistake struct {
		attributes   map[string]any
		parsed, says string
	}
	long := "https://x.example.com/" + strings.Repeat("x", 2000)
	for name, test := range map[string]mistake{
		"an abbreviated commit":      {with(right, "commit", aCommit[:12]), "commit", "must be the full id of a commit"},
		"a branch":                   {with(right, "commit", "main"), "commit", "must be the full id of a commit"},
		"an invalid state":           {with(right, "state", "succes_s"), "state", `did you mean "success"`},
		"an empty context":           {with(right, "context", ""), "context", "one line that is not empty"},
		"a context of several lines": {with(right, "context", "a\nb"), "context", "one line"},
		"a long context":             {with(right, "context", strings.Repeat("x", 256)), "context", "at most 255 characters"},
		"an invalid link":            {with(right, "link", "see above"), "link", "http or https URL"},
		"a script":                   {with(right, "link", "javascript:alert(1)"), "link", "http or https URL"},
		"a link with credentials":    {with(right, "link", "https://me:hidden@x.example.com"), "link", "has credentials in it"},
		"a long link":                {with(right, "link", long), "link", "at most 2000 characters"},
		"a long link on GitLab":      {with(right, "url", "https://gitlab.com/team/app", "link", long[:300]), "link", "at most 255 characters"},
		"a long link on Bitbucket":   {with(right, "url", "https://git.example.com/scm/T/app", "forge", "bitbucket_datacenter", "link", long[:500]), "link", "at most 450 characters"},
		"ssh":                        {with(right, "url", "ssh://git@github.com/team/app"), "url", "need an http or https URL"},
		"a folder":                   {with(right, "url", "/srv/git/app.git"), "url", "need an http or https URL"},
		"a URL with credentials":     {with(right, "url", "https://me:hidden@github.com/team/app"), "url", "has credentials in it"},
		"a URL without a repository": {with(right, "url", "https://github.com/team"), "url", "not that of a repository"},
		"an unknown Git host":        {with(right, "url", "https://git.example.com/team/app"), "forge", "set forge to gitea, forgejo, github"},
		"an unknown forge":           {with(right, "forge", "githab"), "forge", `did you mean "github"`},
		"another API":                {with(right, "api_url", "github.com/api"), "api_url", "need an http or https URL"},
		"an invalid timeout":         {with(right, "timeouts", map[string]any{"create": "soon"}), "timeouts", "must be a duration"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, diags := providertest.New(startProvider).Plan(t.Context(), statusConfiguration("a-token", test.attributes))
			if len(diags) != 1 || !diags[0].Error || !strings.HasPrefix(diags[0].At, fmt.Sprintf("AttributeName(%q)", test.parsed)) ||
				!words(test.says).MatchString(diags[0].Detail) {
				t.Errorf("got diagnostics %s", diags)
			}
			if strings.Contains(diags.String(), "hidden") {
				t.Errorf("a password is shown: %s", diags)
			}
		})
	}
	_, diags := providertest.New(startProvider).
		Plan(t.Context(), statusConfiguration("a-token", with(right, "commit", "x", "state", "x", "context", "", "link", "x", "url", "x", "forge", "gitea")))
	if len(diags) != 5 {
		t.Errorf("five mistakes give %d diagnostics: %s", len(diags), diags)
	}
}

func TestACommitStatusIsImported(t *testing.T) {
	t.Parallel()
	host := &standInStatuses{}
	root := host.start(t)
	configuration := statusConfiguration("a-token", map[string]any{
		"url": root + "/team/app.git", "forge": "gitea", "api_url": root, "commit": aCommit, "context": "a:b#c", "state": "error", "description": "it is\nbroken", "link": "https://x.example.com/",
		"timeouts": map[string]any{"read": "1m"},
	})
	w := providertest.New(startProvider)
	apply(t, w, configuration)
	w.Lose(statusAddress)
	id := root + "/team/app.git?forge=gitea&api_url=" + root + "#" + aCommit + ":a:b#c"
	if diags := w.Import(t.Context(), configuration, statusAddress, id); diags.Err() != nil {
		t.Fatal(diags)
	}
	// The plan restores only the line break, which the Git host does not keep.
	if action, _ := planStatus(t, w, configuration); action != providertest.Update ||
		w.State.Values(statusAddress)["description"] != "it is broken" {
		t.Errorf("the plan is to %s: %v", action, w.State.Values(statusAddress))
	}
	apply(t, w, configuration)
	if got := host.history("a:b#c"); len(got) != 1 {
		t.Errorf("the Git host has %q", got)
	}
	for id, says := range map[string]string{
		"": "must be", root: "must be", root + "#" + aCommit: "must be", "#" + aCommit + ":x": "must be", root + "/team/app.git#main:x": "full id of a commit",
		root + "/team/app.git#" + aCommit + ":x": "set forge to", root + "/team/app.git?forge=gitea#" + aCommit + ":none": "", root + "?%zz#" + aCommit + ":x": "must be", root + "/team/app.git?host=gitea#" + aCommit + ":x": "must be",
	} {
		diags := providertest.New(startProvider).Import(t.Context(), configuration, statusAddress, id)
		if diags.Err() == nil || !strings.Contains(diags.String(), says) {
			t.Errorf("for %q, got diagnostics %s", id, diags)
		}
	}
}

// The Git host repeats the token in its answers. No state, plan or message may contain the token.
func TestACommitStatusShowsNoSecret(t *testing.T) {
	t.Parallel()
	const token = "canary-5d0c/+ token"
	for _, status := range []int{http.StatusOK, http.StatusForbidden, http.StatusNotFound, http.StatusUnprocessableEntity} {
		var last string
		host := &standInStatuses{refuse: func(w http.ResponseWriter, r *http.Request) bool {
			message := fmt.Sprint(token, " ", r.Header.Get("Authorization"))
			last = r.Method
			switch {
			case status != http.StatusOK:
				http.Error(w, fmt.Sprintf(`{"message": %q}`, message), status)
			case r.Method == http.MethodGet && r.URL.Query().Get("page") == "1":
				fmt.Fprintf(
					w,
					`{"statuses": [{"id": 1, "context": "flotilla/dev", "status": "failure", "description": %q, "target_url": %q}]}`,
					message,
					"https://x.example.com/?"+message,
				)
			default:
				return false
			}
			return true
		}}
		url := host.start(t) + "/team/app.git"
		configuration := statusConfiguration(token, map[string]any{
			"url": url, "forge": "gitea", "commit": aCommit, "context": "flotilla/dev", "state": "success",
		})
		w := providertest.New(startProvider)
		plan, diags := w.Apply(t.Context(), configuration)
		again, refreshed := w.Plan(t.Context(), configuration)
		imported := w.Import(
			t.Context(),
			providertest.Configuration{Provider: map[string]any{"git": tokenFor(token, url)}},
			statusAddress+"y",
			url+"?forge=gitea#"+aCommit+":flotilla/dev",
		)
		text := fmt.Sprint(diags, refreshed, imported)
		for _, p := range []*providertest.Plan{plan, again} {
			if p != nil && p.Change(statusAddress) != nil {
				text += fmt.Sprint(*p.Change(statusAddress))
			}
			if p != nil {
				for _, instance := range p.Refreshed() {
					text += string(instance.Current.Attributes) + string(instance.Current.Private)
				}
			}
		}
		for _, instance := range w.State {
			text += string(instance.Current.Attributes) + string(instance.Current.Private)
		}
		for form, secret := range leakedForms(token) {
			if strings.Contains(text, secret) {
				t.Errorf("status %d shows the token, %s: %s", status, form, text)
			}
		}
		if last == "" {
			t.Errorf("%d: the Git host got no request", status)
		}
	}
}
