package provider_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/prometheustest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// parseMetrics returns the values by metric and labels, without comments and common labels.
func parseMetrics(t *testing.T, values map[string]any) map[string]string {
	t.Helper()
	text, _ := values["metrics"].(string)
	if !strings.HasSuffix(text, "\n# EOF\n") {
		t.Errorf("the metrics are %q", text)
	}
	lines := map[string]string{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		const common = `environment="dev",owner="dev"`
		if !strings.Contains(name, common) {
			t.Errorf("the line %q has no labels %s", line, common)
		}
		lines[strings.Replace(strings.Replace(name, common+",", "", 1), common, "", 1)+"}"] = value
	}
	return lines
}

// The health score is the overview's.
func TestComplianceGivesMetrics(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	apply(t, w, assigned(url, fleetWithClusters(nil), nil))
	first := git(t, url, "rev-parse", "dev")
	apply(t, w, assigned(url, fleetWithClusters(map[string]any{"config_containers": []any{
		map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": "info"}},
		map[string]any{"name": "large", "labels": map[string]any{"cluster-type": "large"}, "data": map[string]any{"DATABASE_URL": "mysql://two"}},
	}}), nil))
	since := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	values := mustReadCompliance(t, url, map[string]any{
		"feedback": map[string]any{"reports": []any{
			report("drone-1", first, nil), report("large-1", first, nil),
			report("drone-2", first, map[string]any{"ready": nil, "verdict": "failed"}),
		}},
		"progress": rollout.MarshalProgress([]rollout.Progress{{
			DeploymentTarget: "app-core", Content: "0123abcd", Stage: 1, Stages: 2, StageName: "canary", HostsDone: 1, Hosts: 2, Since: since,
			WaitsFor: rollout.WaitsForApproval, Condition: rollout.Waiting,
		}}),
	})
	readAt, err := time.Parse(time.RFC3339, values["time"].(string))
	if err != nil {
		t.Fatal(err)
	}
	lines := parseMetrics(t, values)
	overview := mustReadOverview(t, url, map[string]any{"evidence": values["evidence"]})
	for name, want := range map[string]any{
		"flotilla_evidence_timestamp_seconds{}": readAt.Unix(),
		`flotilla_clusters{verdict="ready"}`:    1,
		`flotilla_clusters{verdict="behind"}`:   1,
		`flotilla_clusters{verdict="failed"}`:   1,
		`flotilla_clusters{verdict="unknown"}`:  0,
		"flotilla_commits_behind{}":             1,
		"flotilla_health_score{}":               overview["health_score"],
		`flotilla_rollouts{stage="1",stage_name="canary",state="waiting",waits_for="approval"}`:                                                     1,
		`flotilla_rollout_since_timestamp_seconds{deployment_target="app-core",stage="1",stage_name="canary",state="waiting",waits_for="approval"}`: since.Unix(),
		`flotilla_assignment_clusters{host="large",deployment_target="app-core",wanted_version="main",verdict="behind"}`:                            1,
		`flotilla_assignment_clusters{host="drone",deployment_target="app-core",wanted_version="main",verdict="failed"}`:                            1,
		`flotilla_assignment_clusters{host="drone",deployment_target="app-core",wanted_version="main",verdict="ready"}`:                             1,
		`flotilla_omitted_series{metric="flotilla_assignment_clusters"}`:                                                                            0,
	} {
		if got := lines[name]; got != fmt.Sprint(want) {
			t.Errorf("%s is %q, want %v; there is %v", name, got, want, values["metrics"])
		}
	}

	// Without reports, the clusters are unknown, and there is no score and no rollout.
	lines = parseMetrics(t, mustReadCompliance(t, url, map[string]any{"feedback": map[string]any{}}))
	if _, scored := lines["flotilla_health_score{}"]; scored || lines[`flotilla_clusters{verdict="unknown"}`] != "3" {
		t.Errorf("without reports, the metrics are %v", lines)
	}
	for name := range lines {
		if strings.HasPrefix(name, "flotilla_rollout") {
			t.Errorf("without progress, the metrics have %s", name)
		}
	}
}

// Two clusters run another version than the branch, and one reports no version.
func TestMetricsSayWhichVersionRuns(t *testing.T) {
	t.Parallel()
	url := bare(t)
	apply(t, providertest.New(startProvider), assigned(url, fleetWithClusters(nil), nil))
	host := serveRunningCluster(
		t,
		url,
		"v0.9@sha1:1111111111111111111111111111111111111111",
		"main@sha1:2222222222222222222222222222222222222222",
		"drone",
		"large",
	)
	values, diags := readCompliance(t, url, map[string]any{"clusters": map[string]any{
		"drone-1": map[string]any{"host": host, "token": hiddenValue}, "large-1": map[string]any{"host": host, "token": hiddenValue},
	}}, map[string]any{"feedback": map[string]any{"clusters": true}})
	if diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	for _, want := range []string{
		`flotilla_assignment_clusters{host="drone",deployment_target="app-core",wanted_version="main",running_version="v0.9",verdict="unknown"}`,
		`flotilla_assignment_clusters{host="drone",deployment_target="app-core",wanted_version="main",verdict="unknown"}`,
		`flotilla_assignment_clusters{host="large",deployment_target="app-core",wanted_version="main",running_version="v0.9",verdict="unknown"}`,
	} {
		if got := parseMetrics(t, values)[want]; got != "1" {
			t.Errorf("%s is %q; there is %v", want, got, values["metrics"])
		}
	}
	if text := fmt.Sprint(values["metrics"]); strings.Contains(text, hiddenValue) || strings.Contains(text, host) {
		t.Errorf("a token, or the address of a cluster, is in %s", text)
	}
}

// People without access to the state can read metrics.
func TestMetricsHoldNoValueAndNoMessage(t *testing.T) {
	t.Parallel()
	url := bare(t)
	apply(t, providertest.New(startProvider), assigned(url, fleetWithClusters(hiddenValues()), nil))
	tip := git(t, url, "rev-parse", "dev")
	text := fmt.Sprint(mustReadCompliance(t, url, map[string]any{
		"fleet": fleetWithClusters(hiddenValues()),
		"feedback": map[string]any{"reports": []any{
			report("drone-1", tip, nil), report("large-1", tip, map[string]any{"ready": nil, "verdict": "failed", "message": "a " + hiddenValue + " b"}),
		}},
	})["metrics"])
	if !strings.Contains(text, `verdict="failed"} 1`) || strings.Contains(text, url) {
		t.Errorf("the metrics are %s", text)
	}
	for form, secret := range leakedForms(hiddenValue) {
		if strings.Contains(text, secret) {
			t.Errorf("a value or a message is in the metrics, %s: %s", form, text)
		}
	}
}

func TestComplianceRefusesInvalidProgress(t *testing.T) {
	t.Parallel()
	_, diags := readCompliance(
		t,
		bare(t),
		nil,
		map[string]any{"progress": `{"app-core":{"stage":3}}`, "feedback": map[string]any{"cluster": true}},
	)
	for _, want := range []string{`AttributeName("progress")`, `It has no progress of a rollout under "app-core". Set it to progress of the assignment.`, "cluster: unknown attribute"} {
		if !strings.Contains(diags.String(), want) {
			t.Errorf("got %s, want %s", diags, want)
		}
	}
}

func TestPrometheusReadsTheMetricsOfCompliance(t *testing.T) {
	t.Parallel()
	url := bare(t)
	apply(t, providertest.New(startProvider), assigned(url, fleetWithClusters(nil), nil))
	tip := git(t, url, "rev-parse", "dev")
	values := mustReadCompliance(
		t,
		url,
		map[string]any{"feedback": map[string]any{"reports": []any{report("drone-1", tip, nil), report("large-1", tip, nil)}}},
	)
	text, _ := values["metrics"].(string)
	if message := prometheustest.Promtool(t, text, "check", "metrics"); message != "" {
		t.Errorf("promtool says %s", message)
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
		fmt.Fprint(w, text)
	}))
	t.Cleanup(page.Close)
	server := prometheustest.Start(t, t.TempDir(), fmt.Sprintf(
		"scrape_configs: [{job_name: flotilla, scrape_interval: 1s, static_configs: [{targets: [%q]}]}]\n",
		strings.TrimPrefix(page.URL, "http://"),
	))
	server.Wait(t, "Prometheus has not read the metrics", func() bool { return len(server.Query(t, "flotilla_clusters")) == 5 })
	want := map[string]string{"ready": "2", "unknown": "1", "failed": "0", "behind": "0", "progressing": "0"}
	got := map[string]string{}
	for _, sample := range server.Query(t, `flotilla_clusters{environment="dev", owner="dev"}`) {
		got[sample.Labels["verdict"]] = sample.Value
	}
	if !maps.Equal(got, want) {
		t.Errorf("Prometheus has %v, want %v", got, want)
	}
}

// TestTerraformOutputsMetrics applies the guide's example twice. The second apply leaves a rollout in progress.
func TestTerraformOutputsMetrics(t *testing.T) {
	t.Parallel()
	const file = "examples/observing/metrics/main.tf"
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repository := filepath.ToSlash(filepath.Join(t.TempDir(), "gitops.git"))
			config := requiredProviders + strings.ReplaceAll(guideExample(t, "observe.md.tmpl", file), `"gitops.git"`, strconv.Quote(repository))
			w := newWorkdir(t, tool, map[string]string{"main.tf": config})
			printed := w.run("apply", "-input=false", "-auto-approve")
			text := w.run("output", "-raw", "metrics")
			if want := "\nflotilla_clusters{environment=\"dev\",owner=\"dev\",verdict=\"unknown\"} 3\n"; !strings.Contains(text, want) ||
				strings.Contains(printed, "flotilla_clusters") {
				t.Errorf("the apply prints %s, and the output is %s", printed, text)
			}
			writeFile(t, filepath.Join(w.path, "main.tf"), strings.Replace(config, `tag = "v1"`, `tag = "v2"`, 1))
			w.run("apply", "-input=false", "-auto-approve")
			want := "\nflotilla_rollouts{environment=\"dev\",owner=\"dev\",stage=\"1\",stage_name=\"canary\",state=\"waiting\",waits_for=\"clusters\"} 1\n"
			if text := w.run("output", "-raw", "metrics"); !strings.Contains(text, want) || !strings.Contains(text, `wanted_version="v2"`) {
				t.Errorf("while a rollout is under way, the output is %s", text)
			}

			// Without the output, plans have no changes, but the state has the metrics.
			config, _, _ = strings.Cut(config, "# It changes in every run")
			writeFile(t, filepath.Join(w.path, "main.tf"), strings.Replace(config, `tag = "v1"`, `tag = "v2"`, 1))
			w.run("apply", "-input=false", "-auto-approve")
			w.plan("-detailed-exitcode")
			var shown struct {
				Values struct {
					RootModule struct {
						Resources []struct {
							Address string
							Values  struct{ Metrics string }
						}
					} `json:"root_module"`
				}
			}
			if err := json.Unmarshal([]byte(w.run("show", "-json")), &shown); err != nil {
				t.Fatal(err)
			}
			found := false
			for _, resource := range shown.Values.RootModule.Resources {
				found = found || resource.Address == "data.flotilla_compliance.after" && strings.Contains(resource.Values.Metrics, want)
			}
			if !found {
				t.Errorf("the state has %+v", shown)
			}
		})
	}
}
