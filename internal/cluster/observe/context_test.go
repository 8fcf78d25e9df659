package observe_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

func anyCluster(string) bool { return true }

func TestAContextIdentifiesItsCluster(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ pattern, context, cluster string }{
		{"flotilla/{cluster}", "flotilla/store-17", "store-17"},
		{"flotilla/{cluster}", "flotilla/", ""},
		{"flotilla/{cluster}", "flotilla", ""},
		{"flotilla/{cluster}", "flotilla/a/b", ""},
		{"flotilla/{cluster}", "Flotilla/a", ""},
		{"flotilla/{cluster}", "ci/test", ""},
		{"{cluster}", "a", "a"},
		{"fleet/eu/{cluster}/root", "fleet/eu/a/root", "a"},
		{"fleet/eu/{cluster}/root", "fleet/eu/a/leaf", ""},
		{"kustomization/{cluster}/*", "kustomization/store-1/c2b30f33", "store-1"},
		{"kustomization/root-{cluster}-x/*", "kustomization/root-a-b-x/c2b30f33", "a-b"},
		{"kustomization/root-{cluster}-x/*", "kustomization/root-x/c2b30f33", ""},
		{"kustomization/root-{cluster}-x/*", "kustomization/root-a/c2b30f33", ""},
		{"kustomization/{cluster}/*", "kustomization/store-1", ""},
		{"*/{cluster}", "anything/a", "a"},
		{"a.c/{cluster}", "abc/a", ""},
		{"flotilla/{cluster}/{host}", "flotilla/a/cluster", "a"},
		{"flotilla/{cluster}/{host}", "flotilla/a/cluster-type", "a"},
		{"flotilla/{cluster}/{host}", "flotilla/a/b", ""},
		{"flotilla/{cluster}/{host}", "flotilla/a", ""},
	} {
		contexts, err := observe.ParseContext(test.pattern)
		if err != nil {
			t.Errorf("%s: %v", test.pattern, err)
			continue
		}
		if got, _, ok := contexts.Cluster(test.context, anyCluster); got != test.cluster || ok != (test.cluster != "") {
			t.Errorf("%s: cluster of %s is %q, want %q", test.pattern, test.context, got, test.cluster)
		}
	}
}

func TestAKeyIdentifiesItsCluster(t *testing.T) {
	t.Parallel()
	key := func(context string) string { return "key of " + context }
	for pattern, want := range map[string]map[string]observe.Subject{
		"fleet/x-{cluster}-y": {"key of fleet/x-a-y": {Cluster: "a"}, "key of fleet/x-b-y": {Cluster: "b"}},
		"{cluster}/{host}": {
			"key of a/cluster": {Cluster: "a", Host: "cluster"}, "key of a/cluster-type": {Cluster: "a", Host: "cluster-type"},
			"key of b/cluster": {Cluster: "b", Host: "cluster"}, "key of b/cluster-type": {Cluster: "b", Host: "cluster-type"},
		},
		"kustomization/{cluster}/*": {}, // * may be any text
	} {
		contexts, err := observe.ParseContext(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := contexts.Keys([]string{"a", "b"}, key); !maps.Equal(got, want) {
			t.Errorf("%s: %+v", pattern, got)
		}
	}
	// A cluster with the whole name wins, as it does for contexts.
	keys := observe.DefaultContexts("dev").Keys([]string{"a", "flotilla-a"}, key)
	if got := keys["key of flotilla/flotilla-a"]; got.Cluster != "flotilla-a" {
		t.Errorf("the key belongs to %+v, want flotilla-a", got)
	}
}

func TestAContextWithoutAClusterIsAnError(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"":                        "is empty",
		"flotilla":                "has no {cluster}",
		"flotilla/{cluster":       "\"{cluster\", which has no meaning",
		"flotilla/cluster}":       "\"}\", which has no meaning",
		"flotilla/{clusters}":     "\"{clusters}\", which has no meaning",
		"{env}/{cluster}":         "\"{env}\", which has no meaning",
		"{cluster}/{cluster}":     "more than once",
		"{{cluster}}":             "has no meaning",
		"flotilla/${cluster}/{}":  "\"{}\", which has no meaning",
		"flotilla/{cluster}*":     "* must be a whole segment",
		"a*/{cluster}":            "* must be a whole segment",
		"{cluster}/a{host}":       "{host} must be a whole segment",
		"{host}/{cluster}/{host}": "has {host} more than once",
	} {
		if _, err := observe.ParseContext(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: err = %v, want one with %q", pattern, err, want)
		}
	}
}

func TestDefaultContextsOfAgentsAreUnderstood(t *testing.T) {
	t.Parallel()
	clusters := map[string]bool{"argo": true, "flux": true, "store-1": true, "flotilla-x": true}
	known := func(cluster string) bool { return clusters[cluster] }
	contexts := observe.DefaultContexts("dev")
	for context, want := range map[string]string{
		"argocd/flotilla-dev-argo":                 "argo", // a recorded context
		"kustomization/flotilla-dev-flux/c2b30f33": "flux",
		"kustomization/flux/c2b30f33":              "flux",
		"kustomization/flotilla-store-1/c2b30f33":  "store-1",
		"continuous-delivery/store-1":              "store-1",
		"flotilla/store-1":                         "store-1",
		"flotilla/store-1/cluster":                 "store-1",
		"flotilla/store-1/other":                   "",
		"flotilla/flotilla-x":                      "flotilla-x",
		"kustomization/flux-system/c2b30f33":       "", // belongs to no cluster
		"kustomization/flux":                       "",
		"argocd/flotilla-prod-argo":                "",
		"argocd/argo/more":                         "",
		"helmrelease/flux/c2b30f33":                "",
		"":                                         "",
	} {
		if got, _, ok := contexts.Cluster(context, known); got != want || ok != (want != "") {
			t.Errorf("cluster of %q is %q, want %q", context, got, want)
		}
	}
}

func TestAStatusAppliesToOneFolderOnly(t *testing.T) {
	t.Parallel()
	reportsOf := func(commit string, verdict verdict.Verdict) []observe.ExternalReport {
		return []observe.ExternalReport{{Commit: commit, Verdict: verdict}}
	}
	commit := strings.Repeat("a", 40)
	report := observe.ReadStatuses("store", "store-1", map[string][]observe.ExternalReport{
		observe.ClusterTypeHost: reportsOf(commit, verdict.Ready), observe.ClusterHost: reportsOf(commit, verdict.Failed),
	})
	if got := report.Applied["store"]; got.Verdict != verdict.Ready || got.Commit != commit {
		t.Errorf("the folder of the type is %+v", got)
	}
	if got := report.Applied["clusters/store-1"]; got.Verdict != verdict.Failed || got.Attempted != commit {
		t.Errorf("the folder of the cluster is %+v", got)
	}
	report = observe.ReadStatuses("store", "store-1", map[string][]observe.ExternalReport{observe.ClusterTypeHost: reportsOf(commit, verdict.Ready)})
	if _, known := report.Applied["clusters/store-1"]; known || len(report.Applied) != 1 {
		t.Errorf("a folder without a status is reported: %+v", report.Applied)
	}
}

func FuzzContext(f *testing.F) {
	f.Add("flotilla/{cluster}", "flotilla/a")
	f.Add("kustomization/root-{cluster}/*", "kustomization/root-a/1")
	f.Add("*/{cluster}-x", "/-x")
	f.Fuzz(func(t *testing.T, pattern, context string) {
		contexts, err := observe.ParseContext(pattern)
		if err != nil {
			return
		}
		cluster, _, ok := contexts.Cluster(context, anyCluster)
		if ok != (cluster != "") || strings.Contains(cluster, "/") {
			t.Errorf("%q: cluster of %q is %q, %t", pattern, context, cluster, ok)
		}
		for _, name := range []string{"a", "store-17", "x.y"} {
			expanded := strings.NewReplacer("*", "any", "{cluster}", name, "{host}", observe.ClusterHost).Replace(pattern)
			if got, _, ok := contexts.Cluster(expanded, anyCluster); !ok || got != name {
				t.Errorf("%q: cluster of %q is %q, want %q", pattern, expanded, got, name)
			}
		}
	})
}
