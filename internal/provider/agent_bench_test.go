package provider_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// BenchmarkAgents plans and applies the agents of clusters whose API servers take 50 ms for each answer, ten at a time,
// as Terraform does.
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
	for _, with := range []struct {
		count   int
		install any
	}{{50, nil}, {200, nil}, {50, install.String()}} {
		count, name := with.count, fmt.Sprint(with.count)
		if with.install != nil {
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
				attributes := agentAttributes("flux-system", map[string]any{"cluster": name, "install": with.install})
				configuration.Resources[fmt.Sprintf("flotilla_agent.all[%q]", name)] = providertest.Resource{Attributes: attributes}
			}
			w := providertest.New(startProvider)
			var plan *providertest.Plan
			check := func(said providertest.Diagnostics) {
				b.Helper()
				if said.Err() != nil {
					b.Fatal(said)
				}
			}
			for _, step := range []struct {
				name string
				do   func()
			}{
				{"plan-create", func() {
					planned, said := w.Plan(b.Context(), configuration)
					check(said)
					plan = planned
				}},
				{"apply-create", func() { check(w.ApplyPlan(b.Context(), plan)) }},
				{"plan-no-op", func() {
					planned, said := w.Plan(b.Context(), configuration)
					if check(said); !planned.Empty() {
						b.Fatal("it is not empty")
					}
				}},
				{"destroy", func() {
					_, said := w.Apply(b.Context(), configuration, providertest.Destroy())
					check(said)
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
