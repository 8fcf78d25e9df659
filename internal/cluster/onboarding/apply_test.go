package onboarding_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

var kustomizations = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}

// findDrift returns the drift of objects as lines.
func findDrift(ctx context.Context, t *testing.T, cluster onboarding.ClusterAPI, objects []agent.StagedObject) string {
	t.Helper()
	look, err := onboarding.Inspect(ctx, cluster, objects, onboarding.InspectOptions{SecretsUnknown: true})
	if err != nil {
		t.Fatal(err)
	}
	found := onboarding.FindDrift(objects, look)
	return strings.Join(onboarding.Changes(objects, objects, found.Findings, nil), "\n")
}

func mustApply(ctx context.Context, t *testing.T, cluster onboarding.ClusterAPI, wanted onboarding.Wanted) onboarding.ApplyResult {
	t.Helper()
	result, err := onboarding.Apply(ctx, cluster, wanted)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestDriftNamesObjectsAndFields(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	objects := renderObjects(t, settings("drifting"))
	withClient(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		result := mustApply(ctx, t, cluster, onboarding.Wanted{Objects: objects})
		for _, record := range result.Records {
			if !record.Created || record.UID == "" {
				t.Errorf("got the record %+v, want a created object with a UID", record)
			}
		}
		if got := findDrift(ctx, t, cluster, objects); got != "" || len(result.Records) != len(objects) || len(objects) != 5 {
			t.Errorf("after the apply, %d objects with %d records have drift:\n%s", len(objects), len(result.Records), got)
		}
		patch := `{"metadata":{"labels":{"others":"may"}},"spec":{"prune":false,"suspend":true}}`
		if _, err := server.Client().Resource(kustomizations).Namespace("drifting").Patch(ctx, "flotilla-cluster", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
			t.Error(err)
		}
		server.Delete(t, "source.toolkit.fluxcd.io/v1", "GitRepository", "drifting", "flotilla")
		secrets := server.Client().Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace("drifting")
		if _, err := secrets.Patch(ctx, "flotilla-repository", types.MergePatchType, []byte(`{"data":{"password":"eA=="}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
			t.Error(err)
		}
		want := "Secret drifting/flotilla-repository: data.password changed\n" +
			"GitRepository drifting/flotilla is gone\n" +
			`Kustomization drifting/flotilla-cluster: spec.prune, spec.suspend changed, by "kubectl-edit"`
		if got := findDrift(ctx, t, cluster, objects); got != want {
			t.Errorf("the drift is\n%s\nwant\n%s", got, want)
		}
		mustApply(ctx, t, cluster, onboarding.Wanted{Objects: objects})
		if got := findDrift(ctx, t, cluster, objects); got != "" {
			t.Errorf("after the second apply, there is drift:\n%s", got)
		}
		live := server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "drifting", "flotilla-cluster")
		if live.GetLabels()["others"] != "may" || live.Object["spec"].(map[string]any)["suspend"] != nil {
			t.Errorf("got %v, want the label of another manager and no spec.suspend", live)
		}
		before := live.GetResourceVersion()
		mustApply(ctx, t, cluster, onboarding.Wanted{Objects: objects})
		if after := server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "drifting", "flotilla-cluster"); after.GetResourceVersion() != before {
			t.Error("an unchanged object was written")
		}
	})
}

// TestAFieldThatStopsAnAgentIsDrift adds fields that stop an agent or redirect it. Drift names each field, and the next
// apply removes it.
func TestAFieldThatStopsAnAgentIsDrift(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: kustomize-controller}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`
	for _, c := range []struct{ reconciler, kind, name, patch, want string }{
		{"flux", "kustomizations", "flotilla-cluster", `{"spec":{"suspend":true,"targetNamespace":"elsewhere"}}`, "Kustomization added-kustomizations/flotilla-cluster: spec.suspend, spec.targetNamespace"},
		{"flux", "gitrepositories", "flotilla", `{"spec":{"suspend":true,"ref":{"tag":"v1"},"proxySecretRef":{"name":"other"}}}`, "GitRepository added-gitrepositories/flotilla: spec.proxySecretRef, spec.ref.tag, spec.suspend"},
		{"flux", "deployments", "kustomize-controller", `{"spec":{"replicas":0}}`, "Deployment added-deployments/kustomize-controller: spec.replicas"},
		{"argocd", "applications", "flotilla-cluster", `{"metadata":{"annotations":{"argocd.argoproj.io/skip-reconcile":"true"}},"spec":{"ignoreDifferences":[{"kind":"Deployment","group":"apps","jsonPointers":["/spec"]}],"syncPolicy":{"automated":{"enabled":false}}}}`,
			"Application added-applications/flotilla-cluster: metadata.annotations[argocd.argoproj.io/skip-reconcile], spec.ignoreDifferences, spec.syncPolicy.automated.enabled"},
		{"argocd", "appprojects", "flotilla", `{"spec":{"syncWindows":[{"kind":"deny","schedule":"* * * * *","duration":"1h","applications":["*"]}]}}`, "AppProject added-appprojects/flotilla: spec.syncWindows"},
		{"fleet", "gitrepos", "flotilla-cluster", `{"spec":{"paused":true}}`, "GitRepo added-gitrepos/flotilla-cluster: spec.paused"},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			config := settings("added-" + c.kind) // one namespace per parallel subtest
			config.Reconciler = c.reconciler
			if c.kind == "deployments" {
				config.Install = []agent.Text{{Path: "install", Text: deployment}}
			}
			objects := renderObjects(t, config)
			kind := schema.GroupVersionResource{Resource: c.kind}
			for i := range objects {
				if objects[i].GetName() == c.name && strings.HasPrefix(c.want, objects[i].GetKind()+" ") {
					group := objects[i].GroupVersionKind()
					kind.Group, kind.Version = group.Group, group.Version
				}
			}
			withClient(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
				mustApply(ctx, t, cluster, onboarding.Wanted{Objects: objects})
				if _, err := server.Client().Resource(kind).Namespace(config.Namespace).Patch(ctx, c.name, types.MergePatchType, []byte(c.patch), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
					t.Fatal(err)
				}
				// A refresh and an apply find the same drift.
				if got, want := findDrift(ctx, t, cluster, objects), c.want+` changed, by "kubectl-edit"`; got != want {
					t.Errorf("the drift is\n%s\nwant\n%s", got, want)
				}
				mustApply(ctx, t, cluster, onboarding.Wanted{Objects: objects})
				if got := findDrift(ctx, t, cluster, objects); got != "" {
					t.Errorf("after the next apply, there is drift:\n%s", got)
				}
			})
		})
	}
}

// Only an apply knows the values of credentials. A refresh finds no drift in them, whatever kind of object holds them.
func TestCredentialsOutsideOfSecretsAreNoDrift(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	pem := func(kind, text string) string {
		return "-----BEGIN " + kind + "-----\n" + text + "\n-----END " + kind + "-----\n"
	}
	for _, reconciler := range []string{"flux", "argocd", "fleet"} {
		t.Run(reconciler, func(t *testing.T) {
			t.Parallel()
			render := func(certificate, id string) []agent.StagedObject {
				config := settings("values-" + reconciler)
				config.Reconciler, config.Credentials.CACertificates = reconciler, pem("CERTIFICATE", certificate)
				if reconciler != "fleet" {
					config.Repository.URL = "https://github.com/platform/gitops"
					config.Feedback = &agent.Reporting{
						Forge: "github",
						App:   &agent.GitHubApp{ID: id, InstallationID: "2", PrivateKey: pem("PRIVATE KEY", certificate)},
					}
				}
				return slices.DeleteFunc(renderObjects(t, config), func(object agent.StagedObject) bool { // this API has no such kinds
					return strings.HasPrefix(object.GetAPIVersion(), "notification.toolkit")
				})
			}
			placeholders := render("unknown", "1")
			withClient(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
				mustApply(ctx, t, cluster, onboarding.Wanted{Objects: render("given", "4711")})
				if got := findDrift(ctx, t, cluster, placeholders); got != "" {
					t.Errorf("after the apply, there is drift:\n%s", got)
				}
				if reconciler == "argocd" {
					if err := cluster.Delete(ctx, kube.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "values-argocd", Name: "argocd-tls-certs-cm"}, ""); err != nil {
						t.Error(err)
					}
					if got := findDrift(ctx, t, cluster, placeholders); got != "ConfigMap values-argocd/argocd-tls-certs-cm is gone" {
						t.Errorf("without the certificates, the drift is\n%s", got)
					}
				}
			})
		})
	}
}

func TestAConflictNamesTheOtherManager(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	server.Apply(t, `
apiVersion: v1
kind: Namespace
metadata: {name: disputed}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flotilla-cluster, namespace: disputed}
spec: {interval: 1h, prune: true, path: ./mine, sourceRef: {kind: GitRepository, name: mine}}
`)
	objects := renderObjects(t, settings("disputed"))
	withClient(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		wanted := onboarding.Wanted{Objects: objects}
		_, err := onboarding.Apply(ctx, cluster, wanted)
		failures := onboarding.FailuresOf(err)
		want := `Kustomization disputed/flotilla-cluster: spec.interval, spec.path, spec.sourceRef.name are managed by "kubetest"`
		if len(failures) != 1 || failures[0].Cause != onboarding.CauseForeign || failures[0].Text != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
		if server.Get(t, "source.toolkit.fluxcd.io/v1", "GitRepository", "disputed", "flotilla") != nil {
			t.Error("objects were written although one object cannot be applied")
		}
		wanted.Force = true
		result := mustApply(ctx, t, cluster, wanted)
		created := map[string]bool{}
		for _, record := range result.Records {
			created[record.ID().String()] = record.Created
		}
		if created["Namespace disputed"] || created["Kustomization disputed/flotilla-cluster"] ||
			!created["Kustomization disputed/flotilla-cluster-type"] {
			t.Errorf("got the created objects %v, want those that did not exist before", created)
		}
		// After a loss of the state, an apply restores the same records.
		again := mustApply(ctx, t, cluster, onboarding.Wanted{Objects: objects})
		if !reflect.DeepEqual(again.Records, result.Records) {
			t.Errorf("got the records\n%+v\nwant\n%+v", again.Records, result.Records)
		}
		if _, err := onboarding.Remove(ctx, cluster, onboarding.Removal{Records: again.Records, UID: again.UID, Delete: true}); err != nil {
			t.Error(err)
		}
		if server.Get(t, "v1", "Namespace", "", "disputed") == nil ||
			server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "disputed", "flotilla-cluster") == nil {
			t.Error("an object that existed before the apply was removed")
		}
		if server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "disputed", "flotilla-cluster-type") != nil {
			t.Error("a created object still exists")
		}
	})
}

// boatDefinition defines a kind that no other test has.
func boatDefinition(group string) string {
	return strings.ReplaceAll(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat, listKind: BoatList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, "GROUP", group)
}

func TestDefinitionsAndNamespacesAreAppliedFirstAndRemovedLast(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true, Controllers: true})
	config := settings("staged")
	config.Install = []agent.Text{
		{Path: "install", Text: "apiVersion: staged.flotilla.example/v1\nkind: Boat\nmetadata: {name: ours, namespace: staged-boats}\n---\n" +
			"apiVersion: v1\nkind: Namespace\nmetadata: {name: staged-boats}\n---\n" + boatDefinition("staged.flotilla.example")},
	}
	objects := renderObjects(t, config)
	withClient(t, server, 2*time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		look, err := onboarding.Inspect(ctx, cluster, objects, onboarding.InspectOptions{})
		if failures := onboarding.FindFailures(objects, look); err != nil || len(failures) > 0 {
			t.Errorf("objects in stages cannot be applied: %v, %v", failures, err)
		}
		result := mustApply(ctx, t, cluster, onboarding.Wanted{Objects: objects})
		if got := findDrift(ctx, t, cluster, objects); got != "" {
			t.Errorf("after the apply, there is drift:\n%s", got)
		}
		boat := server.Apply(t, "apiVersion: staged.flotilla.example/v1\nkind: Boat\nmetadata: {name: theirs, namespace: default}\n")[0]
		server.Apply(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, namespace: staged}\n")
		removal := onboarding.Removal{Records: result.Records, UID: result.UID, Delete: true}
		notes, err := removeObjects(ctx, cluster, removal)
		want := []string{
			"Namespace staged stays: it has objects of others, which would be removed with it: ConfigMap staged/theirs",
			"CustomResourceDefinition boats.staged.flotilla.example stays: it has objects of others, which would be removed with it: Boat default/theirs",
		}
		if err != nil || !slices.Equal(notes, want) {
			t.Errorf("the notes are %q: %v", notes, err)
		}
		if server.Get(t, "v1", "Namespace", "", "staged-boats") != nil ||
			server.Get(t, "staged.flotilla.example/v1", "Boat", "default", "theirs").GetUID() != boat.GetUID() {
			t.Error("namespace staged-boats exists, or the Boat of others was replaced")
		}
		server.Delete(t, "staged.flotilla.example/v1", "Boat", "default", "theirs")
		server.Delete(t, "v1", "ConfigMap", "staged", "theirs")
		if notes, err := removeObjects(ctx, cluster, removal); err != nil || len(notes) > 0 {
			t.Errorf("the notes are %q: %v", notes, err)
		}
		for _, object := range objects {
			if live, err := cluster.Read(ctx, kube.RefOf(object.Unstructured)); live != nil || err != nil {
				t.Errorf("%s still exists: %v", object.ID(), err)
			}
		}
	})
}

func TestAMissingAgentIsAnErrorWithTheRemedy(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{})
	objects := renderObjects(t, settings("bare"))
	for i := range objects { // no server has this version
		objects[i].SetAPIVersion(strings.Replace(objects[i].GetAPIVersion(), "toolkit.fluxcd.io/v1", "toolkit.fluxcd.io/v0", 1))
	}
	withClient(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		_, err := onboarding.Apply(ctx, cluster, onboarding.Wanted{Objects: objects})
		want := "the cluster has no kind GitRepository of source.toolkit.fluxcd.io/v0, which GitRepository bare/flotilla needs: " +
			"Flux is not installed there, or without that controller; install = the output of `flux install --export` brings it\n" +
			"the cluster has no kind Kustomization of kustomize.toolkit.fluxcd.io/v0, which Kustomization bare/flotilla-cluster-type needs: " +
			"Flux is not installed there, or without that controller; install = the output of `flux install --export` brings it"
		if failures := onboarding.FailuresOf(err); len(failures) != 2 || failures[0].Cause != onboarding.CauseNoKind || err.Error() != want {
			t.Errorf("the error is\n%v\nwant\n%s", err, want)
		}
		if server.Get(t, "v1", "Namespace", "", "bare") != nil {
			t.Error("objects were written although one object cannot be applied")
		}
	})
}

func TestAnApplyWaitsForATerminatingNamespace(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true, Controllers: true})
	server.Apply(
		t,
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: ending}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, namespace: ending, finalizers: [flotilla.dev/test]}\n",
	)
	server.Delete(t, "v1", "Namespace", "", "ending")
	objects := renderObjects(t, settings("ending"))
	withClient(t, server, 5*time.Second, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		_, err := onboarding.Apply(ctx, cluster, onboarding.Wanted{Objects: objects})
		failures := onboarding.FailuresOf(err)
		if len(failures) != 1 || failures[0].Cause != onboarding.CauseTime ||
			!strings.HasPrefix(err.Error(), "Namespace ending is still being deleted") ||
			!strings.HasSuffix(err.Error(), ": it can be applied once it has gone") {
			t.Errorf("the error is %v", err)
		}
	})
	release := func(ctx context.Context) {
		if _, err := server.Client().Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("ending").
			Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
	withClient(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		release(ctx)
		result := mustApply(ctx, t, cluster, onboarding.Wanted{Objects: objects})
		if !result.Records[0].Created {
			t.Errorf("the namespace was created, but its record is %+v", result.Records[0])
		}
	})
}
