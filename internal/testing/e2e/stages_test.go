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

// rollout is the configuration of a rollout over the clusters of dev, and of
// stage, which gets what is rolled out there. The clusters of dev are one API:
// each follows the folder of its own, so that what it says is of that alone.
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

// version is what a tag of the team's repository has. A broken one has a
// Deployment more, which never gets its replica, since no node takes it, and says so
// after a second.
func newVersion(name string, works bool) string {
	text := fmt.Sprintf(workload, name, 0)
	if !works {
		_, worker, _ := strings.Cut(fmt.Sprintf(workload, name, 1), "---")
		text += "---" + strings.NewReplacer("server", "worker", "progressDeadlineSeconds: 600", "progressDeadlineSeconds: 1").Replace(worker)
	}
	return text
}

// staged is what a run says.
type rolloutStatus struct {
	rollingOut map[string]string
	rolledOut  bool
	promoted   string
	running    map[string]string // version by ring
}

// stages has three versions go from stage to stage of dev, and on to the
// environment stage: one that works, one that is broken, and one that is mended.
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
		if roots == nil { // the branches are there now
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
					t.Errorf("of %s it says that %+v runs", host, version)
					continue
				}
				status.running[ring] = version.Version
				if commit := strings.TrimSpace(team.git("rev-parse", version.Version+"^{commit}")); commit != version.Revision {
					t.Errorf("of %s it says that %s runs at %s, and that is %s", host, version.Version, version.Revision, commit)
				}
				if values := greetings.inNamespace(namespace(ring)); !slices.Contains(values, version.Version) {
					t.Errorf("%s has had %v, and it says that %s runs", host, values, version.Version)
				}
			}
		}
		return status
	}
	// until runs again and again, as a schedule of runs would.
	applyUntil := func(title string, isDone func(rolloutStatus) bool) {
		t.Helper()
		runs := 0
		bed.step(t, name, title, func() {
			eventually(t, func() error {
				if runs++; runs > 1 {
					time.Sleep(time.Second) // agents need the processors, too
				}
				if status := applyOnce(); !isDone(status) {
					return fmt.Errorf("the rollout says %v, and that %q is promoted\nthe agent says %s", status.rollingOut, status.promoted,
						agent.describeStatus(t, namespace("canary"), namespace("east"), namespace("west")))
				}
				return nil
			})
		})
		t.Logf("%d runs", runs)
	}
	releaseVersion := func(version, text string) {
		team.push(map[string]string{"deploy/all.yaml": text})
		team.pushTag(version)
		tf.writeFile("newest", version)
	}
	waitForStage := func(version string) {
		t.Helper()
		bed.step(t, name, version+" is on the cluster of stage", func() {
			eventually(t, func() error {
				return checkConfigMap(t, bed.cluster, stage, "greeting", "hello", version)
			})
		})
	}
	// runs waits until the clusters of dev say that they run these versions.
	runs := func(canary, east, west string) {
		t.Helper()
		want := map[string]string{"canary": canary, "east": east, "west": west}
		applyUntil("compliance says that "+canary+", "+east+" and "+west+" run", func(status rolloutStatus) bool { return maps.Equal(status.running, want) })
	}
	isRolledOut := func(version string) func(rolloutStatus) bool {
		return func(status rolloutStatus) bool { return status.rolledOut && status.promoted == version }
	}

	releaseVersion("v1", newVersion("v1", true))
	applyUntil("v1 goes through three stages", isRolledOut("v1"))
	waitForStage("v1")
	runs("v1", "v1", "v1")
	releaseVersion("v2", newVersion("v2", false))
	applyUntil("v2, which is broken, halts at the canary", func(status rolloutStatus) bool {
		if status.rolledOut || status.promoted != "v1" {
			t.Errorf("with a broken canary the rollout says %+v", status)
		}
		return strings.Contains(status.rollingOut["web-live"], `stage 1 of 3 "canary", 1 of 3 hosts`) &&
			strings.Contains(status.rollingOut["web-live"], "failed")
	})
	// What Argo CD has synced runs; what Flux has applied, only once it is healthy.
	runs(map[string]string{"argocd": "v2", "flux": "v1"}[name], "v1", "v1")
	// Flux says now and then that it tries again, which is not that it has failed.
	bed.step(t, name, "a run that changes nothing", func() { eventually(t, tf.checkEmptyPlan) })
	releaseVersion("v3", newVersion("v3", true))
	applyUntil("v3, which is mended, goes through three stages", isRolledOut("v3"))
	waitForStage("v3")
	runs("v3", "v3", "v3")
	if err := tf.checkEmptyPlan(); err != nil {
		t.Error(err)
	}

	for namespace, want := range map[string][]string{
		namespace("canary"): {"v1", "v2", "v3"}, namespace("east"): {"v1", "v3"}, namespace("west"): {"v1", "v3"}, stage: {"v1", "v3"},
	} {
		if got := greetings.inNamespace(namespace); !slices.Equal(got, want) {
			t.Errorf("namespace %s has seen %v, not %v", namespace, got, want)
		}
	}
	if got, want := listRollouts(gitops, name), []string{"canary v1", "east v1", "west v1", "canary v2", "canary v3", "east v3", "west v3"}; !slices.Equal(
		got,
		want,
	) {
		t.Errorf("the commits of dev brought %v, not %v", got, want)
	}
}

// wentTo lists which version each commit of dev brought to which ring.
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

// watched are the values that a field has had, by namespace.
type valueHistory struct {
	mu     sync.Mutex
	values map[string][]string
}

// watch sees every value of a field in the objects of a name, in all
// namespaces, for as long as the test runs.
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
