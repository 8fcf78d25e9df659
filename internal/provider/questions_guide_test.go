package provider_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheQuestionsAtNightAreAnswered types the commands of each answer on the page "Questions at night". Other tests of each topic:
//
//   - Rollouts that wait: rollout/guide_internal_test.go (the table), rollout_guide_test.go and its neighbours (the next steps).
//   - Removed folders: data_source_history in data_source_test.go, source_test.go (the trailer Flotilla-Source).
//   - The host of a workload: data_source_scheduling in data_source_test.go.
//   - Back to yesterday: rollback_test.go.
//   - One cluster: rollout_guide_proof_test.go (rollouts that wait for it), onboarding_guide_test.go and onboarding/remove_test.go
//     (pruning, unreachable clusters, clusters that the provider does not name).
//   - Errors: troubleshooting/troubleshooting_test.go (a section for each title).
//   - Accidents: what_now_guide_test.go.
func TestTheQuestionsAtNightAreAnswered(t *testing.T) {
	t.Parallel()
	tools := acceptanceTools(t)
	page := filepath.Join("templates", "guides", "night.md")
	mirrored, err := mirror()
	if err != nil {
		t.Fatal(err)
	}
	newcomers := readFile(t, filepath.Join("..", "..", "examples", "newcomer", "main.tf"))
	staged := requiredProviders + readFile(t, filepath.Join("..", "..", filepath.FromSlash(stagesExample)))
	for name, tool := range tools {
		openSection := func(t *testing.T, question string) (newcomer, []codeBlock) {
			t.Helper()
			return newNewcomer(
					t,
					tool,
					"TF_CLI_CONFIG_FILE="+filepath.Join(mirrored, "cli.tfrc"),
					"TF_CLI_ARGS_apply=-auto-approve",
					"TF_CLI_ARGS_destroy=-auto-approve",
				),
				codeBlocks(
					sectionOf(t, page, question),
				)
		}
		configure := func(n newcomer, text string) { writeFile(t, filepath.Join(n.folder, "main.tf"), text) }
		runCommands := func(t *testing.T, n newcomer, lines ...string) {
			t.Helper()
			n.play(t, []codeBlock{{"console", "$ " + strings.Join(lines, "\n$ ") + "\n"}})
		}
		t.Run(name+"/rollout", func(t *testing.T) {
			t.Parallel()
			n, blocks := openSection(t, "Why does my rollout wait?")
			configure(n, staged)
			runCommands(t, n, "terraform init", "terraform apply")
			n.play(t, blocks)
		})
		t.Run(name+"/folder", func(t *testing.T) {
			t.Parallel()
			n, blocks := openSection(t, "Who removed this folder?")
			configure(n, newcomers)
			runCommands(
				t,
				n,
				"terraform init",
				"terraform apply",
				"git clone --quiet --branch dev gitops.git work",
				"git -C work rm --quiet -r store/checkout-till",
				"git -C work commit --quiet --message 'Tidy up'",
				"git -C work push --quiet",
			)
			n.play(t, blocks)
		})
		t.Run(name+"/why", func(t *testing.T) {
			t.Parallel()
			n, blocks := openSection(t, "Why does this workload run there?")
			configure(n, newcomers+blocks[0].text)
			runCommands(t, n, "terraform init")
			n.play(t, blocks[1:])
		})
		t.Run(name+"/back", func(t *testing.T) {
			t.Parallel()
			n, blocks := openSection(t, "How do I go back to yesterday?")
			configure(n, newcomers)
			runCommands(t, n, "terraform init", "terraform apply", "terraform apply -var currency=CHF")
			n.play(t, blocks[:1])
			_, argument, _ := strings.Cut(blocks[1].text, "# …\n")
			argument, _, _ = strings.Cut(argument, "\n")
			const before = `branch = "dev" }`
			configure(
				n,
				strings.Replace(
					newcomers,
					before,
					before+"\n"+variableText.ReplaceAllString(argument, git(t, filepath.Join(n.folder, "gitops.git"), "rev-parse", "dev~1")),
					1,
				),
			)
			n.play(t, blocks[2:])
		})
		t.Run(name+"/cluster", func(t *testing.T) {
			t.Parallel()
			n, blocks := openSection(t, "How do I let one cluster go?")
			cluster := &standInCluster{}
			url, certificate := cluster.start(t)
			configureStores := func(stores string) {
				configure(n, requiredProviders+fmt.Sprintf(`
locals {
  stores = toset([%s])
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "shop" }]
    cluster_types = [{ name = "store" }]
    clusters      = [for name in local.stores : { name = name, cluster_type = "store" }]
    workloads = [{
      name = "checkout", workspace = "shop"
      deployment_targets = { till = { environment = "dev", manifests = { repo = "https://git.example.com/checkout", path = "till" } } }
    }]
    target_policies = [{ name = "tills", cluster_selector = {} }]
  })
}

provider "flotilla" {
  clusters = { for name in local.stores : name => { host = "%s/${name}", cluster_ca_certificate = %q, token = "x" } }
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "dev" }
}

resource "flotilla_agent" "store" {
  for_each               = local.stores
  cluster                = each.key
  cluster_type           = "store"
  gitops_repo            = { url = "https://git.example.com/gitops", branch = "dev" }
  credentials_wo         = { token = "x" }
  credentials_wo_version = 1
}
`, stores, url, certificate))
			}
			countObjects := func(name string) (number int) {
				cluster.mu.Lock()
				defer cluster.mu.Unlock()
				for key := range cluster.objects {
					if strings.HasPrefix(key, name+"/") && strings.Contains(key, "/kustomizations/") {
						number++
					}
				}
				return number
			}
			configureStores(`"store-17", "store-18"`)
			runCommands(t, n, "terraform init", "terraform apply")
			if countObjects("store-17") == 0 {
				t.Fatal("there is no agent")
			}
			n.play(t, blocks[:1])
			if countObjects("store-17") != 0 || countObjects("store-18") == 0 {
				t.Errorf("%d objects are on the cluster, %d on the other", countObjects("store-17"), countObjects("store-18"))
			}
			configureStores(`"store-18"`)
			n.play(t, blocks[1:])
			runCommands(t, n, "terraform apply")
			n.play(t, []codeBlock{{"console", "$ terraform plan\n...\nNo changes.\n"}})
			if countObjects("store-18") == 0 {
				t.Error("the other cluster has no agent any more")
			}
			// A dead cluster leaves in one run.
			configureStores(`"store-18", "store-19"`)
			runCommands(t, n, "terraform apply")
			configureStores(`"store-18"`)
			n.play(
				t,
				[]codeBlock{
					{
						"console",
						"$ terraform apply\n...\nWarning: Cluster is given up\n...\nApply complete! Resources: 0 added, 1 changed, 1 destroyed.\n",
					},
				},
			)
		})
		t.Run(name+"/error", func(t *testing.T) {
			t.Parallel()
			n, blocks := openSection(t, "What does this error want?")
			configure(n, newcomers)
			runCommands(t, n, "terraform init")
			for i, mistake := range []string{`branch = "dev" }`, "config_containers = ["} {
				wrong := map[int]string{0: `brnch = "dev" }`, 1: "config_container = ["}[i]
				configure(n, strings.Replace(newcomers, mistake, wrong, 1))
				blocks[i].text = strings.Replace(blocks[i].text, "terraform validate", "! terraform validate", 1)
				n.play(t, blocks[i:i+1])
			}
		})
	}
}

func TestTheStartPageLeadsToTheQuestionsAtNight(t *testing.T) {
	t.Parallel()
	pages := readDocumentation(t)
	beginning, _, _ := strings.Cut(pages["docs/index.md"], "\n## Five minutes\n")
	night, _, _ := strings.Cut(pages["docs/guides/night.md"], "\n## Backup and recovery\n")
	questions := headingPattern.FindAllStringSubmatch(codePattern.ReplaceAllString(night, ""), -1)[1:]
	if len(questions) != 7 {
		t.Errorf("got %d questions, want 7", len(questions))
	}
	for _, question := range questions {
		anchor := strings.ReplaceAll(slugPattern.ReplaceAllString(strings.ToLower(question[1]), ""), " ", "-")
		if link := "[" + question[1] + "](guides/night.md#" + anchor + ")"; !strings.Contains(beginning, link) {
			t.Errorf("the start page does not begin with %s", link)
		}
	}
}
