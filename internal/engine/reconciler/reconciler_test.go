package reconciler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// Sources and Makes name known kinds, and the kinds in Sources are sources.
func TestEveryReferenceNamesAKind(t *testing.T) {
	t.Parallel()
	for _, kind := range reconciler.Kinds() {
		for _, reference := range kind.Sources {
			for _, name := range reference.Kinds {
				if source := reconciler.KindNamed(name); source == nil || !source.Is(reconciler.Source) {
					t.Errorf("%s: %s names %s, which is not a source", kind.Kind, reference.Field, name)
				}
			}
		}
		for _, name := range kind.Makes {
			if !kind.Is(reconciler.Maker) || reconciler.KindNamed(name) == nil {
				t.Errorf("%s makes %s, which is not a known kind", kind.Kind, name)
			}
		}
	}
}

// Records and references name a kind without its group.
func TestKindsHaveUniqueNames(t *testing.T) {
	t.Parallel()
	kinds := reconciler.Kinds()
	for _, kind := range kinds {
		if count := len(slices.DeleteFunc(slices.Clone(kinds), func(other *reconciler.ObjectKind) bool { return other.Kind != kind.Kind })); count != 1 {
			t.Errorf("%d kinds are called %s", count, kind.Kind)
		}
		if kind.Group == "" || kind.Versions == "" || kind.Resource == "" {
			t.Errorf("%s has no group, version or resource", kind.Kind)
		}
	}
}

// Kinds that follow a folder are read first, and sources are read after their consumers.
func TestKindsAreInReadingOrder(t *testing.T) {
	t.Parallel()
	for _, name := range reconciler.Names() {
		last := 0
		for _, kind := range reconciler.Named(name).Kinds {
			current := 1
			switch {
			case kind.Is(reconciler.Follows):
				current = 0
			case kind.Is(reconciler.Source):
				current = 2
			}
			if current < last {
				t.Errorf("%s: %s comes too late", name, kind.Kind)
			}
			last = current
		}
	}
}

// Workloads may not use the namespace of a reconciler.
func TestNamespacesOfReconcilersAreKnown(t *testing.T) {
	t.Parallel()
	for namespace, want := range map[string]string{
		"flux-system": "Flux", "argocd": "Argo CD", "fleet-local": "Rancher Fleet", "cattle-fleet-system": "Rancher Fleet",
		"cattle-fleet-local-system": "Rancher Fleet", "config-management-system": "Config Sync", "resource-group-system": "Config Sync", "zarf": "Zarf", "": "", "team": "",
	} {
		got := ""
		if found := reconciler.InNamespace(namespace); found != nil {
			got = found.Product
		}
		if got != want {
			t.Errorf("namespace %q belongs to %q, want %q", namespace, got, want)
		}
	}
}

func TestIsRevision(t *testing.T) {
	for field, want := range map[string]bool{
		"GitRepository spec.ref.commit": true, "GitRepository spec.ref": true, "GitRepository spec.url": false, "GitRepository spec.refs": false,
		"OCIRepository spec.ref.digest": true, "HelmRelease spec.chart.spec.version": true, "HelmRelease spec.values.version": false,
		"Application spec.source.targetRevision": true, "Application spec.source.path": false,
		"ApplicationSet spec.template.spec.source.targetRevision": true, "ApplicationSet spec.source.targetRevision": false, "ConfigMap data.ref": false,
		"HelmRelease metadata.annotations.flotilla#dev/digest": true, "ApplicationSet spec.template.metadata.annotations.flotilla#dev/digest": true,
		"HelmRelease metadata.annotations.other": false, "ConfigMap metadata.annotations.flotilla#dev/digest": false,
	} {
		kind, path, _ := strings.Cut(field, " ")
		if got := reconciler.IsRevision(kind, strings.Split(strings.ReplaceAll(path, "#", "."), ".")); got != want {
			t.Errorf("%s: got %t, want %t", field, got, want)
		}
	}
}
