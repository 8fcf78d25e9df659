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

// reconcilerObjects are the objects of one deployment target, by agent: %[1]s is its name and namespace, %[2]s the URL of the
// repository (for Flux, the name of the GitRepository), %[3]s the folder in it, %[4]s the images for kustomize.
var reconcilerObjects = map[string]string{
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

const teamSource = `---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: %s, namespace: flux-system}
spec: {interval: 1m, url: %q, ref: {branch: main}}
`

const skipMarker = "# +argocd:skip-file-rendering\n"

// testLayout shows facts about a real agent for folders with rendered objects. The root of the host's folder ignores these
// objects. The follower (the Application or Kustomization of a deployment target) switches from the team's repository to the
// objects and back, and no object is deleted. Changed objects raise the follower's generation.
func (bed *testbed) testLayout(t *testing.T, agent agent) {
	user := bed.git.User(t)
	team := newRepository(t, bed.git, user, "team-layout")
	gitops := newRepository(t, bed.git, user, "gitops-layout")
	host := agent.reconciler() + "-layout"
	name := "dev-" + host + "-web-live"
	isFlux := agent.reconciler() == "flux"
	step := func(title string, do func()) {
		t.Helper()
		bed.step(t, agent.reconciler(), title, do)
	}
	targetFolder := host + "/web-live/"
	namespace := fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}\n", name)

	pointers := func() map[string]string {
		repository, more := team.url, ""
		if isFlux {
			repository, more = name, fmt.Sprintf(teamSource, name, team.url)
		}
		return map[string]string{
			targetFolder + "namespace.yaml":  namespace,
			targetFolder + "reconciler.yaml": fmt.Sprintf(reconcilerObjects[agent.reconciler()], name, repository, "live", "") + more,
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
			targetFolder + "namespace.yaml": namespace,
			targetFolder + "reconciler.yaml": fmt.Sprintf(reconcilerObjects[agent.reconciler()], name, repository,
				targetFolder+"objects", image),
			targetFolder + "kustomization.yaml":         skipMarker + "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [namespace.yaml, reconciler.yaml]\n",
			targetFolder + "objects/kustomization.yaml": skipMarker + "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [objects.yaml]\n",
			targetFolder + "objects/objects.yaml":       skipMarker + text,
		}
	}
	replaceFiles := func(files map[string]string) {
		t.Helper()
		gitops.git("rm", "-r", "--quiet", "--ignore-unmatch", ".")
		gitops.push(files)
	}

	team.push(map[string]string{"live/all.yaml": fmt.Sprintf(workload, "v1", 0)})
	replaceFiles(pointers())
	root, _ := applyRoots(t, bed.cluster, agents.Settings{
		Cluster: host + "-1", ClusterType: host, Reconciler: agent.reconciler(), Repository: folder.Location{URL: gitops.url, Branch: "main"},
	})
	listDeleted := watchDeletions(t, bed.cluster, name)
	getFollower := func() *unstructured.Unstructured {
		if isFlux {
			return bed.cluster.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", name)
		}
		return bed.cluster.Get(t, "argoproj.io/v1alpha1", "Application", "argocd", name)
	}
	followedPath := func() string {
		return fmt.Sprint(field(getFollower(), "spec", "path"), field(getFollower(), "spec", "source", "path"))
	}
	listUIDs := func() string {
		deployment := bed.cluster.Get(t, "apps/v1", "Deployment", name, "server")
		greeting := bed.cluster.Get(t, "v1", "ConfigMap", name, "greeting")
		return fmt.Sprint(field(deployment, "metadata", "uid"), " ", field(greeting, "metadata", "uid"))
	}
	waitForVersion := func(version, targetFolder string) {
		t.Helper()
		agent.triggerReconcile(t, root)
		eventually(t, func() error {
			err := checkConfigMap(t, bed.cluster, name, "greeting", "hello", version)
			if err == nil && !strings.Contains(followedPath(), targetFolder) {
				err = fmt.Errorf("the follower follows %s, want %s", followedPath(), targetFolder)
			}
			if err == nil && !isSettled(getFollower()) {
				err = fmt.Errorf("the follower has not settled")
			}
			if err != nil {
				err = fmt.Errorf("%w\n%s", err, agent.describeStatus(t, root, name))
			}
			return err
		})
	}
	step("pointers are applied", func() { waitForVersion("v1", "live") })
	wantUIDs := listUIDs()
	step("objects instead of pointers are applied", func() {
		replaceFiles(objects(fmt.Sprintf(workload, "v2", 0)))
		waitForVersion("v2", "/objects")
	})
	generation := getFollower().GetGeneration()
	step("changed objects are applied", func() {
		replaceFiles(objects(fmt.Sprintf(workload, "v3", 0)))
		waitForVersion("v3", "/objects")
		eventually(t, func() error {
			if getFollower().GetGeneration() <= generation {
				return fmt.Errorf("the generation is still %d", generation)
			}
			return nil
		})
	})
	step("a change by hand is reverted", func() {
		setData(t, bed.cluster, name, "greeting", "hello", "by hand")
		if isFlux {
			agent.triggerReconcile(t, name)
		}
		waitForVersion("v3", "/objects")
	})
	step("pointers are applied again", func() {
		replaceFiles(pointers())
		waitForVersion("v1", "live")
	})
	if got := listUIDs(); got != wantUIDs {
		t.Errorf("the UIDs are %s, want %s", got, wantUIDs)
	}
	if got := listDeleted(); len(got) > 0 {
		t.Errorf("%v were deleted", got)
	}
	step("removed objects are pruned", func() {
		replaceFiles(objects(fmt.Sprintf(workload, "v4", 0)))
		waitForVersion("v4", "/objects")
		replaceFiles(map[string]string{host + "/owner.md": "nothing\n"})
		agent.triggerReconcile(t, root)
		eventually(t, func() error {
			if err := checkNamespaceGone(t, bed.cluster, name); err != nil {
				return fmt.Errorf("%w\n%s", err, agent.describeStatus(t, root, name))
			}
			return nil
		})
	})
}

// isSettled reports whether a follower has applied its current spec with success.
func isSettled(follower *unstructured.Unstructured) bool {
	if follower.GetKind() == "Application" {
		return field(follower, "status", "sync", "status") == "Synced" && field(follower, "status", "operationState", "phase") == "Succeeded"
	}
	conditions, _ := field(follower, "status", "conditions").([]any)
	return field(follower, "status", "observedGeneration") == follower.GetGeneration() && slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Ready" && condition["status"] == "True"
	})
}

// watchDeletions returns a function that lists the ConfigMaps and Deployments deleted so far in a namespace.
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
