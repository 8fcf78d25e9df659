package provider_test

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
)

// An object that Kubernetes rejects stops the agent's whole host. The plan reports the mistake at the attribute of the value.
func TestValuesThatKubernetesRefusesAreErrorsOfThePlan(t *testing.T) {
	t.Parallel()
	const at = `cluster_types["edge"].parameters.`
	const ofTarget = `workloads["till"].deployment_targets["live"].manifests.parameters.`
	const duration = `must be a duration such as "10m" or "1h30m"`
	for name, test := range map[string]struct{ reconciler, ofType, ofTarget, manifests, path, want string }{
		"days": {"flux", `kustomization = { interval = "1d" }`, "", "", at + "kustomization.interval", duration},
		"a number": {
			"flux", `kustomization = { timeout = 300 }`, "", "", at + "kustomization.timeout", "must be of type string, and is an integer",
		},
		"an hour": {
			"flux", `git_repository = { timeout = "1h" }`, "", "", at + "git_repository.timeout", `must be a duration such as "90s" or "10m", without hours`,
		},
		"a text": {"flux", `kustomization = { prune = "yes" }`, "", "", at + "kustomization.prune", "must be of type boolean, and is a string"},
		"a variable": {
			"flux", `kustomization = { postBuild = { substitute = { REPLICAS = 3 } } }`, "", "", at + "kustomization.postBuild.substitute.REPLICAS",
			"must be of type string, and is an integer",
		},
		"an option": {
			"argocd", `application = { syncPolicy = { syncOptions = "ServerSideApply=true" } }`, "", "", at + "application.syncPolicy.syncOptions",
			"must be of type array, and is a string",
		},
		"of a hub": {
			"argocd-hub", `application = { revisionHistoryLimit = "ten" }`, "", "", at + "application.revisionHistoryLimit", "must be of type integer, and is a string",
		},
		"of Rancher Fleet": {"fleet", `git_repo = { pollingInterval = 15, forceSyncGeneration = "x" }`, "", "", at + "git_repo.forceSyncGeneration", "must be of type integer"},
		"of Config Sync":   {"config-sync", `root_sync = { override = { statusMode = "on" } }`, "", "", at + "root_sync.override.statusMode", "must match '^(enabled|disabled|)$'"},
		"of a release": {
			"flux", "", `helm_release = { install = { remediation = { retries = "3" } } }`, `storage = "helm", repo = "https://charts.example.com", chart = "till"`,
			ofTarget + "helm_release.install.remediation.retries", "must be of type integer, and is a string",
		},
		"a rule": {
			"flux", "", `kustomization = { kubeConfig = { configMapRef = { name = "a" }, secretRef = { name = "b" } } }`, "", ofTarget + "kustomization.kubeConfig",
			"exactly one of spec.kubeConfig.configMapRef or",
		},
		"a field within a field": {
			"flux", "", `kustomization = { healthChecks = [{ kind = "Deployment", namespace = "a" }] }`, "", ofTarget + `kustomization.healthChecks[0]`, "name is required",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifests := test.manifests
			if manifests == "" {
				manifests = `repo = "https://git.example.com/shop/till"`
			}
			config := fmt.Sprintf(`
locals {
  fleet = provider::flotilla::fleet({
    environment   = "prod"
    workspaces    = [{ name = "shop" }]
    cluster_types = [{ name = "edge", reconciler = %q, parameters = { %s } }]
    workloads = [{
      name = "till", workspace = "shop"
      deployment_targets = { live = { environment = "prod", manifests = { %s, parameters = { %s } } } }
    }]
    target_policies = [{ name = "everywhere", cluster_type_selector = {} }]
  })
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = { url = %q, branch = "prod" }
}
`, test.reconciler, test.ofType, manifests, test.ofTarget, t.TempDir()+"/gitops.git")
			testSteps(
				t,
				resource.TestCase{Steps: []resource.TestStep{{Config: config, PlanOnly: true, ExpectError: words(test.path + ": " + test.want)}}},
			)
		})
	}
}

// agent_manifests reports objects that a cluster would reject.
func TestAgentManifestsAreCheckedAgainstTheirSchemas(t *testing.T) {
	t.Parallel()
	const config = `
output "manifests" {
  value = provider::flotilla::agent_manifests({
    cluster = "edge-1", cluster_type = "edge", reconciler = "flux"
    gitops_repo = { url = "https://git.example.com/gitops", branch = "prod" }
    install     = "apiVersion: v1\nkind: Service\nmetadata: {name: webhook, namespace: flux-system}\nspec: {ports: [{port: eighty}]}\n"
  })
}
`
	want := words("Service webhook: spec.ports[0].port must be of type integer, and is a string")
	testSteps(t, resource.TestCase{Steps: []resource.TestStep{{Config: config, PlanOnly: true, ExpectError: want}}})
}
