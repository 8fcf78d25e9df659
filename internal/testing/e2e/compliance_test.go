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
const heard = `
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
	Running     []running
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
type running struct {
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
	tf      *terraform
	cluster string
	agent   func() string // what the agent says, for errors
	before  func()        // is done before it asks; nil for nothing
}

func newObserver(t *testing.T, server *kubetest.Server, user giteatest.User, cluster, owner, repository string) *observer {
	t.Helper()
	o := &observer{tf: newTerraform(t, user), cluster: cluster}
	o.tf.write("kubeconfig", server.Kubeconfig())
	o.tf.write("main.tf", fmt.Sprintf(configuration, fmt.Sprintf(heard, cluster, owner, repository)))
	return o
}

// ask asks once.
func (o *observer) ask(fleet map[string]any) compliance {
	t := o.tf.t
	t.Helper()
	if o.before != nil {
		o.before()
	}
	o.tf.apply(fleet)
	var said compliance
	o.tf.outputs(map[string]any{"clusters": &said.Clusters, "assignments": &said.Assignments, "running": &said.Running, "drift": &said.Drift})
	return said
}

// is asks until the cluster has a verdict, whose message has these words.
func (o *observer) is(fleet map[string]any, verdict string, words ...string) {
	o.tf.t.Helper()
	eventually(o.tf.t, func() error {
		said := o.ask(fleet)
		cluster := said.Clusters[o.cluster]
		text := cluster.Message
		for _, assignment := range said.Assignments {
			text += "\n" + assignment.Message
		}
		if cluster.Verdict != verdict {
			return fmt.Errorf("%s is %s, not %s: %s\n%s", o.cluster, cluster.Verdict, verdict, text, o.agent())
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
const broken = `
apiVersion: v1
kind: ConfigMap
metadata: {name: broken}
data: {"my key": value}
`

// slow is the fleet with another folder of the workload's repository, where a
// Deployment waits for what never comes.
func slow(fleet map[string]any) map[string]any {
	workload := fleet["workloads"].([]any)[0].(map[string]any)
	live := workload["deployment_targets"].(map[string]any)["live"].(map[string]any)
	live["manifests"].(map[string]any)["path"] = "./slow"
	return fleet
}

// heard goes from ready over all that a cluster can say back to ready.
func (w *world) heard(
	t *testing.T,
	agent agent,
	root string,
	tf *terraform,
	team, gitops *repository,
	user giteatest.User,
	arrived func(func() error),
) {
	t.Helper()
	host := agent.reconciler()
	asked := newObserver(t, w.cluster, user, host+"-1", host, gitops.url)
	asked.agent = func() string { return agent.says(t, root, "dev-"+host+"-web-live") }
	goodbye := fleet(host, team.url, "goodbye")
	delayed := slow(fleet(host, team.url, "goodbye"))
	says := func(verdict string, fleet map[string]any, words ...string) {
		t.Helper()
		w.step(t, host, "compliance says "+verdict, func() { asked.is(fleet, verdict, words...) })
	}
	says("ready", goodbye)

	team.push(map[string]string{"slow/all.yaml": fmt.Sprintf(workload, "in a moment", 1)})
	agent.hold(t, root, true)
	w.step(t, host, "a workload that takes its time, while the agent does nothing", func() { tf.apply(delayed) })
	says("behind", delayed)
	agent.hold(t, root, false)
	agent.nudge(t, root)
	says("progressing", delayed)
	team.push(map[string]string{"slow/all.yaml": fmt.Sprintf(workload, "at last", 0)})
	says("ready", delayed)
	team.push(map[string]string{"slow/broken.yaml": broken})
	// What cannot be applied is tried again first, by Flux after two minutes if it is not asked to.
	asked.before = func() { agent.nudge(t, "dev-"+host+"-web-live") }
	says("failed", delayed, "a valid config key must consist of")
	asked.before = nil
	team.push(map[string]string{"slow/broken.yaml": strings.ReplaceAll(broken, "my key", "my-key")})
	says("ready", delayed)

	if agent.comparesAlways() {
		agent.hold(t, root, true)
		setData(t, w.cluster, "dev-"+host+"-web-live", "platform-config", "GREETING", "by hand")
		agent.nudge(t, root)
		w.step(t, host, "compliance shows what was changed by hand on the cluster", func() {
			eventually(t, func() error { return asked.drifts(delayed, host+"/web-live", "ConfigMap") })
		})
		agent.hold(t, root, false)
		says("ready", delayed)
	}
	w.step(t, host, "back to the fleet before", func() { tf.apply(goodbye) })
	arrived(func() error {
		return configMapSays(t, w.cluster, "dev-"+host+"-web-live", "greeting", "hello", "world")
	})
	says("ready", goodbye)
}

// drifts checks that something of an assignment is not on the cluster as Git
// has it.
func (o *observer) drifts(fleet map[string]any, key, object string) error {
	o.tf.t.Helper()
	said := o.ask(fleet)
	for _, drift := range said.Drift {
		if drift.Assignment != nil && *drift.Assignment == key && strings.Contains(strings.Join(drift.Objects, " "), object) {
			return nil
		}
	}
	return fmt.Errorf("no drift of %s with a %s: %+v\n%s", key, object, said, o.agent())
}
