// Package overview builds the page of a fleet. It is pure, except for [Look], which reads the repository.
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
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

// Input holds everything that a page depends on.
type Input struct {
	Owner  delivery.Owner
	Result *pipeline.Computation
	// Rendering has the wanted trees; nil without a comparison.
	Rendering *pipeline.Rendering
	// Seen is nil if the branch could not be read.
	Seen        *Seen
	Evidence    *observe.Evidence
	Progress    []rollout.Progress
	Promotions  []report.Promotion
	Comparisons []report.Comparison
	Rules       []constraint.RuleResult
	Expressions map[string]string

	Bounds health.Bounds
	// ShowValues shows values, not only their containers.
	ShowValues bool
	Links      report.Links
	// RegionLabel groups hosts and clusters.
	RegionLabel string
}

// Build builds the page.
func Build(in Input) *report.Page { return build(in).page }

// builder builds a page, with tallies for pages of several owners.
type builder struct {
	Input
	page *report.Page
	tallies
	verdicts *verdicts
	rollouts map[string]*rollout.Progress
}

// tallies are empty without reports.
type tallies struct {
	all   health.Tally
	hosts map[string]health.Tally
}

func build(in Input) *builder {
	m := &builder{Input: in, page: newPage(&in), rollouts: map[string]*rollout.Progress{}}
	m.hosts = map[string]health.Tally{}
	for i := range in.Progress {
		m.rollouts[in.Progress[i].DeploymentTarget] = &in.Progress[i]
	}
	page, scheduled := m.page, in.Result.Schedule
	page.Title, page.Environment = in.Owner.Name, in.Result.Fleet.Environment
	page.Rollouts, page.Rules, page.Expressions = in.Progress, in.Rules, in.Expressions
	page.Unscheduled, page.IdlePolicies, page.Excluded = scheduled.Unscheduled, scheduled.IdlePolicies, scheduled.Excluded
	if in.Seen != nil {
		page.Commit, page.History = in.Seen.Written.Tip, in.Seen.History
	}
	if in.Evidence != nil {
		page.Time = in.Evidence.Time
	}
	m.verdicts = newVerdicts(&m.Input)
	m.setAssignments()
	m.setTargets()
	m.setClusters()
	m.setHosts()
	m.count()
	return m
}

func newPage(in *Input) *report.Page {
	at := in.Owner.Location
	at.URL = withoutCredentials(at.URL)
	return &report.Page{Repository: at, Promotions: in.Promotions, Comparisons: in.Comparisons, Links: in.Links, Bounds: in.Bounds}
}

// setAssignments includes unwanted folders.
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
	m.page.Assignments = all
}

func sortAssignments(all []report.Assignment) {
	slices.SortStableFunc(all, func(a, b report.Assignment) int {
		return cmp.Or(strings.Compare(a.Host, b.Host), strings.Compare(a.Target, b.Target))
	})
}

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

// waitsFor returns the condition of a rollout, or "".
func (m *builder) waitsFor(target string) string {
	if p := m.rollouts[target]; p != nil && !p.IsHalted() {
		return p.WaitText()
	} else if p != nil {
		return "newer content: it has failed"
	}
	return ""
}

// setVerdict sets the status. counts includes it in the score.
func (m *builder) setVerdict(a *report.Assignment, key folder.Key, counts bool) {
	worst, found := m.verdicts.ofAssignment(key, counts)
	if !found.any {
		return
	}
	a.Status, a.Clusters, a.Running = worst, found.tally.Counts(), found.runs
	if !counts {
		return
	}
	m.join(key.Host, found.tally)
	m.all.Join(found.tally)
}

func (m *builder) setTargets() {
	for _, target := range m.Result.Schedule.Targets {
		m.page.Targets = append(m.page.Targets, report.Target{
			Name: target.Name, Workload: target.Workload.Name, Workspace: target.Workload.Workspace, Labels: target.Labels,
			Version: target.Target.Manifests.Revision(),
		})
	}
}

func (m *builder) count() {
	page, f := m.page, m.Result.Fleet
	page.Fleet = report.FleetCounts{
		Hosts: len(page.Hosts), ClusterTypes: len(f.ClusterTypes), Clusters: len(f.Clusters), Workspaces: len(f.Workspaces),
		Workloads: len(namesOf(page.Targets, func(t *report.Target) string { return t.Workload })), DeploymentTargets: len(page.Targets),
		TargetPolicies: len(f.TargetPolicies), ConfigContainers: len(f.ConfigContainers), Assignments: len(m.Result.Schedule.Assignments),
		Unscheduled: len(page.Unscheduled),
	}
}

// namesOf returns different names.
func namesOf(targets []report.Target, name func(*report.Target) string) map[string]bool {
	names := map[string]bool{}
	for i := range targets {
		names[name(&targets[i])] = true
	}
	delete(names, "")
	return names
}

func (t *tallies) join(host string, tally health.Tally) {
	joined := t.hosts[host]
	joined.Join(tally)
	t.hosts[host] = joined
}
