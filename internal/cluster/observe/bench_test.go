package observe_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// BenchmarkObserve judges the reference fleet and writes its evidence.
func BenchmarkObserve(b *testing.B) {
	in := referenceFleet(b, 500)
	b.ReportAllocs()
	for b.Loop() {
		evidence := observe.Observe(in).Evidence().Marshal()
		if _, err := observe.Parse(evidence); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(evidence)), "B")
	}
}

// referenceFleet returns the reports of a fleet during a change. Each cluster type has six clusters and 40 assignments; the clusters
// are at 40 different commits. A quarter of the types run the new versions, and one cluster of each type in another quarter.
// The reference fleet has 500 types.
func referenceFleet(t testing.TB, types int) observe.FleetReports {
	t.Helper()
	var listed [2]reconciler.Answer
	for version := range listed {
		for j := range 40 {
			replacer := strings.NewReplacer(
				"name: web",
				fmt.Sprintf("name: workload-%02d-main", j),
				"v1@sha1:effd",
				fmt.Sprintf("v1.%d.%d@sha1:%04d", j, version, j),
			)
			listed[version].Objects = append(
				listed[version].Objects,
				parseObjects(t, strings.TrimSpace(replacer.Replace(readyKustomization+"\n---"+readySource)))...)
		}
	}
	in := observe.FleetReports{
		Time: time.Unix(1_800_000_000, 0), Tip: commitNumber(0), Types: map[string]string{},
		Reports: map[string]observe.ClusterReport{}, Commits: map[string]gitops.ReportedCommit{},
	}
	for c := range 40 {
		in.Commits[commitNumber(c)] = gitops.ReportedCommit{ID: commitNumber(c), Behind: c, Trees: map[string]map[string]string{}}
	}
	for i := range types {
		host := fmt.Sprintf("type-%03d", i)
		for c := range 40 {
			in.Commits[commitNumber(c)].Trees[host] = map[string]string{}
		}
		for j := range 40 {
			target := fmt.Sprintf("workload-%02d-main", j)
			in.Folders = append(in.Folders, observe.WrittenFolder{Host: host, DeploymentTarget: target, Tree: treeA, Objects: []reconciler.ObjectName{
				{Kind: "Kustomization", Namespace: "flux-system", Name: target},
			}})
			for c := range 40 {
				in.Commits[commitNumber(c)].Trees[host][target] = treeA
			}
			in.Commits[commitNumber(39-j)].Trees[host][target] = treeB
		}
		for k := range 6 {
			name := fmt.Sprintf("%s-%d", host, k)
			in.Types[name] = host
			version := 0
			if i%4 == 0 || i%4 == 1 && k == 0 {
				version = 1
			}
			report := observe.ReadCluster(folder.Location{}, host, name, listed[version])
			report.Unknown, report.Applied = "", map[string]reconciler.Applied{
				host: {Commit: commitNumber((i + k) % 40), Status: verdict.Status{Verdict: verdict.Ready, Since: in.Time}},
			}
			in.Reports[name] = report
		}
	}
	return in
}

func commitNumber(c int) string { return fmt.Sprintf("%040x", c) }
