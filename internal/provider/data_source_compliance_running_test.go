package provider_test

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// serveRunningCluster serves the objects of some folders of the branch with the status that Flux would write: each
// Kustomization has an applied and an attempted revision. It returns the URL.
func serveRunningCluster(t *testing.T, url, applied, attempted string, folders ...string) string {
	t.Helper()
	lists := map[string][]any{}
	ready := []any{
		map[string]any{
			"type":               "Ready",
			"status":             "False",
			"reason":             "HealthCheckFailed",
			"observedGeneration": 1,
			"lastTransitionTime": "2026-11-21T19:00:00Z",
		},
	}
	for _, file := range strings.Fields(git(t, url, "ls-tree", "-r", "--name-only", "dev")) {
		if path.Base(file) != "reconciler.yaml" {
			continue
		}
		for _, folder := range folders {
			if !strings.HasPrefix(file, "clusters/all/"+folder+"/") {
				continue
			}
			for document := range strings.SplitSeq(git(t, url, "show", "dev:"+file), "\n---\n") {
				var object map[string]any
				if err := yaml.Unmarshal([]byte(document), &object); err != nil {
					t.Fatal(err)
				}
				object["status"] = map[string]any{
					"observedGeneration":    1,
					"conditions":            ready,
					"lastAppliedRevision":   applied,
					"lastAttemptedRevision": attempted,
				}
				object["metadata"].(map[string]any)["generation"] = 1
				list := fmt.Sprintf(
					"/apis/%s/%s",
					object["apiVersion"],
					map[any]string{"Kustomization": "kustomizations", "GitRepository": "gitrepositories"}[object["kind"]],
				)
				lists[list] = append(lists[list], object)
			}
		}
	}
	return serveLists(t, lists)
}

func TestComplianceListsRunningVersions(t *testing.T) {
	t.Parallel()
	const first, second = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"
	url := bare(t)
	apply(t, providertest.New(startProvider), assigned(url, fleetWithClusters(nil), nil))
	read := func(clusters map[string]string) (map[string]any, providertest.Diagnostics) {
		known := map[string]any{}
		for name, host := range clusters {
			known[name] = map[string]any{"host": host, "token": "canary-0123456789"}
		}
		return readCompliance(t, url, map[string]any{"clusters": known}, map[string]any{"feedback": map[string]any{"clusters": true}})
	}
	old := serveRunningCluster(t, url, "main@sha1:"+first, "main@sha1:"+second, "drone", "large")
	row := func(target, revision string, count int, hosts, clusters string) string {
		return fmt.Sprintf(
			"map[app_version:<nil> chart:<nil> clusters:[%s] count:%d deployment_target:%s hosts:[%s] images:[] revision:%s version:main wanted:main]",
			clusters,
			count,
			target,
			hosts,
			revision,
		)
	}
	for _, test := range []struct {
		clusters map[string]string
		want     []string
	}{
		{map[string]string{"drone-1": old, "drone-2": old, "large-1": old}, []string{
			row("app-core", first, 3, "drone large", ""), row("app-edge", first, 2, "drone", ""),
		}},
		{map[string]string{"drone-1": old, "drone-2": serveRunningCluster(t, url, "main@sha1:"+second, "main@sha1:"+second, "drone"), "large-1": old}, []string{
			row("app-core", first, 2, "large", "drone-1"), row("app-core", second, 1, "", "drone-2"),
			row("app-edge", first, 1, "", "drone-1"), row("app-edge", second, 1, "", "drone-2"),
		}},
		{map[string]string{"drone-1": serveRunningCluster(t, url, "", "main@sha1:"+second, "drone"), "large-1": old}, []string{row("app-core", first, 1, "large", "")}},
	} {
		values, diags := read(test.clusters)
		if diags.Err() != nil {
			t.Fatal(diags.Err())
		}
		var got []string
		for _, one := range values["running"].([]any) {
			got = append(got, fmt.Sprint(one))
		}
		if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
		if text := fmt.Sprint(values); strings.Contains(text, "canary") {
			t.Errorf("the text contains a secret: %s", text)
		}
	}
	// Reports do not tell the running version.
	if values := mustReadCompliance(t, url, map[string]any{"feedback": map[string]any{"reports": []any{report("drone-1", git(t, url, "rev-parse", "dev"), nil)}}}); len(
		values["running"].([]any),
	) != 0 {
		t.Errorf("reports say that %v runs", values["running"])
	}
}
