package provider_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
)

const keepOnDestroy = `on_destroy = "keep"`

// removeRecords returns files without the records of the assignment dev.
func removeRecords(written map[string]string, at string) map[string]string {
	kept := map[string]string{}
	for name, content := range written {
		if !strings.HasPrefix(name, at+".flotilla/dev/") {
			kept[name] = content
		}
	}
	return kept
}

func TestKeptFoldersStayAndMayBeAdopted(t *testing.T) {
	t.Parallel()
	onEveryServer(t, func(t *testing.T, repo repository) {
		var written map[string]string
		checkKept := func(commits int) resource.TestCheckFunc {
			return func(*terraform.State) error {
				sameFiles(t, repo.read(t, "dev"), removeRecords(written, ""))
				if got := repo.commits(t, "dev"); got != commits {
					t.Errorf("got %d commits, want %d", got, commits)
				}
				return nil
			}
		}
		testSteps(t, resource.TestCase{
			Steps: []resource.TestStep{
				{
					Config: small{extra: keepOnDestroy}.config(repo), ConfigPlanChecks: emptyPlan,
					Check: func(*terraform.State) error {
						written = repo.read(t, "dev")
						return nil
					},
				},
				// the assignment leaves the configuration
				{Config: repo.provider + "locals {}\n", Check: checkKept(2)},
				{ // the same assignment returns with the same content
					Config: small{extra: keepOnDestroy}.config(repo), ConfigPlanChecks: emptyPlan,
					Check: func(*terraform.State) error {
						sameFiles(t, removeTimes(repo.read(t, "dev")), removeTimes(written))
						return nil
					},
				},
				{Config: small{extra: keepOnDestroy}.config(repo), Destroy: true, Check: checkKept(4)},
				{ // other content needs adopt
					Config: small{database: `"mysql://two"`}.config(repo),
					ExpectError: words(
						`folder "large/app-core" has files that no assignment's record lists. To take it over with all content, set adopt = true.`,
					),
				},
				{Config: small{database: `"mysql://two"`, extra: "adopt = true"}.config(repo), ConfigPlanChecks: emptyPlan},
			},
		})
	})
}

func TestProtectionIgnoresKeptFolders(t *testing.T) {
	t.Parallel()
	repo := bareRepository(t)
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: manyTypesConfig(repo, "24", keepOnDestroy+"\n protection = { max_removed = 0 }")},
			{Config: "locals {}\n"},
		},
	})
	if kept := repo.read(t, "dev"); len(kept) != 24*4 {
		t.Errorf("got %d files, want %d", len(kept), 24*4)
	}
}

func TestMoveKeepsTheOldLocationWithOnDestroyKeep(t *testing.T) {
	t.Parallel()
	repo := bareRepository(t)
	var old map[string]string
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{
				Config: small{path: "old"}.config(repo),
				Check: func(*terraform.State) error {
					old = repo.read(t, "dev")
					return nil
				},
			},
			{
				Config: small{path: "new", extra: keepOnDestroy}.config(repo), ConfigPlanChecks: emptyPlan,
				Check: func(*terraform.State) error {
					kept := map[string]string{}
					for name, content := range repo.read(t, "dev") {
						if strings.HasPrefix(name, "old/") {
							kept[name] = content
						}
					}
					sameFiles(t, kept, removeRecords(old, "old/"))
					return nil
				},
			},
		},
	})
}

func TestKeepingFoldersIsProposedInAPullRequest(t *testing.T) {
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	const request = "\n delivery = { mode = \"pull_request\", forge = \"gitea\" }"
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: small{extra: keepOnDestroy}.config(repo)},
			{Config: small{extra: keepOnDestroy + request}.config(repo)},
			{
				Config: repo.provider + "locals {}\n",
				Check: func(*terraform.State) error {
					all := listPullRequests(t, server, user)
					if len(all) != 1 || all[0].Title != "dev: 3 no longer managed" ||
						!strings.Contains(all[0].Body, "The records of this assignment are removed, and its folders stay.") {
						t.Errorf("got requests %+v, want one that removes the records", all)
					}
					return nil
				},
			},
		},
	})
}

// removeTimes removes times and holders from records.
func removeTimes(files map[string]string) map[string]string {
	changed := regexp.MustCompile(`,\s*"(changed|tree_before|holder)": "[^"]*"`)
	without := make(map[string]string, len(files))
	for name, content := range files {
		without[name] = changed.ReplaceAllString(content, "")
	}
	return without
}
