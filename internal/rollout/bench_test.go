package rollout_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// largeInput returns a change of all assignments after its first stage, in a fleet with ten hosts for each deployment target, six
// clusters for each host, and four stages.
func largeInput(tb testing.TB, assignments int) rollout.StepInput {
	tb.Helper()
	list := []any{}
	for i, percent := range []string{"1", "10", "50"} {
		list = append(list, map[string]any{
			"name": fmt.Sprint(i), "soak": "1h", "max_concurrent": jsonNumber("100"), "percent": jsonNumber(percent),
			"cluster_type_selector": map[string]any{"match_expressions": []any{map[string]any{"key": "ring", "operator": "Exists"}}},
		})
	}
	settings, _, findings := rollout.Decode(map[string]any{"stages": list, "progress_deadline": "24h"})
	if len(findings) > 0 {
		tb.Fatal(findings)
	}
	in := rollout.StepInput{
		Now: noon, Wanted: folder.Trees{}, Deployed: folder.Trees{}, Hosts: map[string]*rollout.FleetHost{}, Settings: settings,
		Records: map[folder.Key]rollout.Record{}, State: &rollout.StepState{}, Tip: "0123456789012345678901234567890123456789",
	}
	hosts := assignments / 40
	for i := range hosts {
		host := fmt.Sprintf("type-%04d", i)
		info := &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": "a"}}
		for j := range 6 {
			info.Clusters = append(info.Clusters, fmt.Sprintf("%s-%d", host, j))
		}
		in.Hosts[host], in.Wanted[host], in.Deployed[host] = info, map[string]string{}, map[string]string{}
	}
	for i := range assignments {
		host, target := fmt.Sprintf("type-%04d", (i%10*hosts/10+i/10)%hosts), fmt.Sprintf("app-%04d-batch", i/10)
		key := folder.Key{Host: host, DeploymentTarget: target}
		in.Wanted[host][target], in.Deployed[host][target] = fmt.Sprintf("%08x-new", i), fmt.Sprintf("%08x-old", i)
		in.Records[key] = rollout.Record{Tree: in.Deployed[host][target], Changed: noon.Add(-time.Hour)}
	}
	in.Reports = func(_ string, key folder.Key) rollout.Report {
		return rollout.Report{
			Known:  true,
			Tree:   in.Deployed[key.Host][key.DeploymentTarget],
			Status: verdict.Status{Verdict: verdict.Ready, Since: in.Now.Add(-2 * time.Hour)},
		}
	}
	for range 2 { // the first stage passes
		out := rollout.Advance(in)
		in.Deployed, in.State = out.Decisions.Trees(in.Deployed), out.State
		for key, record := range in.Records {
			if tree := in.Deployed[key.Host][key.DeploymentTarget]; tree != record.Tree {
				in.Records[key] = rollout.Record{Tree: tree, Before: record.Tree, Changed: in.Now}
			}
		}
		in.Now = in.Now.Add(3 * time.Hour)
	}
	return in
}

// BenchmarkAdvance decides a change of all assignments. 20,000 assignments are the reference fleet.
func BenchmarkAdvance(b *testing.B) {
	for _, assignments := range []int{2_000, 20_000, 100_000} {
		b.Run(fmt.Sprintf("assignments=%d", assignments), func(b *testing.B) {
			in := largeInput(b, assignments)
			b.ReportAllocs()
			for b.Loop() {
				rollout.Advance(in)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(assignments), "ns/assignment")
		})
	}
}

func TestTheProgressOfALargeRolloutStaysSmall(t *testing.T) {
	t.Parallel()
	for _, assignments := range []int{2_000, acceptancetest.Count(6_000, 20_000)} {
		out := rollout.Advance(largeInput(t, assignments))
		if len(out.Progress) == 0 || out.RolledOut {
			t.Fatal("nothing is under way")
		}
		text, err := json.MarshalIndent(out.RollingOut(), "            ", "  ")
		if err != nil {
			t.Fatal(err)
		}
		targets := 0
		for _, summary := range out.RollingOut() {
			targets += 1 + summary.Others
		}
		if targets != len(out.Progress) || strings.Count(string(text), "\n") > 60 || len(text) > 4<<10 {
			t.Errorf("%d assignments: rolling_out has %d of %d deployment targets: %s", assignments, targets, len(out.Progress), text)
		}
		if progress := rollout.MarshalProgress(out.Progress); len(progress) > 200*len(out.Progress) {
			t.Errorf("%d assignments: the progress has %d KiB", assignments, len(progress)>>10)
		}
		if lines := out.Lines(); len(lines) > 10 {
			t.Errorf("got %d lines: %q", len(lines), lines)
		}
	}
}
