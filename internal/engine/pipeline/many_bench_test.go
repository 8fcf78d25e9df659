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

// large says whether the sizes that take minutes and gigabytes are to be measured, too.
func large() bool { return os.Getenv("FLOTILLA_BENCH_LARGE") != "" }

// BenchmarkManyContainers goes the whole way of the data for assignments that are reached by hundreds of
// config containers each, nearly every one by a set of its own, and then hydrates alone. That of 12
// containers is what it costs without. The fleets come from a fixed seed.
func BenchmarkManyContainers(b *testing.B) {
	type size struct{ assignments, containers, keys int }
	sizes := []size{{349, 12, 12}, {349, 800, 12}, {349, 800, 120}, {20_000, 800, 12}}
	if large() {
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
