package provider_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// sourceAt returns a source whose commit repeats a digit.
func sourceAt(digit string) map[string]any {
	return map[string]any{"url": "https://git.example.com/platform/control-plane", "commit": strings.Repeat(digit, 40)}
}

func changedContainers() map[string]any {
	return map[string]any{"config_containers": []any{
		map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": "info"}},
		map[string]any{"name": "large", "labels": map[string]any{"cluster-type": "large"}, "data": map[string]any{"DATABASE_URL": "mysql://two"}},
	}}
}

func sourcesOf(t *testing.T, w *providertest.Workspace, url string) map[string]any {
	t.Helper()
	read, diags := w.ReadData(
		t.Context(),
		providertest.Configuration{},
		"flotilla_inventory",
		map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "dev"}},
	)
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	sources := map[string]any{}
	for _, entry := range read["assignments"].([]any) {
		a := entry.(map[string]any)
		sources[a["host"].(string)+"/"+a["deployment_target"].(string)] = a["source"]
	}
	return sources
}

func TestChangesNameTheirSourceCommit(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	apply(t, w, assigned(url, fleetOf(nil), map[string]any{"source": sourceAt("a")}))
	if got := sourcesOf(t, w, url); !reflect.DeepEqual(
		got,
		map[string]any{"drone/app-core": sourceAt("a"), "drone/app-edge": sourceAt("a"), "large/app-core": sourceAt("a")},
	) {
		t.Errorf("after the first apply the sources are %v", got)
	}
	for _, further := range []map[string]any{{"source": sourceAt("b")}, nil} {
		if plan := apply(t, w, assigned(url, fleetOf(nil), further)); !plan.Empty() {
			t.Errorf("a plan that changes only %v has %v", further, plan.Change(assignment).After)
		}
	}
	apply(t, w, assigned(url, fleetOf(changedContainers()), map[string]any{"source": sourceAt("c")}))
	if got := sourcesOf(t, w, url); !reflect.DeepEqual(
		got,
		map[string]any{"drone/app-core": sourceAt("a"), "drone/app-edge": sourceAt("a"), "large/app-core": sourceAt("c")},
	) {
		t.Errorf("after a change the sources are %v", got)
	}
	apply(t, w, assigned(url, fleetOf(nil), nil))
	if got := sourcesOf(t, w, url)["large/app-core"]; got != nil {
		t.Errorf("without source the inventory has %v", got)
	}
	messages := git(t, url, "log", "--reverse", "--format=%(trailers:key=Flotilla-Source,valueonly,separator=%x2C)", "dev")
	if want := "https://git.example.com/platform/control-plane@" + strings.Repeat("a", 40) + "\nhttps://git.example.com/platform/control-plane@" + strings.Repeat("c", 40); strings.TrimSpace(
		messages,
	) != want {
		t.Errorf("trailers are\n%s\nwant\n%s", messages, want)
	}
	read, diags := w.ReadData(t.Context(), providertest.Configuration{}, "flotilla_history",
		map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"}})
	var sources []any
	for _, commit := range read["commits"].([]any) {
		sources = append(sources, commit.(map[string]any)["source"])
	}
	if diags.Err() != nil || !reflect.DeepEqual(sources, []any{nil, sourceAt("c"), sourceAt("a")}) {
		t.Errorf("the history has the sources %v: %s", sources, diags)
	}
	if _, diags := w.Apply(t.Context(), providertest.Configuration{}); diags.Err() != nil {
		t.Error(diags)
	}
}

func TestRollbacksNameTheirSourceCommit(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	apply(t, w, assigned(url, fleetOf(nil), map[string]any{"source": sourceAt("a")}))
	first := git(t, url, "rev-parse", "dev")
	apply(t, w, assigned(url, fleetOf(changedContainers()), map[string]any{"source": sourceAt("b")}))
	apply(t, w, assigned(url, fleetOf(changedContainers()), map[string]any{"source": sourceAt("c"), "rollback_to": first}))
	if got := sourcesOf(t, w, url)["large/app-core"]; !reflect.DeepEqual(got, sourceAt("c")) {
		t.Errorf("the source is %v", got)
	}
}

func TestASourceIsReadStrictly(t *testing.T) {
	t.Parallel()
	commit := strings.Repeat("a", 40)
	for name, test := range map[string]struct {
		source any
		want   string
	}{
		"credentials":     {map[string]any{"url": "https://ci:secret@git.example.com/x", "commit": commit}, "the URL has credentials in it"},
		"another scheme":  {map[string]any{"url": "ftp://git.example.com/x", "commit": commit}, `scheme "ftp" is not supported`},
		"a short commit":  {map[string]any{"url": "https://git.example.com/x", "commit": "aaaaaaa"}, "must be the full id of a commit"},
		"no commit":       {map[string]any{"url": "https://git.example.com/x"}, "commit: is required"},
		"no URL":          {map[string]any{"commit": commit}, "url: is required"},
		"a misspelt name": {map[string]any{"url": "https://git.example.com/x", "commit": commit, "branch": "main"}, "branch"},
		"a text":          {commit, "Must be an object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, w := bare(t), providertest.New(startProvider)
			_, diags := w.Apply(t.Context(), assigned(url, fleetOf(nil), map[string]any{"source": test.source}))
			if len(diags) != 1 || !diags[0].Error || diags[0].At != `AttributeName("source")` || !strings.Contains(diags[0].Detail, test.want) ||
				strings.Contains(diags[0].Detail, "secret") {
				t.Errorf("the diagnostics are %s", diags)
			}
		})
	}
}

func TestUnknownSourceIsWrittenAtApply(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	apply(t, w, assigned(url, fleetOf(nil), map[string]any{"source": providertest.Unknown{Then: sourceAt("d")}}))
	if got := sourcesOf(t, w, url)["large/app-core"]; !reflect.DeepEqual(got, sourceAt("d")) {
		t.Errorf("the source is %v", got)
	}
}
