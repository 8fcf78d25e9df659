package provider_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// small is a fleet of three cluster types and two deployment targets: "edge" goes to drone, "core" to drone and large.
type small struct {
	database string // HCL value for the host large
	extra    string // HCL attributes of the assignment
	fleet    string // HCL attributes of the fleet
	path     string
	before   string // HCL blocks before the fleet
}

func (s small) config(repo repository) string {
	if s.database == "" {
		s.database = `"mysql://one"`
	}
	return repo.provider + s.before + fmt.Sprintf(`
locals {
  fleet = provider::flotilla::fleet({
    environment = "dev"
    workspaces  = [{ name = "team" }]
    cluster_types = [
      { name = "drone", labels = { edge = "true" } },
      { name = "large", labels = { size = "large" } },
      { name = "spare" },
    ]
    workloads = [{
      name      = "app"
      workspace = "team"
      deployment_targets = {
        edge = { environment = "dev", labels = { edge = "true" }, manifests = { repo = "https://git.example.com/app", branch = "main" } }
        core = { environment = "dev", manifests = { repo = "https://git.example.com/app", branch = "main", path = "core" } }
      }
    }]
    target_policies = [
      { name = "edge", deployment_target_selector = { match_labels = { edge = "true" } }, cluster_type_selector = { match_labels = { edge = "true" } } },
      { name = "core", deployment_target_selector = { expression = "!edge" }, cluster_type_selector = { expression = "edge=true" } },
      { name = "core-on-large", deployment_target_selector = { expression = "!edge" }, cluster_type_selector = { match_labels = { size = "large" } } },
    ]
    config_containers = [
      { name = "all", data = { LOG_LEVEL = "info" } },
      { name = "large", labels = { cluster-type = "large" }, data = { DATABASE_URL = %[1]s } },
    ]
    %[2]s
  })
}

resource "flotilla_assignment" "test" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = { url = %[3]q, branch = "dev", path = %[4]q }
  %[5]s
}
`, s.database, s.fleet, repo.url, s.path, s.extra)
}

const assignment = "flotilla_assignment.test"

// contentOf returns the attribute content of hosts and folders, in order: "<host>" and "<host>/<deployment target> <tree>".
func contentOf(lines ...string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(lines, "\n")+"\n")))[:16]
}

func TestApplyMakesOneCommitAndTheNextPlanIsEmpty(t *testing.T) {
	t.Parallel()
	onEveryServer(t, func(t *testing.T, repo repository) {
		testSteps(t, resource.TestCase{
			ProtoV6ProviderFactories: factories(),
			Steps: []resource.TestStep{{
				Config:           small{path: "clusters/all"}.config(repo),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(assignment, tfjsonpath.New("pull_request"), knownvalue.Null()),
				},
				Check: func(state *terraform.State) error {
					folder := repo.clone(t, "dev")
					if got := git(t, folder, "rev-parse", "HEAD"); got != state.RootModule().Resources[assignment].Primary.Attributes["commit"] {
						t.Errorf("the branch is at %s, which is not the attribute commit", got)
					}
					written := files(t, filepath.Join(folder, "clusters", "all"))
					for _, name := range []string{
						"drone/app-edge/namespace.yaml", "drone/app-edge/platform-config.yaml", "drone/app-edge/reconciler.yaml",
						"drone/app-core/reconciler.yaml", "large/app-core/reconciler.yaml",
						"drone/dev.md", "large/dev.md", "spare/dev.md", ".flotilla/dev/drone.json",
					} {
						if _, ok := written[name]; !ok {
							t.Errorf("%s is missing", name)
						}
					}
					clone := folder
					content := state.RootModule().Resources[assignment].Primary.Attributes["content"]
					tree := func(folder string) string {
						return folder + " " + git(t, clone, "rev-parse", "HEAD:clusters/all/"+folder)
					}
					want := contentOf("drone", tree("drone/app-core"), tree("drone/app-edge"), "large", tree("large/app-core"), "spare")
					if content != want {
						t.Errorf("content is %s, and the trees have %s", content, want)
					}
					return nil
				},
			}},
		})
	})
}

// TestHelloWorld tests the same in `make test`.
func TestUnknownValueMakesOnlyTheHostsItReachesUnknown(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	repo := bareRepository(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		Steps: []resource.TestStep{{
			Config: small{
				before: "resource \"terraform_data\" \"database\" {\n  input = \"mysql://one\"\n}\n" +
					"data \"flotilla_scheduling\" \"test\" {\n  fleet = local.fleet\n}\n",
				database: "terraform_data.database.output",
			}.config(repo),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectUnknownValue(assignment, tfjsonpath.New("content")),
				expectReadAtPlan{"data.flotilla_scheduling.test"},
			}},
		}},
	})
}

func TestOneChangedValueChangesOnlyTheHostsItReaches(t *testing.T) {
	t.Parallel()
	onEveryServer(t, func(t *testing.T, repo repository) {
		var before string
		testSteps(t, resource.TestCase{
			Steps: []resource.TestStep{
				{
					Config: small{}.config(repo),
					Check: func(*terraform.State) error {
						before = repo.tip(t, "dev")
						return nil
					},
				},
				{
					Config: small{database: `"mysql://two"`}.config(repo),
					ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
						expectOnlyChanges{assignment, []string{"changes", "commit", "content"}},
					}},
					Check: func(*terraform.State) error {
						changed := git(t, repo.clone(t, "dev"), "diff", "--name-only", before, "HEAD")
						if changed != ".flotilla/dev/large.json\nlarge/app-core/platform-config.yaml" {
							t.Errorf("changed files:\n%s", changed)
						}
						return nil
					},
				},
			},
		})
	})
}

func replaceByLink(t *testing.T, path string) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(path), os.Symlink("/etc", path)); err != nil {
		t.Fatal(err)
	}
}

// replaceBySubmodule also removes the folder from the index, so that git adds the new repository as a submodule.
func replaceBySubmodule(t *testing.T, path string) {
	t.Helper()
	git(t, filepath.Dir(path), "rm", "-r", "--quiet", "--cached", filepath.Base(path))
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	git(t, filepath.Dir(path), "init", "--quiet", filepath.Base(path))
	git(t, path, "commit", "--quiet", "--allow-empty", "--message", "of another repository")
}

func TestDriftShowsInThePlanAndIsRepairedInOneCommit(t *testing.T) {
	t.Parallel()
	for name, tamper := range map[string]func(t *testing.T, folder string){
		"file changed": func(t *testing.T, folder string) {
			writeFile(t, filepath.Join(folder, "drone/app-edge/namespace.yaml"), "kind: Oops\n")
		},
		"file added": func(t *testing.T, folder string) {
			writeFile(t, filepath.Join(folder, "drone/app-edge/more.yaml"), "kind: More\n")
		},
		"file removed":   func(_ *testing.T, folder string) { os.Remove(filepath.Join(folder, "drone/app-edge/namespace.yaml")) },
		"folder removed": func(_ *testing.T, folder string) { os.RemoveAll(filepath.Join(folder, "drone/app-edge")) },
		"folder became a link": func(t *testing.T, folder string) {
			replaceByLink(t, filepath.Join(folder, "drone/app-edge"))
		},
		"folder became a submodule": func(t *testing.T, folder string) {
			replaceBySubmodule(t, filepath.Join(folder, "drone/app-edge"))
		},
		"marker became a link": func(t *testing.T, folder string) { replaceByLink(t, filepath.Join(folder, "drone/dev.md")) },
		"record became a link": func(t *testing.T, folder string) { replaceByLink(t, filepath.Join(folder, ".flotilla/dev/drone.json")) },
		"record is not JSON": func(t *testing.T, folder string) {
			writeFile(t, filepath.Join(folder, ".flotilla/dev/drone.json"), "not JSON")
		},
		"marker removed": func(_ *testing.T, folder string) { os.Remove(filepath.Join(folder, "drone/dev.md")) },
		"record removed": func(_ *testing.T, folder string) { os.Remove(filepath.Join(folder, ".flotilla/dev/drone.json")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEveryServer(t, func(t *testing.T, repo repository) {
				var original map[string]string
				change := repo.change
				if strings.Contains(name, "became") {
					change = repo.changeByGit
				}
				places := []string{"changes", "commit", "content"}
				if strings.HasPrefix(name, "marker") || strings.HasPrefix(name, "record") {
					places = []string{"changes", "commit"} // the folders are unchanged
				}
				testSteps(t, resource.TestCase{
					Steps: []resource.TestStep{
						{
							Config: small{}.config(repo),
							Check: func(*terraform.State) error {
								original = repo.read(t, "dev")
								change(t, "dev", func(folder string) {
									tamper(t, folder)
									writeFile(t, filepath.Join(folder, "drone/somebody/else.yaml"), "kind: Foreign\n")
									writeFile(t, filepath.Join(folder, "README.md"), "Ours, by hand\r\n")
								})
								return nil
							},
							ExpectNonEmptyPlan: true,
						},
						{
							Config: small{}.config(repo),
							ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
								expectOnlyChanges{assignment, places},
							}},
							Check: func(*terraform.State) error {
								if commits := repo.commits(t, "dev"); commits != 3 {
									t.Errorf("%d commits, want three: written, tampered with, repaired", commits)
								}
								repaired := repo.read(t, "dev")
								if repaired["drone/somebody/else.yaml"] != "kind: Foreign\n" || repaired["README.md"] != "Ours, by hand\r\n" {
									t.Error("foreign files were changed")
								}
								delete(repaired, "drone/somebody/else.yaml")
								delete(repaired, "README.md")
								sameFiles(t, removeTimes(repaired), removeTimes(original))
								return nil
							},
						},
					},
				})
			})
		})
	}
}

func TestAfterALostStateApplyChangesOnlyTheHolder(t *testing.T) {
	t.Parallel()
	onEveryServer(t, func(t *testing.T, repo repository) {
		var written []map[string]string
		for run := range 2 {
			testSteps(t, resource.TestCase{
				Steps: []resource.TestStep{
					{Config: small{}.config(repo)},
					{Config: repo.provider + removedBlock},
				},
			})
			if commits := repo.commits(t, "dev"); commits != run+1 {
				t.Fatalf("%d commits, want one for each state", commits)
			}
			written = append(written, removeTimes(repo.read(t, "dev")))
		}
		sameFiles(t, written[1], written[0])
	})
}

func TestChangeOfTheMessageAloneMakesNoCommit(t *testing.T) {
	t.Parallel()
	repo := bareRepository(t)
	check := func(*terraform.State) error {
		if commits := repo.commits(t, "dev"); commits != 1 {
			t.Errorf("%d commits, want one", commits)
		}
		return nil
	}
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: small{}.config(repo), Check: check},
			{
				Config: small{extra: "commit_message = \"Roll out\"\n  delivery = { mode = \"push\" }"}.config(repo), Check: check,
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					expectOnlyChanges{assignment, []string{"commit_message", "delivery"}},
				}},
			},
		},
	})
}

func TestChangeOfTheAuthorAloneMakesNoCommit(t *testing.T) {
	t.Parallel()
	repo := bareRepository(t)
	configFor := func(author string) string {
		return fmt.Sprintf("provider \"flotilla\" {\n  git = { author_name = %q, author_email = \"%s@example.com\" }\n}\n", author, author)
	}
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: configFor("one") + small{}.config(repo)},
			{
				Config:           configFor("two") + small{}.config(repo),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
				Check: func(*terraform.State) error {
					if authors := git(t, repo.clone(t, "dev"), "log", "--format=%an <%ae>"); authors != "one <one@example.com>" {
						t.Errorf("the commits are by %s", authors)
					}
					return nil
				},
			},
		},
	})
}

func TestDestroyRemovesOnlyOwnedFiles(t *testing.T) {
	t.Parallel()
	onEveryServer(t, func(t *testing.T, repo repository) {
		testSteps(t, resource.TestCase{
			Steps: []resource.TestStep{
				{
					Config: small{}.config(repo),
					Check: func(*terraform.State) error {
						repo.change(t, "dev", func(folder string) {
							writeFile(t, filepath.Join(folder, "drone/somebody/else.yaml"), "kind: Foreign\n")
						})
						return nil
					},
				},
				{Config: repo.provider + "locals {}\n"},
			},
		})
		got := repo.read(t, "dev")
		for _, host := range []string{"drone", "large", "spare"} {
			if marker := host + "/dev.md"; !isVacated(got[marker]) {
				t.Errorf("marker %s is %q", marker, got[marker])
			}
			delete(got, host+"/dev.md")
		}
		sameFiles(t, got, map[string]string{"drone/somebody/else.yaml": "kind: Foreign\n"})
	})
}

func TestMoveWritesTheNewLocationAndClearsTheOldOne(t *testing.T) {
	t.Parallel()
	onEveryServer(t, func(t *testing.T, repo repository) {
		testSteps(t, resource.TestCase{
			Steps: []resource.TestStep{
				{Config: small{path: "old"}.config(repo)},
				{
					Config: small{path: "new"}.config(repo),
					Check: func(*terraform.State) error {
						for name, content := range repo.read(t, "dev") {
							if !strings.HasPrefix(name, "new/") && !isVacated(content) {
								t.Errorf("%s still exists", name)
							}
						}
						return nil
					},
				},
			},
		})
	})
}

// isVacated reports whether a marker says that its owner has left the host.
func isVacated(marker string) bool {
	return strings.HasPrefix(marker, "Nothing of the assignment `dev` is here any more.")
}

func sameFiles(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, content := range want {
		if got[name] != content {
			t.Errorf("%s is\n%s\nwant\n%s", name, got[name], content)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is unexpected", name)
		}
	}
}
