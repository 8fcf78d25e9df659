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
const rollout = `
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
func version(name string, works bool) string {
	text := fmt.Sprintf(workload, name, 0)
	if !works {
		_, worker, _ := strings.Cut(fmt.Sprintf(workload, name, 1), "---")
		text += "---" + strings.NewReplacer("server", "worker", "progressDeadlineSeconds: 600", "progressDeadlineSeconds: 1").Replace(worker)
	}
	return text
}

// staged is what a run says.
type staged struct {
	rollingOut map[string]string
	rolledOut  bool
	promoted   string
	running    map[string]string // version by ring
}

// stages has three versions go from stage to stage of dev, and on to the
// environment stage: one that works, one that is broken, and one that is mended.
func (w *world) stages(t *testing.T, agent agent) {
	user := w.git.User(t)
	team := newRepository(t, w.git, user, "team")
	gitops := newRepository(t, w.git, user, "gitops")
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
	tf.write("kubeconfig", w.cluster.Kubeconfig())
	tf.write("main.tf", required+fmt.Sprintf(rollout, name, team.url, gitops.url))
	seen := watch(t, w.cluster, configMaps, "greeting", "data", "hello")
	var roots []string
	run := func() staged {
		tf.run("apply", "-auto-approve", "-no-color")
		if roots == nil { // the branches are there now
			for _, cluster := range clusters {
				ofType, own := follow(t, w.cluster, cluster)
				roots = append(roots, ofType, own)
			}
		}
		for _, root := range roots {
			agent.nudge(t, root)
		}
		var says staged
		var runs []running
		tf.outputs(map[string]any{"rolling_out": &says.rollingOut, "rolled_out": &says.rolledOut, "promoted": &says.promoted, "running": &runs})
		says.running = map[string]string{}
		for _, one := range runs {
			for _, host := range one.Hosts {
				ring := strings.TrimPrefix(host, "clusters/"+name+"-")
				if one.Version == "" || one.Revision == "" || one.DeploymentTarget != "web-live" {
					t.Errorf("of %s it says that %+v runs", host, one)
					continue
				}
				says.running[ring] = one.Version
				if commit := strings.TrimSpace(team.git("rev-parse", one.Version+"^{commit}")); commit != one.Revision {
					t.Errorf("of %s it says that %s runs at %s, and that is %s", host, one.Version, one.Revision, commit)
				}
				if had := seen.in(namespace(ring)); !slices.Contains(had, one.Version) {
					t.Errorf("%s has had %v, and it says that %s runs", host, had, one.Version)
				}
			}
		}
		return says
	}
	// until runs again and again, as a schedule of runs would.
	until := func(what string, done func(staged) bool) {
		t.Helper()
		runs := 0
		w.step(t, name, what, func() {
			eventually(t, func() error {
				if runs++; runs > 1 {
					time.Sleep(time.Second) // agents need the processors, too
				}
				if says := run(); !done(says) {
					return fmt.Errorf("the rollout says %v, and that %q is promoted\nthe agent says %s", says.rollingOut, says.promoted,
						agent.says(t, namespace("canary"), namespace("east"), namespace("west")))
				}
				return nil
			})
		})
		t.Logf("%d runs", runs)
	}
	release := func(version, text string) {
		team.push(map[string]string{"deploy/all.yaml": text})
		team.tag(version)
		tf.write("newest", version)
	}
	arrives := func(version string) {
		t.Helper()
		w.step(t, name, version+" is on the cluster of stage", func() {
			eventually(t, func() error {
				return configMapSays(t, w.cluster, stage, "greeting", "hello", version)
			})
		})
	}
	// runs waits until the clusters of dev say that they run these versions.
	runs := func(canary, east, west string) {
		t.Helper()
		want := map[string]string{"canary": canary, "east": east, "west": west}
		until("compliance says that "+canary+", "+east+" and "+west+" run", func(says staged) bool { return maps.Equal(says.running, want) })
	}
	rolledOut := func(version string) func(staged) bool {
		return func(says staged) bool { return says.rolledOut && says.promoted == version }
	}

	release("v1", version("v1", true))
	until("v1 goes through three stages", rolledOut("v1"))
	arrives("v1")
	runs("v1", "v1", "v1")
	release("v2", version("v2", false))
	until("v2, which is broken, halts at the canary", func(says staged) bool {
		if says.rolledOut || says.promoted != "v1" {
			t.Errorf("with a broken canary the rollout says %+v", says)
		}
		return strings.Contains(says.rollingOut["web-live"], `stage 1 of 3 "canary", 1 of 3 hosts`) &&
			strings.Contains(says.rollingOut["web-live"], "failed")
	})
	// What Argo CD has synced runs; what Flux has applied, only once it is healthy.
	runs(map[string]string{"argocd": "v2", "flux": "v1"}[name], "v1", "v1")
	// Flux says now and then that it tries again, which is not that it has failed.
	w.step(t, name, "a run that changes nothing", func() { eventually(t, tf.plansNothing) })
	release("v3", version("v3", true))
	until("v3, which is mended, goes through three stages", rolledOut("v3"))
	arrives("v3")
	runs("v3", "v3", "v3")
	if err := tf.plansNothing(); err != nil {
		t.Error(err)
	}

	for namespace, want := range map[string][]string{
		namespace("canary"): {"v1", "v2", "v3"}, namespace("east"): {"v1", "v3"}, namespace("west"): {"v1", "v3"}, stage: {"v1", "v3"},
	} {
		if got := seen.in(namespace); !slices.Equal(got, want) {
			t.Errorf("namespace %s has seen %v, not %v", namespace, got, want)
		}
	}
	if got, want := wentTo(gitops, name), []string{"canary v1", "east v1", "west v1", "canary v2", "canary v3", "east v3", "west v3"}; !slices.Equal(
		got,
		want,
	) {
		t.Errorf("the commits of dev brought %v, not %v", got, want)
	}
}

// wentTo lists which version each commit of dev brought to which ring.
func wentTo(gitops *repository, agent string) []string {
	var went []string
	gitops.git("fetch", "--quiet", gitops.write, "dev")
	for commit := range strings.FieldsSeq(gitops.git("log", "--reverse", "--format=%H", "FETCH_HEAD")) {
		for _, ring := range []string{"canary", "east", "west"} {
			changed := gitops.git("show", "--format=", commit, "--", "clusters/"+agent+"-"+ring+"/web-live/reconciler.yaml")
			for line := range strings.Lines(changed) {
				for _, version := range []string{"v1", "v2", "v3"} {
					if strings.HasPrefix(line, "+") && strings.Contains(line, `"`+version+`"`) {
						went = append(went, ring+" "+version)
					}
				}
			}
		}
	}
	return went
}

// watched are the values that a field has had, by namespace.
type watched struct {
	mu     sync.Mutex
	values map[string][]string
}

// watch sees every value of a field in the objects of a name, in all
// namespaces, for as long as the test runs.
func watch(t *testing.T, cluster *kubetest.Server, resource schema.GroupVersionResource, name string, path ...string) *watched {
	t.Helper()
	seen := &watched{values: map[string][]string{}}
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
			seen.mu.Lock()
			if had := seen.values[object.GetNamespace()]; len(had) == 0 || had[len(had)-1] != value {
				seen.values[object.GetNamespace()] = append(had, value)
			}
			seen.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		events.Stop()
		<-ended
	})
	return seen
}

func (w *watched) in(namespace string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.values[namespace])
}
