package overview

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

// Repository reads a GitOps repository, as delivery.Service does.
type Repository interface {
	ReadOwner(ctx context.Context, owner delivery.Owner, wanted folder.Trees) (gitops.OwnerSnapshot, error)
	ReadInventory(ctx context.Context, at folder.Location, filter gitops.InventoryFilter) (gitops.Inventory, error)
	FindCommits(ctx context.Context, owner delivery.Owner, ids []string, want folder.Trees) (map[string]gitops.ReportedCommit, error)
	ReadHistory(ctx context.Context, owner delivery.Owner, filter gitops.HistoryFilter) (gitops.History, error)
}

// Seen holds the content of a branch for one owner.
type Seen struct {
	Written gitops.OwnerSnapshot
	// Commits has the last commit of folders, if known.
	Commits map[folder.Key]string
	// Past has the commits in the evidence by id.
	Past    map[string]gitops.ReportedCommit
	History gitops.History
}

// Label returns the owner's label on rendered objects.
func (s *Seen) Label(owner string) string { return cmp.Or(s.Written.Label(), owner) }

// Look reads the branch: its tip, the owner's records and trees, the commits in the evidence, and up to history commits. It
// returns the errors of the repository.
func Look(ctx context.Context, repository Repository, owner delivery.Owner, evidence *observe.Evidence, history int) (*Seen, error) {
	written, err := repository.ReadOwner(ctx, owner, nil)
	if err != nil {
		return nil, err
	}
	seen := &Seen{Written: written, Commits: map[folder.Key]string{}, History: gitops.History{Complete: true}}
	if written.Tip == "" {
		return seen, nil
	}
	inventory, err := repository.ReadInventory(ctx, owner.Location, gitops.InventoryFilter{Owner: owner.Name})
	if err != nil {
		return nil, err
	}
	for _, one := range inventory.Assignments {
		if one.Owner.Path == owner.Location.Path {
			seen.Commits[folder.Key{Host: one.Host, DeploymentTarget: one.DeploymentTarget}] = one.Commit
		}
	}
	if ids := commitsOf(evidence); len(ids) > 0 {
		if seen.Past, err = repository.FindCommits(ctx, owner, ids, seen.wanted(evidence)); err != nil {
			return nil, err
		}
	}
	if history > 0 {
		seen.History, err = repository.ReadHistory(ctx, owner, gitops.HistoryFilter{Limit: history})
	}
	return seen, err
}

// commitsOf includes the tip at the time of the evidence.
func commitsOf(evidence *observe.Evidence) []string {
	if evidence == nil || len(evidence.Clusters) == 0 {
		return nil
	}
	ids := map[string]bool{evidence.Tip: true}
	for _, cluster := range evidence.Clusters {
		ids[cluster.Commit] = true
	}
	delete(ids, "")
	return slices.Sorted(maps.Keys(ids))
}

// wanted returns the folders to compare at the commits; none if the evidence has the present tip.
func (s *Seen) wanted(evidence *observe.Evidence) folder.Trees {
	if evidence.Tip == s.Written.Tip {
		return nil
	}
	trees := folder.Trees{}
	for key := range s.Written.Records {
		folder.Put(trees, key, "")
	}
	return trees
}

func withoutCredentials(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	parsed, err := url.Parse(text)
	if err != nil {
		return ""
	}
	parsed.User = nil
	return parsed.String()
}

// Owned is an owner of a branch.
type Owned struct {
	Owner    delivery.Owner
	Seen     *Seen
	Evidence *observe.Evidence
}

// LookAtOwners reads all owners at a location and up to gitops.InventoryLevels folders below it, with their evidence. It returns
// the errors of the repository.
func LookAtOwners(ctx context.Context, repository Repository, at folder.Location, evidence []*observe.Evidence) ([]Owned, error) {
	inventory, err := repository.ReadInventory(ctx, at, gitops.InventoryFilter{})
	if err != nil {
		return nil, err
	}
	environments := map[gitops.Owner]string{}
	for i := range inventory.Assignments {
		owner := inventory.Assignments[i].Owner
		environments[gitops.Owner{Name: owner.Name, Path: owner.Path}] = owner.Environment
	}
	owned := make([]Owned, len(inventory.Owners))
	for i, found := range inventory.Owners {
		one := &owned[i]
		one.Owner = delivery.Owner{Name: found.Name, Location: at, Environment: environments[gitops.Owner{Name: found.Name, Path: found.Path}]}
		one.Owner.Location.Path = found.Path
		for _, e := range evidence {
			if e.About.Owner == found.Name && e.About.Path == found.Path {
				one.Evidence = e
			}
		}
		if one.Seen, err = Look(ctx, repository, one.Owner, one.Evidence, 0); err != nil {
			return nil, err
		}
	}
	return owned, nil
}

// OwnersHistory reads the newest commits of all owners, with the folder names of [BuildOwners].
func OwnersHistory(ctx context.Context, repository Repository, at folder.Location, owners []Owned, limit int) (gitops.History, error) {
	all := gitops.History{Complete: true}
	paths := map[string]bool{}
	for i := range owners {
		paths[owners[i].Owner.Location.Path] = true
	}
	for _, below := range slices.Sorted(maps.Keys(paths)) {
		if limit == 0 {
			break
		}
		from := delivery.Owner{Location: at}
		from.Location.Path = below
		history, err := repository.ReadHistory(ctx, from, gitops.HistoryFilter{Limit: limit})
		if err != nil {
			return gitops.History{}, err
		}
		for i := range history.Commits {
			for k := range history.Commits[i].Changes {
				change := &history.Commits[i].Changes[k]
				change.Host = path.Join(relative(at, below), change.Host)
			}
		}
		all.Commits, all.Complete = append(all.Commits, history.Commits...), all.Complete && history.Complete
	}
	slices.SortStableFunc(all.Commits, func(a, b gitops.HistoryCommit) int { return b.Time.Compare(a.Time) })
	if len(all.Commits) > limit {
		all.Commits, all.Complete = all.Commits[:limit], false
	}
	return all, nil
}

func relative(at folder.Location, below string) string {
	return strings.TrimPrefix(strings.TrimPrefix(below, at.Path), "/")
}

// Verdicts returns the worst verdict of each assignment with reports.
func (o *Owned) Verdicts() map[folder.Key]verdict.Status {
	found := map[folder.Key]verdict.Status{}
	if o.Evidence == nil {
		return found
	}
	all := newVerdicts(&Input{Owner: o.Owner, Result: o.recorded(), Seen: o.Seen, Evidence: o.Evidence})
	for key := range o.Seen.Written.Records {
		if worst, ok := all.ofAssignment(key, false); ok.any {
			found[key] = worst
		}
	}
	return found
}

// recorded restores the fleet of an owner from records and evidence.
func (o *Owned) recorded() *pipeline.Computation {
	f := &fleet.Fleet{Environment: o.Owner.Environment}
	scheduled := &schedule.Decisions{}
	labels := fleet.Labels{ownerLabel: o.Owner.Name}
	hosts, targets := map[string]*schedule.Host{}, map[string]*schedule.Target{}
	for _, key := range slices.SortedFunc(maps.Keys(o.Seen.Written.Records), folder.Key.Compare) {
		record := o.Seen.Written.Records[key]
		host, target := hosts[key.Host], targets[key.DeploymentTarget]
		if host == nil {
			host = &schedule.Host{Name: key.Host, Labels: labels}
			if cluster, ok := strings.CutPrefix(key.Host, "clusters/"); ok {
				host.Cluster = &fleet.Cluster{Name: cluster, ClusterType: record.ClusterType}
			}
			hosts[key.Host], scheduled.Hosts = host, append(scheduled.Hosts, host)
		}
		if target == nil {
			target = &schedule.Target{
				Name: key.DeploymentTarget, Workload: &fleet.Workload{Name: record.Workload, Workspace: record.Workspace},
				Target: &fleet.DeploymentTarget{},
			}
			targets[key.DeploymentTarget], scheduled.Targets = target, append(scheduled.Targets, target)
		}
		scheduled.Assignments = append(scheduled.Assignments, &schedule.Assignment{Host: host, Target: target, Policies: record.Policies})
		if host.Cluster != nil {
			f.Assignments = append(f.Assignments, fleet.ExplicitAssignment{Cluster: host.Cluster.Name, DeploymentTarget: target.Name})
		}
	}
	if o.Evidence != nil {
		for _, name := range slices.Sorted(maps.Keys(o.Evidence.Clusters)) {
			f.Clusters = append(f.Clusters, fleet.Cluster{Name: name, ClusterType: o.Evidence.Clusters[name].Type, Labels: labels})
		}
	}
	return &pipeline.Computation{Fleet: f, Schedule: scheduled}
}

const ownerLabel = "owner"

// BuildOwners builds a page of all owners from their records. It prefixes hosts and clusters with the owner's path, and merges
// owners of the same cluster. It uses only promotions, comparisons, links, bounds and location of the input.
func BuildOwners(in Input, owners []Owned, newest gitops.History) *report.Page {
	m := &merged{
		page: newPage(&in), tallies: tallies{hosts: map[string]health.Tally{}},
		hostAt: map[string]int{}, targetAt: map[string]int{}, clusterAt: map[string]int{},
	}
	page := m.page
	page.Title, page.Recorded, page.History = "All owners", true, newest
	for i := range owners {
		m.add(&owners[i], relative(in.Owner.Location, owners[i].Owner.Location.Path), i == 0)
	}
	for i := range page.Hosts {
		page.Hosts[i].Health = m.hosts[page.Hosts[i].Name].Score()
	}
	page.Health = m.all.Score()
	slices.SortStableFunc(page.Hosts, func(a, b report.Host) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(page.Targets, func(a, b report.Target) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(page.Clusters, func(a, b report.Cluster) int { return strings.Compare(a.Name, b.Name) })
	sortAssignments(page.Assignments)
	page.Fleet = report.FleetCounts{
		Hosts: len(page.Hosts), Clusters: len(page.Clusters), DeploymentTargets: len(page.Targets), Assignments: len(page.Assignments),
		Workloads:  len(namesOf(page.Targets, func(t *report.Target) string { return t.Workload })),
		Workspaces: len(namesOf(page.Targets, func(t *report.Target) string { return t.Workspace })),
	}
	return page
}

// merged is the page of several owners.
type merged struct {
	page *report.Page
	tallies
	hostAt, targetAt, clusterAt map[string]int // indexes on the page by name
}

// add adds the page of one owner with a prefix.
func (m *merged) add(o *Owned, at string, first bool) {
	made := build(
		Input{Owner: o.Owner, Result: o.recorded(), Seen: o.Seen, Evidence: o.Evidence, Bounds: health.DefaultBounds(), RegionLabel: ownerLabel},
	)
	page := m.page
	if first {
		page.Environment = o.Owner.Environment
	} else if page.Environment != o.Owner.Environment {
		page.Environment = ""
	}
	if made.page.Time.After(page.Time) {
		page.Time = made.page.Time
	}
	m.all.Join(made.all)
	for name, tally := range made.hosts {
		joinTally(m.hosts, path.Join(at, name), tally)
	}
	for _, host := range made.page.Hosts {
		host.Name, host.Region = path.Join(at, host.Name), path.Join(at, o.Owner.Name)
		k, ok := m.hostAt[host.Name]
		if !ok {
			m.hostAt[host.Name], page.Hosts = len(page.Hosts), append(page.Hosts, host)
			continue
		}
		before := &page.Hosts[k]
		before.Region, before.Clusters = before.Region+", "+host.Region, max(before.Clusters, host.Clusters)
		before.Labels = map[string]string{ownerLabel: before.Region}
	}
	for _, region := range made.page.Regions {
		region.Name = path.Join(at, region.Name)
		page.Regions = append(page.Regions, region)
	}
	for _, cluster := range made.page.Clusters {
		cluster.Name, cluster.Type = path.Join(at, cluster.Name), path.Join(at, cluster.Type)
		if k, ok := m.clusterAt[cluster.Name]; !ok {
			m.clusterAt[cluster.Name], page.Clusters = len(page.Clusters), append(page.Clusters, cluster)
		} else if verdict.Compare(cluster.Verdict, page.Clusters[k].Verdict) < 0 {
			page.Clusters[k] = cluster
		}
	}
	for _, assignment := range made.page.Assignments {
		assignment.Host = path.Join(at, assignment.Host)
		page.Assignments = append(page.Assignments, assignment)
	}
	for _, target := range made.page.Targets {
		if _, ok := m.targetAt[target.Name]; !ok {
			m.targetAt[target.Name], page.Targets = len(page.Targets), append(page.Targets, target)
		}
	}
}
