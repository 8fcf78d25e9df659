package schedule_test

import (
	"fmt"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

func BenchmarkSchedule(b *testing.B) {
	for _, size := range []int{1_000, fleettest.ReferenceAssignments, fleettest.StretchAssignments} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			f, _ := fleettest.Reference(size, 1)
			b.ReportAllocs()
			for b.Loop() {
				result, findings := schedule.Schedule(f)
				if len(findings) > 0 {
					b.Fatal(findings)
				}
				b.ReportMetric(float64(len(result.Assignments)), "assignments")
			}
		})
	}
}
