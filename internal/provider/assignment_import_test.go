package provider_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
)

func TestPlanAfterImportChangesNothingInTheRepository(t *testing.T) {
	t.Parallel()
	onEveryServer(t, func(t *testing.T, repo repository) {
		applyEach(t, repo, small{path: "a/b"}.config(repo))
		imported := fmt.Sprintf("import {\n  to = %s\n  id = %q\n}\n", assignment, repo.url+"#dev:a/b:dev")
		testSteps(t, resource.TestCase{
			Steps: []resource.TestStep{
				{ // the import plans no change
					Config: imported + small{path: "a/b"}.config(repo),
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(assignment, plancheck.ResourceActionNoop)},
						PostApplyPostRefresh: emptyPlan.PostApplyPostRefresh,
					},
					Check: func(*terraform.State) error {
						if commits := repo.commits(t, "dev"); commits != 1 {
							t.Errorf("%d commits, want one", commits)
						}
						return nil
					},
				},
			},
		})
	})
}

func TestImportReadsTheRecords(t *testing.T) {
	t.Parallel()
	onEveryServer(t, func(t *testing.T, repo repository) {
		repo.provider += requiredProviders
		resource.Test(t, resource.TestCase{
			ProtoV6ProviderFactories: factories(),
			Steps: []resource.TestStep{
				{Config: small{path: "a/b"}.config(repo)},
				{
					Config: small{path: "a/b"}.config(repo), ResourceName: assignment,
					ImportState: true, ImportStateId: repo.url + "#dev:a/b:dev", ImportStateVerify: true,
					ImportStateVerifyIdentifierAttribute: "name",
					ImportStateVerifyIgnore:              []string{"fleet", "changes"},
				},
				{
					Config: small{}.config(repo), ResourceName: assignment,
					ImportState: true, ImportStateId: repo.url + "#dev::dev", ExpectError: regexp.MustCompile("Nothing to import"),
				},
			},
		})
	})
}
