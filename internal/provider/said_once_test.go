package provider_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// fleetMistakes are fleets of three cluster types and two deployment targets, whose mistake affects all six assignments.
var fleetMistakes = map[string]struct {
	further map[string]any // attributes of the fleet
	summary string
	texts   []string // one for each diagnostic
	warning bool
}{
	"a value that a schema refuses": {
		further: map[string]any{
			"config_schemas": []any{map[string]any{"name": "net", "schema": `{"properties":{"LOG_LEVEL":{"type":"number"}}}`}},
		},
		summary: "Invalid configuration values",
		texts: []string{
			`Config container "all": /LOG_LEVEL must be a number, not a string (config schema "net", assignment "drone/app-core" and 5 more).`,
		},
	},
	"a value that is missing": {
		further: map[string]any{"config_schemas": []any{map[string]any{"name": "net", "schema": `{"required":["DB"]}`}}},
		summary: "Invalid configuration values", texts: []string{`/DB is required, and no config container has it (assignment "drone/app-core" and 5 more).`},
	},
	"a template that fails": {
		further: map[string]any{"templates": []any{ownReconciler("a: {{ .Config.nope.deep }}")}},
		summary: "Invalid rendering", texts: []string{`Reconciler template "flux", manifests[0], line 1, {{ .Config.nope.deep }}: `},
	},
	"a template with invalid YAML": {
		further: map[string]any{"templates": []any{ownReconciler("a: [b")}},
		summary: "Invalid rendering",
		texts: []string{
			`templates["flux"]: reconciler template: reconciler.yaml, line 1: is not YAML: did not find expected ',' or ']' (assignment "drone/app-core" and 5 more).`,
		},
	},
	"two workloads that are required and missing": {
		further: map[string]any{"workloads": []any{appWorkload("requires", []any{"db", "queue"}), idleWorkload("db"), idleWorkload("queue")}},
		summary: "Invalid schedule",
		texts: []string{
			`workloads["app"].requires: deployment targets "app-core", "app-edge" are assigned to hosts "drone", "large", "spare", but workload "db", which they require, has no deployment target there.`,
			`but workload "queue", which they require, has no deployment target there.`,
		},
	},
	"a rule that is violated": {
		further: map[string]any{
			"constraints": []any{
				map[string]any{"name": "no-core", "expression": "assignment.deployment_target != 'app-core'", "message": "No core."},
			},
		},
		summary: "Constraint is violated", texts: []string{`Constraint "no-core" is violated by 3 of 6 assignments`},
	},
	"charts without a version": {
		further: map[string]any{
			"workloads": []any{appWorkload("manifests", map[string]any{"storage": "helm", "repo": "https://charts.example.com", "chart": "app"})},
		},
		summary: "Questionable manifests", warning: true,
		texts: []string{
			`workloads["app"].deployment_targets["core"].manifests.version, workloads["app"].deployment_targets["edge"].manifests.version: the chart has no version`,
		},
	},
	"deployment targets without a host": {
		further: map[string]any{"workloads": []any{appWorkload("requires", []any{}), idleWorkload("db"), idleWorkload("queue")}},
		summary: "Deployment targets without a host", warning: true, texts: []string{"\"db-main\": no target policy selects it"},
	},
	"policies that spread over a missing label": {
		further: map[string]any{"target_policies": []any{spreadPolicy("one", "zone"), spreadPolicy("two", "zone"), spreadPolicy("three", "region")}},
		summary: "Questionable target policy", warning: true,
		texts: []string{
			`target_policies["one"].placement.spread[0].key, target_policies["two"].placement.spread[0].key: none of the hosts that the policy selects has label "zone"`,
		},
	},
}

func ownReconciler(manifest string) map[string]any {
	return map[string]any{"name": "flux", "type": "reconciler", "content_type": "yaml", "manifests": []any{manifest}}
}

// spreadPolicy returns a policy that selects all cluster types and spreads over the values of a label.
func spreadPolicy(name, spread string) map[string]any {
	return map[string]any{
		"name": name, "deployment_target_selector": map[string]any{"expression": "!idle"}, "cluster_type_selector": map[string]any{},
		"placement": map[string]any{"number_of_hosts": 3, "spread": []any{map[string]any{"key": spread}}},
	}
}

// idleWorkload returns a workload that no policy selects.
func idleWorkload(name string) map[string]any {
	return map[string]any{"name": name, "workspace": "team", "deployment_targets": map[string]any{"main": map[string]any{
		"environment": "dev", "labels": map[string]any{"idle": "true"}, "manifests": map[string]any{"repo": "https://git.example.com/db", "branch": "main"},
	}}}
}

// appWorkload returns the workload app with a further attribute, or with other manifests.
func appWorkload(attribute string, value any) map[string]any {
	targets := map[string]any{}
	for _, name := range []string{"core", "edge"} {
		one := map[string]any{
			"environment": "dev",
			"manifests":   map[string]any{"repo": "https://git.example.com/app", "branch": "main", "path": name},
		}
		if attribute == "manifests" {
			one["manifests"] = value
		}
		targets[name] = one
	}
	app := map[string]any{"name": "app", "workspace": "team", "deployment_targets": targets}
	if attribute != "manifests" {
		app[attribute] = value
	}
	return app
}

func TestAMistakeInAFleetIsReportedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range fleetMistakes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			further := map[string]any{
				"workloads": []any{
					appWorkload("requires", []any{}),
				}, "target_policies": []any{policy("all", map[string]any{"expression": "!idle"}, map[string]any{})},
				"config_containers": []any{map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": "info"}}},
			}
			maps.Copy(further, c.further)
			url, configuration := bare(t), providertest.Configuration{Resources: map[string]providertest.Resource{}}
			for _, one := range []string{"one", "two", "three"} {
				configuration.Resources["flotilla_assignment."+one] = providertest.Resource{Attributes: map[string]any{
					"name": one, "fleet": fleetOf(further), "gitops_repo": map[string]any{"url": url, "branch": "dev", "path": one},
				}}
			}
			for range 2 { // each plan reports it
				_, diags := providertest.New(startProvider).Plan(t.Context(), configuration)
				var full, short []string
				for _, one := range diags {
					switch {
					case one.Summary == c.summary && one.Error != c.warning && one.At == `AttributeName("fleet")`:
						full = append(full, one.Detail)
					case one.Error && one.Summary == "Same error as elsewhere" && one.At == `AttributeName("fleet")`:
						short = append(short, one.Detail)
					case one.Error:
						t.Errorf("got another error: %s", one)
					}
				}
				want := 0
				if !c.warning {
					want = 2
				}
				wantCount := fmt.Sprintf("reports the full error at the same fleet: %d error", len(c.texts))
				if len(short) != want ||
					want > 0 && (!strings.Contains(short[0], wantCount) || !strings.Contains(short[0], fmt.Sprintf("%q", c.summary))) {
					t.Errorf("the other resources report %q", short)
				}
				if len(full) != len(c.texts) {
					t.Fatalf("got %d diagnostics, want %d: %s", len(full), len(c.texts), diags)
				}
				for i, text := range c.texts {
					if !strings.Contains(full[i], text) {
						t.Errorf("got\n%s\nwant\n%s", full[i], text)
					}
				}
			}
		})
	}
}

func TestAnUnreachableRepositoryIsReportedOnce(t *testing.T) {
	t.Parallel()
	configuration := providertest.Configuration{Resources: map[string]providertest.Resource{}}
	for _, one := range []string{"one", "two", "three"} {
		configuration.Resources["flotilla_assignment."+one] = providertest.Resource{Attributes: map[string]any{
			"name": one, "fleet": fleetOf(nil), "gitops_repo": map[string]any{"url": "http://127.0.0.1:1/gitops", "branch": "dev", "path": one},
		}}
	}
	_, diags := providertest.New(startProvider).Plan(t.Context(), configuration)
	if len(diags) != 1 || diags[0].Summary != "Repository cannot be reached" {
		t.Errorf("got\n%s", diags)
	}
}

// Seven resources use the fleet, and one shows the whole error.
func TestTerraformShowsAMistakeOfAFleetOnce(t *testing.T) {
	t.Parallel()
	const seven = `
data "flotilla_scheduling" "all" { fleet = local.fleet }
data "flotilla_config_snapshots" "all" { fleet = local.fleet }
data "flotilla_manifests" "all" { fleet = local.fleet }
data "flotilla_diff" "all" {
  fleet       = local.fleet
  name        = "dev"
  gitops_repo = local.repo
}
data "flotilla_overview" "all" {
  fleet       = local.fleet
  name        = "dev"
  gitops_repo = local.repo
}
data "flotilla_inventory" "all" { gitops_repo = local.repo }
resource "flotilla_assignment" "second" {
  name        = "second"
  fleet       = local.fleet
  gitops_repo = merge(local.repo, { path = "second" })
}
`
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := bareRepository(t)
			plan := func(url, fleet string) (printed string, failed bool) {
				target := repo
				target.url = url
				config := small{
					path:  "clusters",
					fleet: fleet,
				}.config(
					target,
				) + seven + fmt.Sprintf(
					"locals {\n  repo = { url = %q, branch = \"dev\" }\n}\n",
					url,
				)
				w := newWorkdir(t, tool, map[string]string{"main.tf": config, "required_providers.tf": requiredProviders})
				stdout, stderr, err := w.try("plan", "-no-color", "-input=false")
				return stdout + stderr, err != nil
			}
			count := func(printed, title string) int { return strings.Count(printed, ": "+title+"\n") }

			printed, failed := plan(repo.url, `config_schemas = [{ name = "net", schema = jsonencode({ required = ["NOPE"] }) }]`)
			if !failed || count(printed, "Invalid configuration values") != 1 || count(printed, "Same error as elsewhere") != 5 {
				t.Errorf("for a fleet with a mistake, Terraform prints\n%s", printed)
			}
			printed, failed = plan(repo.url, "")
			if failed || count(printed, "Same error as elsewhere") > 0 {
				t.Errorf("for a fleet without a mistake, Terraform prints\n%s", printed)
			}
			printed, failed = plan("http://127.0.0.1:1/gitops", "")
			if !failed || strings.Count(printed, "Error: Repository cannot be reached") != 1 ||
				!words("at the same gitops_repo").MatchString(printed) {
				t.Errorf("for an unreachable repository, Terraform prints\n%s", printed)
			}
		})
	}
}
