package onboarding_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// deleteRecorder records the deletions on a cluster. It is safe for concurrent use.
type deleteRecorder struct {
	onboarding.ClusterAPI
	mu      sync.Mutex
	deleted []string
}

func (r *deleteRecorder) Delete(ctx context.Context, ref kube.Ref, uid string) error {
	r.mu.Lock()
	r.deleted = append(r.deleted, "delete "+ref.String())
	r.mu.Unlock()
	return r.ClusterAPI.Delete(ctx, ref, uid)
}

// impatientCluster calls end after six reads of an existing object, when a caller waits for it.
type impatientCluster struct {
	onboarding.ClusterAPI
	end   func()
	mu    sync.Mutex
	reads map[kube.Ref]int
}

func (i *impatientCluster) Read(ctx context.Context, ref kube.Ref) (*unstructured.Unstructured, error) {
	live, err := i.ClusterAPI.Read(ctx, ref)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.reads == nil {
		i.reads = map[kube.Ref]int{}
	}
	if live != nil {
		i.reads[ref]++
	}
	if i.reads[ref] == 6 {
		i.end()
	}
	return live, err
}

// By default, all content keeps running: a destroy turns off pruning before it deletes the pruning object.
func TestADestroyKeepsRunningContent(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	for name, c := range map[string]struct {
		reconciler, namespace string
		want                  []string
	}{
		"flux":   {"flux", "keep-flux", []string{"Kustomization keep-flux/flotilla-cluster", "Kustomization keep-flux/flotilla-cluster-type", "Secret keep-flux/flotilla-repository", "GitRepository keep-flux/flotilla"}},
		"argocd": {"argocd", "keep-argocd", []string{"Application keep-argocd/flotilla-cluster", "Application keep-argocd/flotilla-cluster-type", "Secret keep-argocd/flotilla-repository"}},
		"fleet":  {"fleet", "keep-fleet", []string{"GitRepo keep-fleet/flotilla-cluster", "GitRepo keep-fleet/flotilla-cluster-type", "Secret keep-fleet/flotilla-repository"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := settings(c.namespace)
			config.Reconciler = c.reconciler
			objects := renderObjects(t, config)
			withClient(t, server, 3*time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
				result := mustApply(ctx, t, cluster, onboarding.Wanted{Objects: objects})
				// Add a finalizer to each root, as its controller would.
				for _, object := range objects {
					if object.Part == agent.Root {
						if _, err := cluster.Patch(ctx, kube.RefOf(object.Unstructured), map[string]any{"metadata": map[string]any{"finalizers": append(toAny(object.GetFinalizers()), "flotilla.dev/held")}}); err != nil {
							t.Error(err)
						}
					}
				}
				recorder := &deleteRecorder{ClusterAPI: cluster}
				short, end := context.WithCancel(ctx)
				defer end()
				removal := onboarding.Removal{Name: "store-17", Records: result.Records, UID: result.UID}
				_, err := onboarding.Remove(short, &impatientCluster{ClusterAPI: recorder, end: end}, removal)
				if err == nil ||
					!strings.Contains(err.Error(), "was deleted, and is still there (it waits for what has set its finalizers: flotilla.dev/held)") {
					t.Errorf("the error is %v", err)
				}
				for _, object := range objects {
					if object.Part != agent.Root {
						continue
					}
					live, err := cluster.Read(ctx, kube.RefOf(object.Unstructured))
					if err != nil || live == nil {
						t.Fatalf("%s: %v", object.ID(), err)
					}
					prunes := fmt.Sprint(live.Object["spec"])
					if strings.Contains(prunes, "prune:true") || object.GetKind() == "GitRepo" && !strings.Contains(prunes, "keepResources:true") ||
						len(live.GetFinalizers()) != 1 {
						t.Errorf("%s is deleted while it prunes: %v, finalizers %v", object.ID(), prunes, live.GetFinalizers())
					}
					if _, err := cluster.Patch(ctx, kube.RefOf(object.Unstructured), map[string]any{"metadata": map[string]any{"finalizers": nil}}); err != nil {
						t.Error(err)
					}
				}
				notes, err := removeObjects(ctx, recorder, removal)
				if err != nil || len(notes) > 0 {
					t.Errorf("the notes are %q: %v", notes, err)
				}
				slices.Sort(recorder.deleted)
				want := make([]string, len(c.want))
				for i, one := range c.want {
					want[i] = "delete " + one
				}
				slices.Sort(want)
				if got := slices.Compact(recorder.deleted); !slices.Equal(got, want) {
					t.Errorf("got the deletions %q, want %q", got, want)
				}
				if again, err := removeObjects(ctx, cluster, removal); err != nil || len(again) > 0 {
					t.Errorf("after a second removal, the notes are %q: %v", again, err)
				}
			})
		})
	}
}

// A destroy removes the agent's namespace with the objects that the agent created for itself. The namespace stays if people
// created an object there by any program: Argo CD's UI, their own Kustomization, or another agent of Flotilla.
func TestADestroyThatDeletesLeavesObjectsOfPeople(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true, Controllers: true})
	const application = `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: theirs, namespace: %s}
spec: {project: default, destination: {server: "https://kubernetes.default.svc", namespace: x}, source: {repoURL: "https://git.example.com/x", path: ., targetRevision: main}}
`
	for name, c := range map[string]struct{ reconciler, manager, object, stays string }{
		"ui":         {"argocd", "argocd-server", application, "Application people-ui/theirs"},
		"repository": {"argocd", "argocd-server", `{apiVersion: v1, kind: Secret, metadata: {name: repo-1, namespace: %s, labels: {argocd.argoproj.io/secret-type: repository}}, data: {url: eA==}}`, "Secret people-repository/repo-1"},
		"prefixes":   {"flux", "image-puller", `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: %s}}`, "ConfigMap people-prefixes/theirs"},
		"fleetwood":  {"fleet", "fleetwood", `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: %s}}`, "ConfigMap people-fleetwood/theirs"},
		"applied":    {"flux", "kustomize-controller", `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: %s, labels: {kustomize.toolkit.fluxcd.io/name: apps}}}`, "ConfigMap people-applied/theirs"},
		"flotilla":   {"flux", "flotilla", `{apiVersion: v1, kind: Secret, metadata: {name: other-repository, namespace: %s, labels: {app.kubernetes.io/managed-by: flotilla}}}`, "Secret people-flotilla/other-repository"},
		"admin":      {"argocd", "argocd-server", `{apiVersion: v1, kind: Secret, metadata: {name: argocd-initial-admin-secret, namespace: %s}, data: {password: eA==}}`, ""},
		"project":    {"argocd", "argocd-server", `{apiVersion: argoproj.io/v1alpha1, kind: AppProject, metadata: {name: default, namespace: %s}, spec: {sourceRepos: ["*"]}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := "people-" + name
			config := settings(namespace)
			config.Reconciler = c.reconciler
			config.Install = []agent.Text{{Path: "install", Text: "{apiVersion: v1, kind: Namespace, metadata: {name: " + namespace + "}}"}}
			if c.reconciler == "argocd" { // withoutVerb argocd-server, a project "default" is added
				config.Install = append(
					config.Install,
					agent.Text{
						Path: "install",
						Text: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: argocd-server}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}",
					},
				)
			}
			objects := renderObjects(t, config)
			withClient(t, server, 3*time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
				result := mustApply(ctx, t, cluster, onboarding.Wanted{Objects: objects})
				writeAs(t, server, c.manager, fmt.Sprintf(c.object, namespace))
				done := make(chan struct{})
				go func() { // acts as Argo CD's controller
					defer close(done)
					for ctx.Err() == nil {
						left := 0
						for _, record := range result.Records {
							if live, err := cluster.Read(ctx, record.Ref); record.Kind == "Application" && err == nil && live != nil {
								left++
								if live.GetDeletionTimestamp() != nil {
									_, _ = cluster.Patch(ctx, record.Ref, map[string]any{"metadata": map[string]any{"finalizers": nil}})
								}
							}
						}
						if left == 0 {
							return
						}
						time.Sleep(100 * time.Millisecond)
					}
				}()
				notes, err := removeObjects(ctx, cluster, onboarding.Removal{Name: "store-17", Records: result.Records, UID: result.UID, Delete: true})
				<-done
				if err != nil {
					t.Fatal(err)
				}
				stays := server.Get(t, "v1", "Namespace", "", namespace)
				switch {
				case c.stays == "" && (stays != nil || len(notes) > 0):
					t.Errorf("the namespace still exists: %q", notes)
				case c.stays != "" && (stays == nil || stays.GetDeletionTimestamp() != nil || len(notes) != 1 || !strings.Contains(notes[0], c.stays)):
					t.Errorf("the namespace was removed with %s: %q", c.stays, notes)
				}
			})
		})
	}
}

func toAny(texts []string) []any {
	list := make([]any, len(texts))
	for i, text := range texts {
		list[i] = text
	}
	return list
}

// A destroy that deletes waits for the removal of the objects that the agent applied, and of the objects that those applied.
func TestADestroyThatDeletesWaitsForAppliedObjects(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	objects := renderObjects(t, settings("brought"))
	withClient(t, server, 3*time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		result := mustApply(ctx, t, cluster, onboarding.Wanted{Objects: objects})
		server.Apply(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: brought, namespace: brought}\n")
		server.Restore(t, `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: child, namespace: brought}
spec: {interval: 1h, prune: true, path: ./x, sourceRef: {kind: GitRepository, name: x}}
status: {inventory: {entries: [{id: brought_brought__ConfigMap, v: v1}]}}
`)
		root := server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "brought", "flotilla-cluster")
		server.SetStatus(
			t,
			root,
			map[string]any{
				"inventory": map[string]any{
					"entries": []any{map[string]any{"id": "brought_child_kustomize.toolkit.fluxcd.io_Kustomization", "v": "v1"}},
				},
			},
		)
		removal := onboarding.Removal{Name: "store-17", Records: result.Records, UID: result.UID, Delete: true}
		short, end := context.WithCancel(ctx)
		defer end()
		_, err := onboarding.Remove(short, &impatientCluster{ClusterAPI: cluster, end: end}, removal)
		if want := "what the agent had applied is still there: ConfigMap brought/brought, Kustomization brought/child"; err == nil ||
			err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
		if server.Get(t, "v1", "Secret", "brought", "flotilla-repository") == nil {
			t.Error("the agent was removed before the objects that it had applied")
		}
	})
}

// hubSettings returns the settings of a cluster that an Argo CD on a hub deploys to.
func hubSettings(namespace, cluster string) agent.Settings {
	config := settings(namespace)
	config.Cluster, config.Reconciler, config.Environment = cluster, "argocd-hub", "dev"
	config.Registration = &agent.Registration{Server: "https://" + cluster + ".example.com", Token: "canary-t0ken-4712"}
	return config
}

func TestTheLastClusterRemovesSharedObjectsOnAHub(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	withClient(t, server, 3*time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		removals := map[string]onboarding.Removal{}
		var shared []kube.Ref
		for _, name := range []string{"eu-1", "eu-2"} {
			objects := renderObjects(t, hubSettings("shared-hub", name))
			result, err := onboarding.Apply(ctx, cluster, onboarding.Wanted{Objects: objects})
			if err != nil {
				t.Fatal(err)
			}
			if name == "eu-1" {
				for i := range objects {
					if objects[i].Shared {
						shared = append(shared, kube.RefOf(objects[i].Unstructured))
					}
				}
			}
			removals[name] = onboarding.Removal{Name: name, Records: result.Records, UID: result.UID, Delete: true}
		}
		countExisting := func() (count int) {
			for _, ref := range shared {
				if live, err := cluster.Read(ctx, ref); err != nil {
					t.Fatal(err)
				} else if live != nil {
					count++
				}
			}
			return count
		}
		if len(shared) < 3 || countExisting() != len(shared) {
			t.Fatalf("%d objects are shared, and %d of them exist", len(shared), countExisting())
		}
		// Without Argo CD, the test removes the finalizers.
		removeFinalizers := func(name string) {
			for _, record := range removals[name].Records {
				if record.Kind == "Application" {
					if _, err := cluster.Patch(ctx, record.Ref, map[string]any{"metadata": map[string]any{"finalizers": nil}}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		first := removals["eu-1"]
		first.Delete = false
		if notes, err := removeObjects(ctx, cluster, first); err != nil || len(notes) > 0 || countExisting() != len(shared) {
			t.Errorf("after the first removal, of %d shared objects %d exist: %q, %v", len(shared), countExisting(), notes, err)
		}
		last := removals["eu-2"]
		last.Delete = false
		if notes, err := removeObjects(ctx, cluster, last); err != nil || len(notes) > 0 {
			t.Errorf("the notes are %q: %v", notes, err)
		}
		removeFinalizers("eu-2")
		if roots := slices.DeleteFunc(shared, func(ref kube.Ref) bool { return !strings.HasPrefix(ref.Kind, "Application") }); len(roots) > 0 {
			shared = roots
			if countExisting() != 0 {
				t.Errorf("after the last removal, %d of %v exist", countExisting(), shared)
			}
		}
	})
}

// replacingCluster is a cluster on which others replace each object just before its deletion.
type replacingCluster struct{ onboarding.ClusterAPI }

func (r replacingCluster) Delete(ctx context.Context, ref kube.Ref, _ string) error {
	return r.ClusterAPI.Delete(ctx, ref, "another")
}

// TestADestroyNamesAllObjectsThatOthersRecreated has others recreate objects that a destroy removes at the same time.
func TestADestroyNamesAllObjectsThatOthersRecreated(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	withClient(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		result := mustApply(ctx, t, cluster, onboarding.Wanted{Objects: renderObjects(t, settings("made-again"))})
		notes, err := removeObjects(ctx, replacingCluster{cluster}, onboarding.Removal{Name: "store-17", Records: result.Records, UID: result.UID})
		want := []string{
			"Kustomization made-again/flotilla-cluster stays: it was made again by others",
			"Kustomization made-again/flotilla-cluster-type stays: it was made again by others",
			"GitRepository made-again/flotilla stays: it was made again by others",
			"Secret made-again/flotilla-repository stays: it was made again by others",
		}
		slices.Sort(want)
		slices.Sort(notes)
		if err != nil || !slices.Equal(notes, want) {
			t.Errorf("the notes are %q, %v, want %q", notes, err, want)
		}
	})
}
