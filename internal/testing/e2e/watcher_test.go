package e2e_test

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	artifactGenerators = schema.GroupVersionResource{Group: "source.extensions.fluxcd.io", Version: "v1beta1", Resource: "artifactgenerators"}
	externalArtifacts  = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "externalartifacts"}

	// unreconciled are kinds of Flux without a controller in these tests. Their objects are marked ready.
	unreconciled = []schema.GroupVersionResource{
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "helmrepositories"},
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "ocirepositories"},
		{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"},
	}
)

// reconcileOthers is a stand-in for source-watcher, which turns folders into artifacts. It also marks objects of unreconciled
// kinds as ready. The next round retries errors.
func (s *sourceController) reconcileOthers(ctx context.Context) {
	forEach := func(resource schema.GroupVersionResource, do func(*unstructured.Unstructured)) {
		listed, err := s.cluster.Client().Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return // most tests do not define ArtifactGenerators
		}
		for _, object := range listed.Items {
			do(&object)
		}
	}
	for _, resource := range unreconciled {
		forEach(resource, func(object *unstructured.Unstructured) {
			if field(object, "status", "observedGeneration") != object.GetGeneration() {
				s.setStatus(ctx, resource, object, nil, "True", "Succeeded", "nothing reconciles it here")
			}
		})
	}
	forEach(artifactGenerators, func(generator *unstructured.Unstructured) {
		if err := s.generateArtifacts(ctx, generator); err != nil && ctx.Err() == nil {
			s.t.Logf("ArtifactGenerator %s: %v", generator.GetName(), err)
		}
	})
}

// generateArtifacts creates the artifacts of an ArtifactGenerator. It supports only copies of whole folders of GitRepositories.
func (s *sourceController) generateArtifacts(ctx context.Context, generator *unstructured.Unstructured) error {
	commits := map[string]string{} // by alias
	from, _ := field(generator, "spec", "sources").([]any)
	for _, one := range from {
		source := one.(map[string]any)
		repository, err := s.cluster.Client().
			Resource(gitRepositories).
			Namespace(generator.GetNamespace()).
			Get(ctx, fmt.Sprint(source["name"]), metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, commits[fmt.Sprint(source["alias"])], _ = strings.Cut(fmt.Sprint(field(repository, "status", "artifact", "revision")), "@sha1:")
	}
	artifacts, _ := field(generator, "spec", "artifacts").([]any)
	for _, one := range artifacts {
		artifact := one.(map[string]any)
		if _, err := s.git(ctx, "read-tree", "--empty"); err != nil {
			return err
		}
		for _, one := range artifact["copy"].([]any) {
			rule := one.(map[string]any)
			alias, folder, _ := strings.Cut(strings.TrimPrefix(fmt.Sprint(rule["from"]), "@"), "/")
			to := strings.TrimPrefix(fmt.Sprint(rule["to"]), "@artifact/")
			if _, err := s.git(ctx, "--git-dir=.", "--work-tree=.", "read-tree", "--prefix="+to, commits[alias]+":"+strings.TrimSuffix(folder, "/**")); err != nil {
				return err
			}
		}
		tree, err := s.git(ctx, "write-tree")
		if err != nil {
			return err
		}
		if err := s.publishTree(ctx, generator, fmt.Sprint(artifact["name"]), strings.TrimSpace(string(tree))); err != nil {
			return err
		}
	}
	return nil
}

// publishTree publishes a tree as an ExternalArtifact.
func (s *sourceController) publishTree(ctx context.Context, generator *unstructured.Unstructured, name, tree string) error {
	object, err := s.cluster.Client().
		Resource(externalArtifacts).
		Namespace(generator.GetNamespace()).
		Apply(ctx, name, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "ExternalArtifact",
			"metadata": map[string]any{"name": name, "namespace": generator.GetNamespace()},
			"spec": map[string]any{
				"sourceRef": map[string]any{"apiVersion": generator.GetAPIVersion(), "kind": generator.GetKind(), "name": generator.GetName()},
			},
		}}, metav1.ApplyOptions{FieldManager: "source-watcher", Force: true})
	if err != nil {
		return err
	}
	revision := "latest@sha1:" + tree
	if field(object, "status", "artifact", "revision") == revision {
		return nil
	}
	return s.storeArtifact(ctx, externalArtifacts, object, tree, revision)
}
