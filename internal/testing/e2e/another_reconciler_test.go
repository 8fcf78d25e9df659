package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// switchConfiguration has a cluster whose type changes its reconciler.
const switchConfiguration = requiredProviders + `
provider "flotilla" {
  clusters = { one = { kubeconfig = file("kubeconfig") } }
}

variable "reconciler" {
  type = string
}
variable "agent" {
  type    = string
  default = null
}

locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "shop" }]
    cluster_types = [{ name = "large", reconciler = var.reconciler }]
    clusters      = [{ name = "one", cluster_type = "large" }]
    workloads = [{
      name = "web", workspace = "shop"
      deployment_targets = {
        live   = { environment = "dev", labels = { on = "type" }, manifests = { repo = "%[1]s", branch = "main", path = "./live" } }
        shared = { environment = "dev", labels = { on = "type" }, namespace = "shared", manifests = { repo = "%[1]s", branch = "main", path = "./live" } }
        own    = { environment = "dev", labels = { on = "cluster" }, manifests = { repo = "%[1]s", branch = "main", path = "./live" } }
      }
    }]
    target_policies = ` + policiesByLabel + `
  })
  gitops_repo = { url = "%[2]s", branch = "dev" }
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
}

resource "flotilla_agent" "one" {
  count        = var.agent == null ? 0 : 1
  cluster      = "one"
  cluster_type = "large"
  reconciler   = var.agent
  gitops_repo  = local.gitops_repo
  interval     = "5s"
  wait         = true
  timeouts     = { create = "4m", update = "4m", delete = "4m" }
  depends_on   = [flotilla_assignment.dev]
}
`

// TestAnotherReconciler changes the reconciler from Flux to Argo CD and back with the commands of the guide, which deletes no
// object. It then changes the reconciler without these commands, which deletes every Deployment.
func TestAnotherReconciler(t *testing.T) {
	if os.Getenv("FLOTILLA_E2E") == "" {
		t.Skip("starts real agents: `make e2e` builds them and runs it")
	}
	bed := &testbed{scenario: "another reconciler", git: giteatest.Start(t)}
	bed.step(t, "", "Kubernetes API and agents started", func() {
		bed.cluster = kubetest.StartAnother(t, kubetest.Options{Agents: true, Controllers: true})
		for _, agent := range []agent{argoCD{bed.cluster}, flux{bed.cluster}} {
			bed.cluster.Apply(t, agent.settings())
			agent.start(t)
		}
	})
	user := bed.git.User(t)
	team, gitops := newRepository(t, bed.git, user, "team"), newRepository(t, bed.git, user, "gitops")
	team.push(map[string]string{"live/all.yaml": fmt.Sprintf(workload, "world", 0)})
	tf := newTerraform(t, user)
	tf.writeFile("kubeconfig", bed.cluster.Kubeconfig())
	tf.writeFile("main.tf", fmt.Sprintf(switchConfiguration, team.url, gitops.url))
	namespaces := []string{"dev-large-web-live", "dev-one-web-own", "shared"}

	// apply applies with the reconciler of the cluster type and the reconciler of flotilla_agent. An empty agent means no
	// flotilla_agent.
	apply := func(reconciler, agent string) string {
		t.Helper()
		arguments := []string{"apply", "-auto-approve", "-no-color", "-var", "reconciler=" + reconciler}
		if agent != "" {
			arguments = append(arguments, "-var", "agent="+agent)
		}
		return strings.Join(strings.Fields(strings.ReplaceAll(tf.run(arguments...), "│", "")), " ")
	}
	// listObjects returns the UIDs of the workloads' objects and namespaces.
	listObjects := func() map[string]string {
		uids, namespaceUIDs := bed.listObjects(t, namespaces), bed.listNamespaces(t)
		for _, namespace := range namespaces {
			uids["namespace "+namespace] = namespaceUIDs[namespace]
		}
		return uids
	}

	bed.step(t, "flux", "onboarded", func() { apply("flux", "flux") })
	objects := listObjects()
	if len(objects) < 4*len(namespaces) {
		t.Fatalf("the workloads have %v", objects)
	}
	for _, change := range [][2]string{{"flux", "argocd"}, {"argocd", "flux"}} {
		from, to := change[0], change[1]
		bed.step(t, to, "takes over with the commands of the guide, and no object is deleted", func() {
			apply(from, "")
			want := fmt.Sprintf(`The reconciler of 2 hosts changes from %q to %q: clusters/one, large.`, from, to)
			if printed := apply(to, ""); !strings.Contains(printed, "Warning: Reconciler changes") || !strings.Contains(printed, want) {
				t.Errorf("the apply printed\n%s\nwant %q", printed, want)
			}
			for _, command := range readGuideCommands(t, agentNamespace[from]) {
				bed.runCommand(t, command)
			}
			apply(to, to)
			time.Sleep(5 * time.Second) // more than an agent needs to notice a deletion
			if got := listObjects(); !maps.Equal(objects, got) {
				t.Errorf("the workloads have %v, want %v", got, objects)
			}
			if got := listUIDs(t, bed.cluster,
				map[string]schema.GroupVersionResource{"flux": kustomizations, "argocd": applications}[from], agentNamespace[from]); len(
				got,
			) > 0 {
				t.Errorf("%s still has %v", from, got)
			}
		})
	}
	bed.step(t, "argocd", "takes over without the commands, and every Deployment is replaced", func() {
		apply("argocd", "flux")
		deploymentKeys := slices.Collect(maps.Keys(objects))
		deploymentKeys = slices.DeleteFunc(deploymentKeys, func(name string) bool { return !strings.Contains(name, " deployments ") })
		eventually(t, func() error {
			uids := listObjects()
			for _, name := range deploymentKeys {
				if uids[name] == objects[name] {
					return fmt.Errorf("%s still exists", name)
				}
			}
			return nil
		})
	})
}

// readGuideCommands returns the commands of the guide for the namespace of an agent.
func readGuideCommands(t *testing.T, namespace string) (commands []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "templates", "guides", "assignments.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Change the reconciler\n")
	for _, block := range regexp.MustCompile("(?s)```shell\n(.*?)```").FindAllStringSubmatch(section, -1) {
		for _, command := range strings.Split("\n"+block[1], "\n   kubectl ")[1:] {
			if strings.Contains(command, "--namespace "+namespace+" ") {
				commands = append(commands, "kubectl "+command)
			}
		}
	}
	if len(commands) != 2 {
		t.Fatalf("the guide has these commands for %s: %q", namespace, commands)
	}
	return commands
}
