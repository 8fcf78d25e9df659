package e2e_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// heard is a configuration that only looks.
const complianceConfiguration = `
provider "flotilla" {
  clusters = { %[1]q = { kubeconfig = file("kubeconfig") } }
}

data "flotilla_compliance" "dev" {
  name        = %[2]q
  fleet       = local.fleet
  gitops_repo = { url = %[3]q, branch = "dev" }
  feedback    = { clusters = true }
}

output "clusters" {
  value = data.flotilla_compliance.dev.clusters
}
output "assignments" {
  value = data.flotilla_compliance.dev.assignments
}
output "running" {
  value = data.flotilla_compliance.dev.running
}
output "drift" {
  value = data.flotilla_compliance.dev.drift
}
`

// compliance is what flotilla_compliance says.
type compliance struct {
	Clusters map[string]struct {
		Verdict, Message, Since string
		Commit                  *string
		CommitsBehind           *int `json:"commits_behind"`
	}
	Assignments map[string]struct{ Verdict, Message string } // without those that are ready
	Running     []runningVersion
	Drift       []struct {
		Assignment    *string
		Wanted        bool
		Git, Deployed *string
		Objects       []string
		Clusters      []string
		Reason        string
	}
}

// running is what runs of a deployment target; "" is what nobody knows.
type runningVersion struct {
	DeploymentTarget                 string `json:"deployment_target"`
	Wanted, Version, Revision, Chart string
	Images, Hosts                    []string
}

// verdict is that of an assignment.
func (c *compliance) verdict(assignment string) string {
	return cmp.Or(c.Assignments[assignment].Verdict, "ready")
}

// observer asks one cluster what became of a fleet.
type observer struct {
	tf            *terraform
	cluster       string
	describeAgent func() string // what the agent says, for errors
	prepare       func()        // is done before it asks; nil for nothing
}

func newObserver(t *testing.T, server *kubetest.Server, user giteatest.User, cluster, owner, repository string) *observer {
	t.Helper()
	o := &observer{tf: newTerraform(t, user), cluster: cluster}
	o.tf.writeFile("kubeconfig", server.Kubeconfig())
	o.tf.writeFile("main.tf", fmt.Sprintf(fleetConfiguration, fmt.Sprintf(complianceConfiguration, cluster, owner, repository)))
	return o
}

// ask asks once.
func (o *observer) readCompliance(fleet map[string]any) compliance {
	t := o.tf.t
	t.Helper()
	if o.prepare != nil {
		o.prepare()
	}
	o.tf.apply(fleet)
	var got compliance
	o.tf.readOutputs(map[string]any{"clusters": &got.Clusters, "assignments": &got.Assignments, "running": &got.Running, "drift": &got.Drift})
	return got
}

// is asks until the cluster has a verdict, whose message has these words.
func (o *observer) waitForVerdict(fleet map[string]any, verdict string, words ...string) {
	o.tf.t.Helper()
	eventually(o.tf.t, func() error {
		got := o.readCompliance(fleet)
		cluster := got.Clusters[o.cluster]
		text := cluster.Message
		for _, assignment := range got.Assignments {
			text += "\n" + assignment.Message
		}
		if cluster.Verdict != verdict {
			return fmt.Errorf("%s is %s, not %s: %s\n%s", o.cluster, cluster.Verdict, verdict, text, o.describeAgent())
		}
		for _, word := range words {
			if !strings.Contains(text, word) {
				return fmt.Errorf("%s is %s, but nothing says %q: %s", o.cluster, verdict, word, text)
			}
		}
		return nil
	})
}

// broken is a manifest that Kubernetes refuses.
const brokenConfigMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: broken}
data: {"my key": value}
`

// slow is the fleet with another folder of the workload's repository, where a
// Deployment waits for what never comes.
func withSlowManifests(fleet map[string]any) map[string]any {
	workload := fleet["workloads"].([]any)[0].(map[string]any)
	live := workload["deployment_targets"].(map[string]any)["live"].(map[string]any)
	live["manifests"].(map[string]any)["path"] = "./slow"
	return fleet
}

// heard goes from ready over all that a cluster can say back to ready.
func (bed *testbed) testCompliance(
	t *testing.T,
	agent agent,
	root string,
	tf *terraform,
	team, gitops *repository,
	user giteatest.User,
	waitFor func(func() error),
) {
	t.Helper()
	host := agent.reconciler()
	obs := newObserver(t, bed.cluster, user, host+"-1", host, gitops.url)
	obs.describeAgent = func() string { return agent.describeStatus(t, root, "dev-"+host+"-web-live") }
	goodbye := fleet(host, team.url, "goodbye")
	delayed := withSlowManifests(fleet(host, team.url, "goodbye"))
	waitForVerdict := func(verdict string, fleet map[string]any, words ...string) {
		t.Helper()
		bed.step(t, host, "compliance says "+verdict, func() { obs.waitForVerdict(fleet, verdict, words...) })
	}
	waitForVerdict("ready", goodbye)

	team.push(map[string]string{"slow/all.yaml": fmt.Sprintf(workload, "in a moment", 1)})
	agent.setSuspended(t, root, true)
	bed.step(t, host, "a workload that takes its time, while the agent does nothing", func() { tf.apply(delayed) })
	waitForVerdict("behind", delayed)
	agent.setSuspended(t, root, false)
	agent.triggerReconcile(t, root)
	waitForVerdict("progressing", delayed)
	team.push(map[string]string{"slow/all.yaml": fmt.Sprintf(workload, "at last", 0)})
	waitForVerdict("ready", delayed)
	team.push(map[string]string{"slow/broken.yaml": brokenConfigMap})
	// What cannot be applied is tried again first, by Flux after two minutes if it is not asked to.
	obs.prepare = func() { agent.triggerReconcile(t, "dev-"+host+"-web-live") }
	waitForVerdict("failed", delayed, "a valid config key must consist of")
	obs.prepare = nil
	team.push(map[string]string{"slow/broken.yaml": strings.ReplaceAll(brokenConfigMap, "my key", "my-key")})
	waitForVerdict("ready", delayed)

	if agent.reportsDriftWhileSuspended() {
		agent.setSuspended(t, root, true)
		setData(t, bed.cluster, "dev-"+host+"-web-live", "platform-config", "GREETING", "by hand")
		agent.triggerReconcile(t, root)
		bed.step(t, host, "compliance shows what was changed by hand on the cluster", func() {
			eventually(t, func() error { return obs.checkDrift(delayed, host+"/web-live", "ConfigMap") })
		})
		agent.setSuspended(t, root, false)
		waitForVerdict("ready", delayed)
	}
	bed.step(t, host, "back to the fleet before", func() { tf.apply(goodbye) })
	waitFor(func() error {
		return checkConfigMap(t, bed.cluster, "dev-"+host+"-web-live", "greeting", "hello", "world")
	})
	waitForVerdict("ready", goodbye)
}

// drifts checks that something of an assignment is not on the cluster as Git
// has it.
func (o *observer) checkDrift(fleet map[string]any, key, object string) error {
	o.tf.t.Helper()
	got := o.readCompliance(fleet)
	for _, drift := range got.Drift {
		if drift.Assignment != nil && *drift.Assignment == key && strings.Contains(strings.Join(drift.Objects, " "), object) {
			return nil
		}
	}
	return fmt.Errorf("no drift of %s with a %s: %+v\n%s", key, object, got, o.describeAgent())
}
