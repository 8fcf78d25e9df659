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

// BenchmarkPreview computes fleets and renders their folders: with pointers, then with the final objects of one chart for each
// workload (500 in the reference fleet) and the values of each assignment. "cold" starts without a cache, and "warm" has all
// final objects on disk. It reports the peak memory and the processor time of this process and its workers, because processor
// time hardly depends on the load of the machine.
func BenchmarkPreview(b *testing.B) {
	for _, size := range []int{1_000, fleettest.ReferenceAssignments} {
		b.Run(fmt.Sprintf("assignments=%d", size), func(b *testing.B) { benchmarkPreview(b, size) })
	}
}

func benchmarkPreview(b *testing.B, size int) {
	b.Helper()
	archives := objectstest.NewArchives(b)
	pointers, preview := previewFleet(b, archives, size, "pointers"), previewFleet(b, archives, size, "preview")
	run := func(b *testing.B, value fleet.Value, folder func() string) {
		b.Helper()
		debug.FreeOSMemory()
		processtest.ForgetPeakMemory()
		b.ReportAllocs()
		workers, before := 0, fleettest.ProcessorTime()+workerTime()
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
		b.ReportMetric((fleettest.ProcessorTime()+workerTime()-before).Seconds()/float64(b.N), "processor-s/op")
		processtest.ReportPeakMemory(b)
		b.ReportMetric(float64(workers)/1024, "workers-peak-MiB")
	}
	cacheFolder := ""
	empty := func() string { cacheFolder = filepath.Join(b.TempDir(), "cache"); return cacheFolder }
	full := func() string { return cacheFolder }
	b.Run("pointers", func(b *testing.B) { run(b, pointers, empty) })
	b.Run("cold", func(b *testing.B) { run(b, preview, empty) })
	b.Run("warm", func(b *testing.B) { run(b, preview, full) })
}

// previewFleet returns a fleet with a chart for each workload and the attributes form of rendering.
func previewFleet(b *testing.B, archives *objectstest.Archives, size int, form string) fleet.Value {
	b.Helper()
	input := fleettest.Input(fleettest.Reference(size, 1))
	for _, clusterType := range input["cluster_types"].([]any) {
		clusterType.(map[string]any)["render"] = form
	}
	pins := artifact.Resolved{}
	for i, entry := range input["workloads"].([]any) {
		workload := entry.(map[string]any)
		name := workload["name"].(string)
		pin := folder.Pin{Version: "1.2.3", Digest: fmt.Sprintf("sha256:%064x", i)}
		manifests := folder.Manifests{Storage: "helm", Repo: "https://charts.example.com", Chart: name, Version: "1.2.3"}
		archives.Add(artifact.Artifact{Storage: "helm", Repo: manifests.Repo, Chart: name, Pin: pin}, objectstest.App(b, name, name+"/"))
		for target, attributes := range workload["deployment_targets"].(map[string]any) {
			attributes.(map[string]any)["manifests"] = map[string]any{"storage": "helm", "repo": manifests.Repo, "chart": name, "version": "1.2.3"}
			attributes.(map[string]any)["config_as"] = []any{"values"}
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

// workerTime returns the processor time of all ended workers.
func workerTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
