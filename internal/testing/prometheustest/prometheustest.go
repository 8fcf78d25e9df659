// Package prometheustest gives tests a real Prometheus, and promtool, built by `make test` from the module
// tools/prometheus. Each server belongs to one test.
package prometheustest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/webtest"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

// startTimeout is generous: one second is usual.
const startTimeout = 3 * time.Minute

// program finds a program in .tools/bin or FLOTILLA_PROMETHEUS_BIN. With -short, and without the program, it skips the
// test.
func program(t testing.TB, name string) string {
	t.Helper()
	acceptancetest.Only(t)
	if testing.Short() {
		t.Skip("needs Prometheus, which -short leaves out")
	}
	path, err := processtest.Tool("FLOTILLA_PROMETHEUS_BIN", name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("needs Prometheus: %v; `make tools` builds it", err)
	}
	return path
}

// Promtool runs promtool with an input and returns its output.
func Promtool(t testing.TB, input string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program(t, "promtool"), arguments...)
	command.Stdin = strings.NewReader(input)
	printed, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, printed)
	}
	return string(printed)
}

// Prometheus is a running Prometheus.
type Prometheus struct {
	// URL returns the URL of the API, without a trailing slash.
	URL     string
	process *processtest.Process
}

// Start starts a Prometheus with a configuration for a folder.
func Start(t testing.TB, folder, configuration string) *Prometheus {
	t.Helper()
	return start(t, folder, configuration, t.TempDir())
}

// StartWithSeries starts a Prometheus with the series of an OpenMetrics file and without scraping.
func StartWithSeries(t testing.TB, file string) *Prometheus {
	t.Helper()
	data := t.TempDir()
	Promtool(t, "", "tsdb", "create-blocks-from", "openmetrics", "--quiet", file, filepath.Join(data, "data"))
	return start(t, t.TempDir(), "", data)
}

func start(t testing.TB, folder, configuration, data string) *Prometheus {
	t.Helper()
	binary := program(t, "prometheus")
	file := filepath.Join(folder, "prometheus.yml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	for attempt := 1; ; attempt++ {
		server, err := launch(t, binary, file, data)
		if err == nil {
			return server
		}
		if attempt == 3 || !errors.Is(err, processtest.ErrPortTaken) {
			t.Fatalf("prometheustest: %v", err)
		}
	}
}

func launch(t testing.TB, binary, file, data string) (*Prometheus, error) {
	ports, err := processtest.FreePorts(t.Context(), 1)
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	process, err := processtest.Start(context.WithoutCancel(t.Context()), processtest.Command{
		Name: "prometheus", Binary: binary, Folder: data,
		Args: []string{
			"--config.file=" + file,
			"--storage.tsdb.path=" + filepath.Join(data, "data"),
			"--storage.tsdb.retention.time=100y",
			"--web.listen-address=" + address,
		},
	})
	if err != nil {
		return nil, err
	}
	t.Cleanup(process.Stop)
	server := &Prometheus{URL: "http://" + address, process: process}
	return server, process.Ready(t.Context(), startTimeout, func(ctx context.Context) error {
		return server.get(ctx, "/api/v1/status/buildinfo", nil, nil)
	})
}

func (s *Prometheus) get(ctx context.Context, path string, query url.Values, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	response, err := webtest.Client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %s: %w", path, response.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s?%s: %s", path, query.Encode(), answer.Error)
	}
	if data == nil {
		return nil
	}
	return json.Unmarshal(answer.Data, data)
}

// Sample is a series with its value.
type Sample struct {
	Labels map[string]string
	Value  string
}

// Query returns the present value of an expression.
func (s *Prometheus) Query(t testing.TB, expression string) []Sample {
	t.Helper()
	return s.QueryAt(t, expression, time.Now())
}

// QueryAt returns the value of an expression at some time.
func (s *Prometheus) QueryAt(t testing.TB, expression string, at time.Time) []Sample {
	t.Helper()
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	if err := s.get(t.Context(), "/api/v1/query", url.Values{"query": {expression}, "time": {at.UTC().Format(time.RFC3339Nano)}}, &data); err != nil {
		t.Fatal(err)
	}
	var samples []Sample
	for _, one := range data.Result {
		samples = append(samples, Sample{one.Metric, fmt.Sprint(one.Value[1])})
	}
	return samples
}

// Alerts returns the states of firing and pending alerts.
func (s *Prometheus) Alerts(t testing.TB) map[string]string {
	t.Helper()
	var data struct {
		Alerts []struct {
			Labels map[string]string
			State  string
		}
	}
	if err := s.get(t.Context(), "/api/v1/alerts", nil, &data); err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	for _, alert := range data.Alerts {
		states[alert.Labels["alertname"]] = alert.State
	}
	return states
}

// Evaluated returns the earliest time of the last evaluation of all groups; zero for never.
func (s *Prometheus) Evaluated(t testing.TB) time.Time {
	t.Helper()
	var data struct {
		Groups []struct{ LastEvaluation time.Time }
	}
	if err := s.get(t.Context(), "/api/v1/rules", nil, &data); err != nil {
		t.Fatal(err)
	}
	var earliest time.Time
	for i, group := range data.Groups {
		if i == 0 || group.LastEvaluation.Before(earliest) {
			earliest = group.LastEvaluation
		}
	}
	return earliest
}

// Wait polls until a condition holds.
func (s *Prometheus) Wait(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if err := s.process.Ready(t.Context(), startTimeout, func(context.Context) error {
		if !holds() {
			return errors.New(what)
		}
		return nil
	}); err != nil {
		t.Fatalf("prometheustest: %v", err)
	}
}
