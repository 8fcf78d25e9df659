package provider_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
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
		w, imported := providertest.New(startProvider), providertest.New(startProvider)
		configuration := moduleOf(t, small{path: "a/b"}.config(repo)).Configuration
		apply(t, w, configuration)
		if diags := imported.Import(t.Context(), configuration, assignment, repo.url+"#dev:a/b:dev"); diags.Err() != nil {
			t.Fatal(diags)
		}
		want, got := w.State.Values(assignment), imported.State.Values(assignment)
		for _, name := range []string{"fleet", "changes"} { // known after the next apply
			delete(want, name)
			delete(got, name)
		}
		if !reflect.DeepEqual(want, got) {
			t.Errorf("the import reads\n%v\nwant\n%v", got, want)
		}
		diags := providertest.New(startProvider).Import(t.Context(), configuration, assignment, repo.url+"#dev::dev")
		if diags.Err() == nil || !diags.Has("Nothing to import") {
			t.Errorf("the import of another path says %s", diags)
		}
	})
}
