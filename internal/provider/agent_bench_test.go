package provider_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// BenchmarkAgents plans and applies agents with Terraform's parallelism of ten. The API servers answer after 50 ms.
func BenchmarkAgents(b *testing.B) {
	definitions, err := kubetest.Definitions(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var install strings.Builder
	for module, texts := range definitions {
		for _, text := range texts {
			if strings.Contains(module, "fluxcd") {
				install.WriteString("---\n" + string(text))
			}
		}
	}
	for _, test := range []struct {
		count   int
		install any
	}{{50, nil}, {200, nil}, {50, install.String()}} {
		count, name := test.count, fmt.Sprint(test.count)
		if test.install != nil {
			name += "-install"
		}
		b.Run(name, func(b *testing.B) {
			api := &standInCluster{delay: 50 * time.Millisecond}
			url, certificate := api.start(b)
			clusters := map[string]any{}
			configuration := providertest.Configuration{
				Provider:  map[string]any{"clusters": clusters},
				Resources: map[string]providertest.Resource{},
			}
			for i := range count {
				name := fmt.Sprintf("edge-%03d", i)
				clusters[name] = map[string]any{"host": url + "/" + name, "cluster_ca_certificate": certificate, "token": "a-token"}
				attributes := agentAttributes("flux-system", map[string]any{"cluster": name, "install": test.install})
				configuration.Resources[fmt.Sprintf("flotilla_agent.all[%q]", name)] = providertest.Resource{Attributes: attributes}
			}
			w := providertest.New(startProvider)
			var plan *providertest.Plan
			check := func(diags providertest.Diagnostics) {
				b.Helper()
				if diags.Err() != nil {
					b.Fatal(diags)
				}
			}
			for _, step := range []struct {
				name string
				do   func()
			}{
				{"plan-create", func() {
					planned, diags := w.Plan(b.Context(), configuration)
					check(diags)
					plan = planned
				}},
				{"apply-create", func() { check(w.ApplyPlan(b.Context(), plan)) }},
				{"plan-no-op", func() {
					planned, diags := w.Plan(b.Context(), configuration)
					if check(diags); !planned.Empty() {
						b.Fatal("it is not empty")
					}
				}},
				{"destroy", func() {
					_, diags := w.Apply(b.Context(), configuration, providertest.Destroy())
					check(diags)
				}},
			} {
				b.Run(step.name, func(b *testing.B) {
					if b.N > 1 && step.name != "plan-no-op" && step.name != "plan-create" {
						b.Skip("it is done once: run with -benchtime 1x")
					}
					api.mu.Lock()
					api.requests = 0
					api.mu.Unlock()
					for b.Loop() {
						step.do()
					}
					b.ReportMetric(float64(api.requests)/float64(b.N*count), "requests/cluster")
				})
			}
		})
	}
}
