package overview

import (
	"cmp"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

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
