package render_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

var benchmarkSizes = []int{1_000, fleettest.ReferenceAssignments, fleettest.StretchAssignments}

// compileReference returns the compiled templates of the reference fleet and a subject for each assignment.
func compileReference(b testing.TB, size int) (*render.Templates, []render.Subject) {
	b.Helper()
	f, subjects := referenceFleet(b, size)
	templates, findings := render.Compile(f)
	if len(findings) > 0 {
		b.Fatal(findings)
	}
	return templates, subjects
}

// referenceFleet returns the reference fleet and a subject for each assignment.
func referenceFleet(b testing.TB, size int) (*fleet.Fleet, []render.Subject) {
	b.Helper()
	f, config := fleettest.Reference(size, 1)
	scheduled, findings := schedule.Schedule(f)
	if len(findings) > 0 {
		b.Fatal(findings)
	}
	hydrated, err := hydrate.Hydrate(f, config, scheduled.Assignments)
	if err != nil {
		b.Fatal(err)
	}
	subjects := make([]render.Subject, len(scheduled.Assignments))
	for i, assignment := range scheduled.Assignments {
		subjects[i] = render.Subject{
			Assignment: assignment, Environment: f.Environment, Owner: "platform",
			ConfigVersion: hydrated.All[i].Version, Config: hydrated.All[i].Values(),
		}
	}
	return f, subjects
}

// onAllCores calls do for each number below count.
func onAllCores(count int, do func(i int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	workers.Wait()
}

func BenchmarkRender(b *testing.B) {
	for _, size := range benchmarkSizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			templates, subjects := compileReference(b, size)
			var files atomic.Int64
			b.ReportAllocs()
			for b.Loop() {
				files.Store(0)
				onAllCores(len(subjects), func(i int) {
					rendered, err := templates.Render(subjects[i])
					if err != nil {
						b.Error(err)
					}
					files.Add(int64(len(rendered)))
				})
			}
			b.ReportMetric(float64(len(subjects)), "assignments")
			b.ReportMetric(float64(files.Load()), "files")
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, size := range benchmarkSizes[:2] {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			templates, subjects := compileReference(b, size)
			folders := make([][]render.AssignmentFile, len(subjects))
			for i, subject := range subjects {
				folders[i], _ = templates.Render(subject)
			}
			b.ReportAllocs()
			for b.Loop() {
				onAllCores(len(subjects), func(i int) {
					if findings := templates.Check(subjects[i], folders[i]); len(findings) > 0 {
						b.Error(findings)
					}
				})
			}
			b.ReportMetric(float64(len(subjects)), "assignments")
		})
	}
}

// BenchmarkFirst measures a first apply: it compiles the templates, then renders and checks every folder.
func BenchmarkFirst(b *testing.B) {
	for _, size := range benchmarkSizes[:2] {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			f, subjects := referenceFleet(b, size)
			b.ReportAllocs()
			for b.Loop() {
				templates, _ := render.Compile(f)
				onAllCores(len(subjects), func(i int) {
					files, err := templates.Render(subjects[i])
					if findings := templates.Check(subjects[i], files); err != nil || len(findings) > 0 {
						b.Error(err, findings)
					}
				})
			}
			b.ReportMetric(float64(len(subjects)), "assignments")
		})
	}
}
