package fleettest_test

import (
	"errors"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

func TestReferenceHasTheSizesOfTheDesign(t *testing.T) {
	f, config := fleettest.Reference(fleettest.ReferenceAssignments, 1)
	for name, size := range map[string]struct{ got, want int }{
		"cluster types":     {len(f.ClusterTypes), 500},
		"clusters":          {len(f.Clusters), 3000},
		"workloads":         {len(f.Workloads), 500},
		"target policies":   {len(f.TargetPolicies), 1000},
		"config containers": {len(f.ConfigContainers), 1000},
		"config":            {len(config), 1000},
	} {
		if size.got != size.want {
			t.Errorf("%s: %d, want %d", name, size.got, size.want)
		}
	}
}

func TestReferenceIsValidAtEverySize(t *testing.T) {
	sizes := []int{0, 40, 1_000, fleettest.ReferenceAssignments}
	if acceptancetest.All() {
		sizes = append(sizes, fleettest.StretchAssignments)
	}
	for _, size := range sizes {
		f, config := fleettest.Reference(size, 1)
		sameWhenDecoded(t, f, config)
		result, findings := schedule.Schedule(f)
		if len(findings) > 0 {
			t.Fatalf("%d assignments: %v", size, findings[0])
		}
		if got := len(result.Assignments); size >= 1_000 && (got < size*9/10 || got > size*13/10) {
			t.Errorf("%d assignments, want about %d", got, size)
		}
		if size >= fleettest.ReferenceAssignments && (len(result.Unscheduled) > 0 || len(result.IdlePolicies) > 0 || len(result.Excluded) == 0) {
			t.Errorf("%d unscheduled, %d idle policies, %d excluded: want none, none, some",
				len(result.Unscheduled), len(result.IdlePolicies), len(result.Excluded))
		}
	}
}

func TestReferenceWithSecretsIsValid(t *testing.T) {
	f, config := fleettest.ReferenceWithSecrets(acceptancetest.Count(2_000, fleettest.ReferenceAssignments), 1)
	sameWhenDecoded(t, f, config)
	scheduled, _ := schedule.Schedule(f)
	hydrated, err := hydrate.Hydrate(f, config, scheduled.Assignments)
	if err != nil || len(hydrated.Findings) > 0 {
		t.Fatal(err, hydrated.Findings)
	}
	references := 0
	for _, snapshot := range hydrated.All {
		references += len(snapshot.Secrets())
	}
	if references < len(scheduled.Assignments) {
		t.Errorf("%d references reach %d assignments, want more", references, len(scheduled.Assignments))
	}
	if _, findings := render.Compile(f); len(findings) > 0 {
		t.Error(findings)
	}
}

func TestTheWorkPerAssignmentIsTheSameAtEverySize(t *testing.T) {
	reference := perAssignment(t, fleettest.ReferenceAssignments)
	for _, size := range []int{1_000, acceptancetest.Count(2*fleettest.ReferenceAssignments, fleettest.StretchAssignments)} {
		for name, got := range perAssignment(t, size) {
			if size == 1_000 && (name == allocatedBefore || name == allocatedByRendering) {
				continue // fixed costs dominate there
			}
			tolerance := 0.1
			if name == allocatedBefore || name == allocatedByRendering {
				tolerance = 0.2 // maps grow in steps, and garbage collections empty pools at random
			}
			if want := reference[name]; got < want*(1-tolerance) || got > want*(1+tolerance) {
				t.Errorf("%s per assignment: %.2f at %d assignments, %.2f at %d", name, got, size, want, fleettest.ReferenceAssignments)
			}
		}
	}
}

const (
	allocatedBefore      = "bytes allocated before rendering"
	allocatedByRendering = "bytes allocated by rendering a tenth"
)

// perAssignment returns the average size and cost of an assignment of the reference fleet.
func perAssignment(t *testing.T, size int) map[string]float64 {
	t.Helper()
	f, config := fleettest.Reference(size, 1)
	before := allocated()
	scheduled, findings := schedule.Schedule(f)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	hydrated, err := hydrate.Hydrate(f, config, scheduled.Assignments)
	if err != nil || len(hydrated.Findings) > 0 {
		t.Fatal(err, hydrated.Findings)
	}
	templates, findings := render.Compile(f)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	sums := map[string]float64{allocatedBefore: allocated() - before}
	before = allocated()
	for i, assignment := range scheduled.Assignments {
		snapshot := hydrated.All[i]
		sums["policies"] += float64(len(assignment.Policies))
		sums["containers"] += float64(len(snapshot.Containers()))
		sums["bytes of values"] += float64(len(snapshot.JSON))
		if i%10 > 0 {
			continue // rendering is slow: a sample is enough
		}
		files, err := templates.Render(render.Subject{
			Assignment: assignment, Environment: f.Environment, Owner: "platform", ConfigVersion: snapshot.Version, Config: snapshot.Values(),
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			sums["files in a tenth"]++
			sums["bytes in a tenth"] += float64(len(file.Content))
		}
	}
	sums[allocatedByRendering] = allocated() - before
	for name := range sums {
		sums[name] /= float64(len(scheduled.Assignments))
	}
	return sums
}

// allocated returns the bytes allocated so far.
func allocated() float64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.TotalAlloc)
}

// An unknown tag makes only the folders of its deployment target, and of targets that require it, unknown.
func TestAnUnknownTagAffectsOnlyItsOwnTargets(t *testing.T) {
	f, config := fleettest.Reference(4_000, 1)
	input := fleettest.Input(f, config)
	for _, workload := range input["workloads"].([]any) {
		if workload.(map[string]any)["name"] == "app-0020" {
			live := workload.(map[string]any)["deployment_targets"].(map[string]any)["live"].(map[string]any)
			live["manifests"].(map[string]any)["branch"] = fleet.Unknown{}
		}
	}
	decoded, findings := fleet.Decode(input)
	if len(findings) > 0 || !decoded.Known {
		t.Fatalf("known: %t, %v", decoded.Known, findings)
	}
	value, err := decoded.Value()
	if err != nil {
		t.Fatal(err)
	}
	f, config, err = value.Fleet()
	if err != nil {
		t.Fatal(err)
	}
	scheduled, findings := schedule.Schedule(f)
	hydrated, err := hydrate.Hydrate(f, config, scheduled.Assignments)
	if err != nil || len(findings) > 0 {
		t.Fatal(err, findings)
	}
	templates, findings := render.Compile(f)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	unknown := map[string]int{}
	for i, assignment := range scheduled.Assignments {
		_, err := templates.Render(render.Subject{
			Assignment: assignment, Environment: f.Environment, Owner: "platform",
			ConfigVersion: hydrated.All[i].Version, Config: hydrated.All[i].Values(),
		})
		waits := assignment.Target.Name == "app-0020-live" ||
			slices.Contains(assignment.Requires, "app-0020-live") && assignment.Host.ClusterType.Reconciler == "flux" // Argo CD orders by waves
		if errors.Is(err, render.ErrUnknown) != waits || !waits && err != nil {
			t.Errorf("%s: %v, want that it is unknown: %t", assignment.Key(), err, waits)
		}
		if waits {
			unknown[assignment.Target.Workload.Name]++
		}
	}
	if len(unknown) != 2 || unknown["app-0020"] == 0 || unknown["app-0021"] == 0 {
		t.Errorf("unknown by workload: %v, want some of app-0020 and of what requires it", unknown)
	}
}

func TestSameSeedGivesTheSameFleet(t *testing.T) {
	model := func(seed uint64) string {
		f, config := fleettest.Reference(1_000, seed)
		model, err := f.Model()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(config)) {
			model += config[name]
		}
		return model
	}
	first, again := model(1), model(1)
	if first != again {
		t.Error("seed 1 gave two fleets")
	}
	if first == model(2) {
		t.Error("seeds 1 and 2 gave the same fleet")
	}
}

func TestSmallIsValid(t *testing.T) {
	for seed := range uint64(acceptancetest.Count(200, 2_000)) {
		f, config := fleettest.Small(seed)
		sameWhenDecoded(t, f, config)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// sameWhenDecoded compares a generated fleet with its decoded input.
func sameWhenDecoded(t *testing.T, f *fleet.Fleet, config fleet.Config) {
	t.Helper()
	decoded, findings := fleet.Decode(fleettest.Input(f, config))
	if len(findings) > 0 {
		t.Fatalf("%d findings, first: %v", len(findings), findings[0])
	}
	if !decoded.Known || !decoded.ContainersKnown || len(decoded.Pending) > 0 {
		t.Fatal("not everything is known")
	}
	want, err := f.Model()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decoded.Fleet.Model()
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		t.Fatalf("decodes to another model, at byte %d: %.200s, want %.200s", i, got[max(0, i-80):], want[max(0, i-80):])
	}
	if !maps.Equal(decoded.Config, config) {
		t.Fatal("decodes to another configuration")
	}
	if !slices.EqualFunc(f.Workloads, decoded.Fleet.Workloads, func(a, b fleet.Workload) bool {
		return reflect.DeepEqual(a.DeploymentTargets, b.DeploymentTargets)
	}) {
		t.Fatal("decodes to other manifests")
	}
}

func TestDenseIsValid(t *testing.T) {
	f, config := fleettest.Dense(349, 800, 12, 1)
	sameWhenDecoded(t, f, config)
	scheduled, findings := schedule.Schedule(f)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	hydrated, err := hydrate.Hydrate(f, config, scheduled.Assignments)
	if err != nil || len(hydrated.Findings)+len(hydrated.Warnings) > 0 {
		t.Fatal(err, hydrated.Findings, hydrated.Warnings)
	}
	containers, sets := 0, map[*hydrate.Snapshot]bool{}
	for _, snapshot := range hydrated.All {
		containers += len(snapshot.Containers())
		sets[snapshot] = true
	}
	if got := containers / len(hydrated.All); got < 200 || got > 240 {
		t.Errorf("%d containers for an assignment, want about 218", got)
	}
	if len(hydrated.All) != 349 || len(sets) < 340 {
		t.Errorf("%d assignments with %d sets of containers, want 349 and nearly as many", len(hydrated.All), len(sets))
	}
}
