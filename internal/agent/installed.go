package agent

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// checkInstalled warns where the agent's own manifests, if they are given, lack what the agent needs.
func (r *renderer) checkInstalled() {
	if len(r.settings.Install) == 0 {
		return
	}
	switch r.settings.Reconciler {
	case Flux:
		if o := r.find(OnCluster, "Deployment", "kustomize-controller"); o != nil {
			if problem := CheckFlux(o.Unstructured); problem != "" {
				r.warn("install", "%s", problem)
			}
		}
		for _, name := range []string{"source-controller", "kustomize-controller"} {
			r.mustRun(name, "without it nothing is reconciled")
		}
		if r.settings.Feedback != nil {
			r.mustRun("notification-controller", "without it nothing is reported")
		}
	case ArgoCD:
		r.mustRun("argocd-repo-server", "without it no repository is read")
		if r.settings.Feedback != nil {
			r.mustRun("argocd-notifications-controller", "without it nothing is reported")
		}
	}
}

// mustRun warns where the manifests have no Deployment of a name.
func (r *renderer) mustRun(name, why string) {
	if !r.has(OnCluster, "Deployment", name) {
		r.warn("install", "has no Deployment %s: %s", name, why)
	}
}

// enoughConcurrency is a number of workers that is rarely blocked as a whole by workloads that do not get ready.
const enoughConcurrency = 10

// CheckFlux says why a Deployment of kustomize-controller may apply changes too late; "" where it has enough workers. A
// Kustomization that waits for health blocks a worker. With few workers, some workloads that do not get ready can
// prevent the root objects from applying the next commit.
func CheckFlux(deployment *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	workers := 4
	for _, container := range containers {
		fields, _ := container.(map[string]any)
		args, _ := fields["args"].([]any)
		for _, arg := range args {
			text, _ := arg.(string)
			if gates, ok := strings.CutPrefix(text, "--feature-gates="); ok && strings.Contains(gates, "CancelHealthCheckOnNewRevision=true") {
				return ""
			}
			if number, ok := strings.CutPrefix(text, "--concurrent="); ok {
				if n, err := strconv.Atoi(number); err == nil {
					workers = n
				}
			}
		}
	}
	if workers >= enoughConcurrency {
		return ""
	}
	return "the Deployment kustomize-controller has " + strconv.Itoa(workers) + " workers, and waits for health with them: a workload that does not get " +
		"ready keeps newer commits from arriving. Give it the argument --feature-gates=CancelHealthCheckOnNewRevision=true, or --concurrent=20"
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

func quote(text string) string { return strconv.Quote(text) }
