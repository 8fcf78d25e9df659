package provider_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// comparedFleet has a tag for the target edge, and its own config containers.
func comparedFleet(tag string, containers ...any) providertest.Call {
	target := func(labels map[string]any, manifests map[string]any) map[string]any {
		return map[string]any{"environment": "dev", "labels": labels, "manifests": manifests}
	}
	return fleetOf(map[string]any{
		"workloads": []any{map[string]any{"name": "app", "workspace": "team", "deployment_targets": map[string]any{
			"edge": target(map[string]any{"edge": "true"}, map[string]any{"repo": "https://git.example.com/app", "tag": tag}),
			"core": target(nil, map[string]any{"repo": "https://git.example.com/app", "branch": "main", "path": "core"}),
		}}},
		"config_containers": containers,
	})
}

func configContainer(name string, labels, data map[string]any) map[string]any {
	return map[string]any{"name": name, "labels": labels, "data": data}
}

// newComparedRepository has the environments stage and prod on two branches, with different versions and values. In prod, core
// is not on large.
func newComparedRepository(t *testing.T) string {
	t.Helper()
	url := bare(t)
	attributesAt := func(name string) map[string]any {
		return map[string]any{"name": name, "gitops_repo": map[string]any{"url": url, "branch": name}}
	}
	apply(t, providertest.New(startProvider), assigned(url, comparedFleet("v2",
		configContainer("all", nil, map[string]any{"LOG_LEVEL": "debug", "URL": "canary-stage", "SAME": "1"})), attributesAt("stage")))
	prod := comparedFleet(
		"v1",
		configContainer("all", nil, map[string]any{"URL": "canary-prod", "SAME": "1"}),
		configContainer("edge", map[string]any{"edge": "true"}, map[string]any{"CACHE": "canary-on"}),
	)
	prod.Arguments[0].(map[string]any)["target_policies"] = []any{
		policy(
			"edge",
			map[string]any{"match_labels": map[string]any{"edge": "true"}},
			map[string]any{"match_labels": map[string]any{"edge": "true"}},
		),
		policy("prod-core", map[string]any{"expression": "!edge"}, map[string]any{"expression": "edge=true"}),
	}
	apply(t, providertest.New(startProvider), assigned(url, prod, attributesAt("prod")))
	return url
}

func comparisonSide(url, name, commit string) map[string]any {
	side := map[string]any{"gitops_repo": map[string]any{"url": url, "branch": name}, "name": name}
	if commit != "" {
		side["commit"] = commit
	}
	return side
}

func readComparison(t *testing.T, attributes map[string]any) (map[string]any, providertest.Diagnostics) {
	t.Helper()
	return providertest.New(startProvider).ReadData(t.Context(), providertest.Configuration{}, "flotilla_comparison", attributes)
}

func mustReadComparison(t *testing.T, attributes map[string]any) map[string]any {
	t.Helper()
	read, diags := readComparison(t, attributes)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	return read
}

// formatTargets prints a line for each deployment target.
func formatTargets(read map[string]any) string {
	var lines []string
	for _, entry := range read["deployment_targets"].([]any) {
		target := entry.(map[string]any)
		line := fmt.Sprintf("%s %s %v", target["name"], target["state"], target["differs"])
		for _, side := range []string{"left", "right"} {
			part := target[side].(map[string]any)
			for _, version := range part["versions"].([]any) {
				v := version.(map[string]any)
				m := v["manifests"].(map[string]any)
				line += fmt.Sprintf(" %s:%v%v%v", side, m["tag"], m["branch"], v["hosts"])
			}
			line += fmt.Sprintf(" only:%v%v", part["only_hosts"], part["only_policies"])
		}
		for _, entry := range target["keys"].([]any) {
			key := entry.(map[string]any)
			line += fmt.Sprintf(" %s:%s%v%v", key["key"], key["state"], key["left"], key["right"])
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestAComparisonListsTheDifferencesOfTwoEnvironments(t *testing.T) {
	t.Parallel()
	url := newComparedRepository(t)
	sides := map[string]any{"left": comparisonSide(url, "stage", ""), "right": comparisonSide(url, "prod", "")}
	read := mustReadComparison(t, sides)
	want := strings.Join([]string{
		"app-core different [hosts values policies] left:<nil>main[drone large] only:[large][core core-on-large] right:<nil>main[drone] only:[][prod-core] CACHE:only_right[][] LOG_LEVEL:only_left[][] URL:different[][]",
		"app-edge different [version values] left:v2<nil>[drone] only:[][] right:v1<nil>[drone] only:[][] CACHE:only_right[][] LOG_LEVEL:only_left[][] URL:different[][]",
	}, "\n")
	if got := formatTargets(read); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	summary := map[string]any{
		"different": 2, "only_left": 0, "only_right": 0, "same": 0,
		"left":  map[string]any{"written": true, "commit": git(t, url, "rev-parse", "stage"), "hosts": 2, "assignments": 3},
		"right": map[string]any{"written": true, "commit": git(t, url, "rev-parse", "prod"), "hosts": 1, "assignments": 2},
	}
	if got := fmt.Sprint(read["summary"]); got != fmt.Sprint(summary) || fmt.Sprint(read["notes"], read["complete"]) != "[] true" {
		t.Errorf("summary is %s, want %v; notes are %v, complete %v", got, summary, read["notes"], read["complete"])
	}
	// Values are shown only on request.
	if strings.Contains(fmt.Sprint(read), "canary") {
		t.Errorf("values are shown: %v", read)
	}
	shown := maps.Clone(sides)
	shown["show_values"] = true
	read = mustReadComparison(t, shown)
	if got := formatTargets(read); !strings.Contains(got, "URL:different[canary-stage][canary-prod]") ||
		!strings.Contains(got, "CACHE:only_right[][canary-on]") {
		t.Errorf("got %s", got)
	}
	for _, form := range []string{"markdown", "json"} {
		if text := read[form].(string); !strings.Contains(text, "canary-stage") || !strings.Contains(text, "app-core") {
			t.Errorf("%s is %s", form, text)
		}
	}
	limited := maps.Clone(sides)
	maps.Copy(limited, map[string]any{"limit": 1, "markdown_limit": 1024})
	read = mustReadComparison(t, limited)
	if len(read["deployment_targets"].([]any)) != 1 || read["complete"] != false || len(read["markdown"].(string)) > 1024 {
		t.Errorf("with limits, got %v", read)
	}
	framework, diags := providertest.New(startFramework).ReadData(t.Context(), providertest.Configuration{}, "flotilla_comparison", shown)
	if diags.Err() != nil || framework["markdown"] == nil {
		t.Errorf("with the framework alone: %s", diags)
	}
}

func TestAComparisonOfTwoCommitsListsTheChangesOfARollout(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	location := map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "dev"}}
	apply(t, w, assigned(url, fleetOf(nil), location))
	first := git(t, url, "rev-parse", "dev")
	apply(t, w, assigned(url, fleetOf(changedContainers()), location))
	second := git(t, url, "rev-parse", "dev")
	// A person changes a file without configuration values.
	folder := repository{url: url, cloneURL: url}.clone(t, "dev")
	writeFile(t, filepath.Join(folder, "drone", "app-edge", "namespace.yaml"), "# by hand\n")
	git(t, folder, "commit", "-qam", "by hand")
	git(t, folder, "push", "-q", "origin", "dev")
	for name, test := range map[string]struct {
		left, right, want string
	}{
		"two commits":             {first, second, "app-core different [values] left:<nil>main[drone large] only:[][] right:<nil>main[drone large] only:[][] DATABASE_URL:different[][]"},
		"then and now":            {second, "", "app-edge different [files] left:<nil>main[drone] only:[][] right:<nil>main[drone] only:[][]"},
		"two names of one commit": {git(t, folder, "rev-parse", "dev"), "", ""},
	} {
		read := mustReadComparison(t, map[string]any{"left": comparisonSide(url, "dev", test.left), "right": comparisonSide(url, "dev", test.right)})
		if got := formatTargets(read); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, test.want)
		}
	}
}

func TestAComparisonPairsOtherNamesInOtherRepositories(t *testing.T) {
	t.Parallel()
	url := newComparedRepository(t)
	other := bare(t)
	fleet := comparedFleet("v2", configContainer("all", nil, map[string]any{"LOG_LEVEL": "debug", "URL": "canary-stage", "SAME": "1"}))
	argument := fleet.Arguments[0].(map[string]any)
	argument["cluster_types"] = []any{
		map[string]any{"name": "prod-drone", "labels": map[string]any{"edge": "true"}},
		map[string]any{"name": "prod-large", "labels": map[string]any{"size": "large"}},
	}
	targets := argument["workloads"].([]any)[0].(map[string]any)["deployment_targets"].(map[string]any)
	targets["prod-edge"] = targets["edge"]
	delete(targets, "edge")
	apply(
		t,
		providertest.New(startProvider),
		assigned(other, fleet, map[string]any{"name": "prod", "gitops_repo": map[string]any{"url": other, "branch": "prod"}}),
	)
	sides := map[string]any{"left": comparisonSide(url, "stage", ""), "right": comparisonSide(other, "prod", "")}
	read := mustReadComparison(t, sides)
	if got := fmt.Sprint(read["summary"].(map[string]any)["only_left"], read["summary"].(map[string]any)["only_right"], read["summary"].(map[string]any)["different"]); got != "111" {
		t.Errorf("without pairs: %s\n%s", got, formatTargets(read))
	}
	sides["pairs"] = map[string]any{
		"deployment_targets": map[string]any{"app-edge": "app-prod-edge"},
		"hosts":              map[string]any{"drone": "prod-drone", "large": "prod-large"},
	}
	if read = mustReadComparison(t, sides); len(read["deployment_targets"].([]any)) > 0 ||
		!strings.Contains(read["markdown"].(string), "Nothing differs: 2 deployment targets.") {
		t.Errorf("with pairs:\n%s\n%s", formatTargets(read), read["markdown"])
	}
}

func TestAnUnwrittenSideIsEmpty(t *testing.T) {
	t.Parallel()
	url := newComparedRepository(t)
	read := mustReadComparison(t, map[string]any{"left": comparisonSide(url, "stage", ""), "right": comparisonSide(url, "next", "")})
	summary := read["summary"].(map[string]any)
	if got := fmt.Sprint(read["notes"], summary["only_left"], summary["right"]); got != `[The right side is not written yet: branch "next" does not exist.]2`+fmt.Sprint(
		map[string]any{"written": false, "commit": nil, "hosts": 0, "assignments": 0},
	) {
		t.Errorf("got %s", got)
	}
	if !strings.Contains(read["markdown"].(string), `The right side is not written yet: branch "next" does not exist.`) {
		t.Error(read["markdown"])
	}
	// No repository, as before the first apply, and a path without content.
	nowhere := comparisonSide(bare(t), "prod", "")
	elsewhere := comparisonSide(url, "prod", "")
	elsewhere["gitops_repo"].(map[string]any)["path"] = "clusters/prod"
	for _, side := range []map[string]any{nowhere, elsewhere} {
		if read := mustReadComparison(t, map[string]any{"left": comparisonSide(url, "stage", ""), "right": side}); len(read["notes"].([]any)) != 1 {
			t.Errorf("notes are %v", read["notes"])
		}
	}
}

func TestAComparisonIsReadStrictly(t *testing.T) {
	t.Parallel()
	url := newComparedRepository(t)
	foreign := git(t, url, "rev-parse", "stage")
	sideWith := func(attribute string, value any) map[string]any {
		side := comparisonSide(url, "prod", "")
		side[attribute] = value
		return side
	}
	for name, test := range map[string]struct {
		attribute      string
		value          any
		location, says string
	}{
		"an unknown owner":                       {"right", sideWith("name", "prd"), "right", `branch "prod" has no "prd" at path "", but "prod"`},
		"a commit of another branch":             {"right", sideWith("commit", foreign), "right", "is not in the history of the branch"},
		"a commit of a missing branch":           {"right", comparisonSide(url, "next", foreign), "right", "is not in the history of the branch"},
		"a short commit":                         {"right", sideWith("commit", foreign[:10]), "right", "commit: must be the full id of a commit"},
		"the same side twice":                    {"right", comparisonSide(url, "stage", ""), "right", `Both are the assignment "stage" on branch "stage"`},
		"no repository":                          {"right", map[string]any{"name": "prod"}, "right", "gitops_repo: is required"},
		"no branch":                              {"left", sideWith("gitops_repo", map[string]any{"url": url}), "left", "gitops_repo.branch: is required"},
		"an unsupported scheme":                  {"left", sideWith("gitops_repo", map[string]any{"url": "ftp://x", "branch": "x"}), "left", `gitops_repo.url: the URL's scheme "ftp"`},
		"a misspelt key":                         {"left", sideWith("comit", foreign), "left", `did you mean "commit"`},
		"a misspelt key of the repository":       {"left", sideWith("gitops_repo", map[string]any{"url": url, "branch": "x", "pth": "x"}), "left", "pth"},
		"no name":                                {"left", sideWith("name", nil), "left", "name: is required"},
		"another name":                           {"left", sideWith("name", "Stage_"), "left", "Stage_"},
		"a string":                               {"left", "stage", "left", "Must be an object"},
		"an unknown kind of pairs":               {"pairs", map[string]any{"targets": map[string]any{}}, "pairs", "targets"},
		"two pairs of one host":                  {"pairs", map[string]any{"hosts": map[string]any{"a": "c", "b": "c"}}, "pairs", `pairs "c" with both "a" and "b"`},
		"a limit of zero":                        {"limit", 0, "limit", "from 1 to 100000"},
		"too little Markdown":                    {"markdown_limit", 10, "markdown_limit", "from 1024"},
		"an unknown timeout":                     {"timeouts", map[string]any{"create": "1m"}, "timeouts", "create"},
		"an unreachable repository on the left":  {"left", comparisonSide("http://127.0.0.1:1/x.git", "stage", ""), "left", "127.0.0.1:1"},
		"an unreachable repository on the right": {"right", comparisonSide("http://127.0.0.1:1/x.git", "stage", ""), "right", "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attributes := map[string]any{"left": comparisonSide(url, "stage", ""), "right": comparisonSide(url, "prod", ""), test.attribute: test.value}
			_, diags := readComparison(t, attributes)
			if len(diags) != 1 || !diags[0].Error || diags[0].At != `AttributeName("`+test.location+`")` || !strings.Contains(diags[0].Detail, test.says) {
				t.Errorf("got diagnostics %s", diags)
			}
		})
	}
	_, diags := readComparison(t, map[string]any{"left": map[string]any{"nme": "x"}, "right": "y", "limit": 0})
	if len(diags) < 4 {
		t.Errorf("not all mistakes are reported at once: %s", diags)
	}
}

// A comparison looks at each branch once, and reads only the configuration files that differ.
func TestAComparisonReadsNoMoreThanItNeeds(t *testing.T) {
	t.Parallel()
	url := newComparedRepository(t)
	git(t, url, "config", "uploadpack.allowAnySHA1InWant", "true")
	git(t, url, "config", "uploadpack.allowFilter", "true")
	backend := httpBackend(t, filepath.Dir(url))
	var looks, requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			looks.Add(1)
		} else {
			requests.Add(1)
		}
		backend.ServeHTTP(w, r)
	}))
	defer server.Close()
	remote := server.URL + "/gitops.git"
	remoteRead := mustReadComparison(t, map[string]any{"left": comparisonSide(remote, "stage", ""), "right": comparisonSide(remote, "prod", "")})
	local := mustReadComparison(t, map[string]any{"left": comparisonSide(url, "stage", ""), "right": comparisonSide(url, "prod", "")})
	if !reflect.DeepEqual(remoteRead["deployment_targets"], local["deployment_targets"]) {
		t.Errorf("over http, got %s", formatTargets(remoteRead))
	}
	if looks.Load() != 2 {
		t.Errorf("%d looks at two branches", looks.Load())
	}
	// For each branch: the trees, the records, the trees of folders, and their files.
	if requests.Load() > 10 {
		t.Errorf("%d requests", requests.Load())
	}
	t.Logf("%d looks, %d requests", looks.Load(), requests.Load())
}

func TestAComparisonOfAnUnknownCommitIsDeferred(t *testing.T) {
	t.Parallel()
	for _, tool := range acceptanceTools(t) {
		url := bare(t)
		w := newWorkdir(t, tool, map[string]string{"main.tf": requiredProviders + small{}.config(repository{url: url}) + `
data "flotilla_comparison" "test" {
  left  = { gitops_repo = flotilla_assignment.test.gitops_repo, name = "dev", commit = flotilla_assignment.test.commit }
  right = { gitops_repo = flotilla_assignment.test.gitops_repo, name = "dev" }
}
output "different" { value = data.flotilla_comparison.test.summary.different }
`})
		if planned := w.plan(); planned.OutputChanges["different"].AfterUnknown != true {
			t.Errorf("the plan has %v", planned.OutputChanges["different"])
		}
		w.run("apply", "-input=false", "-auto-approve")
		w.plan("-detailed-exitcode")
	}
}

func TestThePageShowsComparisons(t *testing.T) {
	t.Parallel()
	url := newComparedRepository(t)
	read := mustReadComparison(t, map[string]any{"left": comparisonSide(url, "stage", ""), "right": comparisonSide(url, "prod", ""), "show_values": true})
	comparisons := map[string]any{"stage and prod": read["json"]}
	for show, isShown := range map[bool]bool{false: false, true: true} {
		page := mustReadOverview(t, bare(t), map[string]any{"comparisons": comparisons, "show_values": show})
		html := page["html"].(string)
		if !strings.Contains(html, "2 deployment targets differ, 0 are the same") || !strings.Contains(html, "LOG_LEVEL") ||
			strings.Contains(html, "canary-stage") != isShown {
			t.Errorf("show_values = %v: values are shown: %v", show, strings.Contains(html, "canary-stage"))
		}
		if !strings.Contains(page["markdown"].(string), "| `stage and prod` | `stage` | `prod` | 2 | 0 | 0 | 0 |") {
			t.Errorf("the Markdown is %s", page["markdown"])
		}
		kept := page["comparisons"].(map[string]any)["stage and prod"].(string)
		if !strings.HasPrefix(kept, "sha256:") {
			t.Errorf("the state keeps %s", kept)
		}
	}
	_, diags := readOverview(t, bare(t), map[string]any{"comparisons": map[string]any{"a": "{}", "b": read["json"]}})
	if len(diags) != 1 || diags[0].At != `AttributeName("comparisons").ElementKeyString("a")` ||
		!strings.Contains(diags[0].Detail, "Set it to json of a flotilla_comparison.") {
		t.Errorf("got diagnostics %s", diags)
	}
	many := map[string]any{}
	for i := range 9 {
		many[fmt.Sprint(i)] = read["json"]
	}
	if _, diags = readOverview(t, bare(t), map[string]any{"comparisons": many}); len(diags) != 1 ||
		!slices.ContainsFunc(diags, func(d providertest.Diagnostic) bool { return strings.Contains(d.Detail, "at most 8") }) {
		t.Errorf("got diagnostics %s", diags)
	}
}

// If the configuration is among the values of a chart, the folder has no configuration file.
func TestAComparisonReportsUnknownKeys(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	location := map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "dev"}}
	chart := func(level string) providertest.Call {
		return fleetOf(map[string]any{
			"workloads": []any{map[string]any{"name": "app", "workspace": "team", "deployment_targets": map[string]any{"core": map[string]any{
				"environment": "dev", "config_as": []any{"values"},
				"manifests": map[string]any{"storage": "helm", "repo": "https://charts.example.com", "chart": "app", "version": "1.0.0"},
			}}}},
			"target_policies":   []any{policy("all", nil, map[string]any{})},
			"config_containers": []any{configContainer("all", nil, map[string]any{"LOG_LEVEL": level})},
		})
	}
	apply(t, w, assigned(url, chart("info"), location))
	first := git(t, url, "rev-parse", "dev")
	apply(t, w, assigned(url, chart("debug"), location))
	read := mustReadComparison(t, map[string]any{"left": comparisonSide(url, "dev", first), "right": comparisonSide(url, "dev", "")})
	target := read["deployment_targets"].([]any)[0].(map[string]any)
	if got := fmt.Sprint(target["differs"], target["keys"], target["keys_known"], read["notes"]); got != "[values] [] false [It is unknown which values differ in 1 deployment target: their folders have no file of configuration that can be read.]" {
		t.Errorf("got %s", got)
	}
}

// A real Git host gives single objects and requires a token.
func TestAComparisonOnAGitHost(t *testing.T) {
	t.Parallel()
	repo, _, user := giteaWithUser(t)
	w, settings := providertest.New(startProvider), map[string]any{"git": map[string]any{"token": user.Token}}
	location := map[string]any{"gitops_repo": map[string]any{"url": repo.url, "branch": "dev"}}
	var commits []string
	for _, fleet := range []providertest.Call{fleetOf(nil), fleetOf(changedContainers())} {
		configuration := assigned(repo.url, fleet, location)
		configuration.Provider = settings
		apply(t, w, configuration)
		commits = append(commits, git(t, repo.folder, "rev-parse", "dev"))
	}
	for _, right := range []string{commits[1], ""} {
		read, diags := providertest.New(startProvider).ReadData(t.Context(), providertest.Configuration{Provider: settings}, "flotilla_comparison",
			map[string]any{"left": comparisonSide(repo.url, "dev", commits[0]), "right": comparisonSide(repo.url, "dev", right)})
		if len(diags) > 0 {
			t.Fatal(diags)
		}
		if got, want := formatTargets(read), "app-core different [values] left:<nil>main[drone large] only:[][] right:<nil>main[drone large] only:[][] DATABASE_URL:different[][]"; got != want {
			t.Errorf("got %s", got)
		}
	}
}
