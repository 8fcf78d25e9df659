package provider_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/flotilla/terraform-provider-flotilla/internal/observe"
)

// scripted is an assignment in three stages whose evidence is a file, which the test writes before each run.
func scripted(repo repository, evidence, version, onFailure string) string {
	rings := ""
	clusters := ""
	for _, ring := range []string{"canary", "region", "rest"} {
		rings += fmt.Sprintf("{ name = %q, labels = { ring = %q } },\n", ring, ring)
		clusters += fmt.Sprintf("{ name = %q, cluster_type = %q, environment = \"dev\" },\n", ring, ring)
	}
	return repo.provider + fmt.Sprintf(`
locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "team" }]
    cluster_types = [%s]
    clusters      = [%s]
    workloads = [{
      name = "app", workspace = "team"
      deployment_targets = { core = { environment = "dev", manifests = { repo = "https://git.example.com/app", branch = "main" } } }
    }]
    target_policies   = [{ name = "all", deployment_target_selector = {}, cluster_type_selector = {} }]
    config_containers = [{ name = "all", data = { VERSION = %q } }]
  })
}

resource "flotilla_assignment" "test" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = { url = %q, branch = "dev", path = "" }
  evidence    = file(%q)
  rollout = {
    stages = [for ring in ["canary", "region"] : { name = ring, cluster_type_selector = { match_labels = { ring = ring } } }]
    on_failure = %q
  }
}
`, rings, clusters, version, repo.url, evidence, onFailure)
}

func TestRolloutInThreeStagesOnGitea(t *testing.T) {
	t.Parallel()
	for _, onFailure := range []string{"halt", "roll_back"} {
		t.Run(onFailure, func(t *testing.T) {
			t.Parallel()
			repo, _, _ := giteaWithUser(t)
			evidence := filepath.ToSlash(filepath.Join(t.TempDir(), "evidence.json"))
			now := time.Now().UTC().Truncate(time.Second)
			commits := map[string]string{}
			says := map[string]observe.Verdict{}
			// write is what clusters say before a run: those that are named have the tip.
			write := func(verdicts map[string]observe.Verdict) func() {
				return func() {
					now = now.Add(time.Hour)
					tip := ""
					if repo.has(t, "dev") {
						tip = git(t, repo.clone(t, "dev"), "rev-parse", "HEAD")
					}
					e := &observe.Evidence{
						About: observe.About{Owner: "dev", Environment: "dev", Branch: "dev"}, Time: now, Tip: tip, Clusters: map[string]observe.Cluster{}, Trees: map[string]map[string]string{},
					}
					for name, verdict := range verdicts {
						commits[name], says[name] = tip, verdict
					}
					for _, name := range []string{"canary", "region", "rest"} {
						c := observe.Cluster{Type: name, Status: observe.Status{Verdict: observe.Unknown}}
						if says[name] != "" {
							c.Commit, c.Status = commits[name], observe.Status{Verdict: says[name], Since: now.Add(-time.Minute)}
						}
						e.Clusters[name] = c
					}
					writeFile(t, evidence, string(e.Marshal()))
				}
			}
			versions := func(want string) resource.TestCheckFunc {
				return func(*terraform.State) error {
					content := files(t, repo.clone(t, "dev"))
					var got []string
					for _, host := range []string{"canary", "region", "rest"} {
						_, version, _ := strings.Cut(content[host+"/app-core/platform-config.yaml"], "VERSION:")
						version, _, _ = strings.Cut(version, "\n")
						got = append(got, strings.Trim(strings.TrimSpace(version), `"'`))
					}
					if text := strings.Join(got, " "); text != want {
						return fmt.Errorf("deployed %q, want %q", text, want)
					}
					return nil
				}
			}
			ready, failed := observe.Ready, observe.Failed
			all := map[string]observe.Verdict{"canary": ready, "region": ready, "rest": ready}
			type run struct {
				version string
				says    map[string]observe.Verdict
				want    string
			}
			runs := []run{
				{"1", nil, "1  "},
				{"1", map[string]observe.Verdict{"canary": ready}, "1 1 "},
				{"1", map[string]observe.Verdict{"region": ready}, "1 1 1"},
				{"1", all, "1 1 1"},
				{"2", all, "2 1 1"},
				{"2", map[string]observe.Verdict{"canary": ready}, "2 2 1"},
			}
			after := map[string][]run{
				"halt": {
					{"2", map[string]observe.Verdict{"region": failed}, "2 2 1"},
					{"3", map[string]observe.Verdict{"region": observe.Unknown}, "3 2 1"},
					{"3", map[string]observe.Verdict{"canary": ready}, "3 3 1"},
					{"3", map[string]observe.Verdict{"region": ready}, "3 3 3"},
					{"3", all, "3 3 3"},
				},
				"roll_back": {
					{"2", map[string]observe.Verdict{"region": failed}, "1 1 1"},
					{"2", all, "1 1 1"},
				},
			}
			var steps []resource.TestStep
			for _, one := range append(runs, after[onFailure]...) {
				steps = append(steps, resource.TestStep{
					PreConfig: write(one.says), Config: scripted(repo, evidence, one.version, onFailure), Check: versions(one.want),
					ConfigPlanChecks: emptyPlan,
				})
			}
			resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: factories(), Steps: steps})
		})
	}
}

// has says whether the repository has a branch.
func (r repository) has(t *testing.T, branch string) bool {
	t.Helper()
	folder := t.TempDir()
	git(t, folder, "init", "-q")
	return strings.Contains(git(t, folder, "ls-remote", r.cloneURL), "refs/heads/"+branch)
}
