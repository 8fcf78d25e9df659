package kubetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

const fieldManager = "kubetest"

// objects writes objects of all served kinds.
type objects struct {
	client dynamic.Interface
	kinds  discovery.DiscoveryInterface

	mu     sync.Mutex // guards kinds, which changes with definitions
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newObjects(config *rest.Config) (*objects, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &objects{
		client: client,
		kinds:  kinds,
		mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds)),
	}, nil
}

// Apply writes YAML or JSON documents in their order by server-side apply, without status, and returns the objects.
func (s *Server) Apply(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	applied, err := s.objects.applyAll(t.Context(), text)
	if err != nil {
		t.Fatalf("kubetest: %v", err)
	}
	return applied
}

// DryRun returns the object that an apply would create.
func (s *Server) DryRun(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return s.objects.apply(ctx, object, metav1.DryRunAll)
}

// Restore writes recorded objects with their status, and shifts generations in the status accordingly.
func (s *Server) Restore(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	recorded, err := documents(text)
	if err != nil {
		t.Fatalf("kubetest: %v", err)
	}
	var restored []*unstructured.Unstructured
	for _, object := range recorded {
		status, has, _ := unstructured.NestedMap(object.Object, "status")
		generation := object.GetGeneration()
		written, err := s.objects.apply(t.Context(), object)
		if err == nil && has {
			moveGenerations(status, written.GetGeneration()-generation)
			written, err = s.objects.setStatus(t.Context(), written, status)
		}
		if err != nil {
			t.Fatalf("kubetest: %v", err)
		}
		restored = append(restored, written)
	}
	return restored
}

// SetStatus replaces the status of an object and returns it.
func (s *Server) SetStatus(t testing.TB, object *unstructured.Unstructured, status map[string]any) *unstructured.Unstructured {
	t.Helper()
	written, err := s.objects.setStatus(t.Context(), object, status)
	if err != nil {
		t.Fatalf("kubetest: %v", err)
	}
	return written
}

// Get returns an object, or nil.
func (s *Server) Get(t testing.TB, apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	resource, err := s.objects.resource(apiVersion, kind, namespace)
	if err == nil {
		var object *unstructured.Unstructured
		object, err = resource.Get(t.Context(), name, metav1.GetOptions{})
		if err == nil {
			return object
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
	}
	t.Fatalf("kubetest: %s %s: %v", kind, name, err)
	return nil
}

// Delete removes an object if it exists, without waiting.
func (s *Server) Delete(t testing.TB, apiVersion, kind, namespace, name string) {
	t.Helper()
	resource, err := s.objects.resource(apiVersion, kind, namespace)
	if err == nil {
		err = resource.Delete(t.Context(), name, metav1.DeleteOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatalf("kubetest: %s %s: %v", kind, name, err)
	}
}

func (o *objects) applyAll(ctx context.Context, text string) ([]*unstructured.Unstructured, error) {
	objects, err := documents(text)
	if err != nil {
		return nil, err
	}
	var applied []*unstructured.Unstructured
	for _, object := range objects {
		written, err := o.apply(ctx, object)
		if err != nil {
			return nil, err
		}
		applied = append(applied, written)
	}
	return applied, nil
}

// apply omits fields that only the API and controllers write.
func (o *objects) apply(ctx context.Context, object *unstructured.Unstructured, dryRun ...string) (*unstructured.Unstructured, error) {
	object = object.DeepCopy()
	delete(object.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "deletionTimestamp", "ownerReferences", "selfLink"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	resource, err := o.resource(object.GetAPIVersion(), object.GetKind(), object.GetNamespace())
	if err != nil {
		return nil, err
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true, DryRun: dryRun}
	written, err := resource.Apply(ctx, object.GetName(), object, options)
	for range 2 {
		// The first request for a kind makes the API read its schema, which may take longer than a request.
		if !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) && !apierrors.IsInternalError(err) {
			break
		}
		written, err = resource.Apply(ctx, object.GetName(), object, options)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return written, nil
}

func (o *objects) setStatus(
	ctx context.Context,
	object *unstructured.Unstructured,
	status map[string]any,
) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/status", "value": status}})
	if err != nil {
		return nil, err
	}
	resource, err := o.resource(object.GetAPIVersion(), object.GetKind(), object.GetNamespace())
	if err != nil {
		return nil, err
	}
	options := metav1.PatchOptions{FieldManager: fieldManager}
	written, err := resource.Patch(ctx, object.GetName(), types.JSONPatchType, patch, options, "status")
	if apierrors.IsNotFound(err) {
		written, err = resource.Patch(ctx, object.GetName(), types.JSONPatchType, patch, options)
	}
	if err != nil {
		return nil, fmt.Errorf("status of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return written, nil
}

// resource finds a kind. It retries until the API serves a new definition.
func (o *objects) resource(apiVersion, kind, namespace string) (dynamic.ResourceInterface, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	version := object.GroupVersionKind()
	var mapping *meta.RESTMapping
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		var err error
		if mapping, err = o.mapper.RESTMapping(version.GroupKind(), version.Version); err == nil {
			break
		}
		if !meta.IsNoMatchError(err) || time.Now().After(deadline) {
			return nil, err
		}
		o.mapper.Reset()
	}
	all := o.client.Resource(mapping.Resource)
	switch {
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return all, nil
	case namespace == "":
		return all.Namespace(metav1.NamespaceDefault), nil
	default:
		return all.Namespace(namespace), nil
	}
}

func documents(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4<<10)
	for {
		var text runtime.RawExtension
		if err := decoder.Decode(&text); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if empty := string(text.Raw); empty == "" || empty == "null" {
			continue
		}
		object := &unstructured.Unstructured{} // reads whole numbers as integers
		if err := object.UnmarshalJSON(text.Raw); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

// moveGenerations shifts all generations in a status.
func moveGenerations(status map[string]any, by int64) {
	for key, value := range status {
		switch value := value.(type) {
		case int64:
			if key == "observedGeneration" && value > 0 {
				status[key] = max(0, value+by)
			}
		case map[string]any:
			moveGenerations(value, by)
		case []any:
			for _, element := range value {
				if element, ok := element.(map[string]any); ok {
					moveGenerations(element, by)
				}
			}
		}
	}
}
