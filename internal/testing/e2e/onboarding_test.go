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

// oneRun is the configuration of a cluster that has nothing, an agent, and what
// is to run there.
const oneRun = required + `
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
    target_policies = ` + byLabel + `
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

// TestOnboarding goes from clusters that have nothing to workloads that are ready in one apply, and away again: each agent
// with each tool, or, in .ci/run, with one of them.
func TestOnboarding(t *testing.T) {
	if os.Getenv("FLOTILLA_E2E") == "" {
		t.Skip("starts real agents: `make e2e` builds them and runs it")
	}
	for tool, variable := range map[string]string{"terraform": "FLOTILLA_TERRAFORM", "tofu": "FLOTILLA_TOFU"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			w := &world{test: "onboarding, " + tool, git: giteatest.Start(t)}
			w.step(t, "", "Kubernetes API started", func() {
				w.cluster = kubetest.StartAnother(t, kubetest.Options{Controllers: true})
			})
			for _, agent := range []agent{argoCD{w.cluster}, flux{w.cluster}} {
				if acceptancetest.Either() && (tool == "tofu") != (agent.reconciler() == "flux") {
					continue
				}
				t.Run(agent.reconciler(), func(t *testing.T) {
					t.Parallel()
					w.onboard(t, agent, variable)
				})
			}
		})
	}
}

func (w *world) onboard(t *testing.T, agent agent, variable string) {
	name, user := agent.reconciler(), w.git.User(t)
	team := newRepository(t, w.git, user, "team")
	gitops := newPrivateRepository(t, w.git, user, "gitops")
	team.push(map[string]string{"live/all.yaml": fmt.Sprintf(workload, "world", 0), "own/all.yaml": fmt.Sprintf(workload, "own", 0)})

	tf := newTool(t, user, variable)
	tf.env = append(tf.env, "TF_VAR_token="+user.Token)
	tf.write("kubeconfig", w.cluster.Kubeconfig())
	tf.write("definitions.yaml", definitions(t, name))
	tf.write("settings.yaml", agent.settings())
	tf.write("main.tf", fmt.Sprintf(oneRun, name, team.url, gitops.url, user.Name))

	// What was there before: a namespace that no folder names, and two that deployment targets set.
	there := w.foreign(t, "before-"+name, "shared-"+name, "away-"+name)
	const live, own, used, shared = 0, 1, 2, 3
	ofWorkloads := []string{
		"dev-" + name + "-large-web-live",
		"dev-" + name + "-1-web-own",
		"dev-" + name + "-large-web-used",
		"shared-" + name,
	}
	ready := func() error {
		return all(
			configMapSays(t, w.cluster, ofWorkloads[live], "greeting", "hello", "world"),
			configMapSays(t, w.cluster, ofWorkloads[own], "greeting", "hello", "own"),
			configMapSays(t, w.cluster, ofWorkloads[used], "greeting", "hello", "world"),
			configMapSays(t, w.cluster, ofWorkloads[shared], "greeting", "hello", "world"),
		)
	}

	w.step(t, name, "one apply goes from nothing to workloads that are ready", func() {
		applied := make(chan error)
		go func() {
			_, err := tf.try("apply", "-auto-approve", "-no-color")
			applied <- err
		}()
		// Its Deployments would start the agent now.
		w.until(t, applied, func() bool {
			return w.cluster.Get(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", rootDefinition[name]) != nil &&
				w.cluster.Get(t, agentAPI[name], agentKind[name], agentNamespace[name], "flotilla-cluster") != nil
		})
		agent.start(t)
		if err := <-applied; err != nil {
			t.Fatalf("%v\n%s says %s", err, name, agent.says(t, "flotilla-cluster-type", "flotilla-cluster", ofWorkloads[live], ofWorkloads[own]))
		}
		if err := ready(); err != nil { // nothing is waited for: the apply has
			t.Error(err)
		}
	})
	w.step(t, name, "the second plan is empty", func() {
		if err := tf.plansNothing(); err != nil {
			t.Error(err)
		}
	})
	if state := tf.read("terraform.tfstate"); strings.Contains(state, user.Token) {
		t.Error("the token is in the state")
	}

	w.step(t, name, "what two deployment targets had is gone, and the namespace that was there before is not", func() {
		away, removed := "away-"+name, "dev-"+name+"-large-web-gone"
		if err := all(configMapSays(t, w.cluster, away, "greeting", "hello", "world"), configMapSays(t, w.cluster, removed, "greeting", "hello", "world")); err != nil {
			t.Error(err)
		}
		tf.env = append(tf.env, "TF_VAR_removed=true")
		tf.run("apply", "-auto-approve", "-no-color")
		eventually(t, func() error { return all(gone(t, w.cluster, removed), w.without(t, away, "greeting")) })
		if err := all(there(), tf.plansNothing()); err != nil {
			t.Error(err)
		}
	})

	objects := w.objects(t, ofWorkloads)
	w.step(t, name, "destroyed, and every workload is there", func() {
		tf.run("destroy", "-auto-approve", "-no-color")
		marker(t, gitops, name+"-large", "dev") // what still followed the folders would prune now
		time.Sleep(5 * time.Second)             // so long every agent needs to see that, and more
		if left := w.objects(t, ofWorkloads); !maps.Equal(objects, left) {
			t.Errorf("the workloads had %v, and have %v", objects, left)
		}
	})
	t.Logf("%d objects of workloads stay", len(objects))
	w.step(t, name, "onboarded again, to be deleted", func() {
		tf.env = append(tf.env, "TF_VAR_on_destroy=delete")
		tf.run("apply", "-auto-approve", "-no-color")
		if err := all(ready(), tf.plansNothing()); err != nil {
			t.Error(err)
		}
		if again := w.objects(t, ofWorkloads); !maps.Equal(objects, again) {
			t.Errorf("the workloads had %v, and have %v", objects, again)
		}
	})
	w.step(t, name, "destroyed, and all is gone but what others have", func() {
		theirs := w.foreign(t, ofWorkloads[used])
		said := tf.run("destroy", "-auto-approve", "-no-color")
		for _, want := range []string{
			"Namespace " + ofWorkloads[used] + " stays: it has objects of others, which would be removed with it: ConfigMap " + ofWorkloads[used] + "/theirs",
			"Namespace " + ofWorkloads[shared] + " stays: ",
		} {
			if !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(said, "│", "")), " "), want) {
				t.Errorf("the destroy does not say %q:\n%s", want, said)
			}
		}
		if err := all(there(), theirs(), w.without(t, ofWorkloads[used], "greeting"), w.without(t, ofWorkloads[shared], "greeting"),
			gone(t, w.cluster, ofWorkloads[live]), gone(t, w.cluster, ofWorkloads[own]), gone(t, w.cluster, agentNamespace[name])); err != nil {
			t.Error(err)
		}
		left := w.objects(t, ofWorkloads)
		maps.DeleteFunc(left, func(object, _ string) bool {
			return strings.HasSuffix(object, " configmaps theirs") || strings.HasSuffix(object, " configmaps kube-root-ca.crt")
		})
		if len(left) > 0 {
			t.Errorf("there still is %v", left)
		}
	})
}

// foreign puts a ConfigMap of others into namespaces, which are made where they are not there, and returns what checks
// that they are still there, the same ones.
func (w *world) foreign(t *testing.T, namespaces ...string) func() error {
	t.Helper()
	made := map[string]string{}
	for _, namespace := range namespaces {
		objects := w.cluster.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}\n---\n"+
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: "+namespace+"}}")
		made[namespace] = string(objects[0].GetUID())
	}
	return func() error {
		now := w.namespaces(t)
		for namespace, uid := range made {
			if now[namespace] != uid {
				return fmt.Errorf("namespace %s was there before, and has gone", namespace)
			}
			if w.cluster.Get(t, "v1", "ConfigMap", namespace, "theirs") == nil {
				return fmt.Errorf("what others have in namespace %s has gone", namespace)
			}
		}
		return nil
	}
}

// without checks that a ConfigMap is not there.
func (w *world) without(t *testing.T, namespace, name string) error {
	t.Helper()
	if w.cluster.Get(t, "v1", "ConfigMap", namespace, name) != nil {
		return fmt.Errorf("ConfigMap %s/%s is still there", namespace, name)
	}
	return nil
}

var (
	rootDefinition = map[string]string{"flux": "kustomizations.kustomize.toolkit.fluxcd.io", "argocd": "applications.argoproj.io"}
	agentAPI       = map[string]string{"flux": "kustomize.toolkit.fluxcd.io/v1", "argocd": "argoproj.io/v1alpha1"}
	agentKind      = map[string]string{"flux": "Kustomization", "argocd": "Application"}
	agentNamespace = map[string]string{"flux": "flux-system", "argocd": "argocd"}
)

// definitions are those of the kinds of an agent.
func definitions(t *testing.T, agent string) string {
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

// namespaces are those of the cluster, with their UIDs.
func (w *world) namespaces(t *testing.T) map[string]string {
	t.Helper()
	return list(t, w.cluster, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "")
}

// objects are all that workloads have in these namespaces, with their UIDs.
func (w *world) objects(t *testing.T, namespaces []string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, namespace := range namespaces {
		for _, resource := range []schema.GroupVersionResource{
			configMaps, secrets,
			{Version: "v1", Resource: "resourcequotas"},
			{Group: "apps", Version: "v1", Resource: "deployments"},
			{Group: "apps", Version: "v1", Resource: "replicasets"},
			{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
		} {
			for name, uid := range list(t, w.cluster, resource, namespace) {
				found[namespace+" "+resource.Resource+" "+name] = uid
			}
		}
	}
	return found
}

// list are the objects of a kind, with their UIDs.
func list(t *testing.T, cluster *kubetest.Server, resource schema.GroupVersionResource, namespace string) map[string]string {
	t.Helper()
	listed, err := cluster.Client().Resource(resource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, object := range listed.Items {
		found[object.GetName()] = string(object.GetUID())
	}
	return found
}

// until asks until the answer is yes, or an apply has ended with an error.
func (w *world) until(t *testing.T, applied chan error, is func() bool) {
	t.Helper()
	eventually(t, func() error {
		select {
		case err := <-applied:
			t.Fatalf("the apply has ended before the agent ran: %v", err)
		default:
		}
		if !is() {
			return fmt.Errorf("nothing for an agent is there")
		}
		return nil
	})
}

// read is the text of a file.
func (w *terraform) read(name string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.folder, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}
