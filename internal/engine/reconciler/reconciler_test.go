package reconciler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// What a field names, and what an object makes, is a kind that is known, and that can give what is asked of it.
func TestEveryLinkLeadsToAKind(t *testing.T) {
	t.Parallel()
	for _, kind := range reconciler.Kinds() {
		for _, reference := range kind.Sources {
			for _, name := range reference.Kinds {
				if source := reconciler.KindNamed(name); source == nil || !source.Is(reconciler.Source) {
					t.Errorf("%s: %s names %s, which is no source", kind.Kind, reference.Field, name)
				}
			}
		}
		for _, name := range kind.Makes {
			if !kind.Is(reconciler.Maker) || reconciler.KindNamed(name) == nil {
				t.Errorf("%s makes %s, which is no kind", kind.Kind, name)
			}
		}
	}
}

// Records and references name a kind without its group.
func TestNoTwoKindsHaveOneName(t *testing.T) {
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

// What follows a folder is read before what the folder has, and what consumes a source before the source.
func TestKindsAreInTheOrderInWhichTheyAreRead(t *testing.T) {
	t.Parallel()
	for _, name := range reconciler.Names() {
		stage := 0
		for _, kind := range reconciler.Named(name).Kinds {
			now := 1
			switch {
			case kind.Is(reconciler.Follows):
				now = 0
			case kind.Is(reconciler.Source):
				now = 2
			}
			if now < stage {
				t.Errorf("%s: %s comes too late", name, kind.Kind)
			}
			stage = now
		}
	}
}

// No workload may be where a reconciler itself is.
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
			t.Errorf("%q is of %q, want %q", namespace, got, want)
		}
	}
}

func TestWhatSaysWhichRevisionIsTaken(t *testing.T) {
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
			t.Errorf("%s: it is %t", field, got)
		}
	}
}
