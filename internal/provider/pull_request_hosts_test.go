package provider_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
)

// hosted is the GitOps repository of a test as its host, Gitea, has it.
type hosted struct {
	t      *testing.T
	server gitHost
	user   giteatest.User
}

func (h hosted) api(method, path string, in, out any) {
	h.t.Helper()
	h.server.API(h.t, h.user, method, "/repos/"+h.user.Name+"/gitops"+path, in, out)
}

// commit adds a file to a new branch.
func (h hosted) commit(branch, from, file string) {
	h.t.Helper()
	in := map[string]any{"message": "By hand", "content": base64.StdEncoding.EncodeToString([]byte("x")), "branch": from, "new_branch": branch}
	if from == "" {
		in["branch"] = branch
		delete(in, "new_branch")
	}
	h.api(http.MethodPost, "/contents/"+file, in, nil)
}

// propose opens a request by hand.
func (h hosted) propose(head string) (number int) {
	h.t.Helper()
	var opened request
	h.api(http.MethodPost, "/pulls", map[string]any{"base": "dev", "head": head, "title": "By hand", "body": "Please"}, &opened)
	return opened.Number
}

// stamped is a request, and when something happened to it.
type stamped struct {
	request
	Updated   string `json:"updated_at"`
	Mergeable bool
}

func (h hosted) pull(number int) stamped {
	h.t.Helper()
	var pull stamped
	h.api(http.MethodGet, fmt.Sprintf("/pulls/%d", number), nil, &pull)
	return pull
}

// open returns the open requests by their heads.
func (h hosted) open() map[string]request {
	h.t.Helper()
	found := map[string]request{}
	for _, one := range requests(h.t, h.server, h.user) {
		if one.State == "open" {
			found[one.Head.Ref] = one
		}
	}
	return found
}

// awaitMerge waits until Gitea has merged the first request, which it does in a queue of its own.
func (h hosted) awaitMerge() {
	h.t.Helper()
	for range 1200 { // two minutes: a merge starts dozens of processes
		if requests(h.t, h.server, h.user)[0].Merged {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	h.t.Error("the request was not merged")
}

// nothingToDo expects the plan before an apply to be empty.
var nothingToDo = resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}

func TestPullRequestIsMergedOnceItsChecksSucceed(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	host := hosted{t, server, user}
	status := func(state string) {
		host.api(http.MethodPost, "/statuses/"+host.open()["flotilla/dev/dev"].Head.SHA, map[string]any{"context": "ci", "state": state}, nil)
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
			{ // the branch may no longer be pushed to
				PreConfig: func() {
					host.api(http.MethodPost, "/branch_protections", map[string]any{
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
			{ // the merge is arranged, and waits
				Config: proposed, ConfigPlanChecks: nothingToDo,
				Check: func(*terraform.State) error {
					if all := requests(t, server, user); len(all) != 1 || all[0].State != "open" {
						t.Fatalf("requests %+v, want one that is open", all)
					}
					for range 600 { // Gitea forgets a success that comes while it still looks for conflicts
						if host.pull(1).Mergeable {
							break
						}
						time.Sleep(100 * time.Millisecond)
					}
					status("success")
					host.awaitMerge()
					return nil
				},
			},
			{Config: proposed, ConfigPlanChecks: nothingToDo, Check: func(*terraform.State) error {
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
	host := hosted{t, server, user}
	value := func(database string) string {
		return small{database: database, extra: `delivery = { mode = "pull_request", forge = "gitea", merge = "now" }`}.config(repo)
	}
	proposed := value(`"mysql://three"`)
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: small{}.config(repo)},
			{Config: value(`"mysql://two"`)},
			{
				PreConfig: func() {
					host.api(http.MethodPost, "/branch_protections", map[string]any{"rule_name": "dev", "required_approvals": 1}, nil)
				},
				Config:      proposed,
				ExpectError: words("Does not have enough approvals"),
			},
			{Config: proposed, ExpectError: words("Does not have enough approvals")}, // an unmerged request is not what was asked for
			{
				PreConfig: func() {
					reviewer := server.User(t)
					host.api(http.MethodPut, "/collaborators/"+reviewer.Name, map[string]any{"permission": "write"}, nil)
					path := fmt.Sprintf("/repos/%s/gitops/pulls/%d/reviews", user.Name, host.open()["flotilla/dev/dev"].Number)
					server.API(t, reviewer, http.MethodPost, path, map[string]any{"event": "APPROVED", "body": "Fine"}, nil)
				},
				Config: proposed,
				Check: func(*terraform.State) error {
					if all := requests(t, server, user); len(all) != 2 || !all[1].Merged {
						t.Errorf("requests %+v, want two that are merged", all)
					}
					host.api(http.MethodDelete, "/branch_protections/dev", nil, nil) // for the destroy
					return nil
				},
			},
		},
	})
}

func TestMergeThatCouldNotBeArrangedIsTriedAgain(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	repo, server, user := giteaWithUser(t)
	host := hosted{t, server, user}
	value := func(database, merge string) string {
		return small{database: database, extra: `delivery = { mode = "pull_request", forge = "gitea", merge = "` + merge + `" }`}.config(repo)
	}
	arranged := value(`"mysql://three"`, "when_checks_succeed")
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: small{}.config(repo)},
			{Config: value(`"mysql://two"`, "none")},
			{
				PreConfig: func() {
					host.api(http.MethodPost, "/branch_protections", map[string]any{"rule_name": "dev", "enable_merge_whitelist": true}, nil)
				},
				Config:      arranged,
				ExpectError: words("not allowed to merge"),
			},
			{Config: arranged, ExpectError: words("not allowed to merge")}, // the request is open, but not as was asked for
			{
				PreConfig: func() { host.api(http.MethodDelete, "/branch_protections/dev", nil, nil) },
				Config:    arranged,
				Check: func(*terraform.State) error {
					host.awaitMerge()
					return nil
				},
			},
			{Config: arranged, ConfigPlanChecks: nothingToDo},
		},
	})
}

// owner is an assignment with a fleet of its own, whose value reaches its one folder.
func owner(repo repository, name, value, delivery string) string {
	return fmt.Sprintf(`
resource "flotilla_assignment" %[1]q {
  name        = %[1]q
  gitops_repo = { url = %[2]q, branch = "dev", path = %[1]q }
  fleet = provider::flotilla::fleet({
    environment       = "dev"
    workspaces        = [{ name = "team" }]
    cluster_types     = [{ name = "drone" }]
    workloads         = [{ name = "app", workspace = "team", deployment_targets = { all = { environment = "dev", manifests = { repo = "https://git.example.com/app" } } } }]
    target_policies   = [{ name = "all", cluster_type_selector = {} }]
    config_containers = [{ name = "all", data = { VALUE = %[3]q } }]
  })
  %[4]s
}
`, name, repo.url, value, delivery)
}

func TestPullRequestsOfSeveralOwnersAreApart(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	host := hosted{t, server, user}
	const proposes = `delivery = { mode = "pull_request", forge = "gitea" }`
	config := func(one, two, delivery string) string {
		config := repo.provider
		if one != "" {
			config += owner(repo, "one", one, delivery)
		}
		return config + owner(repo, "two", two, delivery)
	}
	var persons int
	before := map[int]stamped{}
	// unchanged finds requests that are as they were after the step before.
	unchanged := func(numbers ...int) {
		t.Helper()
		for _, number := range numbers {
			if now := host.pull(number); now != before[number] {
				t.Errorf("request %d was\n%+v\nand is\n%+v", number, before[number], now)
			}
		}
	}
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: config("1", "1", "")},
			{ // one request each
				PreConfig: func() {
					host.commit("topic", "dev", "by-hand")
					persons = host.propose("topic")
					before[persons] = host.pull(persons)
				},
				Config: config("2", "2", proposes),
				Check: func(*terraform.State) error {
					if open := host.open(); len(open) != 3 || open["flotilla/dev/one/one"].Number == 0 || open["flotilla/dev/two/two"].Number == 0 {
						t.Fatalf("requests %+v, want one of each owner and the person's", open)
					}
					unchanged(persons)
					for _, one := range host.open() {
						before[one.Number] = host.pull(one.Number)
					}
					return nil
				},
			},
			{ // what one proposes leaves the others as they are
				Config: config("3", "2", proposes),
				Check: func(*terraform.State) error {
					open := host.open()
					unchanged(persons, open["flotilla/dev/two/two"].Number)
					if one := open["flotilla/dev/one/one"]; len(open) != 3 || one.Head.SHA == before[one.Number].Head.SHA {
						t.Errorf("requests %+v, want that of one with another head", open)
					}
					return nil
				},
			},
			{ // a destroy is proposed, too
				Config: config("", "2", proposes),
				Check: func(*terraform.State) error {
					open := host.open()
					unchanged(persons, open["flotilla/dev/two/two"].Number)
					if body := open["flotilla/dev/one/one"].Body; len(open) != 3 || !strings.Contains(body, "| removed |") {
						t.Errorf("requests %+v, want one that removes", open)
					}
					return nil
				},
			},
			{ // nothing left to propose: the owner's request is closed, and no other
				Config: config("", "1", proposes),
				Check: func(*terraform.State) error {
					open := host.open()
					unchanged(persons)
					if len(open) != 2 || open["flotilla/dev/one/one"].Number == 0 {
						t.Errorf("requests %+v, want those of one and of the person", open)
					}
					return nil
				},
			},
		},
	})
}

// namesake is an assignment that is called fleet, as others are, elsewhere.
func namesake(repo repository, label, branch, path, value, delivery string) string {
	return strings.NewReplacer(
		`"flotilla_assignment" "fleet"`, `"flotilla_assignment" "`+label+`"`,
		`branch = "dev", path = "fleet"`, `branch = "`+branch+`", path = "`+path+`"`,
	).Replace(owner(repo, "fleet", value, delivery))
}

// valueAt is the value that a branch has at a path.
func valueAt(t *testing.T, repo repository, branch, path string) string {
	t.Helper()
	_, value, _ := strings.Cut(repo.read(t, branch)[path+"/drone/app-all/platform-config.yaml"], "VALUE: ")
	value, _, _ = strings.Cut(value, "\n")
	return strings.Trim(value, `"`)
}

func TestPullRequestsOfOneNameAreApart(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	repo, server, user := giteaWithUser(t)
	host := hosted{t, server, user}
	config := func(value, second, delivery string) string {
		return repo.provider + namesake(repo, "first", "dev", "eu", value, delivery) + namesake(repo, "second", "dev", second, value, delivery) +
			namesake(repo, "third", "prod", "eu", value, delivery)
	}
	opens := func(want ...string) {
		t.Helper()
		if are := slices.Sorted(maps.Keys(host.open())); !slices.Equal(are, want) {
			t.Errorf("open requests from %q, want %q", are, want)
		}
	}
	const proposes = `delivery = { mode = "pull_request", forge = "gitea" }`
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: config("1", "us", "")},
			{ // each proposes its own
				Config: config("2", "us", proposes), ConfigPlanChecks: emptyPlan,
				Check: func(*terraform.State) error {
					opens("flotilla/dev/eu/fleet", "flotilla/dev/us/fleet", "flotilla/prod/eu/fleet")
					for _, at := range []struct{ branch, path, value string }{
						{"flotilla/dev/eu/fleet", "eu", "2"}, {"flotilla/dev/eu/fleet", "us", "1"},
						{"flotilla/dev/us/fleet", "eu", "1"}, {"flotilla/dev/us/fleet", "us", "2"},
						{"flotilla/prod/eu/fleet", "eu", "2"}, {"flotilla/prod/eu/fleet", "us", ""},
					} {
						if value := valueAt(t, repo, at.branch, at.path); value != at.value {
							t.Errorf("branch %s has value %q at %s, want %q", at.branch, value, at.path, at.value)
						}
					}
					return nil
				},
			},
			{ // who moves proposes the new location, and that the old one goes
				Config: config("2", "asia", proposes), ConfigPlanChecks: emptyPlan,
				Check: func(*terraform.State) error {
					opens("flotilla/dev/asia/fleet", "flotilla/dev/eu/fleet", "flotilla/dev/us/fleet", "flotilla/prod/eu/fleet")
					for branch, value := range map[string]string{"flotilla/dev/asia/fleet": "1", "flotilla/dev/us/fleet": ""} {
						if is := valueAt(t, repo, branch, "us"); is != value {
							t.Errorf("branch %s has value %q at us, want %q", branch, is, value)
						}
					}
					return nil
				},
			},
			{ // a branch that two shall share is an error
				Config:      config("3", "asia", strings.Replace(proposes, "}", `, branch = "shared" }`, 1)),
				ExpectError: words(`belongs to assignment "`),
			},
			{
				Config: config("3", "asia", proposes), ConfigPlanChecks: emptyPlan,
				Check: func(*terraform.State) error {
					opens("flotilla/dev/asia/fleet", "flotilla/dev/eu/fleet", "flotilla/dev/us/fleet", "flotilla/prod/eu/fleet")
					return nil
				},
			},
		},
	})
}

func TestBranchIntoAnotherIsNotPushedTo(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	host := hosted{t, server, user}
	config := func(branch, path, value, delivery string) string {
		return repo.provider + namesake(repo, "test", branch, path, value, delivery)
	}
	const proposes = `delivery = { mode = "pull_request", forge = "gitea", branch = "shared" }`
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: config("dev", "eu", "1", "")},
			{Config: config("dev", "eu", "1", proposes)},
			{ // the branch is for the new location, and the old one has another
				Config: config("dev", "us", "1", proposes), ConfigPlanChecks: emptyPlan,
				Check: func(*terraform.State) error {
					if are := slices.Sorted(maps.Keys(host.open())); !slices.Equal(are, []string{"flotilla/dev/eu/fleet", "shared"}) {
						t.Errorf("open requests from %q", are)
					}
					host.api(http.MethodPost, "/branches", map[string]any{"new_branch_name": "prod", "old_branch_name": "dev"}, nil)
					return nil
				},
			},
			{ // a name that no branch can have
				Config: config(
					"dev",
					strings.Repeat(strings.Repeat("long", 30)+"/", 3)+"us",
					"1",
					strings.Replace(proposes, `, branch = "shared"`, "", 1),
				),
				ExpectError: words(`The branch is longer than`),
			},
			{
				Config:      config("prod", "us", "2", proposes),
				ExpectError: words(`of assignment "us/fleet" goes from "shared" into "dev", not into "prod"; close it, or use another branch:`),
			},
		},
	})
}

func TestPullRequestOfAPersonIsNeverPushedTo(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	host := hosted{t, server, user}
	var persons int
	var before stamped
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: small{}.config(repo)},
			{
				PreConfig: func() {
					host.commit("flotilla/dev/dev", "dev", "by-hand")
					persons = host.propose("flotilla/dev/dev")
					before = host.pull(persons)
				},
				Config:      small{database: `"mysql://two"`, extra: `delivery = { mode = "pull_request", forge = "gitea" }`}.config(repo),
				ExpectError: words("was not opened by assignment"),
			},
			{Config: small{}.config(repo), ConfigPlanChecks: nothingToDo, Check: func(*terraform.State) error {
				if now := host.pull(persons); now != before {
					t.Errorf("the request was\n%+v\nand is\n%+v", before, now)
				}
				return nil
			}},
		},
	})
}

func TestDestroyClosesWhatWasNeverMerged(t *testing.T) {
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	host := hosted{t, server, user}
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{
				PreConfig: func() { host.commit("dev", "", "by-hand") },
				Config:    small{extra: `delivery = { mode = "pull_request", forge = "gitea" }`}.config(repo),
				Check: func(*terraform.State) error {
					if open := host.open(); len(open) != 1 || open["flotilla/dev/dev"].Number == 0 {
						t.Errorf("requests %+v, want one", open)
					}
					return nil
				},
			},
			{
				Config: repo.provider,
				Check: func(*terraform.State) error {
					if open := host.open(); len(open) != 0 {
						t.Errorf("requests %+v, want none", open)
					}
					if commits := repo.commits(t, "dev"); commits != 1 {
						t.Errorf("the branch has %d commits, want that by hand", commits)
					}
					return nil
				},
			},
		},
	})
}
