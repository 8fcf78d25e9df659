package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	agents "github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// reconcilers are the objects of one deployment target, by agent: %[1]s is its name and namespace, %[2]s the repository
// (of Flux the name of its GitRepository), %[3]s the folder in it, %[4]s the images of kustomize.
var reconcilers = map[string]string{
	"flux": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %[1]s, namespace: flux-system}
spec:
  interval: 10m
  retryInterval: 2s
  prune: true
  wait: true
  timeout: 5m
  targetNamespace: %[1]s
  path: ./%[3]s
  sourceRef: {kind: GitRepository, name: %[2]s}
  images: [%[4]s]
`,
	"argocd": `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: %[1]s, namespace: argocd, finalizers: [resources-finalizer.argocd.argoproj.io]}
spec:
  project: default
  destination: {server: "https://kubernetes.default.svc", namespace: %[1]s}
  source: {repoURL: %[2]q, targetRevision: main, path: %[3]s, kustomize: {images: [%[4]s]}}
  syncPolicy: {automated: {prune: true, selfHeal: true}}
`,
}

const teamsSource = `---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: %s, namespace: flux-system}
spec: {interval: 1m, url: %q, ref: {branch: main}}
`

const skip = "# +argocd:skip-file-rendering\n"

// layout shows on a real agent what the folder with final objects builds upon: what follows the host's folder passes over
// them, the same object of the reconciler follows first the team's repository, then them, and then the team's again,
// and nothing is deleted at any time; a change of the objects is a new generation of that object.
func (w *world) layout(t *testing.T, agent agent) {
	user := w.git.User(t)
	team := newRepository(t, w.git, user, "team-layout")
	gitops := newRepository(t, w.git, user, "gitops-layout")
	host := agent.reconciler() + "-layout"
	name := "dev-" + host + "-web-live"
	isFlux := agent.reconciler() == "flux"
	step := func(what string, do func()) {
		t.Helper()
		w.step(t, agent.reconciler(), what, do)
	}
	place := host + "/web-live/"
	namespace := fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}\n", name)

	pointers := func() map[string]string {
		repository, more := team.url, ""
		if isFlux {
			repository, more = name, fmt.Sprintf(teamsSource, name, team.url)
		}
		return map[string]string{
			place + "namespace.yaml":  namespace,
			place + "reconciler.yaml": fmt.Sprintf(reconcilers[agent.reconciler()], name, repository, "live", "") + more,
		}
	}
	objects := func(text string) map[string]string {
		repository := gitops.url
		image := fmt.Sprintf(`"flotilla.dev/objects:%x"`, sha256.Sum256([]byte(text)))
		if isFlux {
			repository = "flotilla-" + host + "-1"
			image = fmt.Sprintf(`{name: flotilla.dev/objects, newTag: "%x"}`, sha256.Sum256([]byte(text)))
		}
		return map[string]string{
			place + "namespace.yaml":             namespace,
			place + "reconciler.yaml":            fmt.Sprintf(reconcilers[agent.reconciler()], name, repository, place+"objects", image),
			place + "kustomization.yaml":         skip + "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [namespace.yaml, reconciler.yaml]\n",
			place + "objects/kustomization.yaml": skip + "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [objects.yaml]\n",
			place + "objects/objects.yaml":       skip + text,
		}
	}
	put := func(files map[string]string) {
		t.Helper()
		gitops.git("rm", "-r", "--quiet", "--ignore-unmatch", ".")
		gitops.push(files)
	}

	team.push(map[string]string{"live/all.yaml": fmt.Sprintf(workload, "v1", 0)})
	put(pointers())
	root, _ := follow(t, w.cluster, agents.Settings{
		Cluster: host + "-1", ClusterType: host, Reconciler: agent.reconciler(), Repository: folder.Location{URL: gitops.url, Branch: "main"},
	})
	deleted := watchDeletions(t, w.cluster, name)
	child := func() *unstructured.Unstructured {
		if isFlux {
			return w.cluster.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", name)
		}
		return w.cluster.Get(t, "argoproj.io/v1alpha1", "Application", "argocd", name)
	}
	follows := func() string {
		return fmt.Sprint(field(child(), "spec", "path"), field(child(), "spec", "source", "path"))
	}
	uids := func() string {
		deployment := w.cluster.Get(t, "apps/v1", "Deployment", name, "server")
		greeting := w.cluster.Get(t, "v1", "ConfigMap", name, "greeting")
		return fmt.Sprint(field(deployment, "metadata", "uid"), " ", field(greeting, "metadata", "uid"))
	}
	arrives := func(version, place string) {
		t.Helper()
		agent.nudge(t, root)
		eventually(t, func() error {
			err := configMapSays(t, w.cluster, name, "greeting", "hello", version)
			if err == nil && !strings.Contains(follows(), place) {
				err = fmt.Errorf("it follows %s, not %s", follows(), place)
			}
			if err == nil && !settled(child()) {
				err = fmt.Errorf("it has not settled")
			}
			if err != nil {
				err = fmt.Errorf("%w\n%s", err, agent.says(t, root, name))
			}
			return err
		})
	}
	step("pointers arrive", func() { arrives("v1", "live") })
	had := uids()
	step("objects in their place arrive", func() {
		put(objects(fmt.Sprintf(workload, "v2", 0)))
		arrives("v2", "/objects")
	})
	generation := child().GetGeneration()
	step("changed objects arrive", func() {
		put(objects(fmt.Sprintf(workload, "v3", 0)))
		arrives("v3", "/objects")
		eventually(t, func() error {
			if child().GetGeneration() <= generation {
				return fmt.Errorf("the generation is still %d", generation)
			}
			return nil
		})
	})
	step("a change by hand is put right", func() {
		setData(t, w.cluster, name, "greeting", "hello", "by hand")
		if isFlux {
			agent.nudge(t, name)
		}
		arrives("v3", "/objects")
	})
	step("pointers again arrive", func() {
		put(pointers())
		arrives("v1", "live")
	})
	if got := uids(); got != had {
		t.Errorf("the uids were %s, and are %s", had, got)
	}
	if got := deleted(); len(got) > 0 {
		t.Errorf("%v were deleted", got)
	}
	step("objects, which are then removed, are pruned", func() {
		put(objects(fmt.Sprintf(workload, "v4", 0)))
		arrives("v4", "/objects")
		put(map[string]string{host + "/owner.md": "nothing\n"})
		agent.nudge(t, root)
		eventually(t, func() error {
			if err := gone(t, w.cluster, name); err != nil {
				return fmt.Errorf("%w\n%s", err, agent.says(t, root, name))
			}
			return nil
		})
	})
}

// settled says whether what follows objects has applied its present spec, and is content.
func settled(child *unstructured.Unstructured) bool {
	if child.GetKind() == "Application" {
		return field(child, "status", "sync", "status") == "Synced" && field(child, "status", "operationState", "phase") == "Succeeded"
	}
	conditions, _ := field(child, "status", "conditions").([]any)
	return field(child, "status", "observedGeneration") == child.GetGeneration() && slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Ready" && condition["status"] == "True"
	})
}

// watchDeletions returns what lists the ConfigMaps and Deployments of a namespace that were deleted until then.
func watchDeletions(t *testing.T, cluster *kubetest.Server, namespace string) func() []string {
	t.Helper()
	var watches []apiwatch.Interface
	for _, resource := range []schema.GroupVersionResource{configMaps, deployments} {
		events, err := cluster.Client().Resource(resource).Namespace(namespace).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(events.Stop)
		watches = append(watches, events)
	}
	return func() []string {
		var deleted []string
		for _, events := range watches {
			for more := true; more; {
				select {
				case event := <-events.ResultChan():
					if object, ok := event.Object.(*unstructured.Unstructured); ok && event.Type == apiwatch.Deleted {
						deleted = append(deleted, object.GetKind()+" "+object.GetName())
					}
				default:
					more = false
				}
			}
		}
		return deleted
	}
}
