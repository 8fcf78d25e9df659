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

// listed is a cluster that has objects, and keeps how they are patched.
type listed struct {
	onboarding.ClusterAPI
	kind    string
	objects []*unstructured.Unstructured
	patched []string
	refused error // of every patch
}

func (l *listed) List(_ context.Context, kind kube.ResourceKind, _ kube.ListOptions) (kube.List, error) {
	l.kind = kind.String()
	return kube.List{Served: true, Items: l.objects}, nil
}

func (l *listed) Patch(_ context.Context, ref kube.Ref, patch map[string]any) (*unstructured.Unstructured, error) {
	if l.refused != nil {
		return nil, l.refused
	}
	l.patched = append(l.patched, fmt.Sprint(ref, " ", patch))
	return &unstructured.Unstructured{}, nil
}

func decoded(text string) *unstructured.Unstructured {
	one := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &one.Object); err != nil {
		panic(err)
	}
	return one
}

func gitRepository(name, url, ref string) *unstructured.Unstructured {
	return decoded(
		fmt.Sprintf(
			`{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: %s, namespace: flux-system}, spec: {url: %q, ref: {%s}}}`,
			name,
			url,
			ref,
		),
	)
}

func application(name, source string) *unstructured.Unstructured {
	return decoded(
		fmt.Sprintf(`{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: %s, namespace: argocd}, spec: {%s}}`, name, source),
	)
}

func TestWhatReadsTheBranchIsAsked(t *testing.T) {
	t.Parallel()
	at := folder.Location{URL: "https://git.example.com/platform/gitops", Branch: "dev", Path: "clusters"}
	for name, c := range map[string]struct {
		objects []*unstructured.Unstructured
		kind    string
		asked   []string
		patch   string
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
		cluster := &listed{objects: c.objects}
		asked, err := onboarding.RequestRefresh(t.Context(), cluster, reconciler.Named(name), at, "now")
		if err != nil || !slices.Equal(asked, c.asked) || cluster.kind != c.kind {
			t.Errorf("%s: of %s %q are asked, want %q: %v", name, cluster.kind, asked, c.asked, err)
		}
		slices.Sort(cluster.patched)
		for i, patched := range cluster.patched {
			if want := c.asked[i] + " " + c.patch; patched != want {
				t.Errorf("%s: the patch is %s, want %s", name, patched, want)
			}
		}
		refused := errors.New("refused")
		if asked, err := onboarding.RequestRefresh(t.Context(), &listed{objects: c.objects, refused: refused}, reconciler.Named(name), at, "now"); !errors.Is(
			err,
			refused,
		) ||
			len(asked) > 0 {
			t.Errorf("%s: where it is refused, %q are asked: %v", name, asked, err)
		}
		at := at
		at.Branch = "stage"
		if _, err := onboarding.RequestRefresh(t.Context(), &listed{objects: c.objects[:1]}, reconciler.Named(name), at, "now"); !errors.Is(
			err,
			onboarding.ErrNotFollowed,
		) {
			t.Errorf("%s: where nothing follows the branch it is said %v", name, err)
		}
	}
}
