package hydrate_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet/fleettest"
	"github.com/flotilla/terraform-provider-flotilla/internal/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
)

// BenchmarkManyContainers schedules, hydrates, validates and renders fleets whose assignments are each
// reached by many config containers, nearly every one by a set of its own. The seed is fixed.
func BenchmarkManyContainers(b *testing.B) {
	for _, size := range []struct{ assignments, containers, keys int }{{349, 12, 12}, {349, 800, 12}, {349, 800, 120}, {20_000, 800, 12}} {
		b.Run(fmt.Sprintf("assignments=%d/containers=%d/keys=%d", size.assignments, size.containers, size.keys), func(b *testing.B) {
			f, config := fleettest.Dense(size.assignments, size.containers, size.keys, 1)
			scheduled, findings := schedule.Schedule(f)
			if len(findings) > 0 {
				b.Fatal(findings)
			}
			b.Run("hydrate", func(b *testing.B) { measure(b, &given{*f, config, scheduled.Assignments}) })
			b.Run("all", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					scheduled, _ := schedule.Schedule(f)
					hydrated, _ := hydrate.Hydrate(f, config, scheduled.Assignments)
					templates, _ := render.Compile(f)
					renderAll(b, f.Environment, templates, scheduled, hydrated)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1e3/float64(b.N*len(scheduled.Assignments)), "µs/assignment")
			})
		})
	}
}

func renderAll(b *testing.B, environment string, templates *render.Templates, scheduled *schedule.Result, hydrated *hydrate.Result) {
	onAllProcessors(len(scheduled.Assignments), func(i int) {
		snapshot := hydrated.Snapshots[i]
		_, err := templates.Render(render.Subject{
			Assignment: scheduled.Assignments[i], Environment: environment, ConfigVersion: snapshot.Version, Config: snapshot.Values(),
		})
		if err != nil {
			b.Error(err)
		}
	})
}

func onAllProcessors(count int, do func(int)) {
	var group sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for worker := range workers {
		group.Go(func() {
			for i := worker; i < count; i += workers {
				do(i)
			}
		})
	}
	group.Wait()
}
