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
			c.Verdict, c.Since, c.Message = status.Verdict, status.Since, status.Message
			c.Commit = m.Evidence.Clusters[from.Name].Commit
		}
		if m.Seen != nil {
			if commit, ok := m.Seen.Past[c.Commit]; ok && commit.ID != "" && !commit.Ahead {
				c.Behind, c.BehindSince = commit.Behind, commit.Since.UTC()
			}
		}
		m.out.Page.Clusters = append(m.out.Page.Clusters, c)
	}
	slices.SortFunc(m.out.Page.Clusters, func(a, b report.Cluster) int { return cmp.Compare(a.Name, b.Name) })
}

// setHosts lists the hosts with a folder, and their regions.
func (m *builder) setHosts() {
	hosts, clusters := map[string]map[string]bool{}, map[string]int{} // by region
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
			Clusters: len(m.verdicts.followers[host.Name]), Health: m.out.Hosts[host.Name].Score(),
		}
		note(h.Region, h.Name)
		for _, cluster := range m.verdicts.followers[h.Name] {
			note(m.verdicts.regions[cluster], h.Name)
		}
		m.out.Page.Hosts = append(m.out.Page.Hosts, h)
	}
	for _, region := range m.verdicts.regions {
		clusters[region]++
	}
	for _, region := range slices.Sorted(maps.Keys(hosts)) {
		m.out.Page.Regions = append(m.out.Page.Regions, report.Region{
			Name: region, Hosts: len(hosts[region]), Clusters: clusters[region], Health: m.verdicts.byRegion[region].Score(),
		})
	}
	m.out.Page.Health = m.out.Health.Score()
}
