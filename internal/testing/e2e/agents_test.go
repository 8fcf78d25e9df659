package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	agents "github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// agent is a reconciler that runs on the cluster.
type agent interface {
	reconciler() string

	// settings returns the manifests that must exist before the agent starts, except the CustomResourceDefinitions.
	settings() string

	// start starts the agent after its settings were applied.
	start(t *testing.T)

	// setSuspended suspends or resumes the root, which is the Application or Kustomization that follows a folder of the branch.
	setSuspended(t *testing.T, root string, suspended bool)

	// triggerReconcile makes the root read the branch before its interval has passed.
	triggerReconcile(t *testing.T, root string)

	// describeStatus returns the status of the Applications or Kustomizations with these names.
	describeStatus(t *testing.T, names ...string) string

	// reportsDriftWhileSuspended reports whether a suspended agent reports changes made on the cluster by hand.
	reportsDriftWhileSuspended() bool
}

// applyRoots applies the objects of flotilla_agent for one cluster. It returns the names of the two roots: one follows the
// folder of the cluster type, the other the folder of the cluster.
func applyRoots(t *testing.T, cluster *kubetest.Server, settings agents.Settings) (typeRoot, ownRoot string) {
	t.Helper()
	settings.Name = "flotilla-" + settings.Cluster // unique, because several clusters share an API
	settings.Interval = 5 * time.Second
	objects, problems := agents.Render(settings)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, object := range objects {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		cluster.Apply(t, string(text))
	}
	return settings.Name + "-cluster-type", settings.Name + "-cluster"
}

// scenario tests one part of the product with one agent.
type scenario func(t *testing.T, agent agent)

// TestAgents runs every scenario with each agent: folders that Terraform writes are applied, changed and removed, and rollouts
// go through their stages. In .ci/run, some scenarios run with only one agent.
func TestAgents(t *testing.T) {
	if os.Getenv("FLOTILLA_E2E") == "" {
		t.Skip("starts real agents: `make e2e` builds them and runs it")
	}
	bed := &testbed{}
	bed.step(t, "", "Kubernetes API and Git host started", func() {
		bed.cluster = kubetest.Start(t, kubetest.Options{Agents: true, Controllers: true, Secrets: true})
		bed.git = giteatest.Start(t)
		startNodes(t, bed.cluster)
	})
	t.Run("with", func(t *testing.T) { // waits for the parallel subtests
		for _, agent := range []agent{argoCD{bed.cluster}, flux{bed.cluster}} {
			t.Run(agent.reconciler(), func(t *testing.T) {
				t.Parallel()
				bed.step(t, agent.reconciler(), "agent started", func() {
					bed.cluster.Apply(t, agent.settings())
					agent.start(t)
				})
				t.Run("delivery", func(t *testing.T) {
					t.Parallel()
					bed.testDelivery(t, agent)
				})
				t.Run("nodes", func(t *testing.T) {
					t.Parallel()
					bed.testNodes(t, agent)
				})
				for name, entry := range map[string]struct {
					agent string // the only agent in .ci/run
					test  scenario
				}{
					"layout":    {"argocd", bed.testLayout},
					"rendering": {"argocd", bed.testRendering},
					"takeover":  {"flux", bed.testTakeover},
					"stages":    {"flux", bed.testStages},
				} {
					if acceptancetest.Either() && entry.agent != agent.reconciler() {
						continue
					}
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						entry.test(t, agent)
					})
				}
				if _, ok := agent.(flux); ok {
					t.Run("secrets", func(t *testing.T) {
						t.Parallel()
						bed.testSecretRotation(t, agent)
					})
				}
				if argoCD, ok := agent.(argoCD); ok { // the Go module proxy has no helm-controller for Flux
					t.Run("charts", func(t *testing.T) {
						t.Parallel()
						bed.testCharts(t, argoCD)
					})
				}
			})
		}
	})
}

// workload is the content of a team's repository: a ConfigMap and a Deployment. The Deployment needs no node, or waits for one
// for ever.
const workload = `
apiVersion: v1
kind: ConfigMap
metadata: {name: greeting}
data: {hello: %q}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: server}
spec:
  replicas: %d
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec: {containers: [{name: server, image: example.com/server}]}
`

// fleet returns the fleet of one agent. It has one host without and one for each type of configuration. Every host runs one
// deployment target, the first host a second one.
func fleet(agent, repository, greeting string) map[string]any {
	first := map[string]any{"name": agent, "reconciler": agent, "labels": map[string]any{"first": "true"}}
	if agent == "argocd" {
		// By default, Argo CD retries a failing commit for minutes before it reads the next one.
		first["parameters"] = map[string]any{"application": map[string]any{"syncPolicy": map[string]any{"retry": map[string]any{
			"limit": 5, "refresh": true, "backoff": map[string]any{"duration": "2s", "factor": 1, "maxDuration": "2s"},
		}}}}
	}
	hosts, clusters := []any{first}, []any{map[string]any{"name": agent + "-1", "cluster_type": agent}}
	for _, kind := range configTypes {
		name := agent + "-" + kind
		hosts = append(hosts, map[string]any{"name": name, "reconciler": agent, "config_type": kind})
		clusters = append(clusters, map[string]any{"name": name + "-1", "cluster_type": name})
	}
	target := func(path string) map[string]any {
		return map[string]any{
			"environment": "dev",
			"labels":      map[string]any{"path": path},
			"manifests":   map[string]any{"repo": repository, "branch": "main", "path": "./" + path},
		}
	}
	return map[string]any{
		"environment":   "dev",
		"workspaces":    []any{map[string]any{"name": "shop"}},
		"cluster_types": hosts,
		"clusters":      clusters,
		"workloads": []any{map[string]any{
			"name": "web", "workspace": "shop",
			"deployment_targets": map[string]any{"live": target("live"), "extra": target("extra")},
		}},
		"target_policies": []any{
			map[string]any{"name": "live", "deployment_target_selector": labelSelector("path", "live"), "cluster_type_selector": map[string]any{}},
			map[string]any{
				"name":                       "extra",
				"deployment_target_selector": labelSelector("path", "extra"),
				"cluster_type_selector":      labelSelector("first", "true"),
			},
		},
		"config_containers": []any{map[string]any{"name": "all", "data": map[string]any{"GREETING": greeting}}},
	}
}

var configTypes = []string{"json", "env", "properties"}

func labelSelector(key, value string) map[string]any {
	return map[string]any{"match_labels": map[string]any{key: value}}
}

// withoutEntry removes an entry by name from a list of the fleet.
func withoutEntry(fleet map[string]any, list, name string) map[string]any {
	fleet[list] = slices.DeleteFunc(fleet[list].([]any), func(entry any) bool { return entry.(map[string]any)["name"] == name })
	return fleet
}

func (bed *testbed) testDelivery(t *testing.T, agent agent) {
	user := bed.git.User(t)
	team := newRepository(t, bed.git, user, "team")
	gitops := newRepository(t, bed.git, user, "gitops")
	host := agent.reconciler()
	hosts := []string{host}
	for _, kind := range configTypes {
		hosts = append(hosts, host+"-"+kind)
	}
	namespace := func(host, target string) string { return "dev-" + host + "-web-" + target }
	roots := map[string]string{}
	waitFor := func(check func() error) {
		t.Helper()
		for _, host := range hosts {
			agent.triggerReconcile(t, roots[host])
		}
		eventually(t, func() error {
			if err := check(); err != nil {
				return fmt.Errorf("%w\nstatus of %s: %s", err, host, agent.describeStatus(t, roots[host], namespace(host, "live")))
			}
			return nil
		})
	}
	step := func(title string, do func()) {
		t.Helper()
		bed.step(t, host, title, do)
	}

	team.push(map[string]string{"live/all.yaml": fmt.Sprintf(workload, "world", 0), "extra/all.yaml": fmt.Sprintf(workload, "extra", 0)})
	tf := newTerraform(t, user)
	tf.writeFile("main.tf", fmt.Sprintf(fleetConfiguration, fmt.Sprintf(assignmentConfiguration, host, gitops.url)))

	step("first apply", func() { tf.apply(fleet(host, team.url, "hello")) })
	step("five deployment targets are running", func() {
		for _, host := range hosts {
			roots[host], _ = applyRoots(t, bed.cluster, agents.Settings{
				Cluster: host + "-1", ClusterType: host, Reconciler: agent.reconciler(),
				Repository: folder.Location{URL: gitops.url, Branch: "dev"},
			})
		}
		waitFor(func() error {
			check := []error{checkConfigMap(t, bed.cluster, namespace(host, "extra"), "greeting", "hello", "extra")}
			for _, host := range hosts {
				check = append(check, checkConfigMap(t, bed.cluster, namespace(host, "live"), "greeting", "hello", "world"))
			}
			return joinErrors(check...)
		})
	})
	checkConfiguration := func(value string) error {
		return joinErrors(
			checkConfigMap(t, bed.cluster, namespace(host, "live"), "platform-config", "GREETING", value),
			checkConfigMap(t, bed.cluster, namespace(host+"-json", "live"), "platform-config", "platform-config.json", `"GREETING": "`+value+`"`),
			checkConfigMap(t, bed.cluster, namespace(host+"-env", "live"), "platform-config", "platform-config.env", "GREETING="+value),
			checkConfigMap(t, bed.cluster, namespace(host+"-properties", "live"), "platform-config", "platform-config.properties",
				"GREETING="+value),
		)
	}
	step("every type of configuration is on the cluster", func() { waitFor(func() error { return checkConfiguration("hello") }) })
	step("a value changed", func() { tf.apply(fleet(host, team.url, "goodbye")) })
	step("the value is on the cluster", func() { waitFor(func() error { return checkConfiguration("goodbye") }) })
	step("a change by hand on the cluster is reverted", func() {
		setData(t, bed.cluster, namespace(host, "live"), "platform-config", "GREETING", "by hand")
		waitFor(func() error { return checkConfiguration("goodbye") })
	})
	bed.testCompliance(t, agent, roots[host], tf, team, gitops, user, waitFor)
	step("a deployment target removed", func() { tf.apply(withoutEntry(fleet(host, team.url, "goodbye"), "target_policies", "extra")) })
	step("its objects are pruned", func() {
		waitFor(func() error { return checkNamespaceGone(t, bed.cluster, namespace(host, "extra")) })
		if err := checkConfiguration("goodbye"); err != nil {
			t.Errorf("remaining deployment targets: %v", err)
		}
	})
	step("a host removed", func() {
		remaining := withoutEntry(withoutEntry(fleet(host, team.url, "goodbye"), "target_policies", "extra"), "cluster_types", host+"-env")
		tf.apply(withoutEntry(remaining, "clusters", host+"-env-1"))
		checkOnlyMarker(t, gitops, host+"-env", host)
	})
	step("objects of the host are pruned", func() {
		waitFor(func() error { return checkNamespaceGone(t, bed.cluster, namespace(host+"-env", "live")) })
	})
	step("destroyed", func() {
		tf.run("destroy", "-auto-approve", "-no-color")
		for _, name := range hosts {
			checkOnlyMarker(t, gitops, name, host)
		}
	})
	step("everything is pruned", func() {
		waitFor(func() error {
			var check []error
			for _, host := range hosts {
				check = append(check, checkNamespaceGone(t, bed.cluster, namespace(host, "live")))
			}
			return joinErrors(check...)
		})
	})
}

// checkOnlyMarker checks that a host's folder has only the marker file of the owner.
func checkOnlyMarker(t *testing.T, gitops *repository, host, owner string) {
	t.Helper()
	if files := gitops.listFiles(host); !slices.Equal(files, []string{host + "/" + owner + ".md"}) {
		t.Errorf("the folder of %s has the files %s, want only the marker", host, strings.Join(files, ", "))
	}
}
