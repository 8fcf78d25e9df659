package overview_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/overview"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

var reportTime = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func id(number int) string { return fmt.Sprintf("%040x", number) }

var owner = delivery.Owner{
	Name:        "dev",
	Environment: "dev",
	Location:    folder.Location{URL: "https://user:canary@git.example.com/gitops.git", Branch: "dev"},
}

func compute(t testing.TB, assignments int, seed uint64) *pipeline.Computation {
	t.Helper()
	decoded, findings := fleet.Decode(fleettest.Input(fleettest.Reference(assignments, seed)))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	value, err := decoded.Value()
	if err != nil {
		t.Fatal(err)
	}
	result, found := pipeline.Compute(value)
	if len(found) > 0 {
		t.Fatal(found)
	}
	return result
}

// randomInput returns the input of a partly deployed fleet, with random reports about its clusters.
func randomInput(t testing.TB, assignments int, seed uint64) overview.Input {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same each time
	result := compute(t, assignments, seed)
	in := overview.Input{Owner: owner, Result: result, Bounds: health.DefaultBounds(), RegionLabel: "region"}
	in.Rendering = result.Render(t.Context(), pipeline.Destination{Owner: "dev", Repo: &folder.Location{URL: "u", Branch: "dev"}}, nil)
	in.Seen = &overview.Seen{
		Written: gitops.OwnerSnapshot{Tip: id(2), Records: map[folder.Key]gitops.FolderRecord{}, Trees: folder.Trees{}},
		Past:    map[string]gitops.ReportedCommit{}, History: gitops.History{Complete: true},
	}
	then := folder.Trees{}
	write := func(key folder.Key, tree string) {
		for _, trees := range []map[string]map[string]string{in.Seen.Written.Trees, then} {
			if trees[key.Host] == nil {
				trees[key.Host] = map[string]string{}
			}
			trees[key.Host][key.DeploymentTarget] = tree
		}
		record := gitops.FolderRecord{Tree: tree, Changed: reportTime.Add(-time.Duration(random.IntN(72)) * time.Hour)}
		switch random.IntN(8) {
		case 0:
			then[key.Host][key.DeploymentTarget] = id(1000 + random.IntN(3))
			record.Changed = reportTime.Add(time.Duration(random.IntN(9)) * time.Minute)
		case 1:
			delete(then[key.Host], key.DeploymentTarget)
		}
		in.Seen.Written.Records[key] = record
	}
	for i, assignment := range result.Schedule.Assignments {
		key := folder.Key{Host: assignment.Host.Name, DeploymentTarget: assignment.Target.Name}
		switch random.IntN(10) {
		case 0:
		case 1:
			write(key, id(2000+i))
		default:
			write(key, in.Rendering.Trees[i])
		}
		if random.IntN(40) == 0 {
			write(folder.Key{Host: key.Host, DeploymentTarget: "gone-" + key.DeploymentTarget}, id(3000+i))
		}
	}
	in.Evidence = randomEvidence(random, result)
	if random.IntN(2) == 0 {
		in.Evidence.Tip = id(2)
	}
	in.Seen.Past[in.Evidence.Tip] = gitops.ReportedCommit{ID: in.Evidence.Tip, Trees: then}
	return in
}

func randomEvidence(random *rand.Rand, result *pipeline.Computation) *observe.Evidence {
	e := &observe.Evidence{
		Running:  map[string]reconciler.Running{},
		Time:     reportTime,
		Tip:      id(1),
		Clusters: map[string]observe.ClusterEvidence{},
		Trees:    map[string]map[string]string{id(7): {}},
	}
	status := func() verdict.Status {
		v := verdict.Ready
		if random.IntN(2) == 0 {
			v = verdict.All[random.IntN(len(verdict.All))]
		}
		return verdict.Status{Verdict: v, Since: reportTime.Add(-time.Duration(random.IntN(48)) * time.Hour)}
	}
	commits := []string{id(1), id(1), id(7), ""}
	for i := range result.Fleet.Clusters {
		cluster := &result.Fleet.Clusters[i]
		if random.IntN(20) == 0 {
			continue
		}
		c := observe.ClusterEvidence{
			Type:        cluster.ClusterType,
			Commit:      commits[random.IntN(4)],
			Status:      status(),
			Assignments: map[string]observe.AssignmentStatus{},
		}
		for _, assignment := range result.Schedule.Assignments {
			if slices.Contains(observe.FollowedHosts(cluster.ClusterType, cluster.Name), assignment.Host.Name) && random.IntN(3) == 0 {
				c.Assignments[assignment.Key()] = observe.AssignmentStatus{Commit: commits[random.IntN(4)], Status: status()}
			}
		}
		if random.IntN(10) > 0 {
			c.Running = map[string]reconciler.Running{}
			for _, key := range slices.Sorted(maps.Keys(c.Assignments)) {
				if random.IntN(2) == 0 {
					c.Running[key] = reconciler.Running{Version: fmt.Sprint("v", random.IntN(3))[:random.IntN(3)]}
				}
			}
		}
		e.Clusters[cluster.Name] = c
	}
	for _, assignment := range result.Schedule.Assignments {
		e.Running[assignment.Target.Name] = reconciler.Running{Version: "v1"}
		if random.IntN(4) == 0 {
			e.Trees[id(7)][assignment.Key()] = id(1000 + random.IntN(3))
		}
	}
	return e
}

// expectedVerdict computes the verdict of an assignment on a cluster in the simplest way.
func expectedVerdict(in *overview.Input, cluster, host, target string) (v verdict.Verdict, age time.Duration) {
	key := host + "/" + target
	content := in.Evidence.Assignment(cluster, key)
	now, then := in.Seen.Written.Trees[host][target], in.Seen.Past[in.Evidence.Tip].Trees[host][target]
	if in.Evidence.Tip == in.Seen.Written.Tip || !content.Known || content.Verdict == verdict.Unknown || now == then {
		if content.Verdict == verdict.Behind && content.Commit == "" && in.Evidence.Clusters[cluster].Commit == "" {
			return content.Verdict, health.BehindFor
		}
		return content.Verdict, reportTime.Sub(content.Since)
	}
	applied := content.Tree
	if content.AtTip {
		applied = then
	}
	if applied == now {
		return verdict.Unknown, 0
	}
	return verdict.Behind, 0
}

// TestPageShowsTheCountedNumbers compares verdicts, states and scores with an independent count.
func TestPageShowsTheCountedNumbers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(acceptancetest.Count(8, 20)) {
		in := randomInput(t, 200, seed)
		page := overview.Build(in)
		verdicts, counts := map[verdict.Verdict]int{}, map[report.TargetState]int{}
		byHost, byRegion, all := map[string]*health.Tally{}, map[string]*health.Tally{}, health.Tally{}
		found := map[string]report.Assignment{}
		for _, a := range page.Assignments {
			found[a.Host+"/"+a.Target] = a
		}
		for i, assignment := range in.Result.Schedule.Assignments {
			host, target := assignment.Host.Name, assignment.Target.Name
			a := found[assignment.Key()]
			record, written := in.Seen.Written.Records[folder.Key{Host: host, DeploymentTarget: target}]
			state := report.UpToDate
			switch {
			case !written:
				state = report.New
			case record.Tree != in.Rendering.Trees[i]:
				state = report.Changed
			}
			counts[state]++
			worst, number := verdict.Verdict(""), 0
			runs := map[reconciler.Running]int{}
			for c := range in.Result.Fleet.Clusters {
				cluster := &in.Result.Fleet.Clusters[c]
				if !written || cluster.ClusterType != host && "clusters/"+cluster.Name != host {
					continue
				}
				runs[in.Evidence.RunningOn(cluster.Name, assignment.Key())]++
				v, age := expectedVerdict(&in, cluster.Name, host, target)
				if byHost[host] == nil {
					byHost[host] = &health.Tally{}
				}
				byHost[host].Add(v, age)
				all.Add(v, age)
				region := regionOf(in.Result.Fleet, cluster)
				if byRegion[region] == nil {
					byRegion[region] = &health.Tally{}
				}
				byRegion[region].Add(v, age)
				if number++; worst == "" || slices.Index(verdict.All, v) < slices.Index(verdict.All, worst) {
					worst = v
				}
			}
			delete(runs, reconciler.Running{})
			for n, run := range a.Running {
				if runs[run.Running] != run.Clusters || n > 0 && a.Running[n-1].Clusters < run.Clusters {
					t.Fatalf("seed %d: %s runs %+v, want %v", seed, assignment.Key(), a.Running, runs)
				}
			}
			verdicts[worst]++
			clusters := 0
			for _, count := range a.Clusters {
				clusters += count
			}
			if len(a.Running) != len(runs) && number > 0 {
				t.Fatalf("seed %d: %s runs %+v, want %v", seed, assignment.Key(), a.Running, runs)
			}
			if a.State != state || a.Verdict != worst || clusters != number {
				t.Fatalf("seed %d: %s is %+v, want %s and %s on %d clusters", seed, assignment.Key(), a, state, worst, number)
			}
		}
		c := page.Count()
		for v, number := range verdicts {
			if got := c.Wanted(v); got != number {
				t.Errorf("seed %d: %q is counted %d times, want %d", seed, v, got, number)
			}
		}
		if c.UpToDate != counts[report.UpToDate] || c.New != counts[report.New] || c.Changed != counts[report.Changed] ||
			c.Removed != len(in.Seen.Written.Records)-counts[report.UpToDate]-counts[report.Changed] ||
			c.Unknown != 0 {
			t.Errorf("seed %d: counted %+v, want %v", seed, c, counts)
		}
		if !reflect.DeepEqual(page.Health, all.Score()) {
			t.Errorf("seed %d: the health is %+v, want %+v", seed, page.Health, all)
		}
		for _, host := range page.Hosts {
			if want, ok := byHost[host.Name]; ok != (host.Health != nil) || ok && !reflect.DeepEqual(host.Health, want.Score()) {
				t.Errorf("seed %d: the health of %s is %+v, want the score of %+v", seed, host.Name, host.Health, want)
			}
		}
		for _, region := range page.Regions {
			if want, ok := byRegion[region.Name]; ok != (region.Health != nil) || ok && region.Health.Value != scoreOf(*want) {
				t.Errorf("seed %d: the health of region %s is %+v, want the score of %+v", seed, region.Name, region.Health, want)
			}
		}
		if again := overview.Build(in); !reflect.DeepEqual(again, page) {
			t.Errorf("seed %d: a second build gives another page", seed)
		}
	}
}

func regionOf(f *fleet.Fleet, cluster *fleet.Cluster) string {
	for i := range f.ClusterTypes {
		if f.ClusterTypes[i].Name == cluster.ClusterType {
			return fleet.MergeLabels(f.ClusterTypes[i].Labels, cluster.Labels)["region"]
		}
	}
	return ""
}

func scoreOf(tally health.Tally) int {
	if score := tally.Score(); score != nil {
		return score.Value
	}
	return 0
}

// A cluster with its first folders is behind, and has not reported an applied commit yet.
func TestRegionWithoutAppliedCommitsIsPoor(t *testing.T) {
	t.Parallel()
	in := randomInput(t, 200, 1)
	in.Evidence.Tip = in.Seen.Written.Tip
	for i := range in.Result.Fleet.Clusters {
		cluster := &in.Result.Fleet.Clusters[i]
		in.Evidence.Clusters[cluster.Name] = observe.ClusterEvidence{
			Type:   cluster.ClusterType,
			Commit: in.Evidence.Tip,
			Status: verdict.Status{Verdict: verdict.Behind, Since: reportTime},
		}
	}
	grades := func() (found []health.Grade) {
		for _, region := range overview.Build(in).Regions {
			if region.Health != nil {
				found = append(found, in.Bounds.Grade(region.Health.Value))
			}
		}
		return found
	}
	if all := grades(); !slices.Contains(all, health.Good) {
		t.Errorf("grades of regions that are behind since now: %q, want a good one", all)
	}
	for name, c := range in.Evidence.Clusters {
		c.Commit = ""
		in.Evidence.Clusters[name] = c
	}
	if all := grades(); len(all) == 0 || slices.ContainsFunc(all, func(g health.Grade) bool { return g != health.Poor }) {
		t.Errorf("grades of regions without applied commits: %q, want poor ones only", all)
	}
}

func TestPageShowsNoCredentials(t *testing.T) {
	t.Parallel()
	in := randomInput(t, 50, 1)
	if got := overview.Build(in).Repository.URL; got != "https://git.example.com/gitops.git" {
		t.Errorf("the URL is %q", got)
	}
}

func TestValuesAreShownOnlyOnRequest(t *testing.T) {
	t.Parallel()
	in := randomInput(t, 200, 1)
	for _, show := range []bool{false, true} {
		in.ShowValues = show
		values, askedFor := 0, 0
		for i, a := range overview.Build(in).Assignments {
			if a.Snapshot == nil {
				continue
			}
			for _, value := range a.Snapshot.Values {
				values++
				isGiven, isAsked := value.Container != "", len(value.Schemas) > 0
				if (value.Text != "") != (show && isGiven) || value.Pointer == "" || !isGiven && !isAsked || isAsked && !a.Snapshot.Checked {
					t.Fatalf("show_values = %v: assignment %d has %+v", show, i, value)
				}
				if isAsked {
					askedFor++
				}
			}
		}
		if values == 0 || askedFor == 0 {
			t.Errorf("%d values, schemas ask for %d, want some of both", values, askedFor)
		}
	}
}

// BenchmarkPage builds and renders the page of the reference fleet, with evidence of all clusters.
func BenchmarkPage(b *testing.B) {
	for _, values := range []bool{false, true} {
		b.Run(fmt.Sprintf("values=%v", values), func(b *testing.B) {
			in := randomInput(b, fleettest.ReferenceAssignments, 1)
			in.ShowValues = values
			b.Run("make", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					overview.Build(in)
				}
			})
			page := overview.Build(in)
			b.Run("html", func(b *testing.B) {
				b.ReportAllocs()
				size := 0
				for b.Loop() {
					html, err := report.HTML(page)
					if err != nil {
						b.Fatal(err)
					}
					size = len(html)
				}
				b.ReportMetric(float64(size)/(1<<20), "MiB")
			})
			b.Run("markdown", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					report.Markdown(page, 65536)
				}
			})
		})
	}
}
