package pipeline_test

import (
	"fmt"
	"iter"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

// BenchmarkEngine measures all steps together, as in a plan of deployed folders, and then each step; "parse" checks the rendered
// files. The fleets come from a fixed seed: 20,000 is the reference fleet, 100,000 the stretch fleet. While "all" runs, memory
// holds only the fleet. With FLOTILLA_BENCH_LARGE, "all" also runs with 1,000,000 assignments.
func BenchmarkEngine(b *testing.B) {
	sizes := []int{1_000, fleettest.ReferenceAssignments, fleettest.StretchAssignments}
	if withLargeSizes() {
		sizes = append(sizes, 1_000_000)
	}
	for _, size := range sizes {
		b.Run(fmt.Sprintf("assignments=%d", size), func(b *testing.B) {
			f, config := fleettest.Reference(size, 1)
			b.Run("all", func(b *testing.B) {
				measure(b, func() int {
					scheduled, _ := schedule.Schedule(f)
					hydrated, _ := hydrate.Hydrate(f, config, scheduled.Assignments)
					templates, _ := render.Compile(f)
					return renderAll(templates, f.Environment, scheduled, hydrated, func(int, []render.AssignmentFile) {})
				})
			})
			if size > fleettest.StretchAssignments {
				return
			}

			scheduled, findings := schedule.Schedule(f)
			if len(findings) > 0 {
				b.Fatal(findings)
			}
			b.Run("schedule", func(b *testing.B) {
				measure(b, func() int {
					scheduled, _ := schedule.Schedule(f)
					return len(scheduled.Assignments)
				})
			})

			hydrated, err := hydrate.Hydrate(f, config, scheduled.Assignments)
			if err != nil || len(hydrated.Findings) > 0 {
				b.Fatal(err, hydrated.Findings)
			}
			bare := withoutSchemas(f)
			hydrateOnly := func() int {
				hydrated, _ := hydrate.Hydrate(bare, config, scheduled.Assignments)
				return len(hydrated.All)
			}
			b.Run("hydrate", func(b *testing.B) { measure(b, hydrateOnly) })
			b.Run("validate", func(b *testing.B) {
				measureAdded(b, hydrateOnly, func() int {
					hydrated, _ := hydrate.Hydrate(f, config, scheduled.Assignments)
					return len(hydrated.All)
				})
			})

			templates, findings := render.Compile(f)
			if len(findings) > 0 {
				b.Fatal(findings)
			}
			b.Run("render", func(b *testing.B) {
				measure(b, func() int {
					return renderAll(templates, f.Environment, scheduled, hydrated, func(int, []render.AssignmentFile) {})
				})
			})
			folders := make([][]render.AssignmentFile, len(scheduled.Assignments))
			renderAll(templates, f.Environment, scheduled, hydrated, func(i int, files []render.AssignmentFile) { folders[i] = files })
			b.Run("parse", func(b *testing.B) {
				measure(b, func() int {
					return onAllProcessors(len(folders), func(i int) {
						if findings := templates.Check(subjectOf(f.Environment, scheduled, hydrated, i), folders[i]); len(findings) > 0 {
							b.Error(findings)
						}
					})
				})
			})
		})
	}
}

// BenchmarkSecrets measures all steps and the checks with the reference fleet: without secrets, and with a secret in every second
// config container.
func BenchmarkSecrets(b *testing.B) {
	for name, reference := range map[string]func(int, uint64) (*fleet.Fleet, fleet.Config){
		"none": fleettest.Reference, "every-second-container": fleettest.ReferenceWithSecrets,
	} {
		b.Run("secrets="+name, func(b *testing.B) {
			f, config := reference(fleettest.ReferenceAssignments, 1)
			measure(b, func() int {
				scheduled, _ := schedule.Schedule(f)
				hydrated, _ := hydrate.Hydrate(f, config, scheduled.Assignments)
				templates, _ := render.Compile(f)
				if wrong := templates.CheckSecrets(scheduled.Assignments, func(i int) (iter.Seq2[string, fleet.SecretReference], func(string) string) {
					return hydrated.All[i].References(), hydrated.All[i].DecidedBy
				}); len(
					wrong,
				) > 0 {
					b.Error(wrong)
				}
				return renderAll(templates, f.Environment, scheduled, hydrated, func(i int, files []render.AssignmentFile) {
					if findings := templates.Check(subjectOf(f.Environment, scheduled, hydrated, i), files); len(findings) > 0 {
						b.Error(findings)
					}
				})
			})
		})
	}
}

func withoutSchemas(f *fleet.Fleet) *fleet.Fleet {
	bare := *f
	bare.ConfigSchemas = nil
	bare.Workloads = make([]fleet.Workload, len(f.Workloads))
	for i, workload := range f.Workloads {
		bare.Workloads[i] = workload
		bare.Workloads[i].DeploymentTargets = make([]fleet.DeploymentTarget, len(workload.DeploymentTargets))
		for j, target := range workload.DeploymentTargets {
			target.ConfigSchemas = nil
			bare.Workloads[i].DeploymentTargets[j] = target
		}
	}
	return &bare
}

// renderAll renders every assignment, passes its files to use, and returns the number of assignments.
func renderAll(
	templates *render.Templates, environment string, scheduled *schedule.Decisions, hydrated *hydrate.Snapshots, use func(int, []render.AssignmentFile),
) int {
	return onAllProcessors(len(scheduled.Assignments), func(i int) {
		files, err := templates.Render(subjectOf(environment, scheduled, hydrated, i))
		if err != nil {
			panic(err)
		}
		use(i, files)
	})
}

func subjectOf(environment string, scheduled *schedule.Decisions, hydrated *hydrate.Snapshots, i int) render.Subject {
	snapshot := hydrated.All[i]
	return render.Subject{
		Assignment: scheduled.Assignments[i], Environment: environment, Owner: "platform",
		ConfigVersion: snapshot.Version, ValuesVersion: snapshot.ValuesVersion, Config: snapshot.Values(), Secrets: snapshot.Secrets(), Encrypted: snapshot.Encrypted(),
	}
}

// onAllProcessors calls do with every number below count, and returns count.
func onAllProcessors(count int, do func(int)) int {
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
	return count
}

// measure measures a step. The step returns the number of assignments.
func measure(b *testing.B, step func() int) {
	debug.FreeOSMemory()
	processtest.ForgetPeakMemory()
	b.ReportAllocs()
	assignments := 0
	for b.Loop() {
		assignments = step()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(assignments), "ns/assignment")
	processtest.ReportPeakMemory(b)
}

// measureAdded measures the additional cost of the second step. The steps run in turn, and the shortest time of each counts.
func measureAdded(b *testing.B, first, second func() int) {
	debug.FreeOSMemory()
	processtest.ForgetPeakMemory()
	b.ReportAllocs()
	least := [2]time.Duration{math.MaxInt64, math.MaxInt64}
	var bytes, allocations [2]uint64
	assignments := 0
	for b.Loop() {
		for i, step := range []func() int{first, second} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			assignments = step()
			least[i] = min(least[i], time.Since(start))
			runtime.ReadMemStats(&after)
			bytes[i] += after.TotalAlloc - before.TotalAlloc
			allocations[i] += after.Mallocs - before.Mallocs
		}
	}
	added := float64((least[1] - least[0]).Nanoseconds())
	b.ReportMetric(added, "ns/op")
	b.ReportMetric(added/float64(assignments), "ns/assignment")
	b.ReportMetric((float64(bytes[1])-float64(bytes[0]))/float64(b.N), "B/op")
	b.ReportMetric((float64(allocations[1])-float64(allocations[0]))/float64(b.N), "allocs/op")
	processtest.ReportPeakMemory(b)
}
