package onboarding_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// fakeCluster is a cluster with objects that records their patches.
type fakeCluster struct {
	onboarding.ClusterAPI
	kind     string
	objects  []*unstructured.Unstructured
	patches  []string
	patchErr error // for every patch
}

func (f *fakeCluster) List(_ context.Context, kind kube.ResourceKind, _ kube.ListOptions) (kube.List, error) {
	f.kind = kind.String()
	return kube.List{Served: true, Items: f.objects}, nil
}

func (f *fakeCluster) Patch(_ context.Context, ref kube.Ref, patch map[string]any) (*unstructured.Unstructured, error) {
	if f.patchErr != nil {
		return nil, f.patchErr
	}
	f.patches = append(f.patches, fmt.Sprint(ref, " ", patch))
	return &unstructured.Unstructured{}, nil
}

func decodeObject(text string) *unstructured.Unstructured {
	one := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &one.Object); err != nil {
		panic(err)
	}
	return one
}

func gitRepository(name, url, ref string) *unstructured.Unstructured {
	return decodeObject(
		fmt.Sprintf(
			`{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: %s, namespace: flux-system}, spec: {url: %q, ref: {%s}}}`,
			name,
			url,
			ref,
		),
	)
}

func application(name, source string) *unstructured.Unstructured {
	return decodeObject(
		fmt.Sprintf(`{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: %s, namespace: argocd}, spec: {%s}}`, name, source),
	)
}

func TestRequestRefreshPatchesAllReadersOfTheBranch(t *testing.T) {
	t.Parallel()
	location := folder.Location{URL: "https://git.example.com/platform/gitops", Branch: "dev", Path: "clusters"}
	for name, c := range map[string]struct {
		objects   []*unstructured.Unstructured
		kind      string
		requested []string
		patch     string
	}{
		"flux": {
			[]*unstructured.Unstructured{
				gitRepository("ours", "https://git.example.com/platform/gitops.git", "branch: dev"),
				gitRepository("by-ssh", "ssh://git@git.example.com/platform/gitops", "branch: dev"),
				gitRepository("another-branch", "https://git.example.com/platform/gitops", "branch: prod"),
				gitRepository("a-tag", "https://git.example.com/platform/gitops", "tag: v1"),
				gitRepository("another", "https://git.example.com/platform/other", "branch: dev"),
			},
			"gitrepositories.source.toolkit.fluxcd.io", []string{"GitRepository flux-system/by-ssh", "GitRepository flux-system/ours"},
			"map[metadata:map[annotations:map[reconcile.fluxcd.io/requestedAt:now]]]",
		},
		"argocd": {
			[]*unstructured.Unstructured{
				application("cluster", "source: {repoURL: 'https://git.example.com/platform/gitops', targetRevision: dev, path: clusters/a}"),
				application("head", "source: {repoURL: 'https://git.example.com/platform/gitops', targetRevision: HEAD}"),
				application("several", "sources: [{repoURL: 'https://charts.example.com', chart: x}, {repoURL: 'https://git.example.com/platform/gitops.git', targetRevision: refs/heads/dev}]"),
				application("another", "source: {repoURL: 'https://git.example.com/team/app', targetRevision: dev}"),
				application("another-branch", "source: {repoURL: 'https://git.example.com/platform/gitops', targetRevision: prod}"),
			},
			"applications.argoproj.io", []string{"Application argocd/cluster", "Application argocd/head", "Application argocd/several"},
			"map[metadata:map[annotations:map[argocd.argoproj.io/refresh:normal]]]",
		},
	} {
		cluster := &fakeCluster{objects: c.objects}
		requested, err := onboarding.RequestRefresh(t.Context(), cluster, reconciler.Named(name), location, "now")
		if err != nil || !slices.Equal(requested, c.requested) || cluster.kind != c.kind {
			t.Errorf("%s: of %s, got refresh requests for %q, want %q: %v", name, cluster.kind, requested, c.requested, err)
		}
		slices.Sort(cluster.patches)
		for i, patch := range cluster.patches {
			if want := c.requested[i] + " " + c.patch; patch != want {
				t.Errorf("%s: got the patch %s, want %s", name, patch, want)
			}
		}
		patchErr := errors.New("refused")
		if requested, err := onboarding.RequestRefresh(t.Context(), &fakeCluster{objects: c.objects, patchErr: patchErr}, reconciler.Named(name), location, "now"); !errors.Is(
			err,
			patchErr,
		) ||
			len(requested) > 0 {
			t.Errorf("%s: with refused patches, got refresh requests for %q: %v", name, requested, err)
		}
		stage := location
		stage.Branch = "stage"
		if _, err := onboarding.RequestRefresh(t.Context(), &fakeCluster{objects: c.objects[:1]}, reconciler.Named(name), stage, "now"); !errors.Is(
			err,
			onboarding.ErrNotFollowed,
		) {
			t.Errorf("%s: got %v for a branch that no object follows, want ErrNotFollowed", name, err)
		}
	}
}
