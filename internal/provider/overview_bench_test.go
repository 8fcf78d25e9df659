package provider_test

import (
	"encoding/json"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// BenchmarkOverview reads the page of the deployed reference fleet, with evidence of all clusters and a new provider each time. The
// processor time hardly depends on the machine's load. Terraform and its state are not measured.
func BenchmarkOverview(b *testing.B) {
	url := filepath.ToSlash(filepath.Join(b.TempDir(), "gitops.git"))
	f, config := fleettest.Reference(fleettest.ReferenceAssignments, 1)
	value := providertest.Call{Function: "fleet", Arguments: []any{fleettest.Input(f, config)}}
	repo := map[string]any{"url": url, "branch": "main"}
	if _, diags := providertest.New(startProvider).Apply(b.Context(), providertest.Configuration{Resources: map[string]providertest.Resource{
		assignment: {Attributes: map[string]any{"name": "all", "fleet": value, "gitops_repo": repo}},
	}}); diags.Err() != nil {
		b.Fatal(diags.Err())
	}
	tip, err := exec.CommandContext(b.Context(), "git", "-C", url, "rev-parse", "main").Output()
	if err != nil {
		b.Fatal(err)
	}
	reports := make([]any, len(f.Clusters))
	for i := range f.Clusters {
		reports[i] = map[string]any{"cluster": f.Clusters[i].Name, "commit": strings.TrimSpace(string(tip)), "ready": i%20 != 0}
	}
	read := func(b *testing.B, data string, further map[string]any) map[string]any {
		b.Helper()
		arguments := map[string]any{"name": "all", "fleet": value, "gitops_repo": repo}
		maps.Copy(arguments, further)
		values, diags := providertest.New(startProvider).ReadData(b.Context(), providertest.Configuration{}, data, arguments)
		if diags.Err() != nil {
			b.Fatal(diags.Err())
		}
		return values
	}
	reported := map[string]any{"feedback": map[string]any{"reports": reports}}
	evidence := read(b, "flotilla_compliance", reported)["evidence"]
	for _, benchmark := range []struct {
		name, data string
		further    map[string]any
	}{
		{"compliance", "flotilla_compliance", reported},
		{"overview", "flotilla_overview", map[string]any{"evidence": evidence}},
		{"overview-without-history", "flotilla_overview", map[string]any{"evidence": evidence, "history": 0}},
	} {
		b.Run(benchmark.name, func(b *testing.B) {
			before := fleettest.ProcessorTime()
			var values map[string]any
			for b.Loop() {
				values = read(b, benchmark.data, benchmark.further)
			}
			b.ReportMetric((fleettest.ProcessorTime()-before).Seconds()/float64(b.N), "processor-s/op")
			html, _ := values["html"].(string)
			state, err := json.Marshal(values)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(len(html))/(1<<20), "html-MiB")
			b.ReportMetric(float64(len(state))/(1<<20), "state-MiB")
		})
	}
}

// BenchmarkComparison compares two deployed fleets of 20,000 assignments, with a new provider each time: identical fleets, and fleets
// that differ in all versions and values.
func BenchmarkComparison(b *testing.B) {
	url := filepath.ToSlash(filepath.Join(b.TempDir(), "gitops.git"))
	f, config := fleettest.Reference(fleettest.ReferenceAssignments, 1)
	for _, name := range []string{"stage", "same", "prod"} {
		if name == "prod" {
			for container, text := range config {
				config[container] = strings.ReplaceAll(text, "value-", "other-")
			}
			for i := range f.Workloads {
				for j := range f.Workloads[i].DeploymentTargets {
					f.Workloads[i].DeploymentTargets[j].Manifests.Repo += "/other"
				}
			}
		}
		if _, diags := providertest.New(startProvider).Apply(b.Context(), providertest.Configuration{Resources: map[string]providertest.Resource{
			assignment: {Attributes: map[string]any{
				"name": name, "fleet": providertest.Call{Function: "fleet", Arguments: []any{fleettest.Input(f, config)}}, "gitops_repo": map[string]any{"url": url, "branch": name},
			}},
		}}); diags.Err() != nil {
			b.Fatal(diags.Err())
		}
	}
	for _, right := range []string{"same", "prod"} {
		b.Run(right, func(b *testing.B) {
			before := fleettest.ProcessorTime()
			var values map[string]any
			for b.Loop() {
				var diags providertest.Diagnostics
				values, diags = providertest.New(startProvider).ReadData(b.Context(), providertest.Configuration{}, "flotilla_comparison",
					map[string]any{"left": comparisonSide(url, "stage", ""), "right": comparisonSide(url, right, "")})
				if diags.Err() != nil {
					b.Fatal(diags.Err())
				}
			}
			b.ReportMetric((fleettest.ProcessorTime()-before).Seconds()/float64(b.N), "processor-s/op")
			state, err := json.Marshal(values)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(len(state))/(1<<20), "state-MiB")
			b.Log(values["summary"], values["notes"])
		})
	}
}
