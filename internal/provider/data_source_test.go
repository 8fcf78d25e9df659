package provider_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const explainedFleet = `
locals {
  fleet = provider::flotilla::fleet({
    environment = "dev"
    workspaces  = [{ name = "team" }]
    cluster_types = [
      { name = "drone", labels = { edge = "true", region = "east" } },
      { name = "tainted", labels = { gpu = "true" }, taints = [{ key = "gpu" }] },
    ]
    clusters = [{ name = "drone-7", cluster_type = "drone", labels = { site = "harbour" } }]
    workloads = [{
      name      = "app"
      workspace = "team"
      deployment_targets = {
        edge    = { environment = "dev", labels = { purpose = "edge" }, manifests = { repo = "https://git.example.com/app" } }
        gpu     = { environment = "dev", labels = { purpose = "gpu" }, manifests = { repo = "https://git.example.com/app" } }
        west    = { environment = "dev", labels = { purpose = "west" }, manifests = { repo = "https://git.example.com/app" } }
        nowhere = { environment = "dev", labels = { purpose = "nothing" }, manifests = { repo = "https://git.example.com/app" } }
        harbour = { environment = "dev", labels = { purpose = "harbour" }, manifests = { repo = "https://git.example.com/app" } }
        prod    = { environment = "prod", manifests = { repo = "https://git.example.com/app" } }
      }
    }]
    target_policies = [
      { name = "edge", deployment_target_selector = { match_labels = { purpose = "edge" } }, cluster_type_selector = { match_labels = { edge = "true" } } },
      { name = "also-edge", deployment_target_selector = { expression = "purpose in (edge)" }, cluster_type_selector = { match_labels = { edge = "true" } } },
      { name = "gpu", deployment_target_selector = { match_labels = { purpose = "gpu" } }, cluster_type_selector = { match_labels = { gpu = "true" } } },
      { name = "west", deployment_target_selector = { match_labels = { purpose = "west" } }, cluster_type_selector = { match_labels = { edge = "true", region = "west" } } },
      { name = "harbour", deployment_target_selector = { match_labels = { purpose = "harbour" } }, cluster_selector = { match_labels = { site = "harbour" } } },
      { name = "idle", deployment_target_selector = { match_labels = { purpose = "typo" } }, cluster_type_selector = {} },
    ]
    config_containers = [
      { name = "all", data = { LOG_LEVEL = "info", REGION = "somewhere", database = { host = "h", port = 1 } } },
      { name = "lost", labels = { region = "nowhere" }, data = { REGION = "Nowhere" } },
      { name = "east", labels = { region = "east" }, data = { REGION = "East", database = { host = null } } },
    ]
  })
}
`

func TestSchedulingListsAssignmentsAndTheirReasons(t *testing.T) {
	t.Parallel()
	const address = "data.flotilla_scheduling.dev"
	text := func(value string) knownvalue.Check { return knownvalue.StringExact(value) }
	unscheduled := func(target, reason string, host, failed knownvalue.Check) knownvalue.Check {
		return knownvalue.ObjectExact(map[string]knownvalue.Check{
			"deployment_target": text(target), "reason": text(reason), "nearest_host": host, "failed_requirement": failed,
		})
	}
	testSteps(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		Steps: []resource.TestStep{{
			Config: explainedFleet + "data \"flotilla_scheduling\" \"dev\" {\n  fleet = local.fleet\n}\n",
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(address, tfjsonpath.New("assignments"), knownvalue.MapExact(map[string]knownvalue.Check{
					"drone/app-edge": knownvalue.ObjectExact(map[string]knownvalue.Check{
						"cluster_type": text("drone"), "cluster": knownvalue.Null(),
						"deployment_target": text("app-edge"), "namespace": text("dev-drone-app-edge"),
						"policies": knownvalue.ListExact([]knownvalue.Check{text("also-edge"), text("edge")}),
					}),
					"clusters/drone-7/app-harbour": knownvalue.ObjectPartial(map[string]knownvalue.Check{
						"cluster_type": text("drone"), "cluster": text("drone-7"), "namespace": text("dev-drone-7-app-harbour"),
					}),
				})),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("deployment_targets"), knownvalue.MapExact(map[string]knownvalue.Check{
					"app-edge":    knownvalue.ObjectExact(map[string]knownvalue.Check{"workload": text("app"), "workspace": text("team")}),
					"app-harbour": knownvalue.ObjectExact(map[string]knownvalue.Check{"workload": text("app"), "workspace": text("team")}),
				})),
				statecheck.ExpectKnownValue(
					address,
					tfjsonpath.New("reconcilers"),
					knownvalue.MapExact(map[string]knownvalue.Check{"drone": text("flux")}),
				),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("fleet").AtMapKey("model"),
					knownvalue.StringRegexp(regexp.MustCompile(`^sha256:[0-9a-f]{64}$`))),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("unscheduled"), knownvalue.ListExact([]knownvalue.Check{
					unscheduled("app-gpu", `target policy "gpu" selects it and host "tainted", but does not tolerate the host's taint gpu:NoSchedule`,
						text("tainted"), text("taint gpu:NoSchedule")),
					unscheduled("app-nowhere", `no target policy selects it; nearest is "also-edge", which wants purpose in (edge)`,
						knownvalue.Null(), text("purpose in (edge)")),
					unscheduled("app-west", `target policy "west" selects it, but no cluster type of environment "dev" has edge=true,region=west`,
						text("drone"), text("region=west")),
				})),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("idle_hosts"), knownvalue.ListExact([]knownvalue.Check{text("tainted")})),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("idle_config_containers"), knownvalue.ListExact([]knownvalue.Check{text("lost")})),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("idle_policies"), knownvalue.ListPartial(map[int]knownvalue.Check{
					1: knownvalue.ObjectExact(map[string]knownvalue.Check{"name": text("idle"), "reason": text("selects no deployment target")}),
				})),
			},
		}},
	})
}

func TestConfigSnapshotsNameTheSourceOfEachValue(t *testing.T) {
	t.Parallel()
	testSteps(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		Steps: []resource.TestStep{{
			Config: explainedFleet + `
data "flotilla_config_snapshots" "all" {
  fleet        = local.fleet
  cluster_type = "drone"
}

data "flotilla_config_snapshots" "nobody" {
  fleet = local.fleet
  key   = "/database/host"
}

data "flotilla_config_snapshots" "port" {
  fleet   = local.fleet
  cluster = "drone-7"
  key     = "/database"
}
`,
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue("data.flotilla_config_snapshots.all",
					tfjsonpath.New("snapshots").AtMapKey("drone/app-edge").AtMapKey("json"),
					knownvalue.StringExact(`{"LOG_LEVEL":"info","REGION":"East","database":{"port":1}}`)),
				statecheck.ExpectKnownValue("data.flotilla_config_snapshots.all",
					tfjsonpath.New("snapshots").AtMapKey("drone/app-edge").AtMapKey("provenance").AtMapKey("/REGION"),
					knownvalue.ObjectExact(map[string]knownvalue.Check{
						"container":  knownvalue.StringExact("east"),
						"overridden": knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact("all")}),
					})),
				statecheck.ExpectKnownValue("data.flotilla_config_snapshots.nobody", tfjsonpath.New("snapshots"), knownvalue.MapSizeExact(0)),
				statecheck.ExpectKnownValue("data.flotilla_config_snapshots.port", tfjsonpath.New("snapshots"), knownvalue.MapPartial(
					map[string]knownvalue.Check{"clusters/drone-7/app-harbour": knownvalue.NotNull()})),
			},
		}},
	})
}

func TestAnInvalidJSONPointerIsRefused(t *testing.T) {
	t.Parallel()
	testSteps(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		Steps: []resource.TestStep{{
			Config:      explainedFleet + "data \"flotilla_config_snapshots\" \"bad\" {\n  fleet = local.fleet\n  key   = \"REGION\"\n}\n",
			PlanOnly:    true,
			ExpectError: words("Invalid key"),
		}},
	})
}

func TestManifestsEqualTheFilesOfTheAssignment(t *testing.T) {
	t.Parallel()
	onEveryServer(t, func(t *testing.T, repo repository) {
		testSteps(t, resource.TestCase{
			ProtoV6ProviderFactories: factories(),
			Steps: []resource.TestStep{{
				Config: small{}.config(repo) + "data \"flotilla_manifests\" \"all\" {\n  fleet = local.fleet\n}\n" +
					"data \"flotilla_manifests\" \"named\" {\n  fleet = local.fleet\n  name = \"other\"\n}\n",
				Check: func(state *terraform.State) error {
					for name, content := range state.RootModule().Resources["data.flotilla_manifests.named"].Primary.Attributes {
						if strings.HasSuffix(name, "/reconciler.yaml") && !strings.Contains(content, `flotilla.dev/owner: "other"`) {
							t.Errorf("%s has another owner:\n%s", name, content)
						}
					}
					shown := map[string]string{}
					for name, content := range state.RootModule().Resources["data.flotilla_manifests.all"].Primary.Attributes {
						if path, ok := strings.CutPrefix(name, "files."); ok && path != "%" {
							shown[path] = content
						}
					}
					written := repo.read(t, "dev")
					for name := range written {
						if strings.HasSuffix(name, ".md") || strings.HasPrefix(name, ".flotilla/") {
							delete(written, name)
						}
					}
					sameFiles(t, shown, written)
					return nil
				},
			}},
		})
	})
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ expression, want, err string }{
		"merge":                   {`provider::flotilla::merge([{ a = { b = 1, c = [1] }, d = true }, { a = { b = 2, c = [2] }, d = null }])`, `{"a":{"b":2,"c":[2]}}`, ""},
		"merge appends":           {`provider::flotilla::merge([{ c = [1] }, { c = [2] }], { lists = "append" })`, `{"c":[1,2]}`, ""},
		"merge by key":            {`provider::flotilla::merge([{ c = [{ id = "a", x = 1 }] }, { c = [{ id = "a", y = 2 }] }], { lists = "merge", list_key = "id" })`, `{"c":[{"id":"a","x":1,"y":2}]}`, ""},
		"merge misspelt option":   {`provider::flotilla::merge([], { list = "append" })`, "", `unknown attribute; did you mean "lists"?`},
		"merge of no objects":     {`provider::flotilla::merge(["a"])`, "", `element 0 must be an object`},
		"merge with two options":  {`provider::flotilla::merge([], {}, {})`, "", `there may be only one object of options`},
		"selector matches":        {`provider::flotilla::selector_matches({ expression = "a in (b, c), !d" }, { a = "b" })`, `true`, ""},
		"selector does not match": {`provider::flotilla::selector_matches({ match_labels = { a = "c" } }, { a = "b" })`, `false`, ""},
		"empty selector":          {`provider::flotilla::selector_matches({}, {})`, `true`, ""},
		"bad selector":            {`provider::flotilla::selector_matches({ expression = "a in" }, {})`, "", `at character 1`},
		"bad label":               {`provider::flotilla::selector_matches({}, { "a b" = "c" })`, "", `is not the key of a label`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output := "output \"result\" {\n  value = " + test.expression + "\n}\n"
			result, err := providertest.New(startProvider).Evaluate(t.Context(), moduleOf(t, output).Outputs["result"])
			switch {
			case test.err != "" && (err == nil || !strings.Contains(strings.Join(strings.Fields(err.Error()), " "), test.err)):
				t.Errorf("the error is %v, want %q", err, test.err)
			case test.err == "" && (err != nil || asJSON(t, result) != test.want):
				t.Errorf("it returns %s, %v, want %s", asJSON(t, result), err, test.want)
			}
		})
	}
}

func TestHistoryListsCommitsAndTheirChanges(t *testing.T) {
	t.Parallel()
	onEveryServer(t, func(t *testing.T, repo repository) {
		const address = "data.flotilla_history.test"
		history := func(more string) string {
			return fmt.Sprintf(
				"data \"flotilla_history\" \"test\" {\n  gitops_repo = { url = %q, branch = \"dev\" }\n  depends_on = [flotilla_assignment.test]\n  %s\n}\n",
				repo.url,
				more,
			)
		}
		text := knownvalue.StringExact
		commits := tfjsonpath.New("commits")
		testSteps(t, resource.TestCase{
			Steps: []resource.TestStep{
				{Config: small{}.config(repo)},
				{Config: small{database: `"mysql://two"`, extra: "commit_message = \"Move the database\""}.config(repo)},
				{
					Config: small{database: `"mysql://two"`, extra: "commit_message = \"Move the database\""}.config(repo) + history(""),
					ConfigStateChecks: []statecheck.StateCheck{
						statecheck.ExpectKnownValue(address, tfjsonpath.New("complete"), knownvalue.Bool(true)),
						statecheck.ExpectKnownValue(address, commits, knownvalue.ListSizeExact(2)),
						statecheck.ExpectKnownValue(address, commits.AtSliceIndex(0).AtMapKey("subject"), text("Move the database")),
						statecheck.ExpectKnownValue(
							address,
							commits.AtSliceIndex(0).AtMapKey("assignments"),
							knownvalue.ListExact([]knownvalue.Check{text("dev")}),
						),
						statecheck.ExpectKnownValue(address, commits.AtSliceIndex(0).AtMapKey("changes"), knownvalue.ListExact([]knownvalue.Check{
							knownvalue.ObjectExact(map[string]knownvalue.Check{
								"assignment": text("dev"), "host": text("large"), "deployment_target": text("app-core"), "action": text("changed"),
								"from": knownvalue.Null(), "before": knownvalue.NotNull(), "after": knownvalue.NotNull(),
							}),
						})),
						statecheck.ExpectKnownValue(address, commits.AtSliceIndex(1).AtMapKey("changes"), knownvalue.ListSizeExact(3)),
					},
				},
				{
					Config: small{database: `"mysql://two"`, extra: "commit_message = \"Move the database\""}.config(repo) +
						history("name = \"dev\"\n  host = \"drone\"\n  deployment_target = \"app-edge\"\n  since = \"2020-01-01T00:00:00Z\""),
					ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(address, commits, knownvalue.ListSizeExact(1))},
				},
				{
					Config:      small{database: `"mysql://two"`}.config(repo) + history("since = \"yesterday\"\n  limit = 0"),
					ExpectError: words("The limit must be at least 1."),
				},
			},
		})
	})
}
