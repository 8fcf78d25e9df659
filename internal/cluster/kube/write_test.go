package kube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func updateOptions(manager string) metav1.UpdateOptions {
	return metav1.UpdateOptions{FieldManager: manager}
}

// withClient runs a function with a client of a cluster.
func withClient(t *testing.T, cluster kube.Cluster, do func(ctx context.Context, c *kube.ClusterClient) error) error {
	t.Helper()
	return kube.QueryAll(t.Context(), map[string]kube.Cluster{"one": cluster}, kube.QueryOptions{Deadline: time.Minute},
		func(ctx context.Context, _ string, c *kube.ClusterClient) (struct{}, error) {
			return struct{}{}, do(ctx, c)
		})["one"].Err
}

// parseObject returns an object from JSON.
func parseObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return object
}

func newConfigMap(t *testing.T, namespace, name, value string) *unstructured.Unstructured {
	t.Helper()
	return parseObject(
		t,
		fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":%q},"data":{"a":%q}}`, name, namespace, value),
	)
}

func TestApplyReportsCreation(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{})
	server.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-apply}\n")
	err := withClient(t, kube.Cluster{Kubeconfig: server.Kubeconfig()}, func(ctx context.Context, c *kube.ClusterClient) error {
		object := newConfigMap(t, "kube-apply", "made", "1")
		tried, err := c.Apply(ctx, object, kube.ApplyOptions{DryRun: true})
		if err != nil || !tried.Created {
			t.Errorf("dry run: got created %v, %v", tried.Created, err)
		}
		if live, err := c.Read(ctx, kube.RefOf(object)); live != nil || err != nil {
			t.Errorf("the dry run created the object: %v, %v", live, err)
		}
		first, err := c.Apply(ctx, object, kube.ApplyOptions{})
		if err != nil || !first.Created {
			t.Errorf("first apply: got created %v, %v", first.Created, err)
		}
		second, err := c.Apply(ctx, newConfigMap(t, "kube-apply", "made", "2"), kube.ApplyOptions{})
		if err != nil || second.Created || second.Object.GetUID() != first.Object.GetUID() {
			t.Errorf("second apply: got created %v, %v", second.Created, err)
		}
		live, err := c.Read(ctx, kube.RefOf(object))
		if err != nil || len(live.GetManagedFields()) != 1 || live.GetManagedFields()[0].Manager != kube.FieldManager {
			t.Errorf("the object is %v: %v", live, err)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestApplyNamesTheManagerOfAField(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{})
	server.Apply(
		t,
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-conflict}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, namespace: kube-conflict}\ndata: {a: theirs, b: theirs}\n",
	)
	err := withClient(t, kube.Cluster{Kubeconfig: server.Kubeconfig()}, func(ctx context.Context, c *kube.ClusterClient) error {
		object := newConfigMap(t, "kube-conflict", "theirs", "ours")
		_, err := c.Apply(ctx, object, kube.ApplyOptions{})
		want := `ConfigMap kube-conflict/theirs is managed by others: "kubetest" has data.a`
		if conflicts := kube.ConflictsOf(err); kube.ReasonOf(err) != kube.ReasonConflict || err.Error() != want ||
			len(conflicts) != 1 || conflicts[0] != (kube.Conflict{Manager: "kubetest", Field: "data.a"}) {
			t.Errorf("the error is %v, %v; want %q", err, conflicts, want)
		}
		if _, err := c.Apply(ctx, object, kube.ApplyOptions{Force: true}); err != nil {
			t.Errorf("with force: %v", err)
		}
		if live, err := c.Read(ctx, kube.RefOf(object)); err != nil || fmt.Sprint(live.Object["data"]) != "map[a:ours b:theirs]" {
			t.Errorf("the object is %v: %v", live, err)
		}
		// Another manager updates the field instead of applying it.
		if _, err := server.Client().Resource(configMaps).Namespace("kube-conflict").Update(ctx, newConfigMap(t, "kube-conflict", "theirs", "edited"), updateOptions("kubectl-edit")); err != nil {
			return err
		}
		_, err = c.Apply(ctx, object, kube.ApplyOptions{})
		if conflicts := kube.ConflictsOf(err); len(conflicts) != 1 ||
			conflicts[0] != (kube.Conflict{Manager: "kubectl-edit", Updated: true, Field: "data.a"}) {
			t.Errorf("the error is %v, %v", err, conflicts)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestDeleteLeavesAReplacedObject(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{})
	server.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-delete}\n")
	ours := server.Apply(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: kube-delete}\n")[0]
	err := withClient(t, kube.Cluster{Kubeconfig: server.Kubeconfig()}, func(ctx context.Context, c *kube.ClusterClient) error {
		ref := kube.RefOf(ours)
		err := c.Delete(ctx, ref, "another")
		if want := "the API server has another object with the name of ConfigMap kube-delete/a by now"; kube.ReasonOf(
			err,
		) != kube.ReasonReplaced ||
			err.Error() != want {
			t.Errorf("the error is %v", err)
		}
		if live, err := c.Patch(ctx, ref, map[string]any{"data": map[string]any{"b": "c"}}); err != nil ||
			fmt.Sprint(live.Object["data"]) != "map[b:c]" {
			t.Errorf("the patched object is %v: %v", live, err)
		}
		for range 2 {
			if err := c.Delete(ctx, ref, string(ours.GetUID())); err != nil {
				t.Error(err)
			}
		}
		if live, err := c.Patch(ctx, ref, map[string]any{}); live != nil || err != nil {
			t.Errorf("got the deleted object %v: %v", live, err)
		}
		nothing := kube.Ref{APIVersion: "flotilla.example/v1", Kind: "Nothing", Namespace: "kube-delete", Name: "a"}
		if live, err := c.Read(ctx, nothing); live != nil || err != nil {
			t.Errorf("got an object of an unserved kind: %v, %v", live, err)
		}
		return c.Delete(ctx, nothing, "")
	})
	if err != nil {
		t.Error(err)
	}
}

const boatDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"boats.kube-write.flotilla.example"},
"spec":{"group":"kube-write.flotilla.example","scope":"Namespaced","names":{"plural":"boats","singular":"boat","kind":"Boat","listKind":"BoatList"},
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

func TestAKindIsFoundOnceItIsDefined(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{})
	boat := parseObject(t, `{"apiVersion":"kube-write.flotilla.example/v1","kind":"Boat","metadata":{"name":"a","namespace":"default"}}`)
	err := withClient(t, kube.Cluster{Kubeconfig: server.Kubeconfig()}, func(ctx context.Context, c *kube.ClusterClient) error {
		_, err := c.Apply(ctx, boat, kube.ApplyOptions{})
		if want := "the API server has no kind Boat of kube-write.flotilla.example/v1, which is the kind of Boat default/a"; kube.ReasonOf(
			err,
		) != kube.ReasonNoKind ||
			err.Error() != want {
			t.Errorf("the error is %v", err)
		}
		if _, err := c.Apply(ctx, parseObject(t, boatDefinition), kube.ApplyOptions{}); err != nil {
			return err
		}
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			if _, err = c.Apply(ctx, boat, kube.ApplyOptions{}); err == nil || time.Now().After(deadline) {
				break
			}
		}
		if err != nil {
			return err
		}
		// The server serves a new kind before it lists the kind's group.
		var list string
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(300 * time.Millisecond) {
			all, incomplete, err := c.Resources(ctx)
			names := make([]string, 0, len(all))
			for _, resource := range all {
				names = append(names, resource.String())
			}
			list = strings.Join(names, " ")
			if err == nil && !incomplete && strings.Contains(list, "boats.kube-write.flotilla.example") {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("the kinds are %s: %v, %v", list, incomplete, err)
				return err
			}
		}
		if !strings.Contains(list, "configmaps ") || strings.Contains(list, "tokenreviews") {
			t.Errorf("the kinds are %s", list)
		}
		return c.Delete(ctx, kube.RefOf(parseObject(t, boatDefinition)), "")
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAFailedApplyHasAReason(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{})
	server.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-terminating, finalizers: [flotilla.dev/test]}\n")
	server.Delete(t, "v1", "Namespace", "", "kube-terminating")
	certificate, key := server.ClientCertificate(t, "nobody", "nothing")
	nobody := kube.Cluster{Host: server.Host, ClusterCACertificate: server.CA, ClientCertificate: certificate, ClientKey: key}
	administrator := kube.Cluster{Kubeconfig: server.Kubeconfig()}
	for name, c := range map[string]struct {
		cluster kube.Cluster
		object  *unstructured.Unstructured
		reason  kube.Reason
		want    string
	}{
		"a missing namespace": {
			administrator, newConfigMap(t, "kube-nowhere", "a", "b"), kube.ReasonNoNamespace,
			"the API server has no namespace kube-nowhere, which is the namespace of ConfigMap kube-nowhere/a",
		},
		"a terminating namespace": {
			administrator, newConfigMap(t, "kube-terminating", "a", "b"), kube.ReasonTerminating,
			"the API server cannot create ConfigMap kube-terminating/a: the namespace kube-terminating is being removed",
		},
		"an invalid name": {
			administrator, newConfigMap(t, "default", "A_B", "b"), kube.ReasonRefused, `the API server refuses ConfigMap default/A_B: ConfigMap "A_B" is invalid: metadata.name`,
		},
		"a field of another type": {
			administrator, parseObject(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"},"data":"b"}`), kube.ReasonRefused, "the API server refuses ConfigMap default/a: ",
		},
		"no namespace": {
			administrator, newConfigMap(t, "", "a", "b"), kube.ReasonRefused, "ConfigMap a has no namespace, and its kind needs one",
		},
		"a user without rights": {
			nobody, newConfigMap(t, "default", "a", "b"), kube.ReasonForbidden,
			`the API server does not let these credentials apply ConfigMap default/a (403 Forbidden): configmaps "a" is forbidden: User "nobody" cannot patch`,
		},
	} {
		err := withClient(t, c.cluster, func(ctx context.Context, client *kube.ClusterClient) error {
			_, err := client.Apply(ctx, c.object, kube.ApplyOptions{DryRun: true})
			return err
		})
		if kube.ReasonOf(err) != c.reason || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, reason %q; want %q: %q", name, err, kube.ReasonOf(err), c.reason, c.want)
		}
	}
}

// refusingCluster returns a cluster that knows only ConfigMaps and refuses every other request.
func refusingCluster(t *testing.T, refuse http.HandlerFunc) kube.Cluster {
	t.Helper()
	return clusterAt(startServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1" {
			refuse(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(
			w,
			`{"kind":"APIResourceList","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["list"]},{"name":"configmaps/status","kind":"ConfigMap"}]}`,
		)
	}))
}

func TestErrorsOfWritesHideSecrets(t *testing.T) {
	t.Parallel()
	const hidden = `h1dden "s3cret"`
	body, _ := json.Marshal(hidden)
	status := func(code int, reason, message string, causes string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			echo, _ := json.Marshal(message + " " + hidden + " " + r.Header.Get("Authorization"))
			fmt.Fprintf(
				w,
				`{"kind":"Status","apiVersion":"v1","message":%s,"reason":%q,"code":%d,"details":{"name":"a","causes":[%s]}}`,
				echo,
				reason,
				code,
				causes,
			)
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		reason kube.Reason
		want   string
	}{
		"a webhook that denies": {status(403, "Forbidden", `admission webhook "policy.example.com" denied the request:`, ""), kube.ReasonRefused, `the API server refuses ConfigMap default/a: admission webhook "policy.example.com" denied the request: *** Bearer ***`},
		"a webhook with a code": {status(418, "", `admission webhook "x" denied the request:`, ""), kube.ReasonRefused, `the API server refuses ConfigMap default/a: admission webhook`},
		"a missing webhook":     {status(500, "InternalError", `failed calling webhook "x":`, ""), kube.ReasonRefused, `the API server refuses ConfigMap default/a: failed calling webhook "x": ***`},
		"a quota":               {status(403, "Forbidden", `configmaps "a" is forbidden: exceeded quota`, ""), kube.ReasonRefused, `the API server refuses ConfigMap default/a: configmaps "a" is forbidden: exceeded quota ***`},
		"a conflict":            {status(409, "Conflict", "Apply failed", `{"reason":"FieldManagerConflict","field":".data.a","message":"conflict with \"x\" with subresource \"scale\" using v1 at 2026-01-01T00:00:00Z"},{"reason":"FieldManagerConflict","field":".data.b","message":"no words that are known"}`), kube.ReasonConflict, `ConfigMap default/a is managed by others: "no words that are known" has data.b; "x" has data.a`},
		"another code":          {status(410, "Gone", "gone", ""), kube.ReasonServer, "the API server answers 410 Gone: gone ***"},
		"no Kubernetes":         {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "<html>%s", hidden) }, kube.ReasonGarbage, "the API server does not answer like"},
		"no object": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, "[%s]", body)
		}, kube.ReasonGarbage, "the API server does not answer like"},
		"half an object": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, "{%s:", body)
		}, kube.ReasonIncomplete, "the API server closed the connection in"},
		"a page of a proxy": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, hidden, http.StatusBadGateway) }, kube.ReasonServer, "the API server answers 502 Bad Gateway"},
	} {
		err := withClient(t, refusingCluster(t, c.answer), func(ctx context.Context, client *kube.ClusterClient) error {
			client.Hide(hidden)
			_, err := client.Apply(ctx, newConfigMap(t, "default", "a", hidden), kube.ApplyOptions{})
			return err
		})
		if err == nil || kube.ReasonOf(err) != c.reason || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "h1dden") ||
			strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error is %v, reason %q; want %q: %q", name, err, kube.ReasonOf(err), c.reason, c.want)
		}
	}
}
