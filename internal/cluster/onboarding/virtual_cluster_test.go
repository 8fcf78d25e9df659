package onboarding_test

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
)

// virtualCluster is one of many clusters on a server. Its namespaces have a prefix there, and it has its own UID.
type virtualCluster struct {
	onboarding.ClusterAPI
	prefix, uid string
}

func (w *virtualCluster) prefixed(ref kube.Ref) kube.Ref {
	if ref.Kind == "Namespace" {
		ref.Name = w.prefix + ref.Name
	}
	if ref.Namespace != "" {
		ref.Namespace = w.prefix + ref.Namespace
	}
	return ref
}

func (w *virtualCluster) unprefixed(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return nil
	}
	if object.GetKind() == "Namespace" {
		object.SetName(strings.TrimPrefix(object.GetName(), w.prefix))
	}
	if object.GetNamespace() != "" {
		object.SetNamespace(strings.TrimPrefix(object.GetNamespace(), w.prefix))
	}
	return object
}

func (w *virtualCluster) Read(ctx context.Context, ref kube.Ref) (*unstructured.Unstructured, error) {
	if ref.Kind == "Namespace" && ref.Name == "kube-system" {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetUID(types.UID(w.uid))
		return object, nil
	}
	object, err := w.ClusterAPI.Read(ctx, w.prefixed(ref))
	return w.unprefixed(object), err
}

func (w *virtualCluster) Apply(ctx context.Context, object *unstructured.Unstructured, options kube.ApplyOptions) (kube.Applied, error) {
	object = object.DeepCopy()
	ref := w.prefixed(kube.RefOf(object))
	object.SetName(ref.Name)
	if ref.Namespace != "" {
		object.SetNamespace(ref.Namespace)
	}
	applied, err := w.ClusterAPI.Apply(ctx, object, options)
	applied.Object = w.unprefixed(applied.Object)
	return applied, err
}

func (w *virtualCluster) Patch(ctx context.Context, ref kube.Ref, patch map[string]any) (*unstructured.Unstructured, error) {
	object, err := w.ClusterAPI.Patch(ctx, w.prefixed(ref), patch)
	return w.unprefixed(object), err
}

func (w *virtualCluster) Delete(ctx context.Context, ref kube.Ref, uid string) error {
	return w.ClusterAPI.Delete(ctx, w.prefixed(ref), uid)
}

func (w *virtualCluster) Try(ctx context.Context, verb string, ref kube.Ref) error {
	return w.ClusterAPI.Try(ctx, verb, w.prefixed(ref))
}

func (w *virtualCluster) List(ctx context.Context, kind kube.ResourceKind, options kube.ListOptions) (kube.List, error) {
	if options.Namespace != "" {
		options.Namespace = w.prefix + options.Namespace
	}
	list, err := w.ClusterAPI.List(ctx, kind, options)
	for _, item := range list.Items {
		w.unprefixed(item)
	}
	return list, err
}
