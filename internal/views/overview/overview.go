// Package overview builds the page of a fleet from its assignments, reasons, values, branch, reports and rollouts. It is
// pure, except for [Look], which reads the repository.
package overview

import (
	"cmp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/audit"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

// Input holds everything that a page depends on.
type Input struct {
	Owner  delivery.Owner
	Result *pipeline.Computation
	// Rendering has the wanted trees; nil if the page does not compare them with the branch.
	Rendering *pipeline.Rendering
	// Seen has the content of the branch; nil if it could not be read.
	Seen *Seen
	// Evidence has the reports of clusters; nil without reports.
	Evidence *observe.Evidence
	// Progress has the rollouts under way by name.
	Progress []rollout.Progress
	// Promotions appear unchanged.
	Promotions []report.Promotion
	// Comparisons appear unchanged.
	Comparisons []report.Comparison
	// Rules has the results of the constraints, and Expressions their CEL by name.
	Rules       []constraint.RuleResult
	Expressions map[string]string

	Bounds health.Bounds
	// ShowValues adds values to the config containers.
	ShowValues bool
	Links      report.Links
	// RegionLabel is the label that groups hosts and clusters.
	RegionLabel string
}

// Result is the page with its counts.
type Result struct {
	Page *report.Page
	// Health is the tally of the fleet, and Hosts maps host names to tallies. They are empty without reports.
	Health health.Tally
	Hosts  map[string]health.Tally
	Counts Counts
}

// Counts holds the numbers of a page about the fleet's assignments.
type Counts struct {
	audit.Fleet
	Deployed audit.Deployed
	// Hosts counts the hosts with a folder.
	Hosts int
	// Verdicts counts by worst verdict, and NotAsked those without a verdict.
	Verdicts map[verdict.Verdict]int
	NotAsked int
}

// Build builds the page. The same input gives the same page.
func Build(in Input) *Result {
	m := &builder{Input: in, rollouts: map[string]*rollout.Progress{}}
	for i := range in.Progress {
		m.rollouts[in.Progress[i].DeploymentTarget] = &in.Progress[i]
	}
	m.out.Hosts = map[string]health.Tally{}
	m.out.Page = &report.Page{
		Title: in.Owner.Name, Environment: in.Result.Fleet.Environment,
		Repository: folder.Location{
			URL:    withoutCredentials(in.Owner.Location.URL),
			Branch: in.Owner.Location.Branch,
			Path:   in.Owner.Location.Path,
		},
		Rollouts: in.Progress, Promotions: in.Promotions, Comparisons: in.Comparisons, Rules: in.Rules, Links: in.Links, Bounds: in.Bounds,
	}
	if in.Seen != nil {
		m.out.Page.Commit = in.Seen.Written.Tip
	}
	if in.Evidence != nil {
		m.out.Page.Time = in.Evidence.Time
	}
	m.verdicts = newVerdicts(&m.Input)
	m.setAssignments()
	m.setTargets()
	m.setClusters()
	m.setHosts()
	m.setIdle()
	m.setHistory()
	m.count()
	return &m.out
}

type builder struct {
	Input
	out      Result
	verdicts *verdicts
	rollouts map[string]*rollout.Progress
}

// setAssignments lists the assignments of the fleet, and unwanted folders.
func (m *builder) setAssignments() {
	scheduled := m.Result.Schedule.Assignments
	wanted := make(map[folder.Key]bool, len(scheduled))
	all := make([]report.Assignment, 0, len(scheduled))
	snapshots := shownSnapshots(m.Result, m.ShowValues)
	for i, assignment := range scheduled {
		key := folder.Key{Host: assignment.Host.Name, DeploymentTarget: assignment.Target.Name}
		wanted[key] = true
		a := report.Assignment{
			Host: key.Host, Target: key.DeploymentTarget, Namespace: assignment.Namespace, Policies: assignment.Policies, Snapshot: snapshots[i],
		}
		m.setState(&a, key, i)
		m.setVerdict(&a, key, true)
		all = append(all, a)
	}
	if m.Seen != nil {
		for key, record := range m.Seen.Written.Records {
			if !wanted[key] {
				a := report.Assignment{
					Host: key.Host, Target: key.DeploymentTarget, Policies: record.Policies, State: report.Removed,
					Deployed: m.Seen.Written.Trees[key.Host][key.DeploymentTarget], WaitsFor: m.waitsFor(key.DeploymentTarget),
				}
				m.setChanged(&a, key)
				m.setVerdict(&a, key, false)
				all = append(all, a)
			}
		}
	}
	sortAssignments(all)
	m.out.Page.Assignments = all
}

func sortAssignments(all []report.Assignment) {
	slices.SortStableFunc(all, func(a, b report.Assignment) int {
		return cmp.Or(strings.Compare(a.Host, b.Host), strings.Compare(a.Target, b.Target))
	})
}

// setState compares the wanted content with the branch.
func (m *builder) setState(a *report.Assignment, key folder.Key, i int) {
	if m.Rendering != nil {
		a.Tree = m.Rendering.Trees[i]
		a.WaitsFor = m.Rendering.WaitsFor(i)
	}
	if m.Seen == nil {
		return
	}
	_, recorded := m.Seen.Written.Records[key]
	if recorded {
		a.Deployed = m.Seen.Written.Trees[key.Host][key.DeploymentTarget]
		m.setChanged(a, key)
	}
	switch {
	case !recorded:
		a.State = report.New
	case a.Tree == "": // unknown, or not rendered
	case a.Tree == a.Deployed:
		a.State = report.UpToDate
		return
	default:
		a.State = report.Changed
	}
	if a.WaitsFor == "" {
		a.WaitsFor = m.waitsFor(key.DeploymentTarget)
	}
}

func (m *builder) setChanged(a *report.Assignment, key folder.Key) {
	record := m.Seen.Written.Records[key]
	a.Changed, a.Commit, a.Source, a.Version = record.Changed, m.Seen.Commits[key], record.Source.Short(), record.Manifests.Revision()
}

// waitsFor returns the condition that blocks the rollout of a deployment target, or "".
func (m *builder) waitsFor(target string) string {
	if p := m.rollouts[target]; p != nil && !p.IsHalted() {
		return p.WaitText()
	} else if p != nil {
		return "newer content: it has failed"
	}
	return ""
}

// setVerdict sets the reported status. counts includes it in the health score.
func (m *builder) setVerdict(a *report.Assignment, key folder.Key, counts bool) {
	worst, found := m.verdicts.ofAssignment(key, counts)
	if !found.any {
		return
	}
	a.Verdict, a.Since, a.Message, a.Clusters = worst.Verdict, worst.Since, worst.Message, found.tally.Counts()
	a.Running = found.runs
	if !counts {
		return
	}
	tally := m.out.Hosts[key.Host]
	tally.Join(found.tally)
	m.out.Hosts[key.Host] = tally
	m.out.Health.Join(found.tally)
}

func (m *builder) setTargets() {
	for _, target := range m.Result.Schedule.Targets {
		m.out.Page.Targets = append(m.out.Page.Targets, report.Target{
			Name: target.Name, Workload: target.Workload.Name, Workspace: target.Workload.Workspace, Labels: target.Labels,
			Version: target.Target.Manifests.Revision(),
		})
	}
}

// setIdle lists deployment targets without a host, hosts and policies without an assignment, and exclusions.
func (m *builder) setIdle() {
	page, scheduled := m.out.Page, m.Result.Schedule
	page.Unscheduled, page.IdlePolicies, page.Excluded = scheduled.Unscheduled, scheduled.IdlePolicies, scheduled.Excluded
	shown := map[string]bool{}
	for _, host := range page.Hosts {
		shown[host.Name] = true
	}
	for _, host := range scheduled.IdleHosts {
		if shown[host] {
			page.IdleHosts = append(page.IdleHosts, host)
		}
	}
}

func (m *builder) count() {
	page, f := m.out.Page, m.Result.Fleet
	c := Counts{Hosts: len(page.Hosts), Verdicts: map[verdict.Verdict]int{}, Fleet: audit.Fleet{
		ClusterTypes: len(f.ClusterTypes), Clusters: len(f.Clusters), Workspaces: len(f.Workspaces), DeploymentTargets: len(page.Targets),
		TargetPolicies: len(f.TargetPolicies), ConfigContainers: len(f.ConfigContainers), Unscheduled: len(page.Unscheduled),
	}}
	workloads := map[string]bool{}
	for i := range page.Targets {
		workloads[page.Targets[i].Workload] = true
	}
	c.Workloads = len(workloads)
	for i := range page.Assignments {
		a := &page.Assignments[i]
		if a.State == report.Removed {
			c.Deployed.Removed++
			continue
		}
		c.Assignments++
		if a.Verdict == "" {
			c.NotAsked++
		} else {
			c.Verdicts[a.Verdict]++
		}
		switch a.State {
		case report.UpToDate:
			c.Deployed.UpToDate++
		case report.New:
			c.Deployed.New++
		case report.Changed:
			c.Deployed.Changed++
		default:
			c.Deployed.Unknown++
		}
	}
	m.out.Counts = c
}
