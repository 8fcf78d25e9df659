package metrics_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/prometheustest"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/metrics"
)

var examples = filepath.Join("..", "..", "..", "examples", "observing", "metrics")

func readExample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(examples, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// promtool parses metrics like the Pushgateway and node_exporter, in the older text format.
func TestPromtoolAcceptsMetricsAndExamples(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]metrics.Input{"troubled": troubledFleet(t), "nothing": newInput(), "hostile": hostileFleet(), "large": largeFleet()} {
		if complaint := prometheustest.Promtool(t, metrics.Text(in), "check", "metrics"); complaint != "" {
			t.Errorf("promtool on %s:\n%s", name, complaint)
		}
	}
	prometheustest.Promtool(t, "", "check", "config", "--lint=all", "--lint-fatal", filepath.Join(examples, "prometheus.yml"))
	prometheustest.Promtool(t, "", "check", "rules", "--lint=all", "--lint-fatal", filepath.Join(examples, "alerts.yml"))
	prometheustest.Promtool(t, "", "test", "rules", filepath.Join(examples, "alerts_test.yml"))
}

// metricsServer serves both jobs of the example: one with its format and with added labels, like the Pushgateway, and one without.
type metricsServer struct{ text atomic.Pointer[string] }

func (p *metricsServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text := p.text.Load()
	switch {
	case text == nil:
		http.Error(w, "gone", http.StatusGone)
	case r.URL.Path == "/metrics":
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		fmt.Fprint(w, strings.ReplaceAll(*text, "{environment=", `{job="flotilla",instance="prod",environment=`))
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		fmt.Fprint(w, *text)
	}
}

func (p *metricsServer) setText(text string) { p.text.Store(&text) }

// startPrometheus starts Prometheus with the example's configuration and alerts, but with other addresses and waiting times.
func startPrometheus(t *testing.T, p *metricsServer) *prometheustest.Prometheus {
	t.Helper()
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	configuration := readExample(t, "prometheus.yml")
	for from, to := range map[string]string{"pushgateway.example.com:9091": address, "pages.example.com": address, "scheme: https": "scheme: http", "scrape_interval: 1m": "scrape_interval: 1s", "evaluation_interval: 1m": "evaluation_interval: 200ms"} {
		if !strings.Contains(configuration, from) {
			t.Fatalf("prometheus.yml lacks %s", from)
		}
		configuration = strings.ReplaceAll(configuration, from, to)
	}
	folder := t.TempDir()
	alerts := regexp.MustCompile(`for: \d+m`).ReplaceAllLiteralString(readExample(t, "alerts.yml"), "for: 0s")
	if err := os.WriteFile(filepath.Join(folder, "alerts.yml"), []byte(alerts), 0o600); err != nil {
		t.Fatal(err)
	}
	return prometheustest.Start(t, folder, configuration)
}

// reportedNow sets the time of the report to now.
func reportedNow(in metrics.Input) metrics.Input {
	in.Result.Time = time.Now()
	return in
}

func TestPrometheusHasDataForEveryPanelAndEveryAlert(t *testing.T) {
	t.Parallel()
	var served metricsServer
	good := reportedNow(newInput(newCluster("drone-1", 0, assignmentOn("drone", "app-core", verdict.Ready, time.Hour))))
	setWanted(good, "drone/app-core", "v2.0.0")
	served.setText(metrics.Text(good))
	server := startPrometheus(t, &served)

	// The fleet is healthy.
	seen := func(expression string) func() bool {
		return func() bool { return len(server.Query(t, expression)) == 2 } // by both jobs
	}
	server.Wait(t, "the healthy fleet is not seen", seen("flotilla_health_score == 100"))
	quiet := func() bool { return len(server.Alerts(t)) == 0 }
	since := time.Now()
	server.Wait(t, "the healthy fleet has alerts", func() bool {
		return server.Evaluated(t).After(since) && quiet() // an evaluation may use an earlier moment
	})

	// Every alert fires, except the one about missing metrics.
	served.setText(metrics.Text(threeHoursAgo(t)))
	var want []string
	for _, name := range alertNames(t) {
		if name != "FlotillaMetricsMissing" {
			want = append(want, name)
		}
	}
	fires := func(want []string) func() bool {
		return func() bool {
			firing := server.Alerts(t)
			maps.DeleteFunc(firing, func(_, state string) bool { return state != "firing" })
			return slices.Equal(slices.Sorted(maps.Keys(firing)), want)
		}
	}
	server.Wait(t, fmt.Sprintf("not all of %v fire", want), fires(want))

	// Every panel and variable of the dashboard has data. The second job may be scraped after the alerts fire.
	server.Wait(t, "the unhealthy fleet is not seen by both jobs", seen("flotilla_health_score < 75"))
	for title, expression := range panels(t) {
		if len(server.Query(t, expression)) == 0 {
			t.Errorf("the panel %q has no data: %s", title, expression)
		}
	}
	for _, test := range []struct{ expression, want string }{
		{`sum(flotilla_clusters{job="flotilla",instance="prod"})`, "4"},
		{`flotilla_assignment_clusters{instance!="prod",host="drone",deployment_target="app-core",verdict="behind",wanted_version="v2.0.0",running_version="v1.9.0"}`, "2"},
	} {
		if got := server.Query(t, test.expression); len(got) != 1 || got[0].Value != test.want {
			t.Errorf("%s is %v, want %s", test.expression, got, test.want)
		}
	}

	// Alerts end with their cause. Missing metrics raise an alert.
	served.setText(metrics.Text(reportedNow(good)))
	server.Wait(t, "alerts remain after the recovery", quiet)
	served.text.Store(nil)
	server.Wait(t, "missing metrics give no alert", fires([]string{"FlotillaMetricsMissing"}))
}

// threeHoursAgo returns a fleet with the problems of three hours ago.
func threeHoursAgo(t *testing.T) metrics.Input {
	t.Helper()
	in := troubledFleet(t)
	unreachable := newCluster("large-2", -1, assignmentOn("large", "app-core", verdict.Unknown, 0))
	in.Result.Clusters = append(in.Result.Clusters[:3:3], unreachable)
	ago := time.Now().Add(-3 * time.Hour)
	in.Result.Time = ago
	for i := range in.Result.Clusters {
		for k := range in.Result.Clusters[i].Assignments {
			a := &in.Result.Clusters[i].Assignments[k]
			a.Since = ago.Add(a.Since.Sub(reportTime))
		}
	}
	for i := range in.Rollouts {
		if p := &in.Rollouts[i]; !p.Since.IsZero() {
			p.Since = ago.Add(p.Since.Sub(reportTime))
		}
	}
	return in
}

func alertNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, match := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(readExample(t, "alerts.yml"), -1) {
		names = append(names, match[1])
	}
	if slices.Sort(names); len(names) < 8 {
		t.Fatalf("there are %d alerts", len(names))
	}
	return names
}

// panels returns the expressions of panels by title and of variables by name, with all values selected.
func panels(t *testing.T) map[string]string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Type, Name, Definition string }
		}
	}
	if err := json.Unmarshal([]byte(readExample(t, "dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ids := map[int]bool{}
	for _, panel := range dashboard.Panels {
		if len(panel.Targets) != 1 || found[panel.Title] != "" || ids[panel.ID] {
			t.Errorf("the panel %d, %q, has %d expressions, or its ID or title is not unique", panel.ID, panel.Title, len(panel.Targets))
		}
		ids[panel.ID], found[panel.Title] = true, panel.Targets[0].Expr
	}
	values := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	for _, variable := range dashboard.Templating.List {
		if match := values.FindStringSubmatch(variable.Definition); match != nil {
			found[variable.Name] = fmt.Sprintf("count by (%s) (%s)", match[2], match[1])
		} else if variable.Type == "query" {
			t.Errorf("the variable %s is %s", variable.Name, variable.Definition)
		}
	}
	if len(found) < 15 {
		t.Fatalf("there are %d panels and variables", len(found))
	}
	for name, expression := range found {
		found[name] = regexp.MustCompile(`\$\w+`).ReplaceAllLiteralString(expression, ".*")
	}
	return found
}
