package pipeline_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// withLargeSizes reports whether benchmarks include sizes of minutes and gigabytes.
func withLargeSizes() bool { return os.Getenv("FLOTILLA_BENCH_LARGE") != "" }

// BenchmarkManyContainers measures all steps, and then hydration alone, with hundreds of config containers for each assignment.
// Nearly every assignment has a different set of containers. The size with 12 containers is the baseline. The fleets come from a
// fixed seed.
func BenchmarkManyContainers(b *testing.B) {
	type size struct{ assignments, containers, keys int }
	sizes := []size{{349, 12, 12}, {349, 800, 12}, {349, 800, 120}, {20_000, 800, 12}}
	if withLargeSizes() {
		sizes = append(sizes, size{100_000, 800, 12}, size{1_000_000, 800, 12})
	}
	for _, size := range sizes {
		b.Run(fmt.Sprintf("assignments=%d/containers=%d/keys=%d", size.assignments, size.containers, size.keys), func(b *testing.B) {
			f, config := fleettest.Dense(size.assignments, size.containers, size.keys, 1)
			b.Run("all", func(b *testing.B) {
				measure(b, func() int {
					scheduled, _ := schedule.Schedule(f)
					hydrated, _ := hydrate.Hydrate(f, config, scheduled.Assignments)
					templates, _ := render.Compile(f)
					return renderAll(templates, f.Environment, scheduled, hydrated, func(int, []render.AssignmentFile) {})
				})
			})
			scheduled, findings := schedule.Schedule(f)
			if len(findings) > 0 {
				b.Fatal(findings)
			}
			b.Run("hydrate", func(b *testing.B) {
				measure(b, func() int {
					hydrated, err := hydrate.Hydrate(f, config, scheduled.Assignments)
					if err != nil || len(hydrated.Findings)+len(hydrated.Warnings) > 0 {
						b.Fatal(err, hydrated.Findings, hydrated.Warnings)
					}
					return len(hydrated.All)
				})
			})
		})
	}
}
