//go:build linux

package pipeline_test

import (
	"fmt"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/renderer"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/diskcache"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/objectstest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

// BenchmarkPreview computes fleets and renders their folders: with pointers, then with the final objects of a chart of each
// workload, 500 in the reference fleet, which get the values of each assignment. Where it is cold, nothing is kept; where it
// is warm, all final objects are on disk. It reports the processor time of this process and of its workers, which hardly
// depends on how busy the machine is, and the peak of the memory of both.
func BenchmarkPreview(b *testing.B) {
	for _, size := range []int{1_000, fleettest.ReferenceAssignments} {
		b.Run(fmt.Sprintf("assignments=%d", size), func(b *testing.B) { benchmarkPreview(b, size) })
	}
}

func benchmarkPreview(b *testing.B, size int) {
	b.Helper()
	archives := objectstest.NewArchives(b)
	pointers, preview := previewed(b, archives, size, "pointers"), previewed(b, archives, size, "preview")
	run := func(b *testing.B, value fleet.Value, folder func() string) {
		b.Helper()
		debug.FreeOSMemory()
		processtest.ForgetPeakMemory()
		b.ReportAllocs()
		workers, before := 0, fleettest.ProcessorTime()+ofWorkers()
		for b.Loop() {
			pool := renderer.NewPool(archives, renderer.PoolOptions{Cache: diskcache.New(folder(), diskcache.DefaultMaxSize)})
			cache := pipeline.Cache{Renderer: objects.Renderer(pool)}
			result, findings := cache.Compute(value)
			if len(findings) > 0 {
				b.Fatal(findings)
			}
			if rendering := result.Render(b.Context(), destination, nil); len(rendering.Findings) > 0 {
				b.Fatal(rendering.Findings)
			}
			workers = max(workers, processtest.Children().Peak)
			pool.Close()
		}
		b.ReportMetric((fleettest.ProcessorTime()+ofWorkers()-before).Seconds()/float64(b.N), "processor-s/op")
		processtest.ReportPeakMemory(b)
		b.ReportMetric(float64(workers)/1024, "workers-peak-MiB")
	}
	kept := ""
	empty := func() string { kept = filepath.Join(b.TempDir(), "cache"); return kept }
	full := func() string { return kept }
	b.Run("pointers", func(b *testing.B) { run(b, pointers, empty) })
	b.Run("cold", func(b *testing.B) { run(b, preview, empty) })
	b.Run("warm", func(b *testing.B) { run(b, preview, full) })
}

// previewed is a fleet with a chart of each workload, rendered as it says.
func previewed(b *testing.B, archives *objectstest.Archives, size int, how string) fleet.Value {
	b.Helper()
	input := fleettest.Input(fleettest.Reference(size, 1))
	for _, clusterType := range input["cluster_types"].([]any) {
		clusterType.(map[string]any)["render"] = how
	}
	pins := artifact.Resolved{}
	for i, one := range input["workloads"].([]any) {
		workload := one.(map[string]any)
		name := workload["name"].(string)
		pin := folder.Pin{Version: "1.2.3", Digest: fmt.Sprintf("sha256:%064x", i)}
		manifests := folder.Manifests{Storage: "helm", Repo: "https://charts.example.com", Chart: name, Version: "1.2.3"}
		archives.Add(artifact.Artifact{Storage: "helm", Repo: manifests.Repo, Chart: name, Pin: pin}, objectstest.App(b, name, name+"/"))
		for target, given := range workload["deployment_targets"].(map[string]any) {
			given.(map[string]any)["manifests"] = map[string]any{"storage": "helm", "repo": manifests.Repo, "chart": name, "version": "1.2.3"}
			given.(map[string]any)["config_as"] = []any{"values"}
			pins[name+"-"+target] = artifact.Entry{Manifests: manifests, Pin: pin}
		}
	}
	text, err := pins.Encode()
	if err != nil {
		b.Fatal(err)
	}
	input["artifacts"] = text
	return valueOf(b, input)
}

// ofWorkers is the processor time of all workers that have ended.
func ofWorkers() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
