package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// emptyPlan expects an empty plan after the apply.
var emptyPlan = resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}

func rollbackTo(commit string) string { return fmt.Sprintf("rollback_to = %q", commit) }

// removedBlock removes the assignment from the state and keeps the repository.
const removedBlock = "removed {\n  from = flotilla_assignment.test\n  lifecycle {\n    destroy = false\n  }\n}\n"

// applyEach applies the configurations in turn, returns their commits, and drops the state.
func applyEach(t *testing.T, repo repository, configs ...string) (commits []string) {
	t.Helper()
	var steps []resource.TestStep
	for _, config := range configs {
		steps = append(steps, resource.TestStep{Config: config, Check: func(*terraform.State) error {
			commits = append(commits, repo.tip(t, "dev"))
			return nil
		}})
	}
	steps = append(steps, resource.TestStep{Config: repo.provider + removedBlock})
	testSteps(t, resource.TestCase{Steps: steps})
	return commits
}

// applyTwoVersions changes a value of large.
func applyTwoVersions(t *testing.T, repo repository) (first, second string) {
	t.Helper()
	commits := applyEach(t, repo, small{}.config(repo), small{database: `"mysql://two"`}.config(repo))
	return commits[0], commits[1]
}

// database returns DATABASE_URL of the host large on a branch.
func (r repository) database(t *testing.T, branch string) string {
	t.Helper()
	content := r.read(t, branch)["large/app-core/platform-config.yaml"]
	_, value, _ := strings.Cut(content, "DATABASE_URL: ")
	value, _, _ = strings.Cut(value, "\n")
	return strings.Trim(value, `"`)
}

func TestRollbackReturnsToACommitAndIsUndoneWhenItIsRemoved(t *testing.T) {
	t.Parallel()
	onEveryServer(t, func(t *testing.T, repo repository) {
		first, _ := applyTwoVersions(t, repo) // the first apply of a lost state commits records
		back := small{database: `"mysql://two"`, extra: rollbackTo(first)}
		// expectBranch expects a number of commits, and the value of the host large.
		expectBranch := func(commits int, database string) resource.TestCheckFunc {
			return func(*terraform.State) error {
				if got := repo.commits(t, "dev"); got != commits {
					t.Errorf("got %d commits, want %d", got, commits)
				}
				if got := repo.database(t, "dev"); got != database {
					t.Errorf("the folder has %q, want %q", got, database)
				}
				return nil
			}
		}
		testSteps(t, resource.TestCase{
			Steps: []resource.TestStep{
				{Config: small{database: `"mysql://two"`}.config(repo), Check: expectBranch(3, "mysql://two")},
				{ // only the changed folder goes back
					Config: back.config(repo),
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: []plancheck.PlanCheck{
							expectOnlyChanges{assignment, []string{"changes", "commit", "content", "rollback_to", "rolled_out"}},
						},
						PostApplyPostRefresh: emptyPlan.PostApplyPostRefresh,
					},
					Check: expectBranch(4, "mysql://one"),
				},
				{ // changes of the fleet wait
					Config: small{database: `"mysql://three"`, extra: rollbackTo(first)}.config(repo),
					ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
						plancheck.ExpectResourceAction(assignment, plancheck.ResourceActionNoop),
					}},
					Check: func(*terraform.State) error {
						repo.change(t, "dev", func(folder string) {
							writeFile(t, filepath.Join(folder, "large/app-core/platform-config.yaml"), "kind: Oops\n")
						})
						return nil
					},
					ExpectNonEmptyPlan: true,
				},
				{ // drift is compared with the rollback
					Config: small{database: `"mysql://three"`, extra: rollbackTo(first)}.config(repo),
					ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
						expectOnlyChanges{assignment, []string{"changes", "commit", "content"}},
					}},
					Check: expectBranch(6, "mysql://one"),
				},
				{ // without rollback_to, one commit writes the fleet again
					Config: small{database: `"mysql://three"`}.config(repo),
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: []plancheck.PlanCheck{
							expectOnlyChanges{assignment, []string{"changes", "commit", "content", "rollback_to", "rolled_out"}},
						},
						PostApplyPostRefresh: emptyPlan.PostApplyPostRefresh,
					},
					Check: expectBranch(7, "mysql://three"),
				},
			},
		})
	})
}

func TestRollbackWorksWithoutAStateAndWithAnInvalidFleet(t *testing.T) {
	t.Parallel()
	repo := bareRepository(t)
	first, _ := applyTwoVersions(t, repo)
	broken := `templates = [{ name = "default", type = "namespace", manifests = ["a: {{ .ConfigData.NOTHING }}\n"] }]`
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{{
			Config: small{fleet: broken, extra: rollbackTo(first)}.config(repo), ConfigPlanChecks: emptyPlan,
			Check: func(*terraform.State) error {
				if got := repo.database(t, "dev"); got != "mysql://one" {
					t.Errorf("the folder has %q", got)
				}
				return nil
			},
		}},
	})
}

func TestRollbackToAnUnknownCommitIsKnownAfterApply(t *testing.T) {
	t.Parallel()
	repo := bareRepository(t)
	first, _ := applyTwoVersions(t, repo)
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: small{database: `"mysql://two"`}.config(repo)},
			{
				Config: small{
					before:   fmt.Sprintf("resource \"terraform_data\" \"commit\" {\n  input = %q\n}\n", first),
					database: `"mysql://two"`, extra: "rollback_to = terraform_data.commit.output",
				}.config(repo),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectUnknownValue(assignment, tfjsonpath.New("content"))},
					PostApplyPostRefresh: emptyPlan.PostApplyPostRefresh,
				},
				Check: func(*terraform.State) error {
					if got := repo.database(t, "dev"); got != "mysql://one" {
						t.Errorf("the folder has %q", got)
					}
					return nil
				},
			},
		},
	})
}

func TestRollbackToAForeignCommitFailsThePlan(t *testing.T) {
	t.Parallel()
	onEveryServer(t, func(t *testing.T, repo repository) {
		_, second := applyTwoVersions(t, repo)
		repo.change(t, "dev", func(folder string) {
			os.RemoveAll(filepath.Join(folder, ".flotilla"))
		})
		foreign := repo.tip(t, "dev")
		var steps []resource.TestStep
		for commit, want := range map[string]string{
			"":                         `"" is not an object id; it is the full id of a commit, 40 hexadecimal digits`,
			"dev":                      `"dev" is not an object id`,
			second[:12]:                `is not an object id; it is the full id of a commit`,
			strings.Repeat("12ab", 10): "is not in the history of the branch",
			foreign:                    `has no record of the assignment "dev"`,
		} {
			steps = append(steps, resource.TestStep{
				Config: small{extra: rollbackTo(commit)}.config(repo), PlanOnly: true, ExpectError: words(want),
			})
		}
		testSteps(t, resource.TestCase{Steps: steps})
	})
}

func TestProtectionHoldsARollback(t *testing.T) {
	t.Parallel()
	repo := bareRepository(t)
	few := applyEach(t, repo, manyTypesConfig(repo, "2", ""), manyTypesConfig(repo, "24", ""))[0]
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: manyTypesConfig(repo, "24", "")},
			{Config: manyTypesConfig(repo, "24", rollbackTo(few)), ExpectError: words(`This plan would remove 22 of 24 assignments on 22 hosts`)},
			{Config: manyTypesConfig(repo, "24", rollbackTo(few)+"\n protection = { max_removed = 22 }"), ConfigPlanChecks: emptyPlan},
		},
	})
}

func TestRollbackByPullRequest(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	repo, server, user := giteaWithUser(t)
	const request = `delivery = { mode = "pull_request", forge = "gitea", merge = "none" }`
	first, second := applyTwoVersions(t, repo)
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: small{database: `"mysql://two"`, extra: request}.config(repo)},
			{
				Config: small{database: `"mysql://two"`, extra: request + "\n" + rollbackTo(first)}.config(repo), ConfigPlanChecks: emptyPlan,
				Check: func(*terraform.State) error {
					if all := listPullRequests(t, server, user); len(all) != 1 || all[0].State != "open" {
						t.Errorf("got requests %+v, want one open request", all)
					}
					if got := repo.tip(t, "dev"); got != second {
						t.Error("the branch moved before the request was merged")
					}
					if got := repo.database(t, "flotilla/dev/dev"); got != "mysql://one" {
						t.Errorf("the request has %q", got)
					}
					return nil
				},
			},
			{ // the branch has the fleet already: the request contains only records
				Config: small{database: `"mysql://two"`, extra: request}.config(repo), ConfigPlanChecks: emptyPlan,
				Check: func(*terraform.State) error {
					if all := listPullRequests(t, server, user); len(all) != 1 || all[0].State != "open" {
						t.Errorf("got requests %+v, want one open request", all)
					}
					if changed := git(t, repo.clone(t, "flotilla/dev/dev"), "diff", "--name-only", second, "HEAD"); strings.Contains(
						changed,
						"platform-config",
					) ||
						!strings.Contains(changed, ".flotilla/dev/") {
						t.Errorf("the request changes %s", changed)
					}
					return nil
				},
			},
		},
	})
}
