package e2e_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

// feedbackConfiguration has a cluster whose agent sets statuses of commits on the Git host. Flotilla reads these statuses, not
// the cluster.
const feedbackConfiguration = requiredProviders + `
provider "flotilla" {
  clusters = { store-1 = { kubeconfig = file("kubeconfig") } }
}

variable "token" {
  type      = string
  sensitive = true
}

locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "shop" }]
    cluster_types = [{ name = "store", reconciler = "argocd" }]
    clusters      = [{ name = "store-1", cluster_type = "store" }]
    workloads = [{
      name = "web", workspace = "shop"
      deployment_targets = {
        live = { environment = "dev", labels = { on = "type" }, manifests = { repo = "%[1]s", branch = "main", path = "./live" } }
        own  = { environment = "dev", labels = { on = "cluster" }, manifests = { repo = "%[1]s", branch = "main", path = "./live" } }
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
  cluster        = "store-1"
  cluster_type   = "store"
  reconciler     = "argocd"
  gitops_repo    = local.gitops_repo
  feedback       = { forge = "gitea" }
  credentials_wo = { feedback = { token = var.token } }
  depends_on     = [flotilla_assignment.dev]
}

data "flotilla_compliance" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  feedback    = { commit_statuses = { forge = "gitea" } }
  wait        = { ready_percent = 100, timeout = "4m" }
  depends_on  = [flotilla_agent.one]
}

output "clusters" {
  value = data.flotilla_compliance.dev.clusters
}
`

// TestFeedback has Argo CD report the result of a commit to the Git host, as configured by flotilla_agent, and
// flotilla_compliance read the report.
func TestFeedback(t *testing.T) {
	if os.Getenv("FLOTILLA_E2E") == "" {
		t.Skip("starts real agents: `make e2e` builds them and runs it")
	}
	t.Parallel()
	bed := &testbed{git: giteatest.Start(t)}
	bed.cluster = kubetest.StartAnother(t, kubetest.Options{Controllers: true, Agents: true})
	agent := argoCD{bed.cluster}
	bed.cluster.Apply(t, agent.settings())
	agent.start(t)
	ports, err := processtest.FreePorts(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	startAgent(t, bed.cluster, "argocd", "argocd-notifications", []string{
		"controller", "--kubeconfig", writeKubeconfig(t, bed.cluster), "--namespace", "argocd",
		"--argocd-repo-server", "127.0.0.1:1", "--argocd-repo-server-plaintext", "--metrics-port", strconv.Itoa(ports[0]),
	})

	user := bed.git.User(t)
	team, gitops := newRepository(t, bed.git, user, "team"), newRepository(t, bed.git, user, "gitops")
	team.push(map[string]string{"live/all.yaml": fmt.Sprintf(workload, "world", 0)})
	tf := newTerraform(t, user)
	tf.env = append(tf.env, "TF_VAR_token="+user.Token)
	tf.writeFile("kubeconfig", bed.cluster.Kubeconfig())
	tf.writeFile("main.tf", fmt.Sprintf(feedbackConfiguration, team.url, gitops.url))

	bed.step(t, "feedback", "the statuses on the Git host report ready", func() {
		if _, err := tf.tryRun("apply", "-auto-approve", "-no-color"); err != nil {
			t.Fatalf("%v\n%s", err, agent.describeStatus(t, "flotilla-cluster-type", "flotilla-cluster"))
		}
	})
	var clusters map[string]struct{ Verdict, Commit string }
	tf.readOutputs(map[string]any{"clusters": &clusters})
	if got := clusters["store-1"]; got.Verdict != "ready" || got.Commit == "" {
		t.Errorf("the cluster is %+v", got)
	}
	gitops.git("fetch", "--quiet", gitops.pushURL, "dev")
	gitops.git("checkout", "--quiet", "-B", "dev", "FETCH_HEAD")
	writeFile(t, gitops.clone, "store/bad.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: bad, namespace: nowhere}, data: {a: b}}\n")
	gitops.git("add", ".")
	gitops.git("commit", "--quiet", "-m", "Write an invalid object")
	gitops.git("push", "--quiet", gitops.pushURL, "HEAD:dev")
	bed.step(t, "feedback", "the status of a folder reports an invalid object", func() {
		eventually(t, func() error {
			var statuses []struct{ Context, Status string }
			bed.git.API(t, user, "GET", "/repos/"+user.Name+"/gitops/commits/dev/statuses", nil, &statuses)
			for _, status := range statuses {
				if status.Context == "flotilla/store-1/cluster-type" && status.Status == "failure" {
					return nil
				}
			}
			return fmt.Errorf("statuses are %v\n%s", statuses, agent.describeStatus(t, "flotilla-cluster-type"))
		})
	})
}
