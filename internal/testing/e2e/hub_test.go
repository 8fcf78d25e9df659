package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

var applicationSets = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applicationsets"}

// hubConfiguration has a cluster with deployments by an Argo CD on another cluster, the hub.
const hubConfiguration = requiredProviders + `
provider "flotilla" {
  clusters = {
    central = { kubeconfig = file("hub.kubeconfig") }
    store-1 = { host = "%[1]s", cluster_ca_certificate = file("spoke.pem"), token = "%[2]s" }
  }
}

variable "on_destroy" {
  type    = string
  default = null
}
variable "greeting" {
  type    = string
  default = "hello"
}
variable "removed" {
  type    = bool
  default = false
}

locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "shop", argocd_project = { name = "shop", render = true } }]
    cluster_types = [{ name = "store", reconciler = "argocd-hub" }]
    clusters      = [{ name = "store-1", cluster_type = "store" }]
    workloads = [{
      name = "web", workspace = "shop"
      deployment_targets = merge({
        live = { environment = "dev", labels = { on = "type" }, manifests = { repo = "%[3]s", branch = "main", path = "./live" } }
        }, var.removed ? {} : {
        away = { environment = "dev", labels = { on = "type" }, manifests = { repo = "%[3]s", branch = "main", path = "./away" } }
        own  = { environment = "dev", labels = { on = "cluster" }, manifests = { repo = "%[3]s", branch = "main", path = "./own" } }
      })
    }]
    target_policies = concat(
      [{ name = "types", deployment_target_selector = { match_labels = { on = "type" } }, cluster_type_selector = {} }],
      var.removed ? [] : [{ name = "clusters", deployment_target_selector = { match_labels = { on = "cluster" } }, cluster_selector = {} }],
    )
    config_containers = [{ name = "all", data = { GREETING = var.greeting, BRACES = "{{.name}}" } }]
  })
  gitops_repo = { url = "%[4]s", branch = "dev" }
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  protection  = { max_removed_percent = 100, allow_empty = true }
}

resource "flotilla_agent" "one" {
  cluster      = "store-1"
  cluster_type = "store"
  reconciler   = "argocd-hub"
  hub          = "central"
  environment  = "dev"
  gitops_repo  = local.gitops_repo
  credentials_wo = {
    username     = "%[5]s"
    password     = "%[6]s"
    registration = { token = "%[2]s" }
  }
  wait       = true
  timeouts   = { create = "6m", update = "6m", delete = "6m" }
  on_destroy = var.on_destroy
  depends_on = [flotilla_assignment.dev]
}

data "flotilla_compliance" "dev" {
  name        = flotilla_assignment.dev.name
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  feedback    = { hub = "central" }
  depends_on  = [flotilla_agent.one]
}

output "clusters" {
  value = data.flotilla_compliance.dev.clusters
}
`

func startApplicationSetController(t *testing.T, hub *kubetest.Server) {
	t.Helper()
	startAgent(t, hub, "argocd", "argocd-applicationset-controller", []string{
		"--kubeconfig", writeKubeconfig(t, hub), "--namespace", "argocd", "--metrics-addr", "127.0.0.1:0", "--probe-addr", "127.0.0.1:0",
		"--webhook-addr", "127.0.0.1:0", "--argocd-repo-server", "127.0.0.1:1", "--repo-server-plaintext",
	})
}

// listNames lists the objects of a kind by name.
func listNames(t *testing.T, cluster *kubetest.Server, resource schema.GroupVersionResource, namespace string) []string {
	t.Helper()
	listed, err := cluster.Client().Resource(resource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range listed.Items {
		names = append(names, object.GetName())
	}
	slices.Sort(names)
	return names
}

// TestHub deploys from an Argo CD on one cluster to another. Workloads arrive on the cluster; Argo CD's own objects stay on the
// hub.
func TestHub(t *testing.T) {
	if os.Getenv("FLOTILLA_E2E") == "" {
		t.Skip("starts real agents: `make e2e` builds them and runs it")
	}
	t.Parallel()
	bed := &testbed{git: giteatest.Start(t)}
	var hub, spoke *kubetest.Server
	bed.step(t, "hub", "two Kubernetes APIs started", func() {
		hub = kubetest.StartAnother(t, kubetest.Options{Controllers: true, Agents: true})
		spoke = kubetest.StartAnother(t, kubetest.Options{Controllers: true})
	})
	central := argoCD{hub}
	hub.Apply(t, central.settings())
	central.start(t)
	startApplicationSetController(t, hub)

	user := bed.git.User(t)
	team, gitops := newRepository(t, bed.git, user, "team"), newPrivateRepository(t, bed.git, user, "gitops")
	team.push(map[string]string{
		"live/all.yaml": fmt.Sprintf(
			workload,
			"world",
			0,
		), "away/all.yaml": fmt.Sprintf(workload, "away", 0), "own/all.yaml": fmt.Sprintf(workload, "own", 0),
	})
	tf := newTerraform(t, user)
	tf.writeFile("hub.kubeconfig", hub.Kubeconfig())
	tf.writeFile("spoke.pem", spoke.CA)
	tf.writeFile("main.tf", fmt.Sprintf(hubConfiguration, spoke.Host, spoke.Token, team.url, gitops.url, user.Name, user.Token))

	const live, away, own = "dev-store-web-live", "dev-store-web-away", "dev-store-1-web-own"
	describe := func() string {
		return central.describeStatus(t, listNames(t, hub, applications, "argocd")...)
	}
	apply := func(variables ...string) {
		arguments := []string{"apply", "-auto-approve", "-no-color"}
		for _, variable := range variables {
			arguments = append(arguments, "-var", variable)
		}
		if _, err := tf.tryRun(arguments...); err != nil {
			t.Fatalf("%v\n%s", err, describe())
		}
	}
	waitFor := func(check func() error) {
		eventually(t, func() error {
			err := check()
			if err != nil {
				err = fmt.Errorf("%w\n%s", err, describe())
			}
			return err
		})
	}
	checkGreetings := func(greeting string, namespaces ...string) error {
		var problems []error
		for _, namespace := range namespaces {
			target := namespace[strings.LastIndexByte(namespace, '-')+1:]
			problems = append(problems, checkConfigMap(t, spoke, namespace, "greeting", "hello", map[string]string{"live": "world"}[target]),
				checkConfigMap(t, spoke, namespace, "platform-config", "GREETING", greeting),
				checkConfigMap(t, spoke, namespace, "platform-config", "BRACES", "{{.name}}"))
		}
		return errors.Join(problems...)
	}

	bed.step(t, "hub", "one apply deploys the workloads to the cluster", func() {
		apply()
		if err := checkGreetings("hello", live, away, own); err != nil { // no polling: the apply waits
			t.Errorf("%v\n%s", err, describe())
		}
		var clusters map[string]struct{ Verdict, Message string }
		tf.readOutputs(map[string]any{"clusters": &clusters})
		if got := clusters["store-1"]; got.Verdict != "ready" {
			t.Errorf("the verdict of the cluster is %s, want ready: %s", got.Verdict, got.Message)
		}
	})
	t.Run("hub and cluster have separate objects", func(t *testing.T) {
		if sets := listNames(t, hub, applicationSets, "argocd"); len(sets) != 4 {
			t.Errorf("the hub has the ApplicationSets %v", sets)
		}
		for _, namespace := range []string{live, away, own} {
			if hub.Get(t, "v1", "Namespace", "", namespace) != nil {
				t.Errorf("namespace %s is on the hub", namespace)
			}
		}
		if spoke.Get(t, "v1", "Namespace", "", "argocd") != nil {
			t.Error("namespace argocd is on the cluster")
		}
	})
	bed.step(t, "hub", "a changed value arrives", func() {
		apply("greeting=changed")
		waitFor(func() error { return checkGreetings("changed", live, away, own) })
	})
	bed.step(t, "hub", "removed targets are pruned on hub and cluster", func() {
		apply("greeting=changed", "removed=true")
		waitFor(func() error {
			var remaining error
			if sets := listNames(t, hub, applicationSets, "argocd"); len(sets) != 2 {
				remaining = fmt.Errorf("the hub has the ApplicationSets %v", sets)
			}
			return joinErrors(remaining, checkNamespaceGone(t, spoke, away), checkNamespaceGone(t, spoke, own), checkGreetings("changed", live))
		})
	})
	bed.step(t, "hub", "a destroy of the agent leaves the workload", func() {
		tf.run("destroy", "-auto-approve", "-no-color", "-target=flotilla_agent.one")
		time.Sleep(5 * time.Second)
		if err := checkGreetings("changed", live); err != nil {
			t.Error(err)
		}
		for _, name := range listNames(t, hub, applications, "argocd") {
			application := hub.Get(t, "argoproj.io/v1alpha1", "Application", "argocd", name)
			if field(application, "spec", "destination", "name") == "store-1" && field(application, "metadata", "deletionTimestamp") == nil {
				t.Errorf("Application %s still deploys to the cluster", name)
			}
		}
	})
	bed.step(t, "hub", "onboarded again, and a destroy with on_destroy = \"delete\" removes the workload", func() {
		apply("greeting=changed", "on_destroy=delete")
		waitFor(func() error { return checkGreetings("changed", live, own) })
		tf.run("destroy", "-auto-approve", "-no-color", "-target=flotilla_agent.one")
		waitFor(func() error { return joinErrors(checkNamespaceGone(t, spoke, live), checkNamespaceGone(t, spoke, own)) })
	})
}
