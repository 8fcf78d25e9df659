package provider_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func registryWorkloads(further map[string]any) []any {
	manifests := map[string]any{"storage": "oci", "repo": "oci://registry.example.com/shop/till"}
	maps.Copy(manifests, further)
	return []any{map[string]any{"name": "till", "workspace": "team", "deployment_targets": map[string]any{
		"edge": map[string]any{"environment": "dev", "labels": map[string]any{"edge": "true"}, "manifests": manifests},
	}}}
}

func clusterTypesWith(reconciler string) []any {
	return []any{map[string]any{"name": "drone", "labels": map[string]any{"edge": "true"}, "reconciler": reconciler}}
}

func TestAReferenceOfARegistryIsWrittenForEachReconciler(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("d1", 32)
	chart := map[string]any{"repo": "oci://registry.example.com/charts", "chart": "till", "version": "1.0.0+5", "digest": digest}
	for name, test := range map[string]struct {
		reconciler string
		manifests  map[string]any
		want       string // in reconciler.yaml
	}{
		"Config Sync, a digest":                 {"config-sync", map[string]any{"digest": digest}, `image: "registry.example.com/shop/till@` + digest + `"`},
		"Config Sync, a digest and its tag":     {"config-sync", map[string]any{"digest": digest, "tag": "v1"}, `image: "registry.example.com/shop/till@` + digest + `"`},
		"Config Sync, build metadata":           {"config-sync", map[string]any{"version": "1.0.0+5"}, `image: "registry.example.com/shop/till:1.0.0_5"`},
		"Config Sync, nothing":                  {"config-sync", nil, `image: "registry.example.com/shop/till:latest"`},
		"Config Sync, a port and a slash":       {"config-sync", map[string]any{"repo": "oci://registry.example.com:5000/till/"}, `image: "registry.example.com:5000/till:latest"`},
		"Flux, a digest":                        {"flux", map[string]any{"digest": digest}, `digest: "` + digest + `"`},
		"Argo CD, a digest":                     {"argocd", map[string]any{"digest": digest}, `targetRevision: "` + digest + `"`},
		"Argo CD on a hub, a digest of a chart": {"argocd-hub", chart, `repoURL: "oci://registry.example.com/charts/till"`},
		"Rancher Fleet, a digest of a chart":    {"fleet", chart, `flotilla.dev/digest: "` + digest + `"`},
		"Zarf, a digest of a chart":             {"zarf", chart, `flotilla.dev/digest: "` + digest + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := bare(t)
			apply(t, providertest.New(startProvider), assigned(url, fleetOf(map[string]any{
				"workloads": registryWorkloads(test.manifests), "cluster_types": clusterTypesWith(test.reconciler),
			}), nil))
			if written := git(t, url, "show", "dev:clusters/all/drone/till-edge/reconciler.yaml"); !strings.Contains(written, test.want) {
				t.Errorf("got\n%s\nwant %s", written, test.want)
			}
		})
	}
}

func TestAWrongReferenceOfARegistryIsAnErrorAtItsAttribute(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("d1", 32)
	at := `workloads["till"].deployment_targets["edge"].manifests.`
	for name, test := range map[string]struct {
		reconciler string
		manifests  map[string]any
		want       string
	}{
		"a tag in the URL":           {"flux", map[string]any{"repo": "oci://registry.example.com/shop/till:v1"}, at + "repo: has a tag: remove it from the URL, and set tag or version"},
		"a digest in the URL":        {"argocd", map[string]any{"repo": "oci://registry.example.com/shop/till@" + digest}, at + "repo: has a digest: remove it from the URL, and set digest"},
		"both in the URL":            {"argocd", map[string]any{"repo": "oci://registry.example.com/shop/till:v1@" + digest}, at + "repo: has a digest: remove it from the URL, and set digest"},
		"a tag before a chart":       {"fleet", map[string]any{"repo": "oci://registry.example.com/charts:v1", "chart": "till", "version": "1.0.0"}, at + "repo: has a tag: remove it"},
		"a tag, storage helm":        {"flux", map[string]any{"storage": "helm", "repo": "oci://registry.example.com/charts/till:1.0.0", "chart": "till"}, at + "repo: has a tag: remove it from the URL, and set version"},
		"upper case":                 {"flux", map[string]any{"repo": "oci://registry.example.com/Shop/till"}, at + `repo: is not the URL of a repository of a registry`},
		"a digest that is none":      {"flux", map[string]any{"digest": "sha256:1234"}, at + `digest: "sha256:1234" is not a digest`},
		"a digest as version":        {"flux", map[string]any{"version": digest}, "is a digest: set digest in its place"},
		"a digest and a range":       {"flux", map[string]any{"digest": digest, "version": "1.x"}, at + "version: must be an exact version with digest"},
		"a digest of a chart alone":  {"flux", map[string]any{"digest": digest, "chart": "till"}, at + "digest: needs the exact version or the tag of the chart"},
		"a digest of Git":            {"flux", map[string]any{"storage": "git", "repo": "https://git.example.com/till", "digest": digest}, at + `digest: does not fit storage "git"`},
		"a range, Config Sync":       {"config-sync", map[string]any{"version": ">=1.0.0"}, at + `version: ">=1.0.0" is a range of versions, and reconciler "config-sync" of cluster type "drone" takes one image`},
		"another range, Config Sync": {"config-sync", map[string]any{"version": "1.x"}, `"1.x" is a range of versions`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(map[string]any{
				"workloads": registryWorkloads(test.manifests), "cluster_types": clusterTypesWith(test.reconciler),
			}), nil))
			if text := strings.Join(strings.Fields(fmt.Sprint(diags)), " "); !strings.Contains(text, test.want) {
				t.Errorf("got %s, want %s", text, test.want)
			}
		})
	}
}
