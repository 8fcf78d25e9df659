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

// A real Gitea keeps all statuses, so the history shows unnecessary ones. TestGiteaRequestIsOpenedUpdatedInPlaceAndMerged sets a
// status in `make test`.
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
			t.Errorf("after %s: got %q, want %d", wanted.State, got, times)
		}
		if got, err := p.host.Status(t.Context(), commit, wanted); err != nil || got == nil || *got != wanted {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	for i, state := range []forge.StatusState{forge.Pending, forge.Failure, forge.Error, forge.Success} {
		set(ownStatus(state), i+1)
	}
	set(forge.Status{Context: statusContext, State: forge.Success}, 5)
	long := forge.Status{
		Context:     "ci / ü",
		State:       forge.Success,
		Description: strings.Repeat("ü", 300),
		URL:         "https://x.example.com/?a=b&c=%2F",
	}
	set(long, 1)

	err := p.host.SetStatus(t.Context(), newHead, ownStatus(forge.Success))
	wantError(t, err, forge.ErrNoCommit, "does not have the commit")
	reader := p.server.User(t)
	p.api("PUT", "/collaborators/"+reader.Name, map[string]any{"permission": "read"}, nil)
	err = p.newHostAs(forge.Credentials{Token: reader.Token}).SetStatus(t.Context(), commit, ownStatus(forge.Pending))
	wantError(t, err, forge.ErrUnauthorized, "403")
	err = p.newHostAs(forge.Credentials{Token: p.server.User(t).Token}).SetStatus(t.Context(), commit, ownStatus(forge.Pending))
	wantError(t, err, forge.ErrNotFound, "404")
	err = p.newHostAs(forge.Credentials{Token: strings.Repeat("0", 40)}).SetStatus(t.Context(), commit, ownStatus(forge.Pending))
	wantError(t, err, forge.ErrUnauthorized, "")
	_, err = p.host.Status(t.Context(), newHead, ownStatus(forge.Success))
	wantError(t, err, forge.ErrNotFound, "404")
}

func TestConcurrentStatusesOfOneCommitAreKept(t *testing.T) {
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
		t.Errorf("got %d statuses, %v, want %d", len(statuses), err, 2*each)
	}
	if slices.ContainsFunc(statuses, func(s forge.Status) bool { return s.State != forge.Success }) {
		t.Errorf("got statuses %+v", statuses)
	}
}
