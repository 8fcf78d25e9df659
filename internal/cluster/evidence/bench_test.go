package evidence_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// referenceInput returns a half-finished change of all 20,000 assignments of the reference fleet, and the reports of agents on its 3,000
// clusters. Each deployment target has ten hosts with six clusters each. Half of the hosts have the change and are observed.
func referenceInput(tb testing.TB) (in rollout.StepInput, compliance evidence.Lookup) {
	tb.Helper()
	settings, _, findings := rollout.Decode(map[string]any{"progress_deadline": "24h", "stages": []any{map[string]any{
		"name": "half", "soak": "1h", "percent": json.Number("50"), "cluster_type_selector": map[string]any{},
	}}})
	if len(findings) > 0 {
		tb.Fatal(findings)
	}
	in = rollout.StepInput{
		Now: noon, Wanted: folder.Trees{}, Deployed: folder.Trees{}, Hosts: map[string]*rollout.FleetHost{}, Settings: settings,
		Records: map[folder.Key]rollout.Record{}, State: &rollout.StepState{}, Tip: "0123456789012345678901234567890123456789",
	}
	reported := &observe.Evidence{Time: noon, Tip: in.Tip, Clusters: map[string]observe.ClusterEvidence{}}
	const hosts, assignments = 500, 20_000
	for i := range hosts {
		host := fmt.Sprintf("type-%04d", i)
		info := &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": "a"}}
		for j := range 6 {
			cluster := fmt.Sprintf("%s-%d", host, j)
			info.Clusters = append(info.Clusters, cluster)
			reported.Clusters[cluster] = observe.ClusterEvidence{Type: host, Commit: in.Tip, Status: verdict.Status{Verdict: verdict.Ready, Since: noon}}
		}
		in.Hosts[host], in.Wanted[host], in.Deployed[host] = info, map[string]string{}, map[string]string{}
	}
	for i := range assignments {
		step := 1 + i/10/50 // gives each deployment target other hosts
		host, target := fmt.Sprintf("type-%04d", (i/10+i%10*step)%hosts), fmt.Sprintf("app-%04d-batch", i/10)
		in.Wanted[host][target], in.Deployed[host][target] = fmt.Sprintf("%08x-new", i), fmt.Sprintf("%08x-old", i)
	}
	out := rollout.Advance(in) // writes the first half
	before := in.Deployed
	in.Deployed, in.State, in.Now = out.Decisions.Trees(in.Deployed), out.State, noon.Add(2*time.Hour)
	for _, key := range in.Deployed.Keys() {
		if tree := in.Deployed[key.Host][key.DeploymentTarget]; tree != before[key.Host][key.DeploymentTarget] {
			in.Records[key] = rollout.Record{Tree: tree, Changed: noon.Add(time.Minute)}
		}
	}
	return in, func(cluster string, key folder.Key) rollout.Report {
		content := reported.Assignment(cluster, key.String())
		return rollout.Report{Known: content.Known, Tree: in.Deployed[key.Host][key.DeploymentTarget], Status: content.Status}
	}
}

// BenchmarkDecide decides a change of the whole reference fleet by compliance alone, and by compliance and measurements of each cluster.
func BenchmarkDecide(b *testing.B) {
	in, compliance := referenceInput(b)
	figures := map[string]float64{}
	for _, host := range in.Hosts {
		for i, cluster := range host.Clusters {
			figures[cluster] = float64(i) + float64(len(figures))/10_000
		}
	}
	for name, list := range map[string]evidence.List{
		"compliance":              nil,
		"compliance+measurements": {measurementsOf(evidence.OfCluster, "rest == null || value < rest + 1.0", "", figures)},
		"compliance+measurements that have not passed": {measurementsOf(evidence.OfCluster, "rest != null && value < rest - 1.0", "", figures)},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if list != nil { // clears the cached verdicts
					list[0] = measurementsOf(evidence.OfCluster, list[0].Measurements.Checks[0].Pass, "", figures)
					list[0].Measurements.Time = in.Now
				}
				decided := in
				decided.Reports = list.Reports(decided, compliance)
				if out := rollout.Advance(decided); out.RolledOut {
					b.Fatal("the change has rolled out, want it under way")
				}
			}
		})
	}
}
