package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	agents "github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// kwokStages simulate nodes and pods. The label `does` of a pod selects its fate: run becomes ready, crash restarts for ever,
// pull never gets its image.
var kwokStages = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: node-ready}
spec:
  resourceRef: {apiGroup: v1, kind: Node}
  selector:
    matchExpressions: [{key: '.status.conditions.[] | select( .type == "Ready" ) | .status', operator: NotIn, values: ["True"]}]
  next:
    statusTemplate: |
      {{ $now := Now }}
      conditions:
      {{ range NodeConditions }}
      - {lastHeartbeatTime: {{ $now | Quote }}, lastTransitionTime: {{ $now | Quote }}, message: {{ .message | Quote }}, reason: {{ .reason | Quote }}, status: {{ .status | Quote }}, type: {{ .type | Quote }}}
      {{ end }}
      allocatable: {cpu: "1k", memory: 1Ti, pods: "1M"}
      capacity: {cpu: "1k", memory: 1Ti, pods: "1M"}
      phase: Running
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-delete}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector: {matchExpressions: [{key: .metadata.deletionTimestamp, operator: Exists}]}
  next: {finalizers: {empty: true}, delete: true}
` + podStage("run", `
      conditions:
      - {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}
      - {type: ContainersReady, status: "True", lastTransitionTime: {{ $now | Quote }}}
      - {type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }}}
      containerStatuses:
      {{ range .spec.containers }}
      - {name: {{ .name | Quote }}, image: {{ .image | Quote }}, ready: true, restartCount: 0, state: {running: {startedAt: {{ $now | Quote }}}}}
      {{ end }}
      phase: Running`) + podStage("crash", `
      conditions:
      - {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}
      - {type: ContainersReady, status: "False", reason: ContainersNotReady, lastTransitionTime: {{ $now | Quote }}}
      - {type: Ready, status: "False", reason: ContainersNotReady, lastTransitionTime: {{ $now | Quote }}}
      containerStatuses:
      {{ range .spec.containers }}
      - name: {{ .name | Quote }}
        image: {{ .image | Quote }}
        ready: false
        restartCount: 7
        state: {waiting: {reason: CrashLoopBackOff, message: back-off 5m0s restarting failed container}}
        lastState: {terminated: {exitCode: 1, reason: Error, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}}
      {{ end }}
      phase: Running`) + podStage("pull", `
      conditions:
      - {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}
      - {type: ContainersReady, status: "False", reason: ContainersNotReady, lastTransitionTime: {{ $now | Quote }}}
      - {type: Ready, status: "False", reason: ContainersNotReady, lastTransitionTime: {{ $now | Quote }}}
      containerStatuses:
      {{ range .spec.containers }}
      - {name: {{ .name | Quote }}, image: {{ .image | Quote }}, ready: false, restartCount: 0, state: {waiting: {reason: ImagePullBackOff, message: "not found"}}}
      {{ end }}
      phase: Pending`)

// podStage returns the stage of pods with a label `does`.
func podStage(behavior, status string) string {
	return fmt.Sprintf(`---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-%[1]s}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: '.metadata.labels["does"]', operator: In, values: [%[1]s]}
    - {key: .status.containerStatuses, operator: DoesNotExist}
  next:
    statusTemplate: |
      {{ $now := Now }}%[2]s
      startTime: {{ $now | Quote }}
`, behavior, status)
}

// startNodes starts a scheduler and a simulated node. Only pods with a toleration are scheduled there; pods of other tests stay
// pending.
func startNodes(t *testing.T, cluster *kubetest.Server) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "stages.yaml")
	if err := os.WriteFile(config, []byte(strings.TrimPrefix(kwokStages, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster.Apply(
		t,
		`{apiVersion: v1, kind: Node, metadata: {name: node-1}, spec: {taints: [{key: flotilla.dev/pretended, effect: NoSchedule}]}}`,
	)
	startAgent(t, cluster, "kube-scheduler", "kube-scheduler", []string{
		"--kubeconfig", writeKubeconfig(t, cluster), "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=0",
	})
	startAgent(t, cluster, "kwok", "kwok", []string{
		"--kubeconfig", writeKubeconfig(t, cluster), "--config", config, "--manage-all-nodes",
	})
}

// serverDeployment returns a Deployment that fails if its pod is not available after the deadline in seconds.
func serverDeployment(behavior, deadline string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: server}
spec:
  replicas: 1
  progressDeadlineSeconds: %s
  selector: {matchLabels: {app: server}}
  strategy: {type: Recreate}
  template:
    metadata: {labels: {app: server, does: %s}}
    spec: {containers: [{name: server, image: example.com/server}], tolerations: [{operator: Exists}]}
`, deadline, behavior)
}

// testNodes checks the verdicts of Deployments that become available, crash, or lack their image.
func (bed *testbed) testNodes(t *testing.T, agent agent) {
	const soon, late = "10", "600"
	user := bed.git.User(t)
	team := newRepository(t, bed.git, user, "team-nodes")
	gitops := newRepository(t, bed.git, user, "gitops-nodes")
	host := agent.reconciler() + "-nodes"
	team.push(
		map[string]string{"run/all.yaml": serverDeployment("run", late), "crash/all.yaml": serverDeployment("crash", soon), "pull/all.yaml": serverDeployment("pull", late)},
	)
	targets := map[string]any{}
	for _, behavior := range []string{"run", "crash", "pull"} {
		targets[behavior] = map[string]any{"environment": "dev", "manifests": map[string]any{"repo": team.url, "branch": "main", "path": "./" + behavior}}
	}
	nodesFleet := map[string]any{
		"environment":     "dev",
		"workspaces":      []any{map[string]any{"name": "shop"}},
		"cluster_types":   []any{map[string]any{"name": host, "reconciler": agent.reconciler()}},
		"clusters":        []any{map[string]any{"name": host + "-1", "cluster_type": host}},
		"workloads":       []any{map[string]any{"name": "web", "workspace": "shop", "deployment_targets": targets}},
		"target_policies": []any{map[string]any{"name": "all", "cluster_type_selector": map[string]any{}}},
	}
	tf := newTerraform(t, user)
	tf.writeFile("main.tf", fmt.Sprintf(fleetConfiguration, fmt.Sprintf(assignmentConfiguration, host, gitops.url)))
	tf.apply(nodesFleet)
	root, _ := applyRoots(t, bed.cluster, agents.Settings{
		Cluster: host + "-1", ClusterType: host, Reconciler: agent.reconciler(), Repository: folder.Location{URL: gitops.url, Branch: "dev"},
	})
	obs := newObserver(t, bed.cluster, user, host+"-1", host, gitops.url)
	waitForVerdicts := func(title string, want map[string]string) {
		t.Helper()
		bed.step(t, agent.reconciler(), title, func() {
			eventually(t, func() error {
				got := obs.readCompliance(nodesFleet)
				for target, verdict := range want {
					if targetVerdict := got.verdict(host + "/web-" + target); targetVerdict != verdict {
						return fmt.Errorf("the verdict of %s is %s, want %s: %v\n%s", target, targetVerdict, verdict, got.Assignments,
							agent.describeStatus(t, root, "dev-"+host+"-web-"+target))
					}
				}
				return nil
			})
		})
	}
	// Kubernetes reports a Deployment as failed only after its progress deadline.
	waitForVerdicts(
		"available pods are ready, crashing pods failed, pods without image progressing",
		map[string]string{"run": "ready", "crash": "failed", "pull": "progressing"},
	)
	team.push(
		map[string]string{"run/all.yaml": serverDeployment("pull", late), "crash/all.yaml": serverDeployment("run", late), "pull/all.yaml": serverDeployment("run", late)},
	)
	obs.prepare = func() { // else Flux reconciles only after some minutes
		for target := range targets {
			agent.triggerReconcile(t, "dev-"+host+"-web-"+target)
		}
	}
	waitForVerdicts(
		"repaired Deployments are ready, a Deployment without image is progressing",
		map[string]string{"run": "progressing", "crash": "ready", "pull": "ready"},
	)
}
