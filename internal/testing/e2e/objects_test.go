package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// field returns a field of an object, or nil.
func field(object *unstructured.Unstructured, path ...string) any {
	if object == nil {
		return nil
	}
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	return value
}

// checkConfigMap checks that a value of a ConfigMap contains a text.
func checkConfigMap(t *testing.T, cluster *kubetest.Server, namespace, name, key, value string) error {
	t.Helper()
	data, _ := field(cluster.Get(t, "v1", "ConfigMap", namespace, name), "data").(map[string]any)
	if got, ok := data[key].(string); !ok || !strings.Contains(got, value) {
		return fmt.Errorf("ConfigMap %s/%s has %v, want %q to contain %q", namespace, name, data, key, value)
	}
	return nil
}

func checkNamespaceGone(t *testing.T, cluster *kubetest.Server, namespace string) error {
	t.Helper()
	if found := cluster.Get(t, "v1", "Namespace", "", namespace); found != nil {
		return fmt.Errorf("namespace %s still exists, with status %v", namespace, field(found, "status"))
	}
	return nil
}

// setData changes a value of a ConfigMap as a user of kubectl would.
func setData(t *testing.T, cluster *kubetest.Server, namespace, name, key, value string) {
	t.Helper()
	patch(t, cluster, configMaps, namespace, name, map[string]any{"data": map[string]any{key: value}})
}

// annotate sets an annotation that makes an agent reconcile at once.
func annotate(t *testing.T, cluster *kubetest.Server, resource schema.GroupVersionResource, namespace, name, annotation, value string) {
	t.Helper()
	patch(t, cluster, resource, namespace, name, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{annotation: value}},
	})
}

// patch changes an object with a field manager of its own, as a user of kubectl would.
func patch(t *testing.T, cluster *kubetest.Server, resource schema.GroupVersionResource, namespace, name string, change map[string]any) {
	t.Helper()
	text, err := json.Marshal(change)
	if err != nil {
		t.Fatal(err)
	}
	patchText(t, cluster, resource, namespace, name, text)
}

func patchText(t *testing.T, cluster *kubetest.Server, resource schema.GroupVersionResource, namespace, name string, text []byte) {
	t.Helper()
	if _, err := cluster.Client().Resource(resource).Namespace(namespace).
		Patch(t.Context(), name, types.MergePatchType, text, metav1.PatchOptions{FieldManager: "by-hand"}); err != nil {
		t.Fatal(err)
	}
}
