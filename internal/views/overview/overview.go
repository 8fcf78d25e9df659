// Package overview builds the page of a fleet. It is pure, except for [Look], which reads the repository.
package overview

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/numbering"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
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
	if counts {
		joinTally(m.hosts, key.Host, found.tally)
		m.all.Join(found.tally)
	}
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

func joinTally(all map[string]health.Tally, name string, tally health.Tally) {
	joined := all[name]
	joined.Join(tally)
	all[name] = joined
}

func (m *builder) setClusters() {
	for i := range m.Result.Fleet.Clusters {
		from := &m.Result.Fleet.Clusters[i]
		c := report.Cluster{Name: from.Name, Type: from.ClusterType, Behind: -1}
		if status, ok := m.verdicts.ofCluster(from.Name); ok {
			c.Status, c.Commit = status, m.Evidence.Clusters[from.Name].Commit
		}
		if m.Seen != nil {
			if commit, ok := m.Seen.Past[c.Commit]; ok && commit.ID != "" && !commit.Ahead {
				c.Behind, c.BehindSince = commit.Behind, commit.Since.UTC()
			}
		}
		m.page.Clusters = append(m.page.Clusters, c)
	}
	slices.SortFunc(m.page.Clusters, func(a, b report.Cluster) int { return cmp.Compare(a.Name, b.Name) })
}

// setHosts lists hosts with a folder, regions, and hosts without an assignment.
func (m *builder) setHosts() {
	hosts, clusters := map[string]map[string]bool{}, map[string]int{} // by region
	shown := map[string]bool{}
	note := func(region, host string) {
		if region == "" {
			return
		}
		if hosts[region] == nil {
			hosts[region] = map[string]bool{}
		}
		hosts[region][host] = true
	}
	for _, host := range m.Result.Hosts() {
		h := report.Host{
			Name: host.Name, IsCluster: host.Cluster != nil, Labels: host.Labels, Region: host.Labels[m.RegionLabel],
			Clusters: len(m.verdicts.followers[host.Name]), Health: m.hosts[host.Name].Score(),
		}
		shown[h.Name] = true
		note(h.Region, h.Name)
		for _, cluster := range m.verdicts.followers[h.Name] {
			note(m.verdicts.regions[cluster], h.Name)
		}
		m.page.Hosts = append(m.page.Hosts, h)
	}
	for _, region := range m.verdicts.regions {
		clusters[region]++
	}
	for _, region := range slices.Sorted(maps.Keys(hosts)) {
		m.page.Regions = append(m.page.Regions, report.Region{
			Name: region, Hosts: len(hosts[region]), Clusters: clusters[region], Health: m.verdicts.byRegion[region].Score(),
		})
	}
	m.page.Health = m.all.Score()
	for _, host := range m.Result.Schedule.IdleHosts {
		if shown[host] {
			m.page.IdleHosts = append(m.page.IdleHosts, host)
		}
	}
}

type shown struct {
	snapshot *hydrate.Snapshot
	advice   *hydrate.Advice
}

// shownSnapshots returns the visible values of each assignment; nil while unknown. Equal ones are shared.
func shownSnapshots(result *pipeline.Computation, withValues bool) []*report.Snapshot {
	assignments := result.Schedule.Assignments
	if result.Snapshots == nil { // records have no values
		return make([]*report.Snapshot, len(assignments))
	}
	advisor := result.Snapshots.Advisor()
	var different numbering.Numbers[shown]
	numbers := make([]int, len(assignments))
	for i, assignment := range assignments {
		numbers[i] = different.Number(shown{result.Snapshots.All[i], advisor.ForAssignment(i, assignment)})
	}
	distinct := different.All()
	snapshots := make([]*report.Snapshot, len(distinct))
	parallel.Each(len(distinct), func(i int) { snapshots[i] = distinct[i].show(withValues) })
	all := make([]*report.Snapshot, len(assignments))
	for i, number := range numbers {
		all[i] = snapshots[number]
	}
	return all
}

// show includes schema keys without a value.
func (s shown) show(withValues bool) *report.Snapshot {
	if !s.snapshot.Known {
		return nil
	}
	origins := s.advice.Provenance()
	var values map[string]any
	if withValues {
		values = s.snapshot.Values()
		for key, reference := range s.snapshot.Secrets() {
			values[key] = reference
		}
	}
	made := &report.Snapshot{Version: s.snapshot.Version, Checked: s.advice.Checked, Values: make([]report.Value, 0, len(origins))}
	for pointer, origin := range origins {
		value := shownValue(pointer, origin, values)
		value.Schemas = s.advice.Schemas(pointer)
		made.Values = append(made.Values, value)
	}
	for pointer, asked := range s.advice.Asked {
		if len(asked.Containers) == 0 {
			made.Values = append(made.Values, report.Value{Pointer: pointer, Schemas: asked.Schemas})
		}
	}
	slices.SortFunc(made.Values, func(a, b report.Value) int { return strings.Compare(a.Pointer, b.Pointer) })
	return made
}

func shownValue(pointer string, origin hydrate.Origin, values map[string]any) report.Value {
	v := report.Value{Pointer: pointer, Container: origin.Container, Overridden: origin.Overridden}
	if values == nil {
		return v
	}
	found, _ := hydrate.LookUp(values, pointer)
	switch value := found.(type) {
	case fleet.SecretReference:
		v.Text = "secret " + value.Store + ": " + value.Key
	default:
		v.Text, _ = fleet.CanonicalJSON(value) // cannot fail: hydrate wrote the value
	}
	return v
}
