package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	agents "github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// rolloutConfiguration has a rollout over the clusters of dev, and a promotion of proven versions to stage. The clusters of dev
// share one API, but each follows only the folder of its own.
const rolloutConfiguration = `
provider "flotilla" {
  clusters = { for cluster in local.clusters : cluster.name => { kubeconfig = file("kubeconfig") } }
}

locals {
  newest   = trimspace(file("newest"))
  clusters = [for ring in ["canary", "east", "west"] : {
    name = "%[1]s-${ring}", cluster_type = "%[1]s-ringed", labels = { ring = ring }
  }]
  team = { name = "shop" }

  dev = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [local.team]
    cluster_types = [{ name = "%[1]s-ringed", reconciler = "%[1]s" }]
    clusters      = local.clusters
    workloads = [{
      name = "web", workspace = local.team.name
      deployment_targets = { live = { environment = "dev", manifests = { repo = "%[2]s", tag = local.newest, path = "./deploy" } } }
    }]
    target_policies = [{ name = "everywhere", deployment_target_selector = {}, cluster_selector = {} }]
  })

  stage = provider::flotilla::fleet({
    environment   = "stage"
    workspaces    = [local.team]
    cluster_types = [{ name = "%[1]s-stage", reconciler = "%[1]s" }]
    clusters      = [{ name = "%[1]s-stage-1", cluster_type = "%[1]s-stage" }]
    workloads = [for version in compact([flotilla_promotion.stage.promoted]) : {
      name = "web", workspace = local.team.name
      deployment_targets = { live = { environment = "stage", manifests = { repo = "%[2]s", tag = version, path = "./deploy" } } }
    }]
    target_policies = [{ name = "everywhere", deployment_target_selector = {}, cluster_type_selector = {} }]
  })
}

data "flotilla_compliance" "dev" {
  name        = "dev"
  fleet       = local.dev
  gitops_repo = { url = "%[3]s", branch = "dev" }
  feedback    = { clusters = true }
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.dev
  candidate   = local.newest
  gitops_repo = { url = "%[3]s", branch = "dev" }
  evidence    = data.flotilla_compliance.dev.evidence
  rollout = {
    stages = [
      { name = "canary", cluster_selector = { match_labels = { ring = "canary" } }, soak = "2s" },
      { name = "east", cluster_selector = { match_labels = { ring = "east" } } },
    ]
  }
}

resource "flotilla_promotion" "stage" {
  candidate = flotilla_assignment.dev.proven
}

resource "flotilla_assignment" "stage" {
  name        = "stage"
  fleet       = local.stage
  gitops_repo = { url = "%[3]s", branch = "stage" }
}

output "running" {
  value = data.flotilla_compliance.dev.running
}
output "rolling_out" {
  value = { for target, progress in flotilla_assignment.dev.rolling_out : target => progress.summary }
}
output "rolled_out" {
  value = flotilla_assignment.dev.rolled_out
}
output "promoted" {
  value = flotilla_promotion.stage.promoted
}
`

// newVersion returns the content of a tag in the team's repository. A broken version has a second Deployment that never gets its
// replica, because no node takes it, and fails after a second.
func newVersion(name string, works bool) string {
	text := fmt.Sprintf(workload, name, 0)
	if !works {
		_, worker, _ := strings.Cut(fmt.Sprintf(workload, name, 1), "---")
		text += "---" + strings.NewReplacer("server", "worker", "progressDeadlineSeconds: 600", "progressDeadlineSeconds: 1").Replace(worker)
	}
	return text
}

// rolloutStatus has the outputs of an apply.
type rolloutStatus struct {
	rollingOut map[string]string
	rolledOut  bool
	promoted   string
	running    map[string]string // version by ring
}

// testStages rolls out three versions over the stages of dev and promotes them to the environment stage: a working version, a
// broken one and a repaired one.
func (bed *testbed) testStages(t *testing.T, agent agent) {
	user := bed.git.User(t)
	team := newRepository(t, bed.git, user, "team")
	gitops := newRepository(t, bed.git, user, "gitops")
	name := agent.reconciler()
	clusters := []agents.Settings{{
		Cluster: name + "-stage-1", ClusterType: name + "-stage", Reconciler: name, Repository: folder.Location{URL: gitops.url, Branch: "stage"},
	}}
	namespace := func(ring string) string { return "dev-" + name + "-" + ring + "-web-live" }
	for _, ring := range []string{"canary", "east", "west"} {
		clusters = append(clusters, agents.Settings{
			Cluster: name + "-" + ring, ClusterType: name + "-ringed", Reconciler: name, Repository: folder.Location{URL: gitops.url, Branch: "dev"},
		})
	}
	stage := "stage-" + name + "-stage-web-live"

	tf := newTerraform(t, user)
	tf.writeFile("kubeconfig", bed.cluster.Kubeconfig())
	tf.writeFile("main.tf", requiredProviders+fmt.Sprintf(rolloutConfiguration, name, team.url, gitops.url))
	greetings := watchField(t, bed.cluster, configMaps, "greeting", "data", "hello")
	var roots []string
	applyOnce := func() rolloutStatus {
		tf.run("apply", "-auto-approve", "-no-color")
		if roots == nil { // the first apply creates the branches
			for _, cluster := range clusters {
				ofType, own := applyRoots(t, bed.cluster, cluster)
				roots = append(roots, ofType, own)
			}
		}
		for _, root := range roots {
			agent.triggerReconcile(t, root)
		}
		var status rolloutStatus
		var runs []runningVersion
		tf.readOutputs(map[string]any{"rolling_out": &status.rollingOut, "rolled_out": &status.rolledOut, "promoted": &status.promoted, "running": &runs})
		status.running = map[string]string{}
		for _, version := range runs {
			for _, host := range version.Hosts {
				ring := strings.TrimPrefix(host, "clusters/"+name+"-")
				if version.Version == "" || version.Revision == "" || version.DeploymentTarget != "web-live" {
					t.Errorf("running version of %s: got %+v, want complete fields of web-live", host, version)
					continue
				}
				status.running[ring] = version.Version
				if commit := strings.TrimSpace(team.git("rev-parse", version.Version+"^{commit}")); commit != version.Revision {
					t.Errorf("running version of %s: got %s at %s, want %s", host, version.Version, version.Revision, commit)
				}
				if values := greetings.inNamespace(namespace(ring)); !slices.Contains(values, version.Version) {
					t.Errorf("%s has only had %v, but version %s is reported as running", host, values, version.Version)
				}
			}
		}
		return status
	}
	// applyUntil applies repeatedly, as a schedule would.
	applyUntil := func(title string, isDone func(rolloutStatus) bool) {
		t.Helper()
		runs := 0
		bed.step(t, name, title, func() {
			eventually(t, func() error {
				if runs++; runs > 1 {
					time.Sleep(time.Second) // leave processor time to the agents
				}
				if status := applyOnce(); !isDone(status) {
					return fmt.Errorf("the summary of the rollout is %v, the promoted version %q\nstatus of the agent: %s", status.rollingOut,
						status.promoted,
						agent.describeStatus(t, namespace("canary"), namespace("east"), namespace("west")))
				}
				return nil
			})
		})
		t.Logf("%d applies", runs)
	}
	releaseVersion := func(version, text string) {
		team.push(map[string]string{"deploy/all.yaml": text})
		team.pushTag(version)
		tf.writeFile("newest", version)
	}
	waitForStage := func(version string) {
		t.Helper()
		bed.step(t, name, version+" is deployed in stage", func() {
			eventually(t, func() error {
				return checkConfigMap(t, bed.cluster, stage, "greeting", "hello", version)
			})
		})
	}
	// waitForRunning waits until the clusters of dev report these running versions.
	waitForRunning := func(canary, east, west string) {
		t.Helper()
		want := map[string]string{"canary": canary, "east": east, "west": west}
		applyUntil("the running versions are "+canary+", "+east+" and "+west,
			func(status rolloutStatus) bool { return maps.Equal(status.running, want) })
	}
	isRolledOut := func(version string) func(rolloutStatus) bool {
		return func(status rolloutStatus) bool { return status.rolledOut && status.promoted == version }
	}

	releaseVersion("v1", newVersion("v1", true))
	applyUntil("v1 passes three stages", isRolledOut("v1"))
	waitForStage("v1")
	waitForRunning("v1", "v1", "v1")
	releaseVersion("v2", newVersion("v2", false))
	applyUntil("v2, a broken version, halts at the canary", func(status rolloutStatus) bool {
		if status.rolledOut || status.promoted != "v1" {
			t.Errorf("with a broken canary, the rollout is %+v", status)
		}
		return strings.Contains(status.rollingOut["web-live"], `stage 1 of 3 "canary", 1 of 3 hosts`) &&
			strings.Contains(status.rollingOut["web-live"], "failed")
	})
	// Argo CD reports a synced version as running, Flux only a healthy one.
	waitForRunning(map[string]string{"argocd": "v2", "flux": "v1"}[name], "v1", "v1")
	// At times Flux reports a retry instead of the failure.
	bed.step(t, name, "the plan is empty", func() { eventually(t, tf.checkEmptyPlan) })
	releaseVersion("v3", newVersion("v3", true))
	applyUntil("v3, a repaired version, passes three stages", isRolledOut("v3"))
	waitForStage("v3")
	waitForRunning("v3", "v3", "v3")
	if err := tf.checkEmptyPlan(); err != nil {
		t.Error(err)
	}

	for namespace, want := range map[string][]string{
		namespace("canary"): {"v1", "v2", "v3"}, namespace("east"): {"v1", "v3"}, namespace("west"): {"v1", "v3"}, stage: {"v1", "v3"},
	} {
		if got := greetings.inNamespace(namespace); !slices.Equal(got, want) {
			t.Errorf("versions in namespace %s: got %v, want %v", namespace, got, want)
		}
	}
	if got, want := listRollouts(gitops,
		name), []string{"canary v1", "east v1", "west v1", "canary v2", "canary v3", "east v3", "west v3"}; !slices.Equal(
		got,
		want,
	) {
		t.Errorf("the commits of dev assign %v, want %v", got, want)
	}
}

// listRollouts lists, by commit of dev, each ring and the version assigned to it.
func listRollouts(gitops *repository, agent string) []string {
	var rollouts []string
	gitops.git("fetch", "--quiet", gitops.pushURL, "dev")
	for commit := range strings.FieldsSeq(gitops.git("log", "--reverse", "--format=%H", "FETCH_HEAD")) {
		for _, ring := range []string{"canary", "east", "west"} {
			changed := gitops.git("show", "--format=", commit, "--", "clusters/"+agent+"-"+ring+"/web-live/reconciler.yaml")
			for line := range strings.Lines(changed) {
				for _, version := range []string{"v1", "v2", "v3"} {
					if strings.HasPrefix(line, "+") && strings.Contains(line, `"`+version+`"`) {
						rollouts = append(rollouts, ring+" "+version)
					}
				}
			}
		}
	}
	return rollouts
}

// valueHistory records the successive values of a field, by namespace.
type valueHistory struct {
	mu     sync.Mutex
	values map[string][]string
}

// watchField records the field of all objects with the name, in all namespaces, until the test ends.
func watchField(t *testing.T, cluster *kubetest.Server, resource schema.GroupVersionResource, name string, path ...string) *valueHistory {
	t.Helper()
	history := &valueHistory{values: map[string][]string{}}
	events, err := cluster.Client().Resource(resource).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range events.ResultChan() {
			object, _ := event.Object.(*unstructured.Unstructured)
			value, ok := field(object, path...).(string)
			if !ok {
				continue
			}
			history.mu.Lock()
			if values := history.values[object.GetNamespace()]; len(values) == 0 || values[len(values)-1] != value {
				history.values[object.GetNamespace()] = append(values, value)
			}
			history.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		events.Stop()
		<-ended
	})
	return history
}

func (h *valueHistory) inNamespace(namespace string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.values[namespace])
}
