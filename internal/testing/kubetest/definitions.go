package kubetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds/published"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

var secretGroups = []string{"external-secrets.io", "secrets-store.csi.x-k8s.io", "bitnami.com"}

// Definitions returns the definitions of Flux, Argo CD, Rancher Fleet and Config Sync as JSON, by module.
func Definitions(context.Context) (map[string][][]byte, error) {
	return published.Definitions(func(group string) bool { return !slices.Contains(secretGroups, group) })
}

// FluxDefinitions returns the definition of Kustomizations.
func FluxDefinitions(context.Context) (map[string][][]byte, error) {
	return published.Definitions(func(group string) bool { return group == "kustomize.toolkit.fluxcd.io" })
}

// SecretDefinitions returns the definitions of secret services and SealedSecrets.
func SecretDefinitions(context.Context) (map[string][][]byte, error) {
	return published.Definitions(func(group string) bool { return slices.Contains(secretGroups, group) })
}

// define creates definitions and waits until the API serves them.
func (s *Server) define(ctx context.Context, of func(context.Context) (map[string][][]byte, error)) error {
	definitions, err := of(ctx)
	if err != nil {
		return err
	}
	var defined []*unstructured.Unstructured
	for _, module := range slices.Sorted(maps.Keys(definitions)) {
		for _, text := range definitions[module] {
			definition := &unstructured.Unstructured{}
			err := definition.UnmarshalJSON(text)
			if err == nil && isUnused(definition) && !acceptancetest.All() {
				continue
			}
			if err == nil && len(text) > largeDefinition && !acceptancetest.All() {
				foldUnused(definition)
			}
			if err == nil {
				err = s.objects.define(ctx, definition)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", module, err)
			}
			defined = append(defined, definition)
		}
	}
	return s.objects.awaitServed(ctx, defined)
}

// define creates a missing definition: an apply takes longer.
func (o *objects) define(ctx context.Context, definition *unstructured.Unstructured) error {
	resource, err := o.resource(definition.GetAPIVersion(), definition.GetKind(), "")
	if err != nil {
		return err
	}
	_, err = resource.Create(ctx, definition, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// largeDefinition is in bytes.
const largeDefinition = 10 << 10

// isUnused selects Rancher Fleet's internal kinds.
func isUnused(definition *unstructured.Unstructured) bool {
	group, kind := definedKind(definition)
	return group == "fleet.cattle.io" && reconciler.KindOf(group, kind) == nil
}

// foldUnused allows any fields in unknown kinds and generators, because schemas slow servers down.
func foldUnused(definition *unstructured.Unstructured) {
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	group, kind := definedKind(definition)
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, version := range versions {
		version, _ := version.(map[string]any)
		if reconciler.KindOf(group, kind) == nil {
			_ = unstructured.SetNestedField(version, anything, "schema", "openAPIV3Schema")
			continue
		}
		path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "generators", "items", "properties"}
		generators, _, _ := unstructured.NestedMap(version, path...)
		for name := range generators {
			if name != "clusters" && name != "selector" {
				_ = unstructured.SetNestedField(version, anything, append(slices.Clone(path), name)...)
			}
		}
	}
	_ = unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions")
}

func definedKind(definition *unstructured.Unstructured) (group, kind string) {
	group, _, _ = unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ = unstructured.NestedString(definition.Object, "spec", "names", "kind")
	return group, kind
}

// awaitServed waits for discovery, which lags by seconds.
func (o *objects) awaitServed(ctx context.Context, definitions []*unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	missing := map[schema.GroupVersionKind]bool{}
	for _, definition := range definitions {
		group, kind := definedKind(definition)
		versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		for _, version := range versions {
			if version, _ := version.(map[string]any); version["served"] == true {
				name, _ := version["name"].(string)
				missing[schema.GroupVersionKind{Group: group, Version: name, Kind: kind}] = true
			}
		}
	}
	for {
		_, lists, err := o.kinds.ServerGroupsAndResources()
		for _, list := range lists {
			version, parseErr := schema.ParseGroupVersion(list.GroupVersion)
			err = errors.Join(err, parseErr)
			for i := range list.APIResources {
				delete(missing, version.WithKind(list.APIResources[i].Kind))
			}
		}
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d kinds are not served: %w", len(missing), errors.Join(ctx.Err(), err))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
