package kubetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

var secretGroups = []string{"external-secrets.io", "secrets-store.csi.x-k8s.io", "bitnami.com"}

// Definitions returns the definitions of Flux, Argo CD, Rancher Fleet and Config Sync as JSON, by module.
func Definitions(context.Context) (map[string][][]byte, error) {
	return kinds.Definitions(func(group string) bool { return !slices.Contains(secretGroups, group) })
}

// FluxDefinitions returns the definition of Kustomizations.
func FluxDefinitions(context.Context) (map[string][][]byte, error) {
	return kinds.Definitions(func(group string) bool { return group == "kustomize.toolkit.fluxcd.io" })
}

// SecretDefinitions returns the definitions of secret services and SealedSecrets.
func SecretDefinitions(context.Context) (map[string][][]byte, error) {
	return kinds.Definitions(func(group string) bool { return slices.Contains(secretGroups, group) })
}

// define applies definitions and waits until the API serves them.
func (s *Server) define(ctx context.Context, of func(context.Context) (map[string][][]byte, error)) error {
	definitions, err := of(ctx)
	if err != nil {
		return err
	}
	var defined []*unstructured.Unstructured
	for _, module := range slices.Sorted(maps.Keys(definitions)) {
		for _, text := range definitions[module] {
			if !acceptancetest.All() {
				text = foldNestedGenerators(text)
			}
			applied, err := s.objects.applyAll(ctx, string(text))
			if err != nil {
				return fmt.Errorf("%s: %w", module, err)
			}
			defined = append(defined, applied...)
		}
	}
	return s.objects.awaitServed(ctx, defined)
}

// foldNestedGenerators lets nested generators of ApplicationSets have any fields. Their schemas
// cost each server 1.3 s of a processor. Flotilla writes no nested generators.
func foldNestedGenerators(definition []byte) []byte {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(definition); err != nil || object.GetName() != "applicationsets.argoproj.io" {
		return definition
	}
	versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
	path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "generators", "items", "properties"}
	for _, version := range versions {
		version, _ := version.(map[string]any)
		for _, nested := range []string{"matrix", "merge"} {
			anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
			_ = unstructured.SetNestedField(version, anything, append(slices.Clone(path), nested)...)
		}
	}
	_ = unstructured.SetNestedSlice(object.Object, versions, "spec", "versions")
	text, err := object.MarshalJSON()
	if err != nil {
		return definition
	}
	return text
}

// awaitServed waits for discovery, which lags by seconds.
func (o *objects) awaitServed(ctx context.Context, definitions []*unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	missing := map[schema.GroupVersionKind]bool{}
	for _, definition := range definitions {
		group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
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
