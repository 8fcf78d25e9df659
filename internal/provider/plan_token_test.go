package provider_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// Pipelines plan requests of people without write access.
func TestPlanNeedsOnlyAReadToken(t *testing.T) {
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	var reading struct {
		SHA1 string `json:"sha1"`
	}
	server.API(t, giteatest.User{Name: user.Name, Password: user.Password}, "POST", "/users/"+user.Name+"/tokens", map[string]any{
		"name": "reading", "scopes": []string{"read:repository"},
	}, &reading)
	w := providertest.New(startProvider)
	configuration := func(token, address string, further map[string]any) providertest.Configuration {
		configuration := assigned(repo.url, databaseFleet(address), further)
		configuration.Provider = map[string]any{"git": map[string]any{"token": token}}
		return configuration
	}
	request := map[string]any{"delivery": map[string]any{"mode": "pull_request", "forge": "gitea"}}
	for name, further := range map[string]map[string]any{"push": nil, "pull request": request} {
		apply(t, w, configuration(user.Token, "mysql://one/"+name, further))
		if plan, _ := mustPlan(t, w, configuration(reading.SHA1, "mysql://two/"+name, further)); plan.Empty() {
			t.Errorf("%s: the plan has no changes", name)
		}
		if _, diags := w.Apply(t.Context(), configuration(reading.SHA1, "mysql://two/"+name, further)); diags.Err() == nil {
			t.Errorf("%s: an apply with a read token succeeds", name)
		}
	}
}
