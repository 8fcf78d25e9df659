package provider_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
)

// manyTypesConfig returns a number (in HCL) of cluster types with one assignment each. The first has three clusters.
func manyTypesConfig(repo repository, number, extra string) string {
	return repo.provider + fmt.Sprintf(`
locals {
  fleet = provider::flotilla::fleet({
    environment     = "dev"
    workspaces      = [{ name = "team" }]
    cluster_types   = [for i in range(%[1]s) : { name = "type-${i}" }]
    clusters        = [for i in range(min(%[1]s, 1) * 3) : { name = "cluster-${i}", cluster_type = "type-0" }]
    workloads       = [{ name = "app", workspace = "team", deployment_targets = { all = { environment = "dev", manifests = { repo = "https://git.example.com/app" } } } }]
    target_policies = [{ name = "all", cluster_type_selector = {} }]
  })
}
resource "flotilla_assignment" "test" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = { url = %[2]q, branch = "dev" }
  %[3]s
}
`, number, repo.url, extra)
}

func TestMassDeletionFailsThePlan(t *testing.T) {
	t.Parallel()
	repo := bareRepository(t)
	const firstTen = "type-0/app-all, type-1/app-all, type-10/app-all, type-11/app-all, type-12/app-all, type-13/app-all, type-14/app-all, " +
		"type-15/app-all, type-16/app-all, type-17/app-all and 14 more."
	const removedTypes = " The cause: - app-all on type-0, type-1 and 22 more hosts: 24 assignments, by 24 removed cluster types"
	const destroyed = ` The cause: a destroy, or a replacement, of the assignment "dev", or its removal from the configuration`
	wantRefusal := func(limit string) string {
		return "This plan would remove 24 of 24 assignments on 24 hosts with 3 clusters, more than " + limit + ": " + firstTen
	}
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: manyTypesConfig(repo, "24", "")},
			{
				Config:      manyTypesConfig(repo, "4", ""),
				ExpectError: words(`This plan would remove 20 of 24 assignments on 20 hosts, more than the default of 50 %: type-10/app-all,`),
			},
			{
				Config:      manyTypesConfig(repo, "4", ""),
				ExpectError: words(`by 20 removed cluster types If that is meant, set protection = { max_removed = 20 }.`),
			},
			{
				Config: manyTypesConfig(repo, "0", "protection = { max_removed_percent = 60 }"),
				ExpectError: words(
					`24 assignments are deployed on 24 hosts with 3 clusters, and this plan would remove all of them: ` + firstTen + removedTypes + ` If that is meant, set protection = { allow_empty = true, max_removed_percent = 100 }.`,
				),
			},
			{Config: manyTypesConfig(repo, "23", "protection = { max_removed = 0 }"), ExpectError: words(`more than max_removed = 0`)},
			// A destroy, and a removal from the configuration.
			{Config: manyTypesConfig(repo, "24", ""), Destroy: true, ExpectError: words(wantRefusal("the default of 50 %"))},
			{
				Config: "locals {}\n",
				ExpectError: words(
					wantRefusal("the default of 50 %") + destroyed + ` If that is meant, set protection = { max_removed = 24 }, apply that, and then destroy.`,
				),
			},
			{Config: manyTypesConfig(repo, "24", "protection = { max_removed = 5, max_removed_percent = 10 }")},
			{
				Config: "locals {}\n",
				ExpectError: words(
					wantRefusal(
						"max_removed = 5",
					) + destroyed + ` If that is meant, set protection = { max_removed = 24, max_removed_percent = 100 }, apply that, and then destroy.`,
				),
			},
			{Config: manyTypesConfig(repo, "4", "protection = { max_removed_percent = 90 }")},
			{Config: manyTypesConfig(repo, "0", "protection = { max_removed_percent = 100, allow_empty = true }")},
		},
	})
}

func TestMassDeletionFailsThePlanAfterALostState(t *testing.T) {
	t.Parallel()
	repo := bareRepository(t)
	applyEach(t, repo, manyTypesConfig(repo, "24", ""))
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{
				Config: manyTypesConfig(repo, "4", ""),
				ExpectError: words(
					`The cause: 20 folders of "dev" that this state does not know, and that the fleet does not want: an earlier state was lost`,
				),
			},
			{Config: manyTypesConfig(repo, "4", "protection = { max_removed = 20 }"), ExpectError: regexp.MustCompile("Another assignment has this name")},
			{Config: manyTypesConfig(repo, "4", "protection = { max_removed = 20 }\n  adopt = true")},
		},
	})
}

func TestMassDeletionFoundAtApplyIsStopped(t *testing.T) {
	t.Parallel()
	repo := bareRepository(t)
	configuration := func(number string) string {
		types := "[for i in range(" + number + ") : { name = \"type-${i}\" }]"
		return "resource \"terraform_data\" \"types\" {\n  input = " + types + "\n}\n" +
			strings.Replace(manyTypesConfig(repo, number, ""), types, "terraform_data.types.output", 1)
	}
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: configuration("24")},
			{
				Config: configuration("4"),
				ExpectError: words(
					`type-18/app-all, type-19/app-all and 10 more. The cause: - app-all on type-10, type-11 and 18 more hosts: 20 assignments, by 20 removed cluster types`,
				),
			},
			{
				PreConfig: func() {
					if commits := repo.commits(t, "dev"); commits != 1 {
						t.Errorf("got %d commits, want one", commits)
					}
				},
				Config: manyTypesConfig(repo, "4", "protection = { max_removed = 20 }"),
			},
		},
	})
}
