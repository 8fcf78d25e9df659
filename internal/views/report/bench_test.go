package report_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

// BenchmarkReport renders the page of the reference fleet.
func BenchmarkReport(b *testing.B) {
	p := referencePage(20_000, true)
	b.Run("HTML", func(b *testing.B) {
		b.ReportAllocs()
		size := 0
		for b.Loop() {
			size = len(renderHTML(b, p))
		}
		b.ReportMetric(float64(size), "bytes")
	})
	b.Run("Markdown", func(b *testing.B) {
		b.ReportAllocs()
		size := 0
		for b.Loop() {
			size = len(report.Markdown(p, 65_536))
		}
		b.ReportMetric(float64(size), "bytes")
	})
}
