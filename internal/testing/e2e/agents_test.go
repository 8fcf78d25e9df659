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

// agent is what reconciles on the cluster.
type agent interface {
	reconciler() string

	// settings are what it needs on the cluster besides the definitions of its
	// kinds: namespaces, and what it reads.
	settings() string

	// start starts it, where its settings are.
	start(t *testing.T)

	// hold has what follows a folder do nothing for now, or go on.
	setSuspended(t *testing.T, root string, suspended bool)

	// nudge has what follows a folder look at the branch before its time.
	triggerReconcile(t *testing.T, root string)

	// says is what it reports of its objects with these names.
	describeStatus(t *testing.T, names ...string) string

	// comparesAlways says whether it reports what somebody changes on the cluster
	// while it may not put it right.
	reportsDriftWhileSuspended() bool
}

// follow puts onto the cluster what a cluster of a fleet needs so that its agent
// follows its folders, and returns the names of what follows the folder of its
// type, and its own.
func applyRoots(t *testing.T, cluster *kubetest.Server, settings agents.Settings) (typeRoot, ownRoot string) {
	t.Helper()
	settings.Name = "flotilla-" + settings.Cluster // else two clusters of one API would have one name
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

// journey is a way that a fleet goes with an agent.
type scenario func(t *testing.T, agent agent)

// TestAgents goes the whole way with each agent: what Terraform writes arrives, changes, and goes; and a change goes from
// stage to stage. In .ci/run some ways are gone with one agent alone.
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
	t.Run("with", func(t *testing.T) { // ends when both have
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
					agent string // that goes this way where the other does not
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

// workload is what a team has in its repository: something to see, and a
// Deployment that needs no node, or waits for one for ever.
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

// fleet is the fleet of one agent: a host for each type of configuration, each
// of which gets the workload, and a second deployment target on the first.
func fleet(agent, repository, greeting string) map[string]any {
	first := map[string]any{"name": agent, "reconciler": agent, "labels": map[string]any{"first": "true"}}
	if agent == "argocd" {
		// It would try a commit that cannot be synced for minutes before it looks at the next.
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

// without is the fleet without one entry of a list of it.
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
				return fmt.Errorf("%w\n%s says %s", err, host, agent.describeStatus(t, roots[host], namespace(host, "live")))
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
	step("five deployment targets run", func() {
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
			checkConfigMap(t, bed.cluster, namespace(host+"-properties", "live"), "platform-config", "platform-config.properties", "GREETING="+value),
		)
	}
	step("configuration of every type is there", func() { waitFor(func() error { return checkConfiguration("hello") }) })
	step("a value changed", func() { tf.apply(fleet(host, team.url, "goodbye")) })
	step("the value is on the cluster", func() { waitFor(func() error { return checkConfiguration("goodbye") }) })
	step("a change by hand on the cluster is put right", func() {
		setData(t, bed.cluster, namespace(host, "live"), "platform-config", "GREETING", "by hand")
		waitFor(func() error { return checkConfiguration("goodbye") })
	})
	bed.testCompliance(t, agent, roots[host], tf, team, gitops, user, waitFor)
	step("a deployment target removed", func() { tf.apply(withoutEntry(fleet(host, team.url, "goodbye"), "target_policies", "extra")) })
	step("it is pruned", func() {
		waitFor(func() error { return checkNamespaceGone(t, bed.cluster, namespace(host, "extra")) })
		if err := checkConfiguration("goodbye"); err != nil {
			t.Errorf("what was not removed: %v", err)
		}
	})
	step("a host removed", func() {
		remaining := withoutEntry(withoutEntry(fleet(host, team.url, "goodbye"), "target_policies", "extra"), "cluster_types", host+"-env")
		tf.apply(withoutEntry(remaining, "clusters", host+"-env-1"))
		checkOnlyMarker(t, gitops, host+"-env", host)
	})
	step("all that it had is pruned", func() {
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

// marker checks that a host's folder holds nothing but the owner's marker.
func checkOnlyMarker(t *testing.T, gitops *repository, host, owner string) {
	t.Helper()
	if files := gitops.listFiles(host); !slices.Equal(files, []string{host + "/" + owner + ".md"}) {
		t.Errorf("the folder of %s has %s", host, strings.Join(files, ", "))
	}
}
