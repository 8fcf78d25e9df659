package report_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

var evidence = time.Date(2026, 3, 14, 9, 30, 0, 0, time.UTC)

// referencePage returns the page of the reference fleet, scaled to about so many assignments. Its random reports have a fixed
// seed, and most are ready.
func referencePage(assignments int, showValues bool) *report.Page {
	f, config := fleettest.Reference(assignments, 1)
	scheduled, findings := schedule.Schedule(f)
	if len(findings) > 0 {
		panic(findings)
	}
	hydrated, err := hydrate.Hydrate(f, config, scheduled.Assignments)
	if err != nil {
		panic(err)
	}
	g := &generator{random: rand.New(rand.NewPCG(1, 2)), showValues: showValues, snapshots: map[*hydrate.Snapshot]*report.Snapshot{}}
	for range 400 {
		g.commits = append(g.commits, g.commit())
	}
	p := &g.page
	*p = report.Page{
		Title: "platform", Environment: f.Environment, Commit: g.commit(), Time: evidence,
		Repository: folder.Location{URL: "https://git.example.com/platform/fleet.git", Branch: "main", Path: "clusters/prod"},
	}
	for _, c := range f.Clusters {
		g.cluster(c.Name, c.ClusterType)
	}
	byHost := map[string]int{}
	for i, a := range scheduled.Assignments {
		byHost[a.Host.Name]++
		g.assignment(a, hydrated.All[i])
	}
	regions := map[string]*report.Region{}
	for _, h := range scheduled.Hosts {
		if h.Cluster != nil && byHost[h.Name] == 0 {
			continue
		}
		g.host(h, regions)
	}
	for _, t := range scheduled.Targets {
		p.Targets = append(p.Targets, report.Target{
			Name: t.Name, Workload: t.Workload.Name, Workspace: t.Workload.Workspace, Labels: t.Labels,
			Version: fmt.Sprintf("v%d.%d.%d", 1+len(p.Targets)%3, g.random.IntN(20), g.random.IntN(9)),
		})
	}
	g.addOthers(scheduled, regions)
	return p
}

type generator struct {
	random     *rand.Rand
	page       report.Page
	showValues bool
	snapshots  map[*hydrate.Snapshot]*report.Snapshot
	commits    []string
}

func (g *generator) commit() string {
	return fmt.Sprintf("%016x%016x%08x", g.random.Uint64(), g.random.Uint64(), g.random.Uint32())
}

func (g *generator) randomTime(limit time.Duration) time.Time {
	return evidence.Add(-time.Duration(g.random.Int64N(int64(limit)))).Truncate(time.Second)
}

var messages = map[verdict.Verdict][]string{
	verdict.Failed: {
		"Kustomization build failed: kustomize build failed: accumulating resources: missing file",
		"Deployment web: progress deadline exceeded, 0 of 3 replicas are available",
		"HelmRelease: upgrade retries exhausted",
	},
	verdict.Behind:      {"has the content of an older commit", "the source cannot be fetched: connection timed out"},
	verdict.Progressing: {"Deployment web: 2 of 3 replicas are updated", "reconciliation in progress"},
	verdict.Unknown:     {"no report since 26 h", "the cluster cannot be reached"},
	verdict.Ready:       {""},
}

func (g *generator) verdict() verdict.Verdict {
	switch n := g.random.IntN(1000); {
	case n < 8:
		return verdict.Failed
	case n < 22:
		return verdict.Behind
	case n < 50:
		return verdict.Progressing
	case n < 60:
		return verdict.Unknown
	}
	return verdict.Ready
}

func (g *generator) message(v verdict.Verdict) string {
	return messages[v][g.random.IntN(len(messages[v]))]
}

func (g *generator) cluster(name, clusterType string) {
	c := report.Cluster{Name: name, Type: clusterType, Commit: g.page.Commit}
	c.Verdict, c.Since = g.verdict(), g.randomTime(72*time.Hour)
	c.Message = g.message(c.Verdict)
	switch c.Verdict {
	case verdict.Behind:
		c.Behind, c.BehindSince, c.Commit = 1+g.random.IntN(40), c.Since, g.commit()
	case verdict.Unknown:
		c.Behind, c.Commit = -1, ""
	}
	g.page.Clusters = append(g.page.Clusters, c)
}

func (g *generator) assignment(a *schedule.Assignment, s *hydrate.Snapshot) {
	tree := g.commit()
	assignment := report.Assignment{
		Host: a.Host.Name, Target: a.Target.Name, Namespace: a.Namespace, Policies: a.Policies,
		Status: verdict.Status{Verdict: g.verdict(), Since: g.randomTime(240 * time.Hour)}, State: report.UpToDate, Tree: tree, Deployed: tree, Commit: g.commits[g.random.IntN(len(g.commits))],
		Changed: g.randomTime(2000 * time.Hour), Snapshot: g.snapshot(s),
	}
	assignment.Message = g.message(assignment.Verdict)
	clusters := 6
	if a.Host.Cluster != nil {
		clusters = 1
	}
	assignment.Clusters[4] = clusters
	if assignment.Verdict != verdict.Ready {
		assignment.Clusters[4]--
		assignment.Clusters[slices.Index(verdict.All, assignment.Verdict)] = 1
	}
	for n, remaining := g.random.IntN(3), clusters; remaining > 0; n, remaining = n+1, remaining-4 { // some assignments run several versions
		suffix := fmt.Sprint(len(a.Target.Name), ".", n)
		assignment.Running = append(assignment.Running, report.Run{
			Running: reconciler.Running{
				Version:  "v1." + suffix,
				Revision: fmt.Sprintf("%040x", len(a.Target.Name)*7+n),
				Images:   "example.com/" + a.Target.Name + ":" + suffix,
			}, Clusters: min(4, remaining),
		})
	}
	switch g.random.IntN(100) {
	case 0:
		assignment.State, assignment.Deployed = report.New, ""
	case 1, 2:
		assignment.State, assignment.Deployed = report.Changed, g.commit()
		assignment.WaitsFor = "the stage before to be proven"
	case 3:
		if g.random.IntN(4) == 0 {
			assignment.State, assignment.Tree = report.Removed, ""
		}
	}
	g.page.Assignments = append(g.page.Assignments, assignment)
}

func (g *generator) snapshot(s *hydrate.Snapshot) *report.Snapshot {
	if snapshot, ok := g.snapshots[s]; ok {
		return snapshot
	}
	snapshot := &report.Snapshot{Version: s.Version}
	provenance := s.Provenance()
	pointers := make([]string, 0, len(provenance))
	for pointer := range provenance {
		pointers = append(pointers, pointer)
	}
	slices.Sort(pointers)
	for _, pointer := range pointers {
		value := report.Value{Pointer: pointer, Container: provenance[pointer].Container, Overridden: provenance[pointer].Overridden}
		if g.showValues {
			value.Text = fmt.Sprintf("%q", value.Container+pointer)
		}
		snapshot.Values = append(snapshot.Values, value)
	}
	g.snapshots[s] = snapshot
	return snapshot
}

func (g *generator) score() *health.Score {
	failed, behind := g.random.IntN(4)*g.random.IntN(15), g.random.IntN(20)
	return &health.Score{Value: 100 - failed - behind/2, Parts: []health.Part{
		{
			Verdict: verdict.Ready,
			Points:  100,
			Percent: 100 - failed - behind,
		}, {Verdict: verdict.Behind, Points: 50, Percent: behind}, {Verdict: verdict.Failed, Percent: failed},
	}}
}

func (g *generator) host(h *schedule.Host, regions map[string]*report.Region) {
	host := report.Host{
		Name:      h.Name,
		IsCluster: h.Cluster != nil,
		Labels:    h.Labels,
		Region:    h.Labels["region"],
		Clusters:  6,
		Health:    g.score(),
	}
	if h.Cluster != nil {
		host.Clusters = 1
	}
	g.page.Hosts = append(g.page.Hosts, host)
	region := regions[host.Region]
	if region == nil {
		region = &report.Region{Name: host.Region, Health: g.score()}
		regions[host.Region] = region
	}
	region.Hosts++
	if h.Cluster == nil {
		region.Clusters += host.Clusters
	}
}

// addOthers adds everything except hosts, clusters, targets and assignments.
func (g *generator) addOthers(scheduled *schedule.Decisions, regions map[string]*report.Region) {
	p := &g.page
	for _, region := range regions {
		p.Regions = append(p.Regions, *region)
	}
	slices.SortFunc(p.Regions, func(a, b report.Region) int { return slices.Compare([]string{a.Name}, []string{b.Name}) })
	p.Health = &health.Score{Value: 95, Parts: []health.Part{
		{Verdict: verdict.Ready, Count: 112_316, Of: 121_440, Points: 100, Percent: 93},
		{Verdict: verdict.Progressing, Count: 3641, Of: 121_440, Points: 75, Percent: 3},
		{Verdict: verdict.Behind, Count: 2428, Of: 121_440, Points: 41, Percent: 2},
		{Verdict: verdict.Unknown, Count: 1821, Of: 121_440, Points: 25, Percent: 1},
		{Verdict: verdict.Failed, Count: 1234, Of: 121_440, Percent: 1},
	}}
	names := []string{"canary", "one region", "half", ""}
	for i := range min(6, len(p.Targets)) {
		r := rollout.Progress{
			DeploymentTarget: p.Targets[i*len(p.Targets)/6].Name, Stage: 1 + i%4, Stages: 4, StageName: names[i%4], HostsDone: 3 * i, Hosts: 20,
			Since: g.randomTime(20 * time.Hour), WaitsFor: rollout.WaitsForClusters, Condition: rollout.Waiting,
		}
		r.Content = g.commit()[:8]
		if i == 3 {
			r.WaitsFor, r.Condition = rollout.WaitsForContent, rollout.RolledBack
		}
		p.Rollouts = append(p.Rollouts, r)
	}
	p.Promotions = []report.Promotion{
		{
			Name:      "control plane to stage",
			Candidate: g.commit()[:12],
			Promoted:  g.commit()[:12],
			WaitsFor:  "the soak time, not before 2026-03-14 12:00 UTC",
			Since:     g.randomTime(3 * time.Hour),
		},
		{Name: "ingress chart", Candidate: "4.11.2", Promoted: "4.11.2", Since: g.randomTime(30 * time.Hour)},
	}
	at := evidence
	for i := range 40 {
		at = at.Add(-time.Duration(g.random.IntN(600)) * time.Minute)
		c := gitops.HistoryCommit{
			Commit:  g.commit(),
			Author:  git.Signature{Name: []string{"Ada Example", "pipeline", "Lin Example"}[i%3]},
			Time:    at,
			Subject: fmt.Sprintf("platform: change %d assignments", i+1),
		}
		for k := range 1 + g.random.IntN(60) {
			a := &p.Assignments[g.random.IntN(len(p.Assignments))]
			c.Changes = append(c.Changes, historyChange([]folder.Action{folder.Changed, folder.Added, folder.Removed}[k%3], a.Host, a.Target))
		}
		p.History.Commits = append(p.History.Commits, c)
	}
	p.Unscheduled, p.Excluded, p.IdlePolicies = scheduled.Unscheduled, scheduled.Excluded, scheduled.IdlePolicies
	p.IdleHosts = scheduled.IdleHosts
	p.Rules = []constraint.RuleResult{
		{Name: "no mutable tags in prod", Mode: "enforce", Looked: len(p.Assignments), Passed: len(p.Assignments)},
		{
			Name:   "every target on two regions",
			Mode:   "inform",
			Looked: len(p.Targets),
			Passed: len(p.Targets) - 2,
			Violations: []constraint.RuleViolation{
				{Subject: constraint.Subject{DeploymentTarget: p.Targets[0].Name}, Message: "it runs in one region only: region-0000"},
				{Subject: constraint.Subject{DeploymentTarget: p.Targets[1].Name}, Message: "it runs in one region only: region-0003"},
			},
		},
	}
}
