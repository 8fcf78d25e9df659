package provider_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/flotilla/terraform-provider-flotilla/internal/providertest"
)

func TestAdoptTakesOverAnotherAssignmentsFolders(t *testing.T) {
	t.Parallel()
	repo := bareRepository(t)
	second := strings.NewReplacer(`"flotilla_assignment" "test"`, `"flotilla_assignment" "second"`, `name        = "dev"`, `name        = "other"`)
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: small{}.config(repo)},
			{Config: second.Replace(small{}.config(repo)) + forgotten, ExpectError: words("belongs to the assignment")},
			{
				Config: second.Replace(small{extra: "adopt = true"}.config(repo)) + forgotten,
				Check: func(*terraform.State) error {
					written := files(t, repo.clone(t, "dev"))
					if !strings.Contains(written[".flotilla/other/drone.json"], "app-edge") || strings.Contains(written[".flotilla/dev/drone.json"], "app-edge") {
						t.Errorf("the records are\n%s\n%s", written[".flotilla/other/drone.json"], written[".flotilla/dev/drone.json"])
					}
					return nil
				},
			},
		},
	})
}

// halves are two assignments of one fleet at one location: "first" has the targets that firstHas selects,
// "second" those of secondHas.
func halves(repo repository, firstHas, secondHas, extra string) string {
	half := func(name, has, extra string) string {
		return fmt.Sprintf(`
locals {
  %[1]s = provider::flotilla::fleet({
    environment     = "dev"
    workspaces      = [{ name = "team" }]
    cluster_types   = [{ name = "drone" }]
    workloads       = [{ name = "app", workspace = "team", deployment_targets = { for name in ["a", "b", "c"] : name => { environment = "dev", labels = { is = name }, manifests = { repo = "https://git.example.com/app" } } } }]
    target_policies = [{ name = "all", deployment_target_selector = { expression = %[2]q }, cluster_type_selector = {} }]
  })
}
resource "flotilla_assignment" "%[1]s" {
  name        = %[1]q
  fleet       = local.%[1]s
  gitops_repo = { url = %[3]q, branch = "dev" }
  %[4]s
}
`, name, "is in ("+has+")", repo.url, extra)
	}
	return repo.provider + half("first", firstHas, "") + half("second", secondHas, extra)
}

// withoutOwner is the folder drone/app-b without the label that says whose it is.
func withoutOwner(t *testing.T, repo repository) string {
	t.Helper()
	text := ""
	all := files(t, repo.clone(t, "dev"))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(name, "drone/app-b/") {
			text += name + "\n" + regexp.MustCompile(`\n *flotilla.dev/owner: .*`).ReplaceAllString(all[name], "") + "\n"
		}
	}
	return text
}

func TestAFolderIsHandedOverInTwoApplies(t *testing.T) {
	t.Parallel()
	onEveryServer(t, func(t *testing.T, repo repository) {
		before := ""
		testSteps(t, resource.TestCase{
			Steps: []resource.TestStep{
				{
					Config: halves(repo, "a, b", "c", ""), ConfigPlanChecks: emptyPlan,
					Check: func(*terraform.State) error {
						before = withoutOwner(t, repo)
						return nil
					},
				},
				{Config: halves(repo, "a", "b, c", ""), ExpectError: words(`folder "drone/app-b" belongs to the assignment "first" at the root of the repository. To take it over, with what is in it, set adopt = true.`)},
				{Config: halves(repo, "a", "b, c", "adopt = true"), ExpectError: words(`The assignment "first" removes 1 folder that the assignment "second" adds: drone/app-b.`)},
				{Config: halves(repo, "a, b", "b, c", "adopt = true"), ConfigPlanChecks: emptyPlan},
				{
					Config: halves(repo, "a", "b, c", "adopt = true"), ConfigPlanChecks: emptyPlan,
					Check: func(*terraform.State) error {
						folder := repo.clone(t, "dev")
						if after := withoutOwner(t, repo); after != before {
							t.Errorf("the folder was\n%s\nand is\n%s", before, after)
						}
						written := files(t, folder)
						if first, second := written[".flotilla/first/drone.json"], written[".flotilla/second/drone.json"]; strings.Contains(first, "app-b") || !strings.Contains(second, "app-b") {
							t.Errorf("the records are\n%s\n%s", first, second)
						}
						return nil
					},
				},
			},
		})
	})
}

func TestThePlanSaysInWordsWhatIsUnusual(t *testing.T) {
	t.Parallel()
	repo := bareRepository(t)
	first, _ := twoVersions(t, repo)
	w := providertest.New(startProvider)
	says := func(config string, want ...string) {
		t.Helper()
		plan, said := w.Plan(t.Context(), moduleOf(t, config).Configuration)
		if said.Err() != nil {
			t.Fatal(said.Err())
		}
		for _, text := range want {
			if !words(text).MatchString(said.String()) {
				t.Errorf("the plan does not say %q:\n%s", text, said)
			}
		}
		if said := w.ApplyPlan(t.Context(), plan); said.Err() != nil {
			t.Fatal(said.Err())
		}
	}
	says(small{extra: rollback(first)}.config(repo), "Warning: Assignment is rolled back",
		`The folders of "dev" are what commit `+first+` has. Changes of the fleet wait until rollback_to is removed.`)
	says(small{extra: keep}.config(repo))
	says("locals {}\n", "Warning: Folders stay",
		"3 assignments on 2 hosts: their folders stay in the repository, and no assignment manages them until one adopts them.")
	says(small{database: `"mysql://three"`, extra: "adopt = true"}.config(repo), "Warning: Folders are taken over",
		`folder "large/app-core" has files that no assignment's record lists.`)
	other := strings.Replace(small{database: `"mysql://three"`, extra: "adopt = true"}.config(repo), `name        = "dev"`, `name        = "other"`, 1)
	w.Lose(assignment)
	says(other, "Warning: Folders are taken over", `folder "drone/app-core" belongs to the assignment "dev" at the root of the repository.
Folder "drone/app-edge" belongs to the assignment "dev" at the root of the repository.
Folder "large/app-core" belongs to the assignment "dev" at the root of the repository.`)
}

// TestAFolderIsHandedOverByPullRequest takes two applies: the folder is in two fleets until it is merged.
func TestAFolderIsHandedOverByPullRequest(t *testing.T) {
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	const extra = `
  adopt    = true
  delivery = { mode = "pull_request", forge = "gitea" }
`
	before := ""
	folder := func() string { return withoutOwner(t, repo) }
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{
				Config: halves(repo, "a, b", "c", ""),
				Check: func(*terraform.State) error {
					before = folder()
					return nil
				},
			},
			{
				Config: halves(repo, "a, b", "b, c", extra), ConfigPlanChecks: emptyPlan,
				Check: func(*terraform.State) error {
					all := requests(t, server, user)
					if len(all) != 1 || all[0].State != "open" {
						t.Fatalf("requests %+v, want one that is open", all)
					}
					mergeRequest(t, server, user, all[0].Number, all[0].Head.SHA)
					return nil
				},
			},
			{ // whose it is, only who writes reads
				Config:           halves(repo, "a, b", "b, c", extra),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			},
			{
				Config: halves(repo, "a", "b, c", extra), ConfigPlanChecks: emptyPlan,
				Check: func(*terraform.State) error {
					if folder() != before {
						t.Error("the folder changed")
					}
					if all := requests(t, server, user); len(all) != 1 {
						t.Errorf("requests %+v, want one that was merged", all)
					}
					return nil
				},
			},
		},
	})
}
