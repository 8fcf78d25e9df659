package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// renameConfiguration has a cluster whose type changes its name. %[1]s is the reconciler.
const renameConfiguration = requiredProviders + `
provider "flotilla" {
  clusters = { "%[1]s-1" = { kubeconfig = file("kubeconfig") } }
}

variable "names" {
  type = list(string)
}
variable "followed" {
  type = string
}
variable "greeting" {
  type = string
}

locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "shop" }]
    cluster_types = [{ name = reverse(var.names)[0], formerly = slice(var.names, 0, length(var.names) - 1), reconciler = "%[1]s" }]
    clusters      = [{ name = "%[1]s-1", cluster_type = reverse(var.names)[0] }]
    workloads = [{
      name = "web", workspace = "shop"
      deployment_targets = {
        live   = { environment = "dev", labels = { on = "type" }, manifests = { repo = "%[2]s", branch = "main", path = "./live" } }
        shared = { environment = "dev", labels = { on = "type" }, namespace = "shared-%[1]s", manifests = { repo = "%[2]s", branch = "main", path = "./live" } }
        own    = { environment = "dev", labels = { on = "cluster" }, manifests = { repo = "%[2]s", branch = "main", path = "./live" } }
      }
    }]
    target_policies = ` + policiesByLabel + `
    config_containers = [{ name = "all", data = { GREETING = var.greeting } }]
  })
  gitops_repo = { url = "%[3]s", branch = "dev" }
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  protection  = { max_removed = 0 }
}

resource "flotilla_agent" "one" {
  cluster      = "%[1]s-1"
  cluster_type = var.followed
  reconciler   = "%[1]s"
  gitops_repo  = local.gitops_repo
  interval     = "5s"
  timeouts     = { create = "4m", update = "4m", delete = "4m" }
  depends_on   = [flotilla_assignment.dev]
}
`

// TestRenamedClusterType renames a cluster type. No object on the cluster is deleted, whether its agent follows the new folder
// at once or still follows the old one, and later changes are applied.
func TestRenamedClusterType(t *testing.T) {
	if os.Getenv("FLOTILLA_E2E") == "" {
		t.Skip("starts real agents: `make e2e` builds them and runs it")
	}
	bed := &testbed{scenario: "renamed", git: giteatest.Start(t)}
	bed.step(t, "", "Kubernetes API started", func() {
		bed.cluster = kubetest.StartAnother(t, kubetest.Options{Agents: true, Controllers: true})
	})
	for _, agent := range []agent{argoCD{bed.cluster}, flux{bed.cluster}} {
		t.Run(agent.reconciler(), func(t *testing.T) {
			t.Parallel()
			bed.cluster.Apply(t, agent.settings())
			agent.start(t)
			bed.testRename(t, agent.reconciler())
		})
	}
}

func (bed *testbed) testRename(t *testing.T, name string) {
	user := bed.git.User(t)
	team, gitops := newRepository(t, bed.git, user, "team-renamed-"+name), newRepository(t, bed.git, user, "gitops-renamed-"+name)
	team.push(map[string]string{"live/all.yaml": fmt.Sprintf(workload, "world", 0)})
	tf := newTerraform(t, user)
	tf.writeFile("kubeconfig", bed.cluster.Kubeconfig())
	tf.writeFile("main.tf", fmt.Sprintf(renameConfiguration, name, team.url, gitops.url))
	old, second, third := name+"-old", name+"-new", name+"-newest"
	namespaces := []string{"dev-" + old + "-web-live", "dev-" + name + "-1-web-own", "shared-" + name}
	apply := func(names []string, agentType, greeting string) string {
		t.Helper()
		return tf.run(
			"apply",
			"-auto-approve",
			"-no-color",
			"-var",
			`names=["`+strings.Join(names, `","`)+`"]`,
			"-var",
			"followed="+agentType,
			"-var",
			"greeting="+greeting,
		)
	}
	listObjects := func() map[string]string {
		uids, namespaceUIDs := bed.listObjects(t, namespaces), bed.listNamespaces(t)
		for _, namespace := range namespaces {
			uids["namespace "+namespace] = namespaceUIDs[namespace]
		}
		return uids
	}
	checkGreeting := func(greeting string) error {
		var problems []error
		for _, namespace := range namespaces {
			problems = append(problems, checkConfigMap(t, bed.cluster, namespace, "greeting", "hello", "world"))
			config := bed.cluster.Get(t, "v1", "ConfigMap", namespace, "platform-config")
			if config == nil || !strings.Contains(fmt.Sprint(config.Object["data"]), greeting) {
				problems = append(problems, fmt.Errorf("the configuration in %s is %v, want %q", namespace, config, greeting))
			}
		}
		return joinErrors(problems...)
	}
	checkUnchanged := func(wantUIDs map[string]string) {
		t.Helper()
		time.Sleep(10 * time.Second) // more than an agent needs to notice a removed folder
		if got := listObjects(); !maps.Equal(wantUIDs, got) {
			t.Errorf("the workloads have %v, want %v", got, wantUIDs)
		}
	}
	bed.step(t, name, "onboarded", func() {
		apply([]string{old}, old, "first")
		eventually(t, func() error { return checkGreeting("first") })
	})
	eventually(t, func() error { // until the Deployments exist, too
		if wantUIDs := listObjects(); len(wantUIDs) < 4*len(namespaces) {
			return fmt.Errorf("the workloads have %v", wantUIDs)
		}
		return nil
	})
	wantUIDs := listObjects()
	bed.step(t, name, "renamed, and the agent follows at once", func() {
		if printed := apply([]string{old, second}, second, "first"); !strings.Contains(
			printed,
			fmt.Sprintf(`cluster type \"%s\" is now \"%s\": 2 folders move`, old, second),
		) {
			t.Errorf("the apply does not print the rename:\n%s", printed)
		}
		checkUnchanged(wantUIDs)
		apply([]string{old, second}, second, "second")
		eventually(t, func() error { return checkGreeting("second") })
		checkUnchanged(wantUIDs)
	})
	bed.step(t, name, "renamed again, and the agent follows later", func() {
		apply([]string{old, second, third}, second, "second")
		checkUnchanged(wantUIDs)
		apply([]string{old, second, third}, third, "third")
		eventually(t, func() error { return checkGreeting("third") })
		checkUnchanged(wantUIDs)
	})
}
