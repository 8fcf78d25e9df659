package onboarding_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// The clusters of a type share objects on a hub. The objects stay until the last cluster leaves the type.
func TestSharedObjectsOnAHubStayWhileAClusterHasTheType(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	withClient(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		results := map[string]onboarding.ApplyResult{}
		for _, name := range []string{"eu-1", "eu-2"} {
			result, err := onboarding.Apply(ctx, cluster, onboarding.Wanted{Objects: renderObjects(t, hubSettings("moved-hub", name))})
			if err != nil {
				t.Fatal(err)
			}
			results[name] = result
		}
		exists := func(name string) bool {
			return server.Get(t, "argoproj.io/v1alpha1", "ApplicationSet", "moved-hub", name) != nil
		}
		shared := "flotilla-dev-" + hubSettings("moved-hub", "eu-1").ClusterType
		if !exists(shared) {
			t.Fatalf("ApplicationSet %s does not exist", shared)
		}
		changeType := func(name string) {
			t.Helper()
			config := hubSettings("moved-hub", name)
			config.ClusterType = "another"
			_, err := onboarding.Apply(ctx, cluster, onboarding.Wanted{Objects: renderObjects(t, config), Records: results[name].Records, UID: results[name].UID})
			if err != nil {
				t.Fatal(err)
			}
		}
		changeType("eu-1")
		if !exists(shared) || !exists("flotilla-dev-another") {
			t.Errorf("after the first cluster moved, the former ApplicationSet exists: %v, the other: %v; want both", exists(shared), exists("flotilla-dev-another"))
		}
		changeType("eu-2")
		if exists(shared) {
			t.Errorf("no cluster has the former type, but ApplicationSet %s still exists", shared)
		}
	})
}

// The clusters of one namespace of a hub share objects. The removal of the last cluster there removes them, even if other
// namespaces have clusters.
func TestTheLastClusterOfANamespaceRemovesItsSharedObjects(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	server.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: last-hub}\n") // no controller would finish its deletion
	withClient(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		result := mustApply(ctx, t, cluster, onboarding.Wanted{Objects: renderObjects(t, hubSettings("last-hub", "eu-1"))})
		mustApply(ctx, t, cluster, onboarding.Wanted{Objects: renderObjects(t, hubSettings("other-hub", "eu-2"))})
		removal := onboarding.Removal{Name: "eu-1", Records: result.Records, UID: result.UID, Delete: true}
		if _, err := onboarding.Remove(ctx, applicationSetController{ClusterAPI: cluster}, removal); err != nil {
			t.Error(err)
		}
		shared := "flotilla-dev-" + hubSettings("", "").ClusterType
		for namespace, want := range map[string]bool{"last-hub": false, "other-hub": true} {
			if exists := server.Get(t, "argoproj.io/v1alpha1", "ApplicationSet", namespace, shared) != nil; exists != want {
				t.Errorf("in %s the ApplicationSet exists: %v, want %v", namespace, exists, want)
			}
		}
	})
}

// applicationSetController acts as the controller of ApplicationSets: it deletes an Application once the Secret of the cluster
// lacks a label of the ApplicationSet's selector.
type applicationSetController struct {
	onboarding.ClusterAPI
	secret kube.Ref
	sets   map[string][]string // selected labels, by Application
}

func (c applicationSetController) List(ctx context.Context, kind kube.ResourceKind, options kube.ListOptions) (kube.List, error) {
	if len(c.sets) == 0 {
		return c.ClusterAPI.List(ctx, kind, options)
	}
	live, err := c.Read(ctx, c.secret)
	if err != nil {
		return kube.List{}, err
	}
	for name, labels := range c.sets {
		for _, label := range labels {
			if live != nil && live.GetLabels()[label] != "" {
				continue
			}
			ref := kube.Ref{APIVersion: "argoproj.io/v1alpha1", Kind: "Application", Namespace: c.secret.Namespace, Name: name}
			if app, err := c.Read(ctx, ref); err != nil || app == nil {
				continue
			}
			if err := c.Delete(ctx, ref, ""); err != nil {
				return kube.List{}, err
			}
		}
	}
	return c.ClusterAPI.List(ctx, kind, options)
}

// Delete also removes the finalizer, as Argo CD does.
func (c applicationSetController) Delete(ctx context.Context, ref kube.Ref, uid string) error {
	err := c.ClusterAPI.Delete(ctx, ref, uid)
	if err == nil && ref.Kind == "Application" {
		_, err = c.Patch(ctx, ref, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	}
	return err
}

// A hub removes the content of the cluster and of its type while it can still reach the cluster. Applications that come
// from ApplicationSets of others stay.
func TestADestroyThatDeletesWaitsForTheHub(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	server.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: deleting-hub}\n") // no controller would finish its deletion
	withClient(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		result, err := onboarding.Apply(ctx, cluster, onboarding.Wanted{Objects: renderObjects(t, hubSettings("deleting-hub", "eu-1"))})
		if err != nil {
			t.Fatal(err)
		}
		for name, label := range map[string]string{"of-type": "flotilla", "own": "flotilla", "of-others": "others"} {
			server.Apply(t, fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: %s
  namespace: deleting-hub
  labels: {app.kubernetes.io/managed-by: %s}
spec: {project: flotilla, destination: {name: eu-1, namespace: default}, source: {repoURL: "https://git.example.com/x", path: x}}
`, name, label))
			set := server.Apply(t, fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: %s, namespace: deleting-hub}
spec: {generators: [], template: {metadata: {}, spec: {project: flotilla, destination: {name: eu-1}}}}
`, name))[0]
			owner := map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": name, "uid": string(set.GetUID())}
			ref := kube.Ref{APIVersion: "argoproj.io/v1alpha1", Kind: "Application", Namespace: "deleting-hub", Name: name}
			if _, err := cluster.Patch(ctx, ref, map[string]any{"metadata": map[string]any{"ownerReferences": []any{owner}}}); err != nil {
				t.Fatal(err)
			}
		}
		hub := applicationSetController{
			cluster,
			kube.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "deleting-hub", Name: "flotilla-dev-clusters-eu-1"},
			map[string][]string{
				"of-type": {"flotilla.dev/environment", "flotilla.dev/cluster-type"},
				"own":     {"flotilla.dev/environment", "flotilla.dev/cluster"},
			},
		}
		_, err = onboarding.Remove(ctx, hub, onboarding.Removal{Name: "eu-1", Records: result.Records, UID: result.UID, Delete: true})
		if err != nil {
			t.Error(err)
		}
		for name, want := range map[string]bool{"of-type": false, "own": false, "of-others": true} {
			if exists := server.Get(t, "argoproj.io/v1alpha1", "Application", "deleting-hub", name) != nil; exists != want {
				t.Errorf("Application %s exists: %v, want %v", name, exists, want)
			}
		}
	})
}

// unreachableHub is a hub that cannot delete its objects on a lost cluster. It cancels a removal that waits for it.
type unreachableHub struct {
	onboarding.ClusterAPI
	end   context.CancelFunc
	waits bool
	calls int
}

func (u *unreachableHub) Patch(ctx context.Context, ref kube.Ref, patch map[string]any) (*unstructured.Unstructured, error) {
	u.waits = u.waits || ref.Kind == "Secret"
	return u.ClusterAPI.Patch(ctx, ref, patch)
}

func (u *unreachableHub) List(ctx context.Context, kind kube.ResourceKind, options kube.ListOptions) (kube.List, error) {
	if u.waits {
		if u.calls++; u.calls == 2 {
			u.end()
		}
	}
	return u.ClusterAPI.List(ctx, kind, options)
}

// If a cluster is lost, a destroy that deletes waits for the hub until a user deletes the Secret of the cluster. The end-to-end
// test TestAClusterBehindAHubIsLost shows that Argo CD then drops the Applications.
func TestADestroyOfALostClusterNeedsNoSecretOnTheHub(t *testing.T) {
	t.Parallel()
	const namespace = "lost-hub"
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	server.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: lost-hub}\n") // no controller would finish its deletion
	withClient(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		result := mustApply(ctx, t, cluster, onboarding.Wanted{Objects: renderObjects(t, hubSettings(namespace, "eu-1"))})
		set := server.Get(t, "argoproj.io/v1alpha1", "ApplicationSet", namespace, "flotilla-dev-"+hubSettings("", "").ClusterType)
		application := server.Apply(t, `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: of-type
  namespace: lost-hub
  labels: {app.kubernetes.io/managed-by: flotilla}
  finalizers: [resources-finalizer.argocd.argoproj.io]
spec: {project: flotilla, destination: {name: eu-1, namespace: default}, source: {repoURL: "https://git.example.com/x", path: x}}
`)[0]
		owner := map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": set.GetName(), "uid": string(set.GetUID())}
		change := map[string]any{"metadata": map[string]any{"ownerReferences": []any{owner}}}
		if _, err := cluster.Patch(ctx, kube.RefOf(application), change); err != nil {
			t.Fatal(err)
		}
		removal := onboarding.Removal{Name: "eu-1", Records: result.Records, UID: result.UID, Delete: true}
		limited, end := context.WithCancel(ctx)
		defer end()
		_, err := onboarding.Remove(limited, &unreachableHub{ClusterAPI: cluster, end: end}, removal)
		const want = "what the hub has applied to the cluster is still there: Application lost-hub/of-type; if the cluster is gone for good, " +
			"delete Secret lost-hub/flotilla-dev-clusters-eu-1 on the hub, and apply again"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want %s", err, want)
		}
		server.Delete(t, "v1", "Secret", namespace, "flotilla-dev-clusters-eu-1")
		if _, err := onboarding.Remove(ctx, applicationSetController{ClusterAPI: cluster}, removal); err != nil {
			t.Error(err)
		}
		if server.Get(t, "argoproj.io/v1alpha1", "ApplicationSet", namespace, set.GetName()) != nil {
			t.Error("the ApplicationSet still exists")
		}
	})
}

// All clusters share the hub's certificate for the repository, although a ConfigMap of others contains it.
func TestTheLastClusterRemovesTheCertificateOnAHub(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	server.Apply(
		t,
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: certificate-hub}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-tls-certs-cm, namespace: certificate-hub}\n",
	)
	withClient(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		removals := map[string]onboarding.Removal{}
		for _, name := range []string{"eu-1", "eu-2"} {
			config := hubSettings("certificate-hub", name)
			config.Credentials.CACertificates = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
			result, err := onboarding.Apply(ctx, cluster, onboarding.Wanted{Objects: renderObjects(t, config)})
			if err != nil {
				t.Fatal(err)
			}
			removals[name] = onboarding.Removal{Name: name, Records: result.Records, UID: result.UID, Delete: true}
		}
		for i, name := range []string{"eu-1", "eu-2"} {
			if _, err := onboarding.Remove(ctx, applicationSetController{ClusterAPI: cluster}, removals[name]); err != nil {
				t.Error(err)
			}
			data, _ := server.Get(t, "v1", "ConfigMap", "certificate-hub", "argocd-tls-certs-cm").Object["data"].(map[string]any)
			if len(data) != 1-i {
				t.Errorf("without %s the hub has %d certificates", name, len(data))
			}
		}
	})
}

// othersSecret is a Secret of others that registers a cluster at a hub.
const othersSecret = `apiVersion: v1
kind: Secret
metadata: {name: cluster-%[2]s, namespace: %[1]s, labels: {argocd.argoproj.io/secret-type: cluster, env: prod}}
stringData: {name: %[2]s, server: "https://%[2]s.example.com", config: '{}'}
`

// settingsWithSecret returns the settings of a cluster that an existing Secret registers.
func settingsWithSecret(namespace, cluster string) agent.Settings {
	config := hubSettings(namespace, cluster)
	config.Registration = &agent.Registration{Secret: "cluster-" + cluster}
	return config
}

// An apply only adds labels to a Secret of others that registers a cluster. A destroy leaves the Secret.
func TestTheSecretOfOthersStays(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	server.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: registered-hub}\n")
	before := map[string]*unstructured.Unstructured{}
	for _, name := range []string{"eu-1", "eu-2"} {
		before[name] = server.Apply(t, fmt.Sprintf(othersSecret, "registered-hub", name))[0]
	}
	ownLabels := func(name string) (labels []string) {
		t.Helper()
		live := server.Get(t, "v1", "Secret", "registered-hub", "cluster-"+name)
		if live == nil || live.GetUID() != before[name].GetUID() || !reflect.DeepEqual(live.Object["data"], before[name].Object["data"]) ||
			live.GetLabels()["env"] != "prod" {
			t.Fatalf("the Secret of %s is %v", name, live)
		}
		for key := range live.GetLabels() {
			if label, ok := strings.CutPrefix(key, "flotilla.dev/"); ok {
				labels = append(labels, label)
			}
		}
		slices.Sort(labels)
		return labels
	}
	withClient(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		results := map[string]onboarding.ApplyResult{}
		for name := range before {
			results[name] = mustApply(ctx, t, cluster, onboarding.Wanted{Objects: renderObjects(t, settingsWithSecret("registered-hub", name))})
			if want := []string{"agent", "cluster", "cluster-type", "environment"}; !slices.Equal(ownLabels(name), want) {
				t.Errorf("the Secret of %s has our labels %v, want %v", name, ownLabels(name), want)
			}
		}
		checkDrift := func(want string) {
			t.Helper()
			look, err := onboarding.Inspect(ctx, cluster, renderObjects(t, settingsWithSecret("registered-hub", "eu-1")), onboarding.InspectOptions{SecretsUnknown: true})
			if err != nil {
				t.Fatal(err)
			}
			got := onboarding.FindDrift(renderObjects(t, settingsWithSecret("registered-hub", "eu-1")), look).Findings["Secret registered-hub/cluster-eu-1 on the hub"]
			if got.String() != want {
				t.Errorf("the drift is %q, want %q", got, want)
			}
		}
		checkDrift("")
		ref := kube.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "registered-hub", Name: "cluster-eu-1"}
		if _, err := cluster.Patch(ctx, ref, map[string]any{"metadata": map[string]any{"labels": map[string]any{"flotilla.dev/environment": nil}}}); err != nil {
			t.Fatal(err)
		}
		checkDrift("metadata.labels.flotilla.dev/environment changed")
		results["eu-1"] = mustApply(ctx, t, cluster, onboarding.Wanted{
			Objects: renderObjects(t, settingsWithSecret("registered-hub", "eu-1")), Records: results["eu-1"].Records, UID: results["eu-1"].UID,
		})
		checkDrift("")

		removal := func(name string, deletes bool) onboarding.Removal {
			return onboarding.Removal{Name: name, Records: results[name].Records, UID: results[name].UID, Delete: deletes}
		}
		shared := func() bool {
			return server.Get(t, "argoproj.io/v1alpha1", "ApplicationSet", "registered-hub", "flotilla-dev-"+hubSettings("", "").ClusterType) != nil
		}
		notes, err := removeObjects(ctx, cluster, removal("eu-1", false))
		want := "Secret registered-hub/cluster-eu-1 on the hub keeps the labels by which the hub deploys to the cluster"
		if err != nil || !slices.Equal(notes, []string{want}) || !shared() {
			t.Errorf("the notes are %q, %v; the shared objects exist: %v", notes, err, shared())
		}
		if want := []string{"cluster", "cluster-type", "environment"}; !slices.Equal(ownLabels("eu-1"), want) {
			t.Errorf("after a destroy that keeps, the Secret has our labels %v, want %v", ownLabels("eu-1"), want)
		}
		if _, err := removeObjects(ctx, applicationSetController{ClusterAPI: cluster}, removal("eu-2", true)); err != nil || shared() {
			t.Errorf("%v; the shared objects exist: %v", err, shared())
		}
		if got := ownLabels("eu-2"); len(got) > 0 {
			t.Errorf("after a destroy that deletes, the Secret has our labels %v", got)
		}
	})
}

// If the Secret that the settings name is missing or registers another cluster, an apply changes nothing.
func TestASecretMustRegisterTheCluster(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	server.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: unregistered-hub}\n")
	for _, test := range []struct{ name, secret, want string }{
		{"eu-1", "", "Secret unregistered-hub/cluster-eu-1 on the hub does not exist"},
		{"eu-2", strings.Replace(othersSecret, "{argocd.argoproj.io/secret-type: cluster, ", "{", 1),
			"Secret unregistered-hub/cluster-eu-2 on the hub registers no cluster: it has no label argocd.argoproj.io/secret-type=cluster"},
		{"eu-3", strings.Replace(othersSecret, "{name: %[2]s, server", "{name: us-3, server", 1),
			`Secret unregistered-hub/cluster-eu-3 on the hub registers another cluster, with the name "us-3"`},
		{"eu-4", strings.Replace(othersSecret, "{name: %[2]s, server", `{name: "arn:aws:eks:eu:1:cluster/%[2]s", server`, 1),
			`Secret unregistered-hub/cluster-eu-4 on the hub registers another cluster, with the name "arn:aws:eks:eu:1:cluster/eu-4"`},
	} {
		if test.secret != "" {
			server.Apply(t, fmt.Sprintf(test.secret, "unregistered-hub", test.name))
		}
		withClient(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
			_, err := onboarding.Apply(ctx, cluster, onboarding.Wanted{Objects: renderObjects(t, settingsWithSecret("unregistered-hub", test.name))})
			if err == nil || err.Error() != test.want {
				t.Errorf("%s: %v, want %s", test.name, err, test.want)
			}
			if server.Get(t, "argoproj.io/v1alpha1", "AppProject", "unregistered-hub", "flotilla") != nil {
				t.Errorf("%s: objects were applied", test.name)
			}
		})
	}
}
