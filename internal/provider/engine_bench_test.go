package provider_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet/fleettest"
	"github.com/flotilla/terraform-provider-flotilla/internal/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
)

// BenchmarkEngine goes the way of the data step by step, and then all of it but the check of what was
// rendered. The fleets come from a fixed seed; 20,000 is the reference fleet.
func BenchmarkEngine(b *testing.B) {
	for _, size := range []int{1000, 20000, 100000} {
		f, config := fleettest.Reference(size, 1)
		bare := *f // without schemas: hydration alone
		bare.ConfigSchemas = nil
		bare.Workloads = withoutSchemas(f.Workloads)

		scheduled, findings := schedule.Schedule(f)
		if len(findings) > 0 {
			b.Fatal(findings)
		}
		hydrated, err := hydrate.Hydrate(f, config, scheduled.Assignments)
		if err != nil || len(hydrated.Findings) > 0 {
			b.Fatal(err, hydrated.Findings)
		}
		templates, findings := render.Compile(f)
		if len(findings) > 0 {
			b.Fatal(findings)
		}
		steps := []struct {
			name string
			run  func()
		}{
			{"schedule", func() { _, _ = schedule.Schedule(f) }},
			{"hydrate", func() { _, _ = hydrate.Hydrate(&bare, config, scheduled.Assignments) }},
			{"hydrate-validate", func() { _, _ = hydrate.Hydrate(f, config, scheduled.Assignments) }},
			{"render", func() { renderAll(templates, f.Environment, scheduled, hydrated, false) }},
			{"render-check", func() { renderAll(templates, f.Environment, scheduled, hydrated, true) }},
			{"all", func() {
				scheduled, _ := schedule.Schedule(f)
				hydrated, _ := hydrate.Hydrate(f, config, scheduled.Assignments)
				templates, _ := render.Compile(f)
				renderAll(templates, f.Environment, scheduled, hydrated, false)
			}},
		}
		for _, step := range steps {
			b.Run(fmt.Sprintf("assignments=%d/%s", size, step.name), func(b *testing.B) {
				runtime.GC()
				resetPeak()
				b.ReportAllocs()
				for b.Loop() {
					step.run()
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N)/float64(len(scheduled.Assignments)), "µs/assignment")
				if peak := peakMiB(); peak > 0 {
					b.ReportMetric(peak, "peak-MiB")
				}
			})
		}
	}
}

func withoutSchemas(workloads []fleet.Workload) []fleet.Workload {
	bare := make([]fleet.Workload, len(workloads))
	for i, workload := range workloads {
		bare[i] = workload
		bare[i].DeploymentTargets = make([]fleet.DeploymentTarget, len(workload.DeploymentTargets))
		for j, target := range workload.DeploymentTargets {
			target.ConfigSchemas = nil
			bare[i].DeploymentTargets[j] = target
		}
	}
	return bare
}

// renderAll renders, and if told so checks, every assignment on all processors.
func renderAll(templates *render.Templates, environment string, scheduled *schedule.Result, hydrated *hydrate.Result, check bool) {
	var group sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for worker := range workers {
		group.Go(func() {
			for i := worker; i < len(scheduled.Assignments); i += workers {
				snapshot := hydrated.Snapshots[i]
				subject := render.Subject{
					Assignment: scheduled.Assignments[i], Environment: environment,
					ConfigVersion: snapshot.Version, Config: snapshot.Values(),
				}
				files, err := templates.Render(subject)
				if err == nil && check {
					_ = templates.Check(subject, files)
				}
			}
		})
	}
	group.Wait()
}

// resetPeak forgets the peak of resident memory so far, where the kernel can.
func resetPeak() {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o200)
}

// peakMiB is the peak of resident memory; 0 where the kernel does not tell.
func peakMiB() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseFloat(strings.Fields(value)[0], 64)
			return kib / 1024
		}
	}
	return 0
}
