package e2e_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// complianceConfiguration only reads flotilla_compliance.
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

// compliance has the outputs of flotilla_compliance.
type compliance struct {
	Clusters map[string]struct {
		Verdict, Message, Since string
		Commit                  *string
		CommitsBehind           *int `json:"commits_behind"`
	}
	Assignments map[string]struct{ Verdict, Message string } // all but the ready assignments
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

// runningVersion is the running version of a deployment target. Unknown fields are empty.
type runningVersion struct {
	DeploymentTarget                 string `json:"deployment_target"`
	Wanted, Version, Revision, Chart string
	Images, Hosts                    []string
}

// verdict returns the verdict of an assignment.
func (c *compliance) verdict(assignment string) string {
	return cmp.Or(c.Assignments[assignment].Verdict, "ready")
}

// observer reads the compliance of a fleet from one cluster.
type observer struct {
	tf            *terraform
	cluster       string
	describeAgent func() string // status of the agent, for errors
	prepare       func()        // runs before every read, if not nil
}

func newObserver(t *testing.T, server *kubetest.Server, user giteatest.User, cluster, owner, repository string) *observer {
	t.Helper()
	o := &observer{tf: newTerraform(t, user), cluster: cluster}
	o.tf.writeFile("kubeconfig", server.Kubeconfig())
	o.tf.writeFile("main.tf", fmt.Sprintf(fleetConfiguration, fmt.Sprintf(complianceConfiguration, cluster, owner, repository)))
	return o
}

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

// waitForVerdict waits until the cluster has the verdict and the messages contain every word.
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
			return fmt.Errorf("the verdict of %s is %s, want %s: %s\n%s", o.cluster, cluster.Verdict, verdict, text, o.describeAgent())
		}
		for _, word := range words {
			if !strings.Contains(text, word) {
				return fmt.Errorf("%s is %s, but no message has %q: %s", o.cluster, verdict, word, text)
			}
		}
		return nil
	})
}

// brokenConfigMap is a manifest that Kubernetes refuses.
const brokenConfigMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: broken}
data: {"my key": value}
`

// withSlowManifests changes the folder of the workload to ./slow, whose Deployment never becomes available.
func withSlowManifests(fleet map[string]any) map[string]any {
	workload := fleet["workloads"].([]any)[0].(map[string]any)
	live := workload["deployment_targets"].(map[string]any)["live"].(map[string]any)
	live["manifests"].(map[string]any)["path"] = "./slow"
	return fleet
}

// testCompliance takes a cluster through every verdict and back to ready.
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
		bed.step(t, host, "the verdict is "+verdict, func() { obs.waitForVerdict(fleet, verdict, words...) })
	}
	waitForVerdict("ready", goodbye)

	team.push(map[string]string{"slow/all.yaml": fmt.Sprintf(workload, "in a moment", 1)})
	agent.setSuspended(t, root, true)
	bed.step(t, host, "a slow workload is assigned while the agent is suspended", func() { tf.apply(delayed) })
	waitForVerdict("behind", delayed)
	agent.setSuspended(t, root, false)
	agent.triggerReconcile(t, root)
	waitForVerdict("progressing", delayed)
	team.push(map[string]string{"slow/all.yaml": fmt.Sprintf(workload, "at last", 0)})
	waitForVerdict("ready", delayed)
	team.push(map[string]string{"slow/broken.yaml": brokenConfigMap})
	// Without a trigger, Flux retries a failing revision only after two minutes.
	obs.prepare = func() { agent.triggerReconcile(t, "dev-"+host+"-web-live") }
	waitForVerdict("failed", delayed, "a valid config key must consist of")
	obs.prepare = nil
	team.push(map[string]string{"slow/broken.yaml": strings.ReplaceAll(brokenConfigMap, "my key", "my-key")})
	waitForVerdict("ready", delayed)

	if agent.reportsDriftWhileSuspended() {
		agent.setSuspended(t, root, true)
		setData(t, bed.cluster, "dev-"+host+"-web-live", "platform-config", "GREETING", "by hand")
		agent.triggerReconcile(t, root)
		bed.step(t, host, "compliance reports a change by hand on the cluster", func() {
			eventually(t, func() error { return obs.checkDrift(delayed, host+"/web-live", "ConfigMap") })
		})
		agent.setSuspended(t, root, false)
		waitForVerdict("ready", delayed)
	}
	bed.step(t, host, "the former fleet is assigned again", func() { tf.apply(goodbye) })
	waitFor(func() error {
		return checkConfigMap(t, bed.cluster, "dev-"+host+"-web-live", "greeting", "hello", "world")
	})
	waitForVerdict("ready", goodbye)
}

// checkDrift checks that the drift of an assignment includes an object of a kind.
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
