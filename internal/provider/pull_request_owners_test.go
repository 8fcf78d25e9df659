package provider_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// ownerConfig returns an assignment with one folder and a value.
func ownerConfig(repo repository, name, value, delivery string) string {
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

func TestPullRequestsOfSeveralOwnersAreIndependent(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	host := hostedRepository{t, server, user}
	const proposes = `delivery = { mode = "pull_request", forge = "gitea" }`
	config := func(one, two, delivery string) string {
		config := repo.provider
		if one != "" {
			config += ownerConfig(repo, "one", one, delivery)
		}
		return config + ownerConfig(repo, "two", two, delivery)
	}
	var foreignRequest int
	before := map[int]stampedRequest{}
	// checkUnchanged expects requests that no step has changed.
	checkUnchanged := func(numbers ...int) {
		t.Helper()
		for _, number := range numbers {
			if now := host.getRequest(number); now != before[number] {
				t.Errorf("request %d: got\n%+v\nwant\n%+v", number, now, before[number])
			}
		}
	}
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: config("1", "1", "")},
			{
				PreConfig: func() {
					host.commitFile("topic", "dev", "by-hand")
					foreignRequest = host.openRequest("topic")
					before[foreignRequest] = host.getRequest(foreignRequest)
				},
				Config: config("2", "2", proposes),
				Check: func(*terraform.State) error {
					if open := host.openRequests(); len(open) != 3 || open["flotilla/dev/one/one"].Number == 0 || open["flotilla/dev/two/two"].Number == 0 {
						t.Fatalf("got requests %+v, want one of each owner and the person's", open)
					}
					checkUnchanged(foreignRequest)
					for _, one := range host.openRequests() {
						before[one.Number] = host.getRequest(one.Number)
					}
					return nil
				},
			},
			{ // a change of one owner leaves the other requests unchanged
				Config: config("3", "2", proposes),
				Check: func(*terraform.State) error {
					open := host.openRequests()
					checkUnchanged(foreignRequest, open["flotilla/dev/two/two"].Number)
					if one := open["flotilla/dev/one/one"]; len(open) != 3 || one.Head.SHA == before[one.Number].Head.SHA {
						t.Errorf("got requests %+v, want that of one with another head", open)
					}
					return nil
				},
			},
			{
				Config: config("", "2", proposes),
				Check: func(*terraform.State) error {
					open := host.openRequests()
					checkUnchanged(foreignRequest, open["flotilla/dev/two/two"].Number)
					if body := open["flotilla/dev/one/one"].Body; len(open) != 3 || !strings.Contains(body, "| removed |") {
						t.Errorf("got requests %+v, want one that removes", open)
					}
					return nil
				},
			},
			{ // without changes, only the owner's request is closed
				Config: config("", "1", proposes),
				Check: func(*terraform.State) error {
					open := host.openRequests()
					checkUnchanged(foreignRequest)
					if len(open) != 2 || open["flotilla/dev/one/one"].Number == 0 {
						t.Errorf("got requests %+v, want those of one and of the person", open)
					}
					return nil
				},
			},
		},
	})
}

// namesakeConfig returns an assignment named fleet at a location.
func namesakeConfig(repo repository, label, branch, path, value, delivery string) string {
	return strings.NewReplacer(
		`"flotilla_assignment" "fleet"`, `"flotilla_assignment" "`+label+`"`,
		`branch = "dev", path = "fleet"`, `branch = "`+branch+`", path = "`+path+`"`,
	).Replace(ownerConfig(repo, "fleet", value, delivery))
}

func valueAt(t *testing.T, repo repository, branch, path string) string {
	t.Helper()
	_, value, _ := strings.Cut(repo.read(t, branch)[path+"/drone/app-all/platform-config.yaml"], "VALUE: ")
	value, _, _ = strings.Cut(value, "\n")
	return strings.Trim(value, `"`)
}

func TestPullRequestsOfOneNameAreIndependent(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	repo, server, user := giteaWithUser(t)
	host := hostedRepository{t, server, user}
	config := func(value, second, delivery string) string {
		return repo.provider + namesakeConfig(repo, "first", "dev", "eu", value, delivery) + namesakeConfig(repo, "second", "dev", second, value, delivery) +
			namesakeConfig(repo, "third", "prod", "eu", value, delivery)
	}
	checkOpen := func(want ...string) {
		t.Helper()
		if heads := slices.Sorted(maps.Keys(host.openRequests())); !slices.Equal(heads, want) {
			t.Errorf("got open requests from %q, want %q", heads, want)
		}
	}
	const proposes = `delivery = { mode = "pull_request", forge = "gitea" }`
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: config("1", "us", "")},
			{ // each request has only the changes of its owner
				Config: config("2", "us", proposes), ConfigPlanChecks: emptyPlan,
				Check: func(*terraform.State) error {
					checkOpen("flotilla/dev/eu/fleet", "flotilla/dev/us/fleet", "flotilla/prod/eu/fleet")
					for _, location := range []struct{ branch, path, value string }{
						{"flotilla/dev/eu/fleet", "eu", "2"}, {"flotilla/dev/eu/fleet", "us", "1"},
						{"flotilla/dev/us/fleet", "eu", "1"}, {"flotilla/dev/us/fleet", "us", "2"},
						{"flotilla/prod/eu/fleet", "eu", "2"}, {"flotilla/prod/eu/fleet", "us", ""},
					} {
						if value := valueAt(t, repo, location.branch, location.path); value != location.value {
							t.Errorf("branch %s: got value %q at %s, want %q", location.branch, value, location.path, location.value)
						}
					}
					return nil
				},
			},
			{ // a move proposes the new location, and the removal of the old one
				Config: config("2", "asia", proposes), ConfigPlanChecks: emptyPlan,
				Check: func(*terraform.State) error {
					checkOpen("flotilla/dev/asia/fleet", "flotilla/dev/eu/fleet", "flotilla/dev/us/fleet", "flotilla/prod/eu/fleet")
					for branch, value := range map[string]string{"flotilla/dev/asia/fleet": "1", "flotilla/dev/us/fleet": ""} {
						if got := valueAt(t, repo, branch, "us"); got != value {
							t.Errorf("branch %s: got value %q at us, want %q", branch, got, value)
						}
					}
					return nil
				},
			},
			{ // a branch for three owners is an error: one may have pushed without a request yet
				Config:      config("3", "asia", strings.Replace(proposes, "}", `, branch = "shared" }`, 1)),
				ExpectError: regexp.MustCompile(`belongs\s+to\s+assignment\s+"|has\s+another\s+holder`),
			},
			{
				Config: config("3", "asia", proposes), ConfigPlanChecks: emptyPlan,
				Check: func(*terraform.State) error {
					checkOpen("flotilla/dev/asia/fleet", "flotilla/dev/eu/fleet", "flotilla/dev/us/fleet", "flotilla/prod/eu/fleet")
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
	host := hostedRepository{t, server, user}
	config := func(branch, path, value, delivery string) string {
		return repo.provider + namesakeConfig(repo, "test", branch, path, value, delivery)
	}
	const proposes = `delivery = { mode = "pull_request", forge = "gitea", branch = "shared" }`
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: config("dev", "eu", "1", "")},
			{Config: config("dev", "eu", "1", proposes)},
			{ // the branch is used for the new location; the old one gets another branch
				Config: config("dev", "us", "1", proposes), ConfigPlanChecks: emptyPlan,
				Check: func(*terraform.State) error {
					if heads := slices.Sorted(maps.Keys(host.openRequests())); !slices.Equal(heads, []string{"flotilla/dev/eu/fleet", "shared"}) {
						t.Errorf("got open requests from %q, want one for each location", heads)
					}
					host.callAPI(http.MethodPost, "/branches", map[string]any{"new_branch_name": "prod", "old_branch_name": "dev"}, nil)
					return nil
				},
			},
			{ // an invalid name of a branch
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
	host := hostedRepository{t, server, user}
	var foreignRequest int
	var before stampedRequest
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: small{}.config(repo)},
			{
				PreConfig: func() {
					host.commitFile("flotilla/dev/dev", "dev", "by-hand")
					foreignRequest = host.openRequest("flotilla/dev/dev")
					before = host.getRequest(foreignRequest)
				},
				Config:      small{database: `"mysql://two"`, extra: `delivery = { mode = "pull_request", forge = "gitea" }`}.config(repo),
				ExpectError: words("was not opened by assignment"),
			},
			{Config: small{}.config(repo), ConfigPlanChecks: emptyPlanBeforeApply, Check: func(*terraform.State) error {
				if now := host.getRequest(foreignRequest); now != before {
					t.Errorf("got request\n%+v\nwant\n%+v", now, before)
				}
				return nil
			}},
		},
	})
}

func TestDestroyClosesUnmergedRequests(t *testing.T) {
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	host := hostedRepository{t, server, user}
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{
				PreConfig: func() { host.commitFile("dev", "", "by-hand") },
				Config:    small{extra: `delivery = { mode = "pull_request", forge = "gitea" }`}.config(repo),
				Check: func(*terraform.State) error {
					if open := host.openRequests(); len(open) != 1 || open["flotilla/dev/dev"].Number == 0 {
						t.Errorf("got requests %+v, want one", open)
					}
					return nil
				},
			},
			{
				Config: repo.provider,
				Check: func(*terraform.State) error {
					if open := host.openRequests(); len(open) != 0 {
						t.Errorf("got requests %+v, want none", open)
					}
					if commits := repo.commits(t, "dev"); commits != 1 {
						t.Errorf("got %d commits, want only the commit by hand", commits)
					}
					return nil
				},
			},
		},
	})
}
