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

func (c *virtualCluster) prefixed(ref kube.Ref) kube.Ref {
	if ref.Kind == "Namespace" {
		ref.Name = c.prefix + ref.Name
	}
	if ref.Namespace != "" {
		ref.Namespace = c.prefix + ref.Namespace
	}
	return ref
}

func (c *virtualCluster) unprefixed(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return nil
	}
	if object.GetKind() == "Namespace" {
		object.SetName(strings.TrimPrefix(object.GetName(), c.prefix))
	}
	if object.GetNamespace() != "" {
		object.SetNamespace(strings.TrimPrefix(object.GetNamespace(), c.prefix))
	}
	return object
}

func (c *virtualCluster) Read(ctx context.Context, ref kube.Ref) (*unstructured.Unstructured, error) {
	if ref.Kind == "Namespace" && ref.Name == "kube-system" {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetUID(types.UID(c.uid))
		return object, nil
	}
	object, err := c.ClusterAPI.Read(ctx, c.prefixed(ref))
	return c.unprefixed(object), err
}

func (c *virtualCluster) Apply(ctx context.Context, object *unstructured.Unstructured, options kube.ApplyOptions) (kube.Applied, error) {
	object = object.DeepCopy()
	ref := c.prefixed(kube.RefOf(object))
	object.SetName(ref.Name)
	if ref.Namespace != "" {
		object.SetNamespace(ref.Namespace)
	}
	applied, err := c.ClusterAPI.Apply(ctx, object, options)
	applied.Object = c.unprefixed(applied.Object)
	return applied, err
}

func (c *virtualCluster) Patch(ctx context.Context, ref kube.Ref, patch map[string]any) (*unstructured.Unstructured, error) {
	object, err := c.ClusterAPI.Patch(ctx, c.prefixed(ref), patch)
	return c.unprefixed(object), err
}

func (c *virtualCluster) Delete(ctx context.Context, ref kube.Ref, uid string) error {
	return c.ClusterAPI.Delete(ctx, c.prefixed(ref), uid)
}

func (c *virtualCluster) Try(ctx context.Context, verb string, ref kube.Ref) error {
	return c.ClusterAPI.Try(ctx, verb, c.prefixed(ref))
}

func (c *virtualCluster) List(ctx context.Context, kind kube.ResourceKind, options kube.ListOptions) (kube.List, error) {
	if options.Namespace != "" {
		options.Namespace = c.prefix + options.Namespace
	}
	list, err := c.ClusterAPI.List(ctx, kind, options)
	for _, item := range list.Items {
		c.unprefixed(item)
	}
	return list, err
}
