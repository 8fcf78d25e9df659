package provider_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
)

// hostedRepository is the API of Gitea for the GitOps repository of a test.
type hostedRepository struct {
	t      *testing.T
	server gitHost
	user   giteatest.User
}

func (h hostedRepository) callAPI(method, path string, in, out any) {
	h.t.Helper()
	h.server.API(h.t, h.user, method, "/repos/"+h.user.Name+"/gitops"+path, in, out)
}

func (h hostedRepository) commitFile(branch, from, file string) {
	h.t.Helper()
	in := map[string]any{"message": "By hand", "content": base64.StdEncoding.EncodeToString([]byte("x")), "branch": from, "new_branch": branch}
	if from == "" {
		in["branch"] = branch
		delete(in, "new_branch")
	}
	h.callAPI(http.MethodPost, "/contents/"+file, in, nil)
}

func (h hostedRepository) openRequest(head string) (number int) {
	h.t.Helper()
	var opened giteaPullRequest
	h.callAPI(http.MethodPost, "/pulls", map[string]any{"base": "dev", "head": head, "title": "By hand", "body": "Please"}, &opened)
	return opened.Number
}

type stampedRequest struct {
	giteaPullRequest
	Updated   string `json:"updated_at"`
	Mergeable bool
}

func (h hostedRepository) getRequest(number int) stampedRequest {
	h.t.Helper()
	var pull stampedRequest
	h.callAPI(http.MethodGet, fmt.Sprintf("/pulls/%d", number), nil, &pull)
	return pull
}

// openRequests returns the open requests by head.
func (h hostedRepository) openRequests() map[string]giteaPullRequest {
	h.t.Helper()
	found := map[string]giteaPullRequest{}
	for _, one := range listPullRequests(h.t, h.server, h.user) {
		if one.State == "open" {
			found[one.Head.Ref] = one
		}
	}
	return found
}

// awaitMerge waits for the merge of the first request. Gitea merges asynchronously.
func (h hostedRepository) awaitMerge() {
	h.t.Helper()
	for range 1200 { // two minutes: a merge starts dozens of processes
		if listPullRequests(h.t, h.server, h.user)[0].Merged {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	h.t.Error("the request was not merged")
}

var emptyPlanBeforeApply = resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}

func TestPullRequestIsMergedOnceItsChecksSucceed(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	host := hostedRepository{t, server, user}
	status := func(state string) {
		host.callAPI(http.MethodPost, "/statuses/"+host.openRequests()["flotilla/dev/dev"].Head.SHA, map[string]any{"context": "ci", "state": state}, nil)
	}
	proposed := small{
		database: `"mysql://two"`,
		extra:    `delivery = { mode = "pull_request", forge = "gitea", merge = "when_checks_succeed" }`,
	}.config(
		repo,
	)
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: small{}.config(repo)},
			{ // a protected branch rejects pushes
				PreConfig: func() {
					host.callAPI(http.MethodPost, "/branch_protections", map[string]any{
						"rule_name": "dev", "enable_push": false, "enable_status_check": true, "status_check_contexts": []string{"ci"},
					}, nil)
				},
				Config:      small{database: `"mysql://two"`}.config(repo),
				ExpectError: words("Not allowed to push to protected branch dev"),
			},
			{Config: proposed, Check: func(*terraform.State) error {
				status("pending")
				return nil
			}},
			{ // auto-merge is on and waits for the checks
				Config: proposed, ConfigPlanChecks: emptyPlanBeforeApply,
				Check: func(*terraform.State) error {
					if all := listPullRequests(t, server, user); len(all) != 1 || all[0].State != "open" {
						t.Fatalf("got requests %+v, want one that is open", all)
					}
					for range 600 { // Gitea ignores a success that it receives during its check for conflicts
						if host.getRequest(1).Mergeable {
							break
						}
						time.Sleep(100 * time.Millisecond)
					}
					status("success")
					host.awaitMerge()
					return nil
				},
			},
			{Config: proposed, ConfigPlanChecks: emptyPlanBeforeApply, Check: func(*terraform.State) error {
				if content := repo.read(t, "dev")["large/app-core/platform-config.yaml"]; !strings.Contains(content, "mysql://two") {
					t.Errorf("the branch holds\n%s", content)
				}
				return nil
			}},
		},
	})
}

func TestPullRequestIsMergedOnceItIsApproved(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	repo, server, user := giteaWithUser(t)
	host := hostedRepository{t, server, user}
	config := func(database string) string {
		return small{database: database, extra: `delivery = { mode = "pull_request", forge = "gitea", merge = "now" }`}.config(repo)
	}
	proposed := config(`"mysql://three"`)
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: small{}.config(repo)},
			{Config: config(`"mysql://two"`)},
			{
				PreConfig: func() {
					host.callAPI(http.MethodPost, "/branch_protections", map[string]any{"rule_name": "dev", "required_approvals": 1}, nil)
				},
				Config:      proposed,
				ExpectError: words("Does not have enough approvals"),
			},
			{Config: proposed, ExpectError: words("Does not have enough approvals")}, // an unmerged request does not meet the configuration
			{
				PreConfig: func() {
					reviewer := server.User(t)
					host.callAPI(http.MethodPut, "/collaborators/"+reviewer.Name, map[string]any{"permission": "write"}, nil)
					path := fmt.Sprintf("/repos/%s/gitops/pulls/%d/reviews", user.Name, host.openRequests()["flotilla/dev/dev"].Number)
					server.API(t, reviewer, http.MethodPost, path, map[string]any{"event": "APPROVED", "body": "Fine"}, nil)
				},
				Config: proposed,
				Check: func(*terraform.State) error {
					if all := listPullRequests(t, server, user); len(all) != 2 || !all[1].Merged {
						t.Errorf("got requests %+v, want two that are merged", all)
					}
					host.callAPI(http.MethodDelete, "/branch_protections/dev", nil, nil) // allows the destroy
					return nil
				},
			},
		},
	})
}

func TestRefusedMergeIsRetried(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	repo, server, user := giteaWithUser(t)
	host := hostedRepository{t, server, user}
	config := func(database, merge string) string {
		return small{database: database, extra: `delivery = { mode = "pull_request", forge = "gitea", merge = "` + merge + `" }`}.config(repo)
	}
	arranged := config(`"mysql://three"`, "when_checks_succeed")
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: small{}.config(repo)},
			{Config: config(`"mysql://two"`, "none")},
			{
				PreConfig: func() {
					host.callAPI(http.MethodPost, "/branch_protections", map[string]any{"rule_name": "dev", "enable_merge_whitelist": true}, nil)
				},
				Config:      arranged,
				ExpectError: words("not allowed to merge"),
			},
			{Config: arranged, ExpectError: words("not allowed to merge")}, // the request is open without auto-merge
			{
				PreConfig: func() { host.callAPI(http.MethodDelete, "/branch_protections/dev", nil, nil) },
				Config:    arranged,
				Check: func(*terraform.State) error {
					host.awaitMerge()
					return nil
				},
			},
			{Config: arranged, ConfigPlanChecks: emptyPlanBeforeApply},
		},
	})
}
