package onboarding_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// namespaces are the objects in the folders of a cluster, with these namespaces:
//   - spared-set: set by a deployment target
//   - spared-used: with an object of somebody else
//   - spared-followed: with an object of somebody else's Kustomization
//   - spared-unlisted: with the name of an object of kind Namespace of another group
//   - spared-own: without other users
const namespaces = `
{apiVersion: v1, kind: Namespace, metadata: {name: spared-set, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled, argocd.argoproj.io/sync-options: "Prune=false,Delete=false"}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: spared-set}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: spared-used, annotations: {argocd.argoproj.io/sync-options: ServerSideApply=true}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: spared-used}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: spared-followed}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: spared-unlisted}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: spared-unlisted}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: spared-own}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: brought, namespace: spared-own}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, namespace: spared-set, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: released, namespace: spared-own, labels: {helm.toolkit.fluxcd.io/name: web, helm.toolkit.fluxcd.io/namespace: spared-flux}}}
`

// writeAs applies an object under the name of a field manager.
func writeAs(t *testing.T, server *kubetest.Server, manager, text string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	kind := object.GroupVersionKind()
	plural := strings.ToLower(kind.Kind) + "s"
	if strings.HasSuffix(plural, "ys") {
		plural = strings.TrimSuffix(plural, "ys") + "ies"
	}
	server.Get(t, object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName()) // waits until the server has the kind
	resource := server.Client().Resource(kind.GroupVersion().WithResource(plural)).Namespace(object.GetNamespace())
	if _, err := resource.Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: manager, Force: true}); err != nil {
		t.Fatal(err)
	}
}

func annotationsOf(t *testing.T, server *kubetest.Server, namespace string) map[string]string {
	t.Helper()
	return server.Get(t, "v1", "Namespace", "", namespace).GetAnnotations()
}

func TestADestroyThatDeletesLeavesNamespacesThatOthersUse(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true, Controllers: true})
	server.Apply(t, namespaces)
	writeAs(
		t,
		server,
		"kustomize-controller",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: left, namespace: spared-followed, labels: {kustomize.toolkit.fluxcd.io/name: of-others}}}`,
	)
	writeAs(
		t,
		server,
		"helm-controller",
		`{apiVersion: v1, kind: Secret, metadata: {name: sh.helm.release.v1.web.v1, namespace: spared-own, labels: {owner: helm}}}`,
	)
	want := []string{
		"Namespace spared-followed stays: it has objects of others, which would be removed with it: ConfigMap spared-followed/left",
		"Namespace spared-used stays: it has objects of others, which would be removed with it: ConfigMap spared-used/theirs",
		"Namespace spared-set stays: it is marked so that agents leave it, as is every namespace that a deployment target sets by name",
	}
	// until waits for a condition.
	until := func(ctx context.Context, isMet func() bool) {
		for !isMet() && ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
	removeAgent := func(t *testing.T, config agent.Settings, report func(root *unstructured.Unstructured), play func(ctx context.Context, cluster onboarding.ClusterAPI, records []onboarding.Record)) {
		objects := renderObjects(t, config)
		withClient(t, server, 5*time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
			until(ctx, func() bool { // the server may not serve all new definitions yet
				_, incomplete, err := cluster.Resources(ctx)
				return err == nil && !incomplete
			})
			result := mustApply(ctx, t, cluster, onboarding.Wanted{Objects: objects})
			for i := range objects {
				if objects[i].Part == agent.Root && strings.HasSuffix(objects[i].GetName(), "-cluster") {
					report(server.Get(t, objects[i].GetAPIVersion(), objects[i].GetKind(), config.Namespace, objects[i].GetName()))
				}
			}
			var agents sync.WaitGroup
			agents.Go(func() { play(ctx, cluster, result.Records) })
			notes, err := removeObjects(ctx, cluster, onboarding.Removal{Name: "store-17", Records: result.Records, UID: result.UID, Delete: true})
			agents.Wait()
			if err != nil || !slices.Equal(notes, want) {
				t.Errorf("the notes are\n%s\nwant\n%s\n%v", strings.Join(notes, "\n"), strings.Join(want, "\n"), err)
			}
		})
	}
	t.Run("flux", func(t *testing.T) {
		removeAgent(t, settings("spared-flux"), func(root *unstructured.Unstructured) {
			server.Restore(t, `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: keeps, namespace: spared-flux}
spec: {interval: 1h, prune: false, path: ./x, sourceRef: {kind: GitRepository, name: x}}
status: {inventory: {entries: [{id: spared-set_never-waited-for__ConfigMap, v: v1}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: never-waited-for, namespace: spared-set}}
`)
			var entries []any
			for _, id := range []string{
				"_spared-set__Namespace", "_spared-used__Namespace", "_spared-followed__Namespace", "_spared-own__Namespace", "_spared-unlisted_example.com_Namespace",
				"spared-own_brought__ConfigMap", "spared-set_kept__ConfigMap",
				"spared-flux_web_helm.toolkit.fluxcd.io_HelmRelease", "spared-flux_keeps_kustomize.toolkit.fluxcd.io_Kustomization",
			} {
				entries = append(entries, map[string]any{"id": id, "v": map[bool]string{true: "v2", false: "v1"}[strings.HasSuffix(id, "HelmRelease")]})
			}
			server.SetStatus(t, root, map[string]any{"inventory": map[string]any{"entries": entries}})
		}, func(ctx context.Context, cluster onboarding.ClusterAPI, records []onboarding.Record) {
			until(ctx, func() bool {
				live, err := cluster.Read(
					ctx,
					kube.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: "spared-flux", Name: "flotilla-cluster"},
				)
				return err == nil && live == nil
			})
			for _, ref := range []kube.Ref{
				{APIVersion: "v1", Kind: "ConfigMap", Namespace: "spared-own", Name: "brought"},
				{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: "spared-flux", Name: "keeps"},
				{APIVersion: "v1", Kind: "Namespace", Name: "spared-own"},
			} {
				if err := cluster.Delete(ctx, ref, ""); err != nil {
					t.Error(err)
				}
			}
		})
	})
	t.Run("argocd", func(t *testing.T) {
		if got := annotationsOf(t, server, "spared-used"); got["kustomize.toolkit.fluxcd.io/prune"] != "disabled" ||
			got["argocd.argoproj.io/sync-options"] != "ServerSideApply=true,Prune=false,Delete=false" {
			t.Errorf("namespace spared-used has %v", got)
		}
		server.Apply(t, namespaces)
		for _, namespace := range []string{"spared-used", "spared-followed"} { // restore the namespaces
			object := server.Get(t, "v1", "Namespace", "", namespace)
			object.SetAnnotations(nil)
			if _, err := server.Client().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		removeAgent(
			t,
			func() agent.Settings {
				config := settings("spared-argocd")
				config.Reconciler = "argocd"
				return config
			}(),
			func(root *unstructured.Unstructured) {
				var resources []any
				for _, one := range [][2]string{{"Namespace", "spared-set"}, {"Namespace", "spared-used"}, {"Namespace", "spared-followed"}, {"Namespace", "spared-own"}, {"ConfigMap", "brought"}, {"ConfigMap", "released"}} {
					resource := map[string]any{"version": "v1", "kind": one[0], "name": one[1]}
					if one[0] == "ConfigMap" {
						resource["namespace"] = "spared-own"
					}
					resources = append(resources, resource)
				}
				server.SetStatus(t, root, map[string]any{"resources": resources})
			},
			func(ctx context.Context, cluster onboarding.ClusterAPI, records []onboarding.Record) {
				for i := range records {
					if records[i].Kind != "Application" {
						continue
					}
					until(ctx, func() bool {
						live, err := cluster.Read(ctx, records[i].Ref)
						return err == nil && live.GetDeletionTimestamp() != nil
					})
					if _, err := cluster.Patch(ctx, records[i].Ref, map[string]any{"metadata": map[string]any{"finalizers": nil}}); err != nil {
						t.Error(err)
					}
				}
			},
		)
	})
	for namespace, marked := range map[string]bool{"spared-set": true, "spared-used": true, "spared-followed": true, "spared-own": false} {
		if got := annotationsOf(t, server, namespace)["argocd.argoproj.io/sync-options"]; (got != "") != marked {
			t.Errorf("namespace %s has the options %q", namespace, got)
		}
	}
}
