package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// onboardingConfiguration has an empty cluster, its agent and its workloads.
const onboardingConfiguration = requiredProviders + `
provider "flotilla" {
  clusters = { "%[1]s-1" = { kubeconfig = file("kubeconfig") } }
}

variable "on_destroy" {
  type    = string
  default = null
}
variable "token" {
  type      = string
  sensitive = true
}
variable "removed" {
  type    = bool
  default = false
}

locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "shop" }]
    cluster_types = [{ name = "%[1]s-large", reconciler = "%[1]s" }]
    clusters      = [{ name = "%[1]s-1", cluster_type = "%[1]s-large" }]
    workloads = [{
      name = "web", workspace = "shop"
      deployment_targets = merge({
        live   = { environment = "dev", labels = { on = "type" }, manifests = { repo = "%[2]s", branch = "main", path = "./live" } }
        used   = { environment = "dev", labels = { on = "type" }, manifests = { repo = "%[2]s", branch = "main", path = "./live" } }
        shared = { environment = "dev", labels = { on = "type" }, namespace = "shared-%[1]s", manifests = { repo = "%[2]s", branch = "main", path = "./live" } }
        own    = { environment = "dev", labels = { on = "cluster" }, manifests = { repo = "%[2]s", branch = "main", path = "./own" } }
        }, { for name, target in {
          away = { environment = "dev", labels = { on = "type" }, namespace = "away-%[1]s", manifests = { repo = "%[2]s", branch = "main", path = "./live" } }
          gone = { environment = "dev", labels = { on = "type" }, manifests = { repo = "%[2]s", branch = "main", path = "./live" } }
      } : name => target if !var.removed })
    }]
    target_policies = ` + policiesByLabel + `
  })
  gitops_repo = { url = "%[3]s", branch = "dev" }
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  protection  = { max_removed_percent = 100, allow_empty = true }
}

resource "flotilla_agent" "one" {
  cluster                = "%[1]s-1"
  cluster_type           = "%[1]s-large"
  reconciler             = "%[1]s"
  gitops_repo            = local.gitops_repo
  credentials_wo         = { username = "%[4]s", password = var.token }
  credentials_wo_version = 1
  interval               = "5s"
  install                = { definitions = file("definitions.yaml"), settings = file("settings.yaml") }
  wait                   = true
  timeouts               = { create = "4m", update = "4m", delete = "4m" }
  on_destroy             = var.on_destroy
  depends_on             = [flotilla_assignment.dev]
}
`

// TestOnboarding onboards empty clusters to ready workloads in one apply, and offboards them. It runs each agent with each tool;
// in .ci/run, one agent for each tool.
func TestOnboarding(t *testing.T) {
	if os.Getenv("FLOTILLA_E2E") == "" {
		t.Skip("starts real agents: `make e2e` builds them and runs it")
	}
	for tool, variable := range map[string]string{"terraform": "FLOTILLA_TERRAFORM", "tofu": "FLOTILLA_TOFU"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			bed := &testbed{scenario: "onboarding, " + tool, git: giteatest.Start(t)}
			bed.step(t, "", "Kubernetes API started", func() {
				bed.cluster = kubetest.StartAnother(t, kubetest.Options{Controllers: true})
			})
			for _, agent := range []agent{argoCD{bed.cluster}, flux{bed.cluster}} {
				if acceptancetest.Either() && (tool == "tofu") != (agent.reconciler() == "flux") {
					continue
				}
				t.Run(agent.reconciler(), func(t *testing.T) {
					t.Parallel()
					bed.testOnboarding(t, agent, variable)
				})
			}
		})
	}
}

func (bed *testbed) testOnboarding(t *testing.T, agent agent, variable string) {
	name, user := agent.reconciler(), bed.git.User(t)
	team := newRepository(t, bed.git, user, "team")
	gitops := newPrivateRepository(t, bed.git, user, "gitops")
	team.push(map[string]string{"live/all.yaml": fmt.Sprintf(workload, "world", 0), "own/all.yaml": fmt.Sprintf(workload, "own", 0)})

	tf := newTerraformWith(t, user, variable)
	tf.env = append(tf.env, "TF_VAR_token="+user.Token)
	tf.writeFile("kubeconfig", bed.cluster.Kubeconfig())
	tf.writeFile("definitions.yaml", readDefinitions(t, name))
	tf.writeFile("settings.yaml", agent.settings())
	tf.writeFile("main.tf", fmt.Sprintf(onboardingConfiguration, name, team.url, gitops.url, user.Name))

	// Namespaces that exist before: one that no folder names, and two of deployment targets.
	checkForeign := bed.addForeignObjects(t, "before-"+name, "shared-"+name, "away-"+name)
	const live, own, used, shared = 0, 1, 2, 3
	namespaces := []string{
		"dev-" + name + "-large-web-live",
		"dev-" + name + "-1-web-own",
		"dev-" + name + "-large-web-used",
		"shared-" + name,
	}
	checkReady := func() error {
		return joinErrors(
			checkConfigMap(t, bed.cluster, namespaces[live], "greeting", "hello", "world"),
			checkConfigMap(t, bed.cluster, namespaces[own], "greeting", "hello", "own"),
			checkConfigMap(t, bed.cluster, namespaces[used], "greeting", "hello", "world"),
			checkConfigMap(t, bed.cluster, namespaces[shared], "greeting", "hello", "world"),
		)
	}

	bed.step(t, name, "one apply makes the workloads of an empty cluster ready", func() {
		applyDone := make(chan error)
		go func() {
			_, err := tf.tryRun("apply", "-auto-approve", "-no-color")
			applyDone <- err
		}()
		// In a real cluster, the installed Deployments would start the agent now.
		bed.waitWhileApplying(t, applyDone, func() bool {
			return bed.cluster.Get(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", rootDefinition[name]) != nil &&
				bed.cluster.Get(t, agentAPI[name], agentKind[name], agentNamespace[name], "flotilla-cluster") != nil
		})
		agent.start(t)
		if err := <-applyDone; err != nil {
			t.Fatalf("%v\nstatus of %s: %s", err, name, agent.describeStatus(t, "flotilla-cluster-type", "flotilla-cluster", namespaces[live],
				namespaces[own]))
		}
		if err := checkReady(); err != nil { // no polling: the apply waits
			t.Error(err)
		}
	})
	bed.step(t, name, "the second plan is empty", func() {
		if err := tf.checkEmptyPlan(); err != nil {
			t.Error(err)
		}
	})
	if state := tf.readFile("terraform.tfstate"); strings.Contains(state, user.Token) {
		t.Error("the token is in the state")
	}

	bed.step(t, name, "objects of two removed deployment targets are pruned, the older namespace stays", func() {
		away, removed := "away-"+name, "dev-"+name+"-large-web-gone"
		if err := joinErrors(checkConfigMap(t, bed.cluster, away, "greeting", "hello", "world"),
			checkConfigMap(t, bed.cluster, removed, "greeting", "hello", "world")); err != nil {
			t.Error(err)
		}
		tf.env = append(tf.env, "TF_VAR_removed=true")
		tf.run("apply", "-auto-approve", "-no-color")
		eventually(t, func() error {
			return joinErrors(checkNamespaceGone(t, bed.cluster, removed), bed.checkNoConfigMap(t, away, "greeting"))
		})
		if err := joinErrors(checkForeign(), tf.checkEmptyPlan()); err != nil {
			t.Error(err)
		}
	})

	objects := bed.listObjects(t, namespaces)
	bed.step(t, name, "a destroy leaves every workload", func() {
		tf.run("destroy", "-auto-approve", "-no-color")
		checkOnlyMarker(t, gitops, name+"-large", "dev") // an agent that still followed the folders would prune now
		time.Sleep(5 * time.Second)                      // more than an agent needs to notice the change
		if got := bed.listObjects(t, namespaces); !maps.Equal(objects, got) {
			t.Errorf("the workloads have %v, want %v", got, objects)
		}
	})
	t.Logf("%d objects of workloads stay", len(objects))
	bed.step(t, name, "the cluster is onboarded again with on_destroy = \"delete\"", func() {
		tf.env = append(tf.env, "TF_VAR_on_destroy=delete")
		tf.run("apply", "-auto-approve", "-no-color")
		if err := joinErrors(checkReady(), tf.checkEmptyPlan()); err != nil {
			t.Error(err)
		}
		if got := bed.listObjects(t, namespaces); !maps.Equal(objects, got) {
			t.Errorf("the workloads have %v, want %v", got, objects)
		}
	})
	bed.step(t, name, "a destroy deletes all but objects of others", func() {
		checkUsed := bed.addForeignObjects(t, namespaces[used])
		printed := tf.run("destroy", "-auto-approve", "-no-color")
		for _, want := range []string{
			"Namespace " + namespaces[used] + " stays: it has objects of others, which would be removed with it: ConfigMap " + namespaces[used] + "/theirs",
			"Namespace " + namespaces[shared] + " stays: ",
		} {
			if !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(printed, "│", "")), " "), want) {
				t.Errorf("the destroy printed\n%s\nwant %q", printed, want)
			}
		}
		if err := joinErrors(checkForeign(), checkUsed(), bed.checkNoConfigMap(t, namespaces[used], "greeting"),
			bed.checkNoConfigMap(t, namespaces[shared], "greeting"),
			checkNamespaceGone(t, bed.cluster, namespaces[live]), checkNamespaceGone(t, bed.cluster, namespaces[own]),
			checkNamespaceGone(t, bed.cluster, agentNamespace[name])); err != nil {
			t.Error(err)
		}
		got := bed.listObjects(t, namespaces)
		maps.DeleteFunc(got, func(object, _ string) bool {
			return strings.HasSuffix(object, " configmaps theirs") || strings.HasSuffix(object, " configmaps kube-root-ca.crt")
		})
		if len(got) > 0 {
			t.Errorf("the cluster still has %v", got)
		}
	})
}

// addForeignObjects creates namespaces, unless they exist, with a ConfigMap that Flotilla does not own. It returns a check that
// both remain.
func (bed *testbed) addForeignObjects(t *testing.T, namespaces ...string) func() error {
	t.Helper()
	uids := map[string]string{}
	for _, namespace := range namespaces {
		objects := bed.cluster.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}\n---\n"+
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: "+namespace+"}}")
		uids[namespace] = string(objects[0].GetUID())
	}
	return func() error {
		got := bed.listNamespaces(t)
		for namespace, uid := range uids {
			if got[namespace] != uid {
				return fmt.Errorf("namespace %s existed before and was deleted", namespace)
			}
			if bed.cluster.Get(t, "v1", "ConfigMap", namespace, "theirs") == nil {
				return fmt.Errorf("the foreign ConfigMap in namespace %s was deleted", namespace)
			}
		}
		return nil
	}
}

func (bed *testbed) checkNoConfigMap(t *testing.T, namespace, name string) error {
	t.Helper()
	if bed.cluster.Get(t, "v1", "ConfigMap", namespace, name) != nil {
		return fmt.Errorf("ConfigMap %s/%s still exists", namespace, name)
	}
	return nil
}

var (
	rootDefinition = map[string]string{"flux": "kustomizations.kustomize.toolkit.fluxcd.io", "argocd": "applications.argoproj.io"}
	agentAPI       = map[string]string{"flux": "kustomize.toolkit.fluxcd.io/v1", "argocd": "argoproj.io/v1alpha1"}
	agentKind      = map[string]string{"flux": "Kustomization", "argocd": "Application"}
	agentNamespace = map[string]string{"flux": "flux-system", "argocd": "argocd"}
)

// readDefinitions returns the CustomResourceDefinitions of an agent.
func readDefinitions(t *testing.T, agent string) string {
	t.Helper()
	published, err := kubetest.Definitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, module := range slices.Sorted(maps.Keys(published)) {
		if !strings.Contains(module, map[string]string{"flux": "fluxcd", "argocd": "argo-cd"}[agent]) {
			continue
		}
		for _, text := range published[module] {
			texts = append(texts, string(text))
		}
	}
	return strings.Join(texts, "\n---\n")
}

// listNamespaces maps the namespaces of the cluster to their UIDs.
func (bed *testbed) listNamespaces(t *testing.T) map[string]string {
	t.Helper()
	return listUIDs(t, bed.cluster, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "")
}

// listObjects maps the workloads' objects in these namespaces to their UIDs.
func (bed *testbed) listObjects(t *testing.T, namespaces []string) map[string]string {
	t.Helper()
	uids := map[string]string{}
	for _, namespace := range namespaces {
		for _, resource := range []schema.GroupVersionResource{
			configMaps, secrets,
			{Version: "v1", Resource: "resourcequotas"},
			{Group: "apps", Version: "v1", Resource: "deployments"},
			{Group: "apps", Version: "v1", Resource: "replicasets"},
			{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
		} {
			for name, uid := range listUIDs(t, bed.cluster, resource, namespace) {
				uids[namespace+" "+resource.Resource+" "+name] = uid
			}
		}
	}
	return uids
}

// listUIDs maps the names of a kind's objects to their UIDs.
func listUIDs(t *testing.T, cluster *kubetest.Server, resource schema.GroupVersionResource, namespace string) map[string]string {
	t.Helper()
	listed, err := cluster.Client().Resource(resource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]string{}
	for _, object := range listed.Items {
		uids[object.GetName()] = string(object.GetUID())
	}
	return uids
}

// waitWhileApplying waits for the condition, and fails the test if the apply ends first.
func (bed *testbed) waitWhileApplying(t *testing.T, applyDone chan error, isReady func() bool) {
	t.Helper()
	eventually(t, func() error {
		select {
		case err := <-applyDone:
			t.Fatalf("the apply ended before the agent started: %v", err)
		default:
		}
		if !isReady() {
			return fmt.Errorf("the objects of the agent do not exist yet")
		}
		return nil
	})
}

func (tf *terraform) readFile(name string) string {
	tf.t.Helper()
	text, err := os.ReadFile(filepath.Join(tf.folder, name))
	if err != nil {
		tf.t.Fatal(err)
	}
	return string(text)
}
