package hydrate_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// BenchmarkHydrate hydrates and checks fleets shaped like the reference fleet (20,000 assignments) and the stretch fleet (100,000).
func BenchmarkHydrate(b *testing.B) {
	for _, size := range []int{1_000, fleettest.ReferenceAssignments, fleettest.StretchAssignments} {
		b.Run(fmt.Sprintf("assignments=%d", size), func(b *testing.B) {
			f, config := fleettest.Reference(size, 1)
			scheduled, findings := schedule.Schedule(f)
			if len(findings) > 0 {
				b.Fatal(findings)
			}
			measure(b, &fleetBuilder{*f, config, scheduled.Assignments})
		})
	}
}

// BenchmarkHydrateHard hydrates a fleet with little in common: most assignments have their own set of containers, most of the
// sets merge objects, numbers are texts, and a schema checks the values as a whole.
func BenchmarkHydrateHard(b *testing.B) {
	for _, size := range []int{1_000, 20_000, 100_000} {
		b.Run(fmt.Sprintf("assignments=%d", size), func(b *testing.B) { measure(b, hardFleet(size)) })
	}
}

func measure(b *testing.B, g *fleetBuilder) {
	runtime.GC()
	b.ReportAllocs()
	var result *hydrate.Snapshots
	for b.Loop() {
		result = g.hydrate(b)
	}
	b.StopTimer()
	if len(result.Findings) > 0 {
		b.Fatal(findingLines(result.Findings[:1]))
	}
	distinct := map[*hydrate.Snapshot]bool{}
	for _, snapshot := range result.All {
		distinct[snapshot] = true
	}
	b.ReportMetric(float64(len(distinct)), "snapshots")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(g.assignments)), "µs/assignment")
	before := heapSize()
	again := g.hydrate(b)
	b.ReportMetric(float64(heapSize()-before)/(1<<20), "MiB-held")
	runtime.KeepAlive(again)
}

func heapSize() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// hardFleet returns a fleet with 500 cluster types, 2,000 deployment targets and 1,000 config containers
// for 20,000 assignments; other sizes are in proportion. The seed is fixed.
func hardFleet(assignments int) *fleetBuilder {
	random := rand.New(rand.NewPCG(1, uint64(assignments)))
	scale := func(reference int) int { return max(1, reference*assignments/20_000) }
	g := dev().hydration(fleet.Hydration{OnConflict: "override"})

	regions, sizes, teams := scale(20), 5, scale(50)
	hosts := make([]*schedule.Host, scale(500))
	for i := range hosts {
		name := fmt.Sprintf("type-%d", i)
		hosts[i] = &schedule.Host{Name: name, ClusterType: &fleet.ClusterType{Name: name}, Labels: labels{
			"region": fmt.Sprintf("region-%d", random.IntN(regions)), "size": fmt.Sprintf("size-%d", random.IntN(sizes)),
		}}
	}
	targets := make([]*schedule.Target, scale(2_000))
	for i := range targets {
		workload := fmt.Sprintf("app-%d", i/4)
		target := &fleet.DeploymentTarget{Name: []string{"functional", "performance", "smoke", "canary"}[i%4]}
		if i%10 == 0 {
			target.ConfigSchemas = []string{fmt.Sprintf(`{"type":"object","required":["REGION"],"properties":{"KEY_%d":{"type":"string"}}}`, i%40)}
		}
		targets[i] = &schedule.Target{
			Name: workload + "-" + target.Name, Target: target,
			Workload: &fleet.Workload{Name: workload, Workspace: fmt.Sprintf("team-%d", i/4%teams)},
			Labels:   labels{"purpose": target.Name, "tier": fmt.Sprintf("tier-%d", random.IntN(3))},
		}
	}
	for i := range assignments {
		g.assignments = append(
			g.assignments,
			&schedule.Assignment{Host: hosts[i%len(hosts)], Target: targets[(i/len(hosts)*7+i%len(hosts)*40)%len(targets)]},
		)
	}

	for i := range scale(1_000) {
		var reach labels
		switch random.IntN(10) {
		case 0:
			reach = labels{"region": fmt.Sprintf("region-%d", random.IntN(regions))}
		case 1, 2, 3:
			reach = labels{"cluster-type": hosts[random.IntN(len(hosts))].Name}
		case 4, 5:
			reach = labels{"workload": targets[random.IntN(len(targets))].Workload.Name}
		case 6:
			reach = labels{"workspace": fmt.Sprintf("team-%d", random.IntN(teams)), "size": fmt.Sprintf("size-%d", random.IntN(sizes))}
		case 7:
			reach = labels{"purpose": "smoke", "region": fmt.Sprintf("region-%d", random.IntN(regions))}
		default:
			reach = labels{"deployment-target": targets[random.IntN(len(targets))].Name}
		}
		data := map[string]any{
			"REGION":                                 reach["region"],
			fmt.Sprintf("KEY_%d", random.IntN(40)):   fmt.Sprintf("value-%d", i),
			fmt.Sprintf("KEY_%d", 40+random.IntN(9)): "mysql://host:3306/db",
			"PORT":                                   fmt.Sprint(1024 + random.IntN(60_000)),
			"database": map[string]any{
				"host": fmt.Sprintf("db-%d", i), fmt.Sprintf("option-%d", random.IntN(5)): true,
			},
		}
		json, err := fleet.CanonicalJSON(data)
		if err != nil {
			panic(err)
		}
		g.configMap(fmt.Sprintf("container-%d", i), reach, json)
	}
	g.configMap("all", nil, `{"ENVIRONMENT":"dev","REGION":"none","PORT":"80","database":"host: db\nname: main\n","REPLICAS":"3"}`)
	for i := range 20 {
		g.schema(fmt.Sprintf("schema-%d", i), labels{"region": fmt.Sprintf("region-%d", i)}, `{
			"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": ["ENVIRONMENT", "PORT"],
			"properties": {"PORT": {"type": "integer", "minimum": 1, "maximum": 65535}, "ENVIRONMENT": {"enum": ["dev", "stage"]},
				"REPLICAS": {"type": "integer"}, "database": {"type": "object", "required": ["host"]}}}`)
	}
	g.schema("whole", nil, `{"type":"object","anyOf":[{"required":["ENVIRONMENT"]},{"required":["REGION"]}]}`)
	return g
}
