package provider_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func silentRepository(t *testing.T) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(server.Close)
	return server.URL
}

func workloadsWithCharts(url string, count int) []any {
	var workloads []any
	for i := range count {
		workloads = append(
			workloads,
			map[string]any{"name": fmt.Sprintf("app%d", i), "workspace": "team", "deployment_targets": map[string]any{"live": map[string]any{
				"environment": "dev", "manifests": map[string]any{"storage": "helm", "repo": fmt.Sprintf("%s/%02d", url, i), "chart": "till", "version": "1.x"},
			}}},
		)
	}
	return workloads
}

func TestSlowRepositoriesShareOneTimeoutAndAreNamed(t *testing.T) {
	t.Parallel()
	url, began := silentRepository(t), time.Now()
	_, text := readArtifacts(t, map[string]any{"workloads": workloadsWithCharts(url, 40), "timeouts": map[string]any{"read": "1s"}})
	if took := time.Since(began); took > 30*time.Second { // each may take a minute
		t.Errorf("the read took %s", took)
	}
	text = strings.Join(strings.Fields(text), " ")
	want := regexp.MustCompile(
		`Timeout.*longer than timeouts\.read = "1s" allows: .*Most of it took: repository "` + url + `/\d\d" \(\d\S*s\), .* and \d+ more\. To allow more, set timeouts = \{ read = "2s" \}`,
	)
	if !want.MatchString(text) || strings.Count(text, url) > 10 {
		t.Errorf("got %s, want %s", text, want)
	}
}

func TestEndlessChartsShareOneTimeoutAndAreNamed(t *testing.T) {
	t.Parallel()
	p := &previewTargets{charts: newChartServer(t), targets: map[string]any{}, pins: artifact.Resolved{}}
	for i := range 6 {
		p.addChart(t, fmt.Sprintf("loops%d", i), map[string]string{"templates/all.yaml": "{{ range 100000000000 }}{{ end }}"})
	}
	fleet := fleetOf(p.fleet(t, 1))
	// A busy machine may need more than the shortest time to read the repository.
	requireNames := func(run func(timeouts map[string]any) providertest.Diagnostics) {
		t.Helper()
		for _, read := range []string{"1s", "8s", "30s"} {
			began := time.Now()
			text := strings.Join(strings.Fields(fmt.Sprint(run(map[string]any{"read": read}))), " ")
			if took := time.Since(began); took > 90*time.Second { // each chart may take half a minute, and two run at once
				t.Errorf("the run took %s", took)
			}
			want := regexp.MustCompile(
				`Timeout.*longer than timeouts\.read = "` + read + `" allows: .*Most of it took: chart till 1\.0\.\d of ` + p.charts.url + ` \(\d\S*s\)`,
			)
			if want.MatchString(text) {
				return
			}
			if read == "30s" {
				t.Errorf("got %s, want %s", text, want)
			}
		}
	}
	repository := bare(t)
	requireNames(func(timeouts map[string]any) providertest.Diagnostics {
		_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(repository, fleet, map[string]any{"timeouts": timeouts}))
		return diags
	})
	requireNames(func(timeouts map[string]any) providertest.Diagnostics {
		_, diags := providertest.New(startProvider).ReadData(
			t.Context(), providertest.Configuration{}, "flotilla_manifests", map[string]any{"fleet": fleet, "timeouts": timeouts},
		)
		return diags
	})
}
