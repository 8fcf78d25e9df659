package provider_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

type giteaPullRequest struct {
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

func listPullRequests(t *testing.T, server gitHost, user giteatest.User) []giteaPullRequest {
	t.Helper()
	var all []giteaPullRequest
	server.API(t, user, http.MethodGet, "/repos/"+user.Name+"/gitops/pulls?state=all&sort=oldest", nil, &all)
	return all
}

// mergeRequest merges as a person, once the request is mergeable. Gitea does not repeat a check that failed on a busy machine: adding
// and removing a protection rule triggers another check.
func mergeRequest(t *testing.T, server gitHost, user giteatest.User, number int, head string) {
	t.Helper()
	repository := fmt.Sprintf("/repos/%s/gitops", user.Name)
	request := fmt.Sprintf("%s/pulls/%d", repository, number)
	for try := range 120 {
		var found struct {
			Mergeable bool `json:"mergeable"`
			Base      struct {
				Ref string `json:"ref"`
			} `json:"base"`
		}
		if server.API(t, user, http.MethodGet, request, nil, &found); found.Mergeable {
			break
		}
		if try%20 == 19 {
			server.API(
				t,
				user,
				http.MethodPost,
				repository+"/branch_protections",
				map[string]any{"rule_name": found.Base.Ref, "enable_push": true},
				nil,
			)
			server.API(t, user, http.MethodDelete, repository+"/branch_protections/"+found.Base.Ref, nil, nil)
		}
		time.Sleep(500 * time.Millisecond)
	}
	server.API(t, user, http.MethodPost, request+"/merge", map[string]any{"Do": "merge", "head_commit_id": head}, nil)
}

func TestPullRequestIsPendingThenMergedAndNeverDrift(t *testing.T) {
	t.Parallel()
	repo, server, user := requestHost(t)
	const proposes = `delivery = { mode = "pull_request", forge = "gitea", labels = ["flotilla"] }`
	config := func(database string) string {
		return small{database: fmt.Sprintf("%q", database), extra: proposes}.config(repo)
	}
	url := statecheck.ExpectKnownValue(
		assignment,
		tfjsonpath.New("pull_request"),
		knownvalue.StringRegexp(regexp.MustCompile(`/gitops/pulls/\d+$`)),
	)
	var base string
	tip := func() string { return repo.tip(t, "dev") }
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: small{}.config(repo), Check: func(*terraform.State) error {
				base = tip()
				return nil
			}},
			{
				Config: config("mysql://one"),
				Check: func(*terraform.State) error {
					if all := listPullRequests(t, server, user); len(all) != 0 || tip() != base {
						t.Errorf("got %d requests, want none, and no commit", len(all))
					}
					return nil
				},
			},
			{ // a change of a value opens a request, and the next plan is empty
				Config:            config("mysql://two"),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
				ConfigStateChecks: []statecheck.StateCheck{url},
				Check: func(*terraform.State) error {
					all := listPullRequests(t, server, user)
					if len(all) != 1 || all[0].State != "open" || all[0].Head.Ref != "flotilla/dev/dev" {
						t.Fatalf("got requests %+v, want one that is open", all)
					}
					if !strings.Contains(all[0].Body, "| `large` | `app-core` |") {
						t.Errorf("the body does not list the change:\n%s", all[0].Body)
					}
					if tip() != base {
						t.Error("the branch moved before the request was merged")
					}
					return nil
				},
			},
			{
				Config: config("mysql://three"), ConfigStateChecks: []statecheck.StateCheck{url},
				Check: func(*terraform.State) error {
					all := listPullRequests(t, server, user)
					if len(all) != 1 {
						t.Fatalf("got %d requests, want one", len(all))
					}
					mergeRequest(t, server, user, all[0].Number, all[0].Head.SHA)
					return nil
				},
			},
			{ // the plan after the merge is empty
				Config:           config("mysql://three"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
				Check: func(*terraform.State) error {
					content := repo.read(t, "dev")["large/app-core/platform-config.yaml"]
					if !strings.Contains(content, "mysql://three") {
						t.Errorf("the branch holds\n%s", content)
					}
					return nil
				},
			},
			{ // a request closed without a merge is drift
				Config: config("mysql://four"),
				Check: func(*terraform.State) error {
					all := listPullRequests(t, server, user)
					last := all[len(all)-1]
					if len(all) != 2 || last.State != "open" {
						t.Fatalf("got requests %+v, want a second one that is open", all)
					}
					server.API(t, user, http.MethodPatch, fmt.Sprintf("/repos/%s/gitops/pulls/%d", user.Name, last.Number),
						map[string]any{"state": "closed"}, nil)
					return nil
				},
				ExpectNonEmptyPlan: true,
			},
			{ // the next apply opens another request
				Config: config("mysql://four"),
				Check: func(*terraform.State) error {
					if all := listPullRequests(t, server, user); all[len(all)-1].State != "open" {
						t.Errorf("got requests %+v, want the last one open", all)
					}
					return nil
				},
			},
			{
				Config:            config("mysql://three"),
				ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(assignment, tfjsonpath.New("pull_request"), knownvalue.Null())},
				Check: func(*terraform.State) error {
					for _, one := range listPullRequests(t, server, user) {
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

func TestPullRequestIsMergedAtOnceOnRequest(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	repo, server, user := giteaWithUser(t)
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: small{}.config(repo)},
			{
				Config: small{
					database: `"mysql://two"`,
					extra:    `delivery = { mode = "pull_request", forge = "gitea", merge = "now", title = "Roll out" }`,
				}.config(
					repo,
				),
				Check: func(*terraform.State) error {
					all := listPullRequests(t, server, user)
					if len(all) != 1 || !all[0].Merged || all[0].Title != "Roll out" {
						t.Errorf("got requests %+v, want one that is merged", all)
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
		if commits, all := repo.commits(t, "dev"), listPullRequests(t, server, user); commits != 1 || len(all) != 0 {
			t.Errorf("got %d commits and %d requests, want one and none", commits, len(all))
		}
		return nil
	}
	step := func(extra string) resource.TestStep {
		return resource.TestStep{
			Config: small{extra: extra}.config(repo), Check: check,
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{expectOnlyChanges{assignment, []string{"delivery"}}},
				PostApplyPostRefresh: emptyPlan.PostApplyPostRefresh,
			},
		}
	}
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: small{}.config(repo), Check: check, ConfigPlanChecks: emptyPlan},
			step(`delivery = { mode = "pull_request", forge = "gitea" }`),
			step(""),
		},
	})
}

func TestPendingRequestFollowsTheDelivery(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	commits, head := 0, ""
	step := func(database, delivery string, check func(all []giteaPullRequest)) resource.TestStep {
		return resource.TestStep{
			Config:           small{database: fmt.Sprintf("%q", database), extra: delivery}.config(repo),
			ConfigPlanChecks: emptyPlan,
			Check: func(*terraform.State) error {
				check(listPullRequests(t, server, user))
				return nil
			},
		}
	}
	checkUnmoved := func() {
		t.Helper()
		if now := repo.commits(t, "dev"); now != commits {
			t.Errorf("got %d commits on the branch, want %d", now, commits)
		}
	}
	checkDeployed := func(database string) {
		t.Helper()
		if content := repo.read(t, "dev")["large/app-core/platform-config.yaml"]; !strings.Contains(content, database) {
			t.Errorf("the branch holds\n%s", content)
		}
	}
	checkRequests := func(all []giteaPullRequest, want ...string) {
		t.Helper()
		var got []string
		for _, one := range all {
			state := one.State
			if one.Merged {
				state = "merged"
			}
			got = append(got, state+" "+one.Head.Ref)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got requests %q, want %q", got, want)
		}
	}
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			step("mysql://one", "", func([]giteaPullRequest) { commits = repo.commits(t, "dev") }),
			step("mysql://two", `delivery = { mode = "pull_request", forge = "gitea" }`, func(all []giteaPullRequest) {
				checkRequests(all, "open flotilla/dev/dev")
				head = all[0].Head.SHA
				checkUnmoved()
			}),
			// Another title updates the request without a commit.
			step("mysql://two", `delivery = { mode = "pull_request", forge = "gitea", title = "Roll out" }`, func(all []giteaPullRequest) {
				checkRequests(all, "open flotilla/dev/dev")
				if all[0].Title != "Roll out" || all[0].Head.SHA != head {
					t.Errorf("got request %+v, want the same head with another title", all[0])
				}
				checkUnmoved()
			}),
			// Another branch opens another request and closes the former.
			step("mysql://two", `delivery = { mode = "pull_request", forge = "gitea", branch = "other" }`, func(all []giteaPullRequest) {
				checkRequests(all, "closed flotilla/dev/dev", "open other")
				checkUnmoved()
			}),
			// Delivery by push commits the change and closes the request.
			step("mysql://two", "", func(all []giteaPullRequest) {
				checkRequests(all, "closed flotilla/dev/dev", "closed other")
				checkDeployed("mysql://two")
			}),
			// merge = "now" merges the open request.
			step("mysql://three", `delivery = { mode = "pull_request", forge = "gitea" }`, func(all []giteaPullRequest) {
				checkRequests(all, "closed flotilla/dev/dev", "closed other", "open flotilla/dev/dev")
			}),
			step("mysql://three", `delivery = { mode = "pull_request", forge = "gitea", merge = "now" }`, func(all []giteaPullRequest) {
				checkRequests(all, "closed flotilla/dev/dev", "closed other", "merged flotilla/dev/dev")
				checkDeployed("mysql://three")
				commits = repo.commits(t, "dev")
			}),
			// Another branch after the merge changes nothing.
			step("mysql://three", `delivery = { mode = "pull_request", forge = "gitea", branch = "other" }`, func(all []giteaPullRequest) {
				checkRequests(all, "closed flotilla/dev/dev", "closed other", "merged flotilla/dev/dev")
				checkUnmoved()
			}),
			// Value and delivery change at once.
			step("mysql://four", `delivery = { mode = "pull_request", forge = "gitea" }`, func([]giteaPullRequest) { checkUnmoved() }),
			step("mysql://five", "", func(all []giteaPullRequest) {
				checkRequests(all, "closed flotilla/dev/dev", "closed other", "merged flotilla/dev/dev", "closed flotilla/dev/dev")
				checkDeployed("mysql://five")
			}),
			// With an unknown token, the plan cannot ask the Git host.
			step("mysql://six", `delivery = { mode = "pull_request", forge = "gitea" }`, func([]giteaPullRequest) {}),
			{
				Config: `resource "terraform_data" "token" {
  input = ` + strconv.Quote(user.Token) + `
}
` + strings.Replace(small{database: `"mysql://six"`}.config(repo), strconv.Quote(user.Token), "terraform_data.token.output", 1),
				ConfigPlanChecks: emptyPlan,
				Check: func(*terraform.State) error {
					checkRequests(listPullRequests(t, server, user),
						"closed flotilla/dev/dev", "closed other", "merged flotilla/dev/dev", "closed flotilla/dev/dev", "closed flotilla/dev/dev")
					checkDeployed("mysql://six")
					return nil
				},
			},
		},
	})
}

func TestUnclosableFormerRequestIsReported(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	giteaURL, err := url.Parse(repo.url)
	if err != nil {
		t.Fatal(err)
	}
	var refusedMethod atomic.Pointer[string]
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: giteaURL.Scheme, Host: giteaURL.Host})
	proxyServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if method := refusedMethod.Load(); method != nil && *method == r.Method && strings.HasPrefix(r.URL.Path, "/api/") {
			http.Error(w, `{"message": "not today"}`, http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(proxyServer.Close)
	repo.url = proxyServer.URL + giteaURL.Path
	config := func(extra string) providertest.Configuration {
		return moduleOf(t, small{database: `"mysql://two"`, extra: extra}.config(repo)).Configuration
	}
	setRefused := func(method string) { refusedMethod.Store(&method) }
	w := providertest.New(startProvider)
	apply(t, w, moduleOf(t, small{}.config(repo)).Configuration)
	apply(t, w, config(`delivery = { mode = "pull_request", forge = "gitea" }`))

	setRefused(http.MethodGet) // the state has the open request
	if _, diags := w.Plan(t.Context(), config(""), providertest.SkipRefresh()); diags.Err() != nil {
		t.Errorf("the plan fails: %s", diags)
	}
	setRefused(http.MethodPatch)
	_, diags := w.Apply(t.Context(), config(""))
	for _, text := range []string{
		"Warning: A former pull request may still be open",
		`Everything is delivered, but the former pull request from branch "flotilla/dev/dev" could not be closed:`, "not today",
	} {
		if diags.Err() != nil || !words(text).MatchString(diags.String()) {
			t.Errorf("the apply: got\n%s\nwant %q", diags, text)
		}
	}
	if content := repo.read(t, "dev")["large/app-core/platform-config.yaml"]; !strings.Contains(content, "mysql://two") {
		t.Errorf("the branch holds\n%s", content)
	}
	if all := listPullRequests(t, server, user); len(all) != 1 || all[0].State != "open" {
		t.Errorf("got requests %+v, want one that is open", all)
	}
	setRefused(http.MethodGet)
	if plan := apply(t, w, config("")); !plan.Empty() {
		t.Errorf("the next apply makes changes: %v", plan.Change(assignment).After)
	}
}
