package provider_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func TestAnApplySaysWhyACommitStatusCannotBeSet(t *testing.T) {
	g := newStatusGitea(t)
	reader := g.gitea.User(t)
	g.callAPI(http.MethodPut, "/collaborators/"+reader.Name, map[string]any{"permission": "read"}, nil)
	for name, test := range map[string]struct {
		configuration     providertest.Configuration
		at, summary, says string
	}{
		"no such commit":        {g.configuration(g.attributes("commit", aCommit)), "commit", "Commit is not in the repository", "the repository does not have the commit"},
		"no right to write":     {statusConfiguration(reader.Token, g.attributes()), "url", "Git host refuses the credentials", "to git.credentials of the provider"},
		"no such token":         {statusConfiguration(strings.Repeat("0", 40), g.attributes()), "url", "Git host refuses the credentials", "401"},
		"no such repository":    {g.configuration(g.attributes("url", g.gitea.URL+"/"+g.user.Name+"/none.git")), "url", "Repository does not exist", "hidden from these credentials"},
		"an unreachable server": {g.configuration(g.attributes("url", "http://127.0.0.1:1/a/b")), "url", "Git host cannot be reached", "refused"},
	} {
		w := providertest.New(startProvider)
		_, diags := w.Apply(t.Context(), test.configuration)
		if len(diags) != 1 || diags[0].Summary != test.summary || diags[0].At != fmt.Sprintf("AttributeName(%q)", test.at) ||
			!words(test.says).MatchString(diags[0].Detail) {
			t.Errorf("%s: got diagnostics %s", name, diags)
		}
		if len(w.State) > 0 {
			t.Errorf("%s: the state has %v", name, w.State)
		}
	}
	if got := g.history(0, "flotilla/dev"); len(got) > 0 {
		t.Errorf("Gitea has %q", got)
	}
}

// The plan creates the status again. A destroy succeeds.
func TestACommitStatusOfADeletedRepository(t *testing.T) {
	g := newStatusGitea(t)
	w := providertest.New(startProvider)
	apply(t, w, g.configuration(g.attributes()))
	g.callAPI(http.MethodDelete, "", nil, nil)
	if action, _ := planStatus(t, w, g.configuration(g.attributes())); action != providertest.Create {
		t.Errorf("the plan is to %s", action)
	}
	if _, diags := w.Apply(t.Context(), g.configuration(g.attributes())); !diags.Has("Repository does not exist") {
		t.Errorf("got diagnostics %s", diags)
	}
	apply(t, w, g.configuration())
}

// Every status must exist once. A status of both runs must have the value of one of them.
func TestTwoRunsAtOnceLoseNoCommitStatus(t *testing.T) {
	g := newStatusGitea(t)
	const each = 8
	configuration := func(run int) providertest.Configuration {
		all := []map[string]any{g.attributes("context", "both", "state", "success", "description", fmt.Sprint("run ", run))}
		for i := range each {
			all = append(all, g.attributes("context", fmt.Sprintf("run-%d/%d", run, i), "state", "success"))
		}
		return g.configuration(all...)
	}
	failed := make(chan error, 2)
	for run := range 2 {
		go func() {
			_, diags := providertest.New(startProvider).Apply(t.Context(), configuration(run))
			failed <- diags.Err()
		}()
	}
	if err := errors.Join(<-failed, <-failed); err != nil {
		t.Error(err)
	}
	for run := range 2 {
		for i := range each {
			if got := g.history(0, fmt.Sprintf("run-%d/%d", run, i)); !slices.Equal(got, []string{"success"}) {
				t.Errorf("run %d, status %d: %q", run, i, got)
			}
		}
	}
	if got := g.history(0, "both"); len(got) != 2 || got[0] == got[1] {
		t.Errorf("the shared status is %q", got)
	}
}

// Some credentials can set statuses, but not read them.
func TestACommitStatusThatCannotBeReadStaysAsItWasSet(t *testing.T) {
	t.Parallel()
	host := &standInStatuses{refuse: func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			http.Error(w, `{"message": "token may not read"}`, http.StatusForbidden)
		}
		return r.Method == http.MethodGet
	}}
	g := &statusGitea{
		hostedRepository: hostedRepository{t, nil, giteatest.User{Token: "a-token"}},
		url:              host.start(t) + "/team/app.git",
		commits:          []string{aCommit},
	}
	w := providertest.New(startProvider)
	apply(t, w, g.configuration(g.attributes()))
	action, diags := planStatus(t, w, g.configuration(g.attributes()))
	if action != providertest.NoOp || !diags.Has("Status cannot be read") || !strings.Contains(diags.String(), "token may not read") {
		t.Errorf("the plan is to %s: %s", action, diags)
	}
	apply(t, w, g.configuration(g.attributes("state", "success")))
	if got := host.history("flotilla/dev"); !slices.Equal(got, []string{"pending", "success"}) {
		t.Errorf("the Git host has %q", got)
	}
}

func TestATimeoutOfACommitStatusSaysWhatTheNextApplyDoes(t *testing.T) {
	t.Parallel()
	host := &standInStatuses{refuse: func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body) // otherwise the server misses the end of the connection
			<-r.Context().Done()
		}
		return r.Method == http.MethodPost
	}}
	g := &statusGitea{
		hostedRepository: hostedRepository{t, nil, giteatest.User{Token: "a-token"}},
		url:              host.start(t) + "/team/app.git",
		commits:          []string{aCommit},
	}
	_, diags := providertest.New(startProvider).Apply(t.Context(), g.configuration(g.attributes("timeouts", map[string]any{"create": "1s"})))
	if len(diags) != 1 || diags[0].Summary != "Timeout" ||
		!words("The next apply sets the status unless it is set.").MatchString(diags.String()) {
		t.Errorf("got diagnostics %s", diags)
	}
}
