package changes_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// BenchmarkSummarize describes the changes of each folder of the reference fleet.
func BenchmarkSummarize(b *testing.B) {
	f, config := fleettest.Reference(fleettest.ReferenceAssignments, 1)
	before := mustRender(b, f, config)
	one := maps.Clone(config)
	one["platform"] = strings.Replace(one["platform"], "0911", "0912", 1)
	all := fleet.Config{}
	for name, text := range config {
		all[name] = strings.ReplaceAll(text, "value-", "other-")
	}
	for _, change := range []struct {
		name   string
		config fleet.Config
	}{{"one value", one}, {"every container", all}} {
		after := mustRender(b, f, change.config)
		folders := foldersOf(before, after)
		b.Run(change.name, func(b *testing.B) {
			b.ReportAllocs()
			var lines []string
			for b.Loop() {
				lines = changes.English(changes.Summarize(before.version, after.version, folders, changes.Notes{}))
			}
			b.ReportMetric(float64(len(folders)), "folders")
			b.ReportMetric(float64(len(lines)), "lines")
			b.Log("\n" + strings.Join(lines, "\n"))
		})
	}
	b.Run("created", func(b *testing.B) {
		folders := foldersOf(renderedFleet{}, before)
		b.ReportAllocs()
		var lines []string
		for b.Loop() {
			lines = changes.English(changes.Summarize(nil, before.version, folders, changes.Notes{}))
		}
		b.ReportMetric(float64(len(lines)), "lines")
		b.Log("\n" + strings.Join(lines, "\n"))
	})
	b.Run("unified", func(b *testing.B) {
		folders := foldersOf(before, mustRender(b, f, one))
		b.ReportAllocs()
		for b.Loop() {
			if len(changes.Unified(folders, "", 4<<20)) == 0 {
				b.Fatal("no difference")
			}
		}
	})
}
