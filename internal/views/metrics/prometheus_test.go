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

func example(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(examples, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// promtool reads metrics with the reader of the Pushgateway and of node_exporter, which knows the older text format alone.
func TestPrometheusToolHasNoComplaint(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]metrics.Input{"troubled": troubled(t), "nothing": input(), "hostile": hostile(), "large": large()} {
		if said := prometheustest.Promtool(t, metrics.Text(in), "check", "metrics"); said != "" {
			t.Errorf("of %s it says\n%s", name, said)
		}
	}
	prometheustest.Promtool(t, "", "check", "config", "--lint=all", "--lint-fatal", filepath.Join(examples, "prometheus.yml"))
	prometheustest.Promtool(t, "", "check", "rules", "--lint=all", "--lint-fatal", filepath.Join(examples, "alerts.yml"))
	prometheustest.Promtool(t, "", "test", "rules", filepath.Join(examples, "alerts_test.yml"))
}

// page is what both jobs of the example scrape: one that says its format, and adds labels, as the Pushgateway does, and one that
// does not.
type page struct{ text atomic.Pointer[string] }

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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

func (p *page) show(text string) { p.text.Store(&text) }

// watched is a Prometheus with the configuration and the alerts of the example, but for addresses and for how long it waits.
func watched(t *testing.T, p *page) *prometheustest.Prometheus {
	t.Helper()
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	configuration := example(t, "prometheus.yml")
	for from, to := range map[string]string{"pushgateway.example.com:9091": address, "pages.example.com": address, "scheme: https": "scheme: http", "scrape_interval: 1m": "scrape_interval: 1s", "evaluation_interval: 1m": "evaluation_interval: 200ms"} {
		if !strings.Contains(configuration, from) {
			t.Fatalf("prometheus.yml does not say %s", from)
		}
		configuration = strings.ReplaceAll(configuration, from, to)
	}
	folder := t.TempDir()
	alerts := regexp.MustCompile(`for: \d+m`).ReplaceAllLiteralString(example(t, "alerts.yml"), "for: 0s")
	if err := os.WriteFile(filepath.Join(folder, "alerts.yml"), []byte(alerts), 0o600); err != nil {
		t.Fatal(err)
	}
	return prometheustest.Start(t, folder, configuration)
}

// now is an input whose clusters were asked just now.
func now(in metrics.Input) metrics.Input {
	in.Result.Time = time.Now()
	return in
}

func TestPrometheusHasDataForEveryPanelAndEveryAlert(t *testing.T) {
	t.Parallel()
	var shown page
	good := now(input(cluster("drone-1", 0, on("drone", "app-core", verdict.Ready, time.Hour))))
	wants(good, "drone/app-core", "v2.0.0")
	shown.show(metrics.Text(good))
	server := watched(t, &shown)

	// All is well.
	seen := func(expression string) func() bool {
		return func() bool { return len(server.Query(t, expression)) == 2 } // by both jobs
	}
	server.Wait(t, "what is well is not seen", seen("flotilla_health_score == 100"))
	quiet := func() bool { return len(server.Alerts(t)) == 0 }
	since := time.Now()
	server.Wait(t, "there are alerts although all is well", func() bool {
		return server.Evaluated(t).After(since) && quiet() // an evaluation may be about a moment just before it
	})

	// Nothing is well, as of three hours ago: every alert fires but that of missing metrics.
	shown.show(metrics.Text(threeHoursAgo(t)))
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

	// Every panel, and every choice of the dashboard, has data. One job may have read what makes alerts before the other one.
	server.Wait(t, "what is not well is not seen by both jobs", seen("flotilla_health_score < 75"))
	for title, expression := range panels(t) {
		if len(server.Query(t, expression)) == 0 {
			t.Errorf("the panel %q has no data: %s", title, expression)
		}
	}
	for _, of := range []struct{ expression, want string }{
		{`sum(flotilla_clusters{job="flotilla",instance="prod"})`, "4"},
		{`flotilla_assignment_clusters{instance!="prod",host="drone",deployment_target="app-core",verdict="behind",wanted_version="v2.0.0",running_version="v1.9.0"}`, "2"},
	} {
		if got := server.Query(t, of.expression); len(got) != 1 || got[0].Value != of.want {
			t.Errorf("%s is %v, want %s", of.expression, got, of.want)
		}
	}

	// It goes away with what it is about, and with the metrics another one comes.
	shown.show(metrics.Text(now(good)))
	server.Wait(t, "there are alerts although all is well again", quiet)
	shown.text.Store(nil)
	server.Wait(t, "missing metrics give no alert", fires([]string{"FlotillaMetricsMissing"}))
}

// threeHoursAgo is a fleet in which nothing was well three hours ago.
func threeHoursAgo(t *testing.T) metrics.Input {
	t.Helper()
	in := troubled(t)
	of := cluster("large-2", -1, on("large", "app-core", verdict.Unknown, 0))
	in.Result.Clusters = append(in.Result.Clusters[:3:3], of)
	ago := time.Now().Add(-3 * time.Hour)
	in.Result.Time = ago
	for i := range in.Result.Clusters {
		for k := range in.Result.Clusters[i].Assignments {
			a := &in.Result.Clusters[i].Assignments[k]
			a.Since = ago.Add(a.Since.Sub(asked))
		}
	}
	for i := range in.Rollouts {
		if p := &in.Rollouts[i]; !p.Since.IsZero() {
			p.Since = ago.Add(p.Since.Sub(asked))
		}
	}
	return in
}

func alertNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, match := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(example(t, "alerts.yml"), -1) {
		names = append(names, match[1])
	}
	if slices.Sort(names); len(names) < 8 {
		t.Fatalf("there are %d alerts", len(names))
	}
	return names
}

// panels are the expressions of the dashboard by title, and those of its variables by name, with every value chosen.
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
	if err := json.Unmarshal([]byte(example(t, "dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ids := map[int]bool{}
	for _, panel := range dashboard.Panels {
		if len(panel.Targets) != 1 || found[panel.Title] != "" || ids[panel.ID] {
			t.Errorf("the panel %d, %q, has %d expressions, or there are two of it", panel.ID, panel.Title, len(panel.Targets))
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
