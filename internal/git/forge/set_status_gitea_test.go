package forge_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// A real Gitea keeps each status that it was told, so that one that is set twice would be there twice.
// TestGiteaRequestIsOpenedUpdatedInPlaceAndMerged sets one in `make test`.
func TestStatusesOnARealGitea(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t)
	commit := p.commit("main", "", "a", "x")
	history := func(context string) (states []string) {
		var all []struct{ Context, Status, Description string }
		p.api("GET", "/commits/"+commit+"/statuses?limit=50", nil, &all)
		for _, one := range all {
			if one.Context == context {
				states = append(states, one.Status+" "+one.Description)
			}
		}
		return states
	}
	set := func(wanted forge.Status, times int) {
		t.Helper()
		for range 2 {
			if err := p.host.SetStatus(t.Context(), commit, wanted); err != nil {
				t.Fatal(err)
			}
		}
		if got := history(wanted.Context); len(got) != times {
			t.Errorf("after %s there are %q", wanted.State, got)
		}
		if got, err := p.host.Status(t.Context(), commit, wanted); err != nil || got == nil || *got != wanted {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	for i, state := range []forge.StatusState{forge.Pending, forge.Failure, forge.Error, forge.Success} {
		set(ours(state), i+1)
	}
	set(forge.Status{Context: rolledOut, State: forge.Success}, 5)
	long := forge.Status{
		Context:     "ci / ü",
		State:       forge.Success,
		Description: strings.Repeat("ü", 300),
		URL:         "https://x.example.com/?a=b&c=%2F",
	}
	set(long, 1)

	err := p.host.SetStatus(t.Context(), newHead, ours(forge.Success))
	wantError(t, err, forge.ErrNoCommit, "does not have the commit")
	reader := p.server.User(t)
	p.api("PUT", "/collaborators/"+reader.Name, map[string]any{"permission": "read"}, nil)
	err = p.as(forge.Credentials{Token: reader.Token}).SetStatus(t.Context(), commit, ours(forge.Pending))
	wantError(t, err, forge.ErrUnauthorized, "403")
	err = p.as(forge.Credentials{Token: p.server.User(t).Token}).SetStatus(t.Context(), commit, ours(forge.Pending))
	wantError(t, err, forge.ErrNotFound, "404")
	err = p.as(forge.Credentials{Token: strings.Repeat("0", 40)}).SetStatus(t.Context(), commit, ours(forge.Pending))
	wantError(t, err, forge.ErrUnauthorized, "")
	_, err = p.host.Status(t.Context(), newHead, ours(forge.Success))
	wantError(t, err, forge.ErrNotFound, "404")
}

// Two runs at once set their own statuses of one commit, and all of them are there.
func TestNoneOfManyStatusesOfOneCommitIsLost(t *testing.T) {
	acceptancetest.Only(t)
	p := newProject(t)
	commit := p.commit("main", "", "a", "x")
	const each = 20
	failed := make(chan error, 2)
	for run := range 2 {
		go func() {
			var all error
			for i := range each {
				all = errors.Join(
					all,
					p.host.SetStatus(t.Context(), commit, forge.Status{Context: fmt.Sprintf("run-%d/%d", run, i), State: forge.Success}),
				)
			}
			failed <- all
		}()
	}
	for range 2 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	statuses, err := p.host.Statuses(t.Context(), commit)
	if err != nil || len(statuses) != 2*each {
		t.Errorf("%d statuses are there: %v", len(statuses), err)
	}
	if slices.ContainsFunc(statuses, func(s forge.Status) bool { return s.State != forge.Success }) {
		t.Errorf("they are %+v", statuses)
	}
}
