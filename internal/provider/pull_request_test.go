package provider_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/flotilla/terraform-provider-flotilla/internal/giteatest"
)

// request is what Gitea says of a pull request.
type request struct {
	Number int    `json:"number"`
	Title  string `json:"title"`
	Body   string `json:"body"`
	State  string `json:"state"`
	Merged bool   `json:"merged"`
	Head   struct {
		Ref string `json:"ref"`
		SHA string `json:"sha"`
	} `json:"head"`
}

func requests(t *testing.T, server *giteatest.Server, user giteatest.User) []request {
	t.Helper()
	var all []request
	server.API(t, user, http.MethodGet, "/repos/"+user.Name+"/gitops/pulls?state=all&sort=oldest", nil, &all)
	return all
}

func TestPullRequestIsPendingThenMergedAndNeverDrift(t *testing.T) {
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	const proposes = `delivery = { mode = "pull_request", forge = "gitea", labels = ["flotilla"] }`
	value := func(database string) string {
		return small{database: fmt.Sprintf("%q", database), extra: proposes}.config(repo)
	}
	url := statecheck.ExpectKnownValue(assignment, tfjsonpath.New("pull_request"), knownvalue.StringRegexp(regexp.MustCompile(`/gitops/pulls/\d+$`)))
	var base string
	tip := func() string { return git(t, repo.clone(t, "dev"), "rev-parse", "HEAD") }
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		Steps: []resource.TestStep{
			{Config: small{}.config(repo), Check: func(*terraform.State) error {
				base = tip()
				return nil
			}},
			{ // a change of delivery alone proposes nothing
				Config: value("mysql://one"),
				Check: func(*terraform.State) error {
					if all := requests(t, server, user); len(all) != 0 || tip() != base {
						t.Errorf("%d requests, want none, and no commit", len(all))
					}
					return nil
				},
			},
			{ // a change of a value opens a request; the plan after it is empty
				Config:            value("mysql://two"),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
				ConfigStateChecks: []statecheck.StateCheck{url},
				Check: func(*terraform.State) error {
					all := requests(t, server, user)
					if len(all) != 1 || all[0].State != "open" || all[0].Head.Ref != "flotilla/dev" {
						t.Fatalf("requests %+v, want one that is open", all)
					}
					if !strings.Contains(all[0].Body, "| `large` | `app-core` |") {
						t.Errorf("the body does not tell what changes:\n%s", all[0].Body)
					}
					if tip() != base {
						t.Error("the branch moved before the request was merged")
					}
					return nil
				},
			},
			{ // another change updates it in place
				Config: value("mysql://three"), ConfigStateChecks: []statecheck.StateCheck{url},
				Check: func(*terraform.State) error {
					all := requests(t, server, user)
					if len(all) != 1 {
						t.Fatalf("%d requests, want one", len(all))
					}
					server.API(t, user, http.MethodPost, fmt.Sprintf("/repos/%s/gitops/pulls/%d/merge", user.Name, all[0].Number),
						map[string]any{"Do": "merge", "head_commit_id": all[0].Head.SHA}, nil)
					return nil
				},
			},
			{ // it was merged: nothing to do
				Config:           value("mysql://three"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
				Check: func(*terraform.State) error {
					content := files(t, repo.clone(t, "dev"))["large/app-core/platform-config.yaml"]
					if !strings.Contains(content, "mysql://three") {
						t.Errorf("the branch holds\n%s", content)
					}
					return nil
				},
			},
			{ // closed without merging is drift
				Config: value("mysql://four"),
				Check: func(*terraform.State) error {
					all := requests(t, server, user)
					last := all[len(all)-1]
					if len(all) != 2 || last.State != "open" {
						t.Fatalf("requests %+v, want a second one that is open", all)
					}
					server.API(t, user, http.MethodPatch, fmt.Sprintf("/repos/%s/gitops/pulls/%d", user.Name, last.Number),
						map[string]any{"state": "closed"}, nil)
					return nil
				},
				ExpectNonEmptyPlan: true,
			},
			{ // and the next apply proposes again; going back to what is there closes the request
				Config: value("mysql://four"),
				Check: func(*terraform.State) error {
					if all := requests(t, server, user); all[len(all)-1].State != "open" {
						t.Errorf("requests %+v, want the last one open", all)
					}
					return nil
				},
			},
			{
				Config:            value("mysql://three"),
				ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(assignment, tfjsonpath.New("pull_request"), knownvalue.Null())},
				Check: func(*terraform.State) error {
					for _, one := range requests(t, server, user) {
						if one.State == "open" {
							t.Errorf("request %d is still open", one.Number)
						}
					}
					return nil
				},
			},
		},
	})
}

func TestPullRequestIsMergedAtOnceWhenToldTo(t *testing.T) {
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		Steps: []resource.TestStep{
			{Config: small{}.config(repo)},
			{
				Config: small{database: `"mysql://two"`, extra: `delivery = { mode = "pull_request", forge = "gitea", merge = "now", title = "Roll out" }`}.config(repo),
				Check: func(*terraform.State) error {
					all := requests(t, server, user)
					if len(all) != 1 || !all[0].Merged || all[0].Title != "Roll out" {
						t.Errorf("requests %+v, want one that is merged", all)
					}
					return nil
				},
			},
		},
	})
}

func TestChangeOfDeliveryAloneMakesNoCommitAndNoRequest(t *testing.T) {
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	check := func(*terraform.State) error {
		if commits, all := repo.commits(t, "dev"), requests(t, server, user); commits != 1 || len(all) != 0 {
			t.Errorf("%d commits and %d requests, want one and none", commits, len(all))
		}
		return nil
	}
	step := func(extra string) resource.TestStep {
		return resource.TestStep{
			Config: small{extra: extra}.config(repo), Check: check,
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{changedOnly{assignment, []string{"delivery"}}},
				PostApplyPostRefresh: emptyPlan.PostApplyPostRefresh,
			},
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		Steps: []resource.TestStep{
			{Config: small{}.config(repo), Check: check, ConfigPlanChecks: emptyPlan},
			step(`delivery = { mode = "pull_request", forge = "gitea" }`),
			step(""),
		},
	})
}
