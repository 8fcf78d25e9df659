package e2e_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

var externalSecrets = schema.GroupVersionResource{Group: "external-secrets.io", Version: "v1", Resource: "externalsecrets"}

// operator is a stand-in for External Secrets Operator 1.3, which the Go module proxy does not have. With a store in memory, it
// sets conditions, syncedResourceVersion and Secrets as pkg/controllers/externalsecret does.
type operator struct {
	cluster *kubetest.Server

	mu        sync.Mutex
	suspended bool
	// store has values by key, property and version.
	store map[string]string
}

func startOperator(t *testing.T, cluster *kubetest.Server, store map[string]string) *operator {
	t.Helper()
	o := &operator{cluster: cluster, store: store}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			o.reconcileAll(ctx)
			select {
			case <-ctx.Done():
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return o
}

func (o *operator) setSuspended(suspended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.suspended = suspended
}

func (o *operator) reconcileAll(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.suspended {
		return
	}
	listed, err := o.cluster.Client().Resource(externalSecrets).List(ctx, metav1.ListOptions{})
	if err != nil {
		return // the test has ended, or the next round retries
	}
	for i := range listed.Items {
		_ = o.reconcile(ctx, &listed.Items[i]) // the next round retries
	}
}

// reconcile corresponds to Reconcile for creationPolicy Owner and deletionPolicy Retain: a value missing from the store is an
// error and leaves the Secret unchanged.
func (o *operator) reconcile(ctx context.Context, es *unstructured.Unstructured) error {
	name, _ := field(es, "spec", "target", "name").(string)
	secrets := o.cluster.Client().Resource(secrets).Namespace(es.GetNamespace())
	existing, err := secrets.Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	status, _ := field(es, "status").(map[string]any)
	if status["syncedResourceVersion"] == resourceVersion(es) && err == nil { // shouldRefresh, between two refreshes
		return nil
	}
	data, found := o.readSecretData(es)
	if !found { // markAsFailed
		return o.setCondition(ctx, es, status, "False", "SecretSyncedError", "could not get secret data from provider")
	}
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data}}
	secret.SetName(name)
	controls := true
	secret.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: es.GetAPIVersion(), Kind: es.GetKind(), Name: es.GetName(), UID: es.GetUID(), Controller: &controls, BlockOwnerDeletion: &controls,
	}})
	labels, _, _ := unstructured.NestedStringMap(es.Object, "spec", "target", "template", "metadata", "labels")
	secret.SetLabels(labels)
	if apierrors.IsNotFound(err) {
		_, err = secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: "external-secrets"})
	} else {
		secret.SetResourceVersion(existing.GetResourceVersion())
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: "external-secrets"})
	}
	if err != nil {
		return err
	}
	status = maps.Clone(status)
	if status == nil {
		status = map[string]any{}
	}
	status["refreshTime"], status["syncedResourceVersion"] = timestamp(), resourceVersion(es)
	status["binding"] = map[string]any{"name": name}
	return o.setCondition(ctx, es, status, "True", "SecretSynced", "secret synced")
}

// readSecretData reads the values of the current spec from the store.
func (o *operator) readSecretData(es *unstructured.Unstructured) (data map[string]any, found bool) {
	data = map[string]any{}
	entries, _ := field(es, "spec", "data").([]any)
	for _, entry := range entries {
		reference := &unstructured.Unstructured{Object: entry.(map[string]any)}
		text := func(name string) string { text, _ := field(reference, "remoteRef", name).(string); return text }
		value, found := o.store[strings.Join([]string{text("key"), text("property"), text("version")}, " ")]
		if !found {
			return nil, false
		}
		data[fmt.Sprint(field(reference, "secretKey"))] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	return data, true
}

// setCondition corresponds to SetExternalSecretCondition, followed by an update of a changed status.
func (o *operator) setCondition(ctx context.Context, es *unstructured.Unstructured, status map[string]any, ready, reason,
	message string) error {
	condition := map[string]any{"type": "Ready", "status": ready, "reason": reason, "message": message, "lastTransitionTime": timestamp()}
	if conditions, _ := status["conditions"].([]any); len(conditions) > 0 {
		previous := conditions[0].(map[string]any)
		if previous["status"] == ready {
			condition["lastTransitionTime"] = previous["lastTransitionTime"]
		}
		if ready == "False" && previous["reason"] == reason && previous["message"] == message {
			return nil
		}
	}
	status = maps.Clone(status)
	if status == nil {
		status = map[string]any{}
	}
	status["conditions"] = []any{condition}
	es = es.DeepCopy()
	es.Object["status"] = status
	_, err := o.cluster.Client().
		Resource(externalSecrets).
		Namespace(es.GetNamespace()).
		UpdateStatus(ctx, es, metav1.UpdateOptions{FieldManager: "external-secrets"})
	return err
}

func timestamp() string { return time.Now().UTC().Format(time.RFC3339) }

// resourceVersion corresponds to GetResourceVersion: the generation and a hash of labels and annotations.
func resourceVersion(es *unstructured.Unstructured) string {
	text, err := json.Marshal([]any{es.GetAnnotations(), es.GetLabels()})
	if err != nil {
		panic(err) // strings always marshal
	}
	return fmt.Sprintf("%d-%x", es.GetGeneration(), sha256.Sum224(text))
}
