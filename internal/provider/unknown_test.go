package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// manyWorkloads is the format of a fleet of a hundred workloads, ten on each of ten hosts.
const manyWorkloads = `
resource "terraform_data" "tag" {
  input = "v1"
}

locals {
  fleet = provider::flotilla::fleet({
    environment       = "dev"
    workspaces        = [{ name = "team" }]
    cluster_types     = [for i in range(10) : { name = "host-${i}" }]
    workloads         = [%s]
    assignments       = [for i in range(100) : { cluster_type = "host-${i %% 10}", deployment_target = "app-${i}-live" }]
    config_containers = [{ name = "all", data = { LOG_LEVEL = "info" } }]
  })
}

data "flotilla_scheduling" "test" {
  fleet = local.fleet
}

data "flotilla_config_snapshots" "test" {
  fleet        = local.fleet
  cluster_type = "host-7"
}

resource "flotilla_assignment" "test" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = { url = %q, branch = "dev" }
  protection  = { max_removed = 100 }
}
`

// In `make acceptance`, TestUnknownValueMakesOnlyTheHostsItReachesUnknown covers Terraform itself.
func TestAnUnknownTagMakesOnlyItsOwnHostUnknown(t *testing.T) {
	t.Parallel()
	var workloads strings.Builder
	for i := range 100 {
		tag := `"v1"`
		if i == 7 {
			tag = "terraform_data.tag.output"
		}
		fmt.Fprintf(&workloads, `{ name = "app-%[1]d", workspace = "team", deployment_targets = { live = { environment = "dev",
			manifests = { repo = "https://git.example.com/app-%[1]d", tag = %[2]s } } } },`, i, tag)
	}
	text, w := fmt.Sprintf(manyWorkloads, workloads.String(), bare(t)), providertest.New(startProvider)
	module := moduleOf(t, text)
	for name, want := range map[string]int{"flotilla_scheduling assignments": 100, "flotilla_config_snapshots snapshots": 10} {
		typeName, attribute, _ := strings.Cut(name, " ")
		read, diags := w.PlanData(t.Context(), module.Configuration, typeName, module.Data["data."+typeName+".test"])
		if known, _ := read[attribute].(map[string]any); diags.Err() != nil || len(known) != want {
			t.Errorf("%s has %d before the apply, want %d: %s", name, len(known), want, diags)
		}
	}
	plan := apply(t, w, module.Configuration)
	if content := plan.Change(assignment).After["content"]; content != (providertest.Unknown{}) {
		t.Errorf("got content %v, want unknown", content)
	}
	applied, err := providertest.ParseModule(text, module.Later)
	if err != nil {
		t.Fatal(err)
	}
	if next, _ := mustPlan(t, w, applied.Configuration); !next.Empty() {
		t.Errorf("the next plan has %q", linesOf(next))
	}
}
