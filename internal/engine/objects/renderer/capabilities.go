package renderer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"helm.sh/helm/v4/pkg/chart/common"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/served"
)

type capabilities struct {
	*common.Capabilities
	APIVersions apiVersions
}

func (r *helmRelease) capabilities() (*capabilities, error) {
	cluster := cmp.Or(r.request.KubernetesVersion, defaultKubernetes)
	version := cmp.Or(r.helm.KubernetesVersion, cluster)
	kubernetes, err := common.ParseKubeVersion(version)
	if err != nil {
		return nil, fmt.Errorf("Kubernetes version %q: %w", version, err)
	}
	apis, missing := r.helm.APIVersions, missingAPIs(nil)
	if apis == nil {
		missing = r.missing
		if apis, err = served.APIs(cluster); err != nil {
			return nil, err
		}
		apis = slices.Concat(apis, withVersions(r.request.APIVersions))
	}
	if !r.helm.OnCluster {
		apis = slices.Concat(common.DefaultVersionSet, apis)
	}
	all := common.DefaultCapabilities.Copy()
	all.KubeVersion, all.APIVersions = *kubernetes, apis
	return &capabilities{all, newAPIVersions(apis, missing)}, nil
}

// withVersions adds "<group>/<version>" to "<group>/<version>/<kind>".
func withVersions(apis []string) []string {
	all := slices.Clone(apis)
	for _, api := range apis {
		at := strings.LastIndexByte(api, '/')
		if last := api[at+1:]; at >= 0 && last != "" && unicode.IsUpper(rune(last[0])) {
			all = append(all, api[:at])
		}
	}
	return all
}

// apiVersions replaces [common.VersionSet], with missingAPIs after its last element, within its capacity. It is a slice
// because charts range over it.
type apiVersions []any

func newAPIVersions(apis []string, missing missingAPIs) apiVersions {
	all := make(apiVersions, 0, len(apis)+1)
	for _, api := range apis {
		all = append(all, api)
	}
	return append(all, missing)[:len(apis)]
}

// Has reports whether the clusters have an API.
func (a apiVersions) Has(api string) (bool, error) {
	if slices.Contains(a, any(api)) {
		return true, nil
	}
	if len(a) < cap(a) {
		if missing, is := a[:len(a)+1][len(a)].(missingAPIs); is {
			return false, missing.add(api)
		}
	}
	return false, nil
}

// missingAPIs records APIs that neither Kubernetes nor the request has.
type missingAPIs map[string]bool

// maxMissing bounds missingAPIs. Charts have dozens.
const maxMissing = 200

func (m missingAPIs) add(api string) error {
	const longest = 500 // no API has a longer name
	if m == nil || len(api) > longest || served.IsOfKubernetes(api) {
		return nil
	}
	if m[api] = true; len(m) > maxMissing {
		return fmt.Errorf("the chart asks for more than %d API versions that its clusters do not have", maxMissing)
	}
	return nil
}

func (m missingAPIs) list() []string { return slices.Sorted(maps.Keys(m)) }
