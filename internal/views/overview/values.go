package overview

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

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
	number := map[shown]int{}
	var distinct []shown
	numbers := make([]int, len(assignments))
	for i, assignment := range assignments {
		one := shown{result.Snapshots.All[i], advisor.ForAssignment(i, assignment)}
		if _, ok := number[one]; !ok {
			number[one] = len(distinct)
			distinct = append(distinct, one)
		}
		numbers[i] = number[one]
	}
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
