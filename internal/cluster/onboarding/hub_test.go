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

// What the clusters of a type share on a hub stays while one of them is there, also when another one changes its type.
func TestAClusterThatChangesItsTypeLeavesWhatOthersShareOnAHub(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	within(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		done := map[string]onboarding.ApplyResult{}
		for _, name := range []string{"eu-1", "eu-2"} {
			of, err := onboarding.Apply(ctx, cluster, onboarding.Wanted{Objects: rendered(t, hubSettings("moved-hub", name))})
			if err != nil {
				t.Fatal(err)
			}
			done[name] = of
		}
		there := func(name string) bool {
			return server.Get(t, "argoproj.io/v1alpha1", "ApplicationSet", "moved-hub", name) != nil
		}
		shared := "flotilla-dev-" + hubSettings("moved-hub", "eu-1").ClusterType
		if !there(shared) {
			t.Fatalf("there is no %s", shared)
		}
		move := func(name string) {
			t.Helper()
			of := hubSettings("moved-hub", name)
			of.ClusterType = "another"
			_, err := onboarding.Apply(ctx, cluster, onboarding.Wanted{Objects: rendered(t, of), Records: done[name].Records, UID: done[name].UID})
			if err != nil {
				t.Fatal(err)
			}
		}
		move("eu-1")
		if !there(shared) || !there("flotilla-dev-another") {
			t.Errorf("the first has another type: the former one is followed %v, the other one %v", there(shared), there("flotilla-dev-another"))
		}
		move("eu-2")
		if there(shared) {
			t.Errorf("nobody has the former type, and %s is there", shared)
		}
	})
}

// What the clusters of one namespace of a hub share goes with the last of them, although other namespaces have clusters.
func TestTheLastClusterOfANamespaceTakesWhatIsSharedThere(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	server.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: last-hub}\n") // no controller would end it
	within(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		result := apply(ctx, t, cluster, onboarding.Wanted{Objects: rendered(t, hubSettings("last-hub", "eu-1"))})
		apply(ctx, t, cluster, onboarding.Wanted{Objects: rendered(t, hubSettings("other-hub", "eu-2"))})
		removal := onboarding.Removal{Name: "eu-1", Records: result.Records, UID: result.UID, Delete: true}
		if _, err := onboarding.Remove(ctx, generating{ClusterAPI: cluster}, removal); err != nil {
			t.Error(err)
		}
		shared := "flotilla-dev-" + hubSettings("", "").ClusterType
		for namespace, want := range map[string]bool{"last-hub": false, "other-hub": true} {
			if is := server.Get(t, "argoproj.io/v1alpha1", "ApplicationSet", namespace, shared) != nil; is != want {
				t.Errorf("in %s the ApplicationSet is there: %v, want %v", namespace, is, want)
			}
		}
	})
}

// generating plays the controller of ApplicationSets: an Application is there as long as the Secret of the cluster has
// the labels by which its ApplicationSet selects.
type generating struct {
	onboarding.ClusterAPI
	secret kube.Ref
	sets   map[string][]string // by Application, the labels
}

func (g generating) List(ctx context.Context, kind kube.ResourceKind, options kube.ListOptions) (kube.List, error) {
	if len(g.sets) == 0 {
		return g.ClusterAPI.List(ctx, kind, options)
	}
	live, err := g.Read(ctx, g.secret)
	if err != nil {
		return kube.List{}, err
	}
	for name, labels := range g.sets {
		for _, label := range labels {
			if live != nil && live.GetLabels()[label] != "" {
				continue
			}
			ref := kube.Ref{APIVersion: "argoproj.io/v1alpha1", Kind: "Application", Namespace: g.secret.Namespace, Name: name}
			if app, err := g.Read(ctx, ref); err != nil || app == nil {
				continue
			}
			if err := g.Delete(ctx, ref, ""); err != nil {
				return kube.List{}, err
			}
		}
	}
	return g.ClusterAPI.List(ctx, kind, options)
}

// Delete is that of Argo CD, too, which removes what its finalizer holds.
func (g generating) Delete(ctx context.Context, ref kube.Ref, uid string) error {
	err := g.ClusterAPI.Delete(ctx, ref, uid)
	if err == nil && ref.Kind == "Application" {
		_, err = g.Patch(ctx, ref, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	}
	return err
}

// What a hub has applied to a cluster is removed while the hub can still reach it: that of its type, and its own. What
// an ApplicationSet of others applies is theirs.
func TestADestroyThatDeletesWaitsForWhatAHubHasApplied(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	server.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: deleting-hub}\n") // no controller would end it
	within(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		result, err := onboarding.Apply(ctx, cluster, onboarding.Wanted{Objects: rendered(t, hubSettings("deleting-hub", "eu-1"))})
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
		hub := generating{
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
			if is := server.Get(t, "argoproj.io/v1alpha1", "Application", "deleting-hub", name) != nil; is != want {
				t.Errorf("Application %s is there: %v, want %v", name, is, want)
			}
		}
	})
}

// unreachable is a hub that cannot delete what it has applied to a lost cluster. It ends the time of a removal that waits for that.
type unreachable struct {
	onboarding.ClusterAPI
	end   context.CancelFunc
	waits bool
	asked int
}

func (u *unreachable) Patch(ctx context.Context, ref kube.Ref, patch map[string]any) (*unstructured.Unstructured, error) {
	u.waits = u.waits || ref.Kind == "Secret"
	return u.ClusterAPI.Patch(ctx, ref, patch)
}

func (u *unreachable) List(ctx context.Context, kind kube.ResourceKind, options kube.ListOptions) (kube.List, error) {
	if u.waits {
		if u.asked++; u.asked == 2 {
			u.end()
		}
	}
	return u.ClusterAPI.List(ctx, kind, options)
}

// Of a lost cluster, a destroy that deletes waits for the hub in vain, until the Secret of the cluster is gone. The end-to-end
// test TestAClusterBehindAHubIsLost shows that Argo CD drops the Applications then.
func TestADestroyOfALostClusterNeedsNoSecretOnTheHub(t *testing.T) {
	t.Parallel()
	const namespace = "lost-hub"
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	server.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: lost-hub}\n") // no controller would end it
	within(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		result := apply(ctx, t, cluster, onboarding.Wanted{Objects: rendered(t, hubSettings(namespace, "eu-1"))})
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
		_, err := onboarding.Remove(limited, &unreachable{ClusterAPI: cluster, end: end}, removal)
		const want = "what the hub has applied to the cluster is still there: Application lost-hub/of-type; if the cluster is gone for good, " +
			"delete Secret lost-hub/flotilla-dev-clusters-eu-1 on the hub, and apply again"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the removal says %v", err)
		}
		server.Delete(t, "v1", "Secret", namespace, "flotilla-dev-clusters-eu-1")
		if _, err := onboarding.Remove(ctx, generating{ClusterAPI: cluster}, removal); err != nil {
			t.Error(err)
		}
		if server.Get(t, "argoproj.io/v1alpha1", "ApplicationSet", namespace, set.GetName()) != nil {
			t.Error("the ApplicationSet is still there")
		}
	})
}

// A certificate by which the hub reads the repository is of all clusters, though it is in a ConfigMap of others.
func TestACertificateOnAHubGoesWithTheLastCluster(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	server.Apply(
		t,
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: certificate-hub}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-tls-certs-cm, namespace: certificate-hub}\n",
	)
	within(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		removals := map[string]onboarding.Removal{}
		for _, name := range []string{"eu-1", "eu-2"} {
			of := hubSettings("certificate-hub", name)
			of.Credentials.CACertificates = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
			result, err := onboarding.Apply(ctx, cluster, onboarding.Wanted{Objects: rendered(t, of)})
			if err != nil {
				t.Fatal(err)
			}
			removals[name] = onboarding.Removal{Name: name, Records: result.Records, UID: result.UID, Delete: true}
		}
		for i, name := range []string{"eu-1", "eu-2"} {
			if _, err := onboarding.Remove(ctx, generating{ClusterAPI: cluster}, removals[name]); err != nil {
				t.Error(err)
			}
			data, _ := server.Get(t, "v1", "ConfigMap", "certificate-hub", "argocd-tls-certs-cm").Object["data"].(map[string]any)
			if len(data) != 1-i {
				t.Errorf("without %s the hub has %d certificates", name, len(data))
			}
		}
	})
}

// others' Secret registers a cluster at a hub.
const othersSecret = `apiVersion: v1
kind: Secret
metadata: {name: cluster-%[2]s, namespace: %[1]s, labels: {argocd.argoproj.io/secret-type: cluster, env: prod}}
stringData: {name: %[2]s, server: "https://%[2]s.example.com", config: '{}'}
`

// registeredBy has the settings of a cluster that an existing Secret registers.
func registeredBy(namespace, cluster string) agent.Settings {
	of := hubSettings(namespace, cluster)
	of.Registration = &agent.Registration{Secret: "cluster-" + cluster}
	return of
}

// A Secret of others that registers a cluster gets labels, keeps everything else, and stays when the agent goes.
func TestTheSecretOfOthersStays(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	server.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: registered-hub}\n")
	before := map[string]*unstructured.Unstructured{}
	for _, name := range []string{"eu-1", "eu-2"} {
		before[name] = server.Apply(t, fmt.Sprintf(othersSecret, "registered-hub", name))[0]
	}
	ours := func(name string) (labels []string) {
		t.Helper()
		live := server.Get(t, "v1", "Secret", "registered-hub", "cluster-"+name)
		if live == nil || live.GetUID() != before[name].GetUID() || !reflect.DeepEqual(live.Object["data"], before[name].Object["data"]) ||
			live.GetLabels()["env"] != "prod" {
			t.Fatalf("the Secret of %s is %v", name, live)
		}
		for key := range live.GetLabels() {
			if label, is := strings.CutPrefix(key, "flotilla.dev/"); is {
				labels = append(labels, label)
			}
		}
		slices.Sort(labels)
		return labels
	}
	within(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		done := map[string]onboarding.ApplyResult{}
		for name := range before {
			done[name] = apply(ctx, t, cluster, onboarding.Wanted{Objects: rendered(t, registeredBy("registered-hub", name))})
			if want := []string{"agent", "cluster", "cluster-type", "environment"}; !slices.Equal(ours(name), want) {
				t.Errorf("the Secret of %s has our labels %v, want %v", name, ours(name), want)
			}
		}
		drifted := func(want string) {
			t.Helper()
			look, err := onboarding.Inspect(ctx, cluster, rendered(t, registeredBy("registered-hub", "eu-1")), onboarding.InspectOptions{SecretsUnknown: true})
			if err != nil {
				t.Fatal(err)
			}
			got := onboarding.FindDrift(rendered(t, registeredBy("registered-hub", "eu-1")), look).Findings["Secret registered-hub/cluster-eu-1 on the hub"]
			if got.String() != want {
				t.Errorf("the drift is %q, want %q", got, want)
			}
		}
		drifted("")
		ref := kube.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "registered-hub", Name: "cluster-eu-1"}
		if _, err := cluster.Patch(ctx, ref, map[string]any{"metadata": map[string]any{"labels": map[string]any{"flotilla.dev/environment": nil}}}); err != nil {
			t.Fatal(err)
		}
		drifted("metadata.labels.flotilla.dev/environment changed")
		done["eu-1"] = apply(ctx, t, cluster, onboarding.Wanted{
			Objects: rendered(t, registeredBy("registered-hub", "eu-1")), Records: done["eu-1"].Records, UID: done["eu-1"].UID,
		})
		drifted("")

		removal := func(name string, deletes bool) onboarding.Removal {
			return onboarding.Removal{Name: name, Records: done[name].Records, UID: done[name].UID, Delete: deletes}
		}
		shared := func() bool {
			return server.Get(t, "argoproj.io/v1alpha1", "ApplicationSet", "registered-hub", "flotilla-dev-"+hubSettings("", "").ClusterType) != nil
		}
		notes, err := remove(ctx, cluster, removal("eu-1", false))
		want := "Secret registered-hub/cluster-eu-1 on the hub keeps the labels by which the hub deploys to the cluster"
		if err != nil || !slices.Equal(notes, []string{want}) || !shared() {
			t.Errorf("the notes are %q, %v; what the clusters share is there: %v", notes, err, shared())
		}
		if want := []string{"cluster", "cluster-type", "environment"}; !slices.Equal(ours("eu-1"), want) {
			t.Errorf("after keep, the Secret has our labels %v, want %v", ours("eu-1"), want)
		}
		if _, err := remove(ctx, generating{ClusterAPI: cluster}, removal("eu-2", true)); err != nil || shared() {
			t.Errorf("%v; what the clusters share is there: %v", err, shared())
		}
		if got := ours("eu-2"); len(got) > 0 {
			t.Errorf("after delete, the Secret has our labels %v", got)
		}
	})
}

// Without the Secret that the settings name, or with one of another cluster, an apply changes nothing.
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
		within(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
			_, err := onboarding.Apply(ctx, cluster, onboarding.Wanted{Objects: rendered(t, registeredBy("unregistered-hub", test.name))})
			if err == nil || err.Error() != test.want {
				t.Errorf("%s: %v, want %s", test.name, err, test.want)
			}
			if server.Get(t, "argoproj.io/v1alpha1", "AppProject", "unregistered-hub", "flotilla") != nil {
				t.Errorf("%s: objects were applied", test.name)
			}
		})
	}
}
