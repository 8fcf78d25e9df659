package e2e_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/kubetest"
)

// agent is what reconciles on the cluster.
type agent interface {
	reconciler() string

	// start starts it.
	start(t *testing.T)

	// follow has it follow a folder.
	follow(t *testing.T, root root)

	// nudge has it look at the branch before its time.
	nudge(t *testing.T, root root)

	// says is what it reports of its objects with these names.
	says(t *testing.T, names ...string) string

	// comparesAlways says whether it reports what somebody changes on the cluster
	// while it may not put it right.
	comparesAlways() bool
}

// root is what follows a folder of a GitOps repository.
type root struct {
	repository, branch, path string
	held                     bool // it does nothing for now
}

func (r root) name() string {
	return "flotilla-" + r.branch + "-" + strings.ReplaceAll(r.path, "/", "-")
}

// TestAgents goes the whole way with each agent: what Terraform writes arrives,
// changes, and goes; and a change goes from stage to stage.
func TestAgents(t *testing.T) {
	if os.Getenv("FLOTILLA_E2E") == "" {
		t.Skip("starts real agents: `make e2e` builds them and runs it")
	}
	w := &world{}
	w.step(t, "", "Kubernetes API and Git host started", func() {
		w.cluster = kubetest.Start(t, kubetest.Options{Agents: true, Controllers: true})
		w.git = giteatest.Start(t)
	})
	defer w.write(t)
	t.Run("with", func(t *testing.T) { // ends when both have
		for _, agent := range []agent{argoCD{w.cluster}, flux{w.cluster}} {
			t.Run(agent.reconciler(), func(t *testing.T) {
				t.Parallel()
				w.step(t, agent.reconciler(), "agent started", func() { agent.start(t) })
				t.Run("delivery", func(t *testing.T) {
					t.Parallel()
					w.way(t, agent)
				})
				t.Run("stages", func(t *testing.T) {
					t.Parallel()
					w.stages(t, agent)
				})
			})
		}
	})
}

// workload is what a team has in its repository: something to see, and a
// Deployment that needs no node.
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
	hosts := []any{first}
	for _, kind := range configTypes {
		hosts = append(hosts, map[string]any{"name": agent + "-" + kind, "reconciler": agent, "config_type": kind})
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
		"clusters":      []any{map[string]any{"name": agent + "-1", "cluster_type": agent}},
		"workloads": []any{map[string]any{
			"name": "web", "workspace": "shop",
			"deployment_targets": map[string]any{"live": target("live"), "extra": target("extra")},
		}},
		"target_policies": []any{
			map[string]any{"name": "live", "deployment_target_selector": labelled("path", "live"), "cluster_type_selector": map[string]any{}},
			map[string]any{"name": "extra", "deployment_target_selector": labelled("path", "extra"), "cluster_type_selector": labelled("first", "true")},
		},
		"config_containers": []any{map[string]any{"name": "all", "data": map[string]any{"GREETING": greeting}}},
	}
}

var configTypes = []string{"json", "env", "properties"}

func labelled(key, value string) map[string]any {
	return map[string]any{"match_labels": map[string]any{key: value}}
}

// without is the fleet without one entry of a list of it.
func without(fleet map[string]any, list, name string) map[string]any {
	fleet[list] = slices.DeleteFunc(fleet[list].([]any), func(entry any) bool { return entry.(map[string]any)["name"] == name })
	return fleet
}

func (w *world) way(t *testing.T, agent agent) {
	user := w.git.User(t)
	team := newRepository(t, w.git, user, "team")
	gitops := newRepository(t, w.git, user, "gitops")
	host := agent.reconciler()
	hosts := []string{host}
	for _, kind := range configTypes {
		hosts = append(hosts, host+"-"+kind)
	}
	namespace := func(host, target string) string { return "dev-" + host + "-web-" + target }
	follows := func(host string) root { return root{repository: gitops.url, branch: "dev", path: host} }
	arrived := func(checks func() error) {
		t.Helper()
		for _, host := range hosts {
			agent.nudge(t, follows(host))
		}
		eventually(t, func() error {
			if err := checks(); err != nil {
				return fmt.Errorf("%w\n%s says %s", err, host, agent.says(t, follows(host).name(), namespace(host, "live")))
			}
			return nil
		})
	}
	step := func(what string, do func()) {
		t.Helper()
		w.step(t, host, what, do)
	}

	team.push(map[string]string{"live/all.yaml": fmt.Sprintf(workload, "world", 0), "extra/all.yaml": fmt.Sprintf(workload, "extra", 0)})
	tf := newTerraform(t, user)
	tf.write("main.tf", fmt.Sprintf(configuration, fmt.Sprintf(assignment, host, gitops.url)))

	step("first apply", func() { tf.apply(fleet(host, team.url, "hello")) })
	step("five deployment targets run", func() {
		for _, host := range hosts {
			agent.follow(t, follows(host))
		}
		arrived(func() error {
			checks := []error{configMapSays(t, w.cluster, namespace(host, "extra"), "greeting", "hello", "extra")}
			for _, host := range hosts {
				checks = append(checks, configMapSays(t, w.cluster, namespace(host, "live"), "greeting", "hello", "world"))
			}
			return all(checks...)
		})
	})
	configured := func(value string) error {
		return all(
			configMapSays(t, w.cluster, namespace(host, "live"), "platform-config", "GREETING", value),
			configMapSays(t, w.cluster, namespace(host+"-json", "live"), "platform-config", "platform-config.json", `"GREETING": "`+value+`"`),
			configMapSays(t, w.cluster, namespace(host+"-env", "live"), "platform-config", "platform-config.env", "GREETING="+value),
			configMapSays(t, w.cluster, namespace(host+"-properties", "live"), "platform-config", "platform-config.properties", "GREETING="+value),
		)
	}
	step("configuration of every type is there", func() { arrived(func() error { return configured("hello") }) })
	step("a value changed", func() { tf.apply(fleet(host, team.url, "goodbye")) })
	step("the value is on the cluster", func() { arrived(func() error { return configured("goodbye") }) })
	step("a change by hand on the cluster is put right", func() {
		setData(t, w.cluster, namespace(host, "live"), "platform-config", "GREETING", "by hand")
		arrived(func() error { return configured("goodbye") })
	})
	w.heard(t, agent, tf, team, gitops, user, arrived)
	step("a deployment target removed", func() { tf.apply(without(fleet(host, team.url, "goodbye"), "target_policies", "extra")) })
	step("it is pruned", func() {
		arrived(func() error { return gone(t, w.cluster, namespace(host, "extra")) })
		if err := configured("goodbye"); err != nil {
			t.Errorf("what was not removed: %v", err)
		}
	})
	step("a host removed", func() {
		tf.apply(without(without(fleet(host, team.url, "goodbye"), "target_policies", "extra"), "cluster_types", host+"-env"))
		marker(t, gitops, host+"-env", host)
	})
	step("all that it had is pruned", func() {
		arrived(func() error { return gone(t, w.cluster, namespace(host+"-env", "live")) })
	})
	step("destroyed", func() {
		tf.run("destroy", "-auto-approve", "-no-color")
		for _, name := range hosts {
			marker(t, gitops, name, host)
		}
	})
	step("everything is pruned", func() {
		arrived(func() error {
			var checks []error
			for _, host := range hosts {
				checks = append(checks, gone(t, w.cluster, namespace(host, "live")))
			}
			return all(checks...)
		})
	})
}

// marker checks that a host's folder holds nothing but the owner's marker.
func marker(t *testing.T, gitops *repository, host, owner string) {
	t.Helper()
	if files := gitops.files(host); !slices.Equal(files, []string{host + "/" + owner + ".md"}) {
		t.Errorf("the folder of %s has %s", host, strings.Join(files, ", "))
	}
}
