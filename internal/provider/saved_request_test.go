package provider_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// The apply opens a new request.
func TestARequestMayBeMergedOrClosedBetweenPlanAndApply(t *testing.T) {
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	w := providertest.New(startProvider)
	configuration := func(value, mode string) providertest.Configuration {
		further := atRoot(repo)
		further["protection"] = map[string]any{"max_removed": 100, "allow_empty": true}
		if further["delivery"] = map[string]any{"mode": mode}; mode != "push" {
			further["delivery"] = map[string]any{"mode": mode, "forge": "gitea"}
		}
		c := assigned(
			repo.url,
			fleetOf(map[string]any{"config_containers": []any{map[string]any{"name": "all", "data": map[string]any{"DATABASE_URL": value}}}}),
			further,
		)
		c.Provider = map[string]any{"git": map[string]any{"token": user.Token}}
		return c
	}
	newest := func() giteaPullRequest {
		all := listPullRequests(t, server, user)
		return all[len(all)-1]
	}
	closeNewest := func() {
		server.API(
			t,
			user,
			http.MethodPatch,
			fmt.Sprintf("/repos/%s/gitops/pulls/%d", user.Name, newest().Number),
			map[string]any{"state": "closed"},
			nil,
		)
	}
	apply(t, w, configuration("one", "push"))
	apply(t, w, configuration("two", "pull_request"))
	for _, step := range []struct {
		value   string
		between func()
	}{
		{"three", func() { mergeRequest(t, server, user, newest().Number, newest().Head.SHA) }},
		{"four", closeNewest},
		{"five", func() {
			closeNewest()
			server.API(t, user, http.MethodDelete, fmt.Sprintf("/repos/%s/gitops/branches/flotilla%%2Fdev%%2Fdev", user.Name), nil, nil)
		}},
	} {
		wanted := configuration(step.value, "pull_request")
		plan, diags := w.Plan(t.Context(), wanted)
		if diags.Err() != nil {
			t.Fatalf("%s: %s", step.value, diags)
		}
		step.between()
		before := len(listPullRequests(t, server, user))
		diags = w.ApplyPlan(t.Context(), plan)
		if diags.Err() != nil {
			t.Fatalf("%s: got %s", step.value, diags)
		}
		if len(listPullRequests(t, server, user)) != before+1 || newest().State != "open" {
			t.Fatalf("%s: got requests %+v, want one more open request", step.value, listPullRequests(t, server, user))
		}
		if content := repo.read(t, newest().Head.Ref)["large/app-core/platform-config.yaml"]; !strings.Contains(content, step.value) {
			t.Errorf("%s: the request has\n%s", step.value, content)
		}
		if next, diags := w.Plan(t.Context(), wanted); diags.Err() != nil || !next.Empty() {
			t.Errorf("%s: the next plan has %v %s", step.value, linesOf(next), diags)
		}
	}
	plan, diags := w.Plan(t.Context(), configuration("five", "pull_request"), providertest.Destroy())
	if diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	mergeRequest(t, server, user, newest().Number, newest().Head.SHA)
	if diags := w.ApplyPlan(t.Context(), plan); diags.Err() != nil {
		t.Fatalf("the destroy says %s", diags)
	}
	if left := repo.read(t, newest().Head.Ref); newest().State != "open" || left["large/app-core/platform-config.yaml"] != "" {
		t.Errorf("%+v does not propose the destroy: %v", newest(), left)
	}
}
