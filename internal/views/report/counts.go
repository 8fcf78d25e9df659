package report

import (
	"cmp"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
)

// verdicts has the order of the page, worst first; "" means none.
var verdicts = append(slices.Clone(verdict.All), "")

func rank(v verdict.Verdict) int {
	if at := slices.Index(verdicts, v); at >= 0 {
		return at
	}
	return slices.Index(verdicts, verdict.Unknown)
}

// FleetCounts counts the objects of a fleet, as in the JSON of the audit.
type FleetCounts struct {
	Hosts             int `json:"-"` // with a folder
	ClusterTypes      int `json:"cluster_types"`
	Clusters          int `json:"clusters"`
	Workspaces        int `json:"workspaces"`
	Workloads         int `json:"workloads"`
	DeploymentTargets int `json:"deployment_targets"`
	TargetPolicies    int `json:"target_policies"`
	ConfigContainers  int `json:"config_containers"`
	Assignments       int `json:"assignments"`
	Unscheduled       int `json:"unscheduled"` // deployment targets without a host
}

// StateCounts counts assignments by state, as in the JSON of the audit.
type StateCounts struct {
	UpToDate int `json:"up_to_date"`
	New      int `json:"new"`
	Changed  int `json:"changed"`
	Removed  int `json:"removed"` // unwanted folders
	Unknown  int `json:"unknown"`
}

// Counts has the numbers of a page.
type Counts struct {
	StateCounts
	Waiting int
	// Broken counts violations of enforced rules, and Informed others.
	Broken, Informed int

	// By rank: assignments of the fleet, on the page, clusters.
	wanted, assignments, clusters [6]int
}

// Wanted counts the assignments of the fleet with a verdict; "" means none.
func (c *Counts) Wanted(v verdict.Verdict) int { return c.wanted[rank(v)] }

// Count counts the parts of the page.
func (p *Page) Count() Counts {
	var c Counts
	for i := range p.Assignments {
		a := &p.Assignments[i]
		c.assignments[rank(a.Verdict)]++
		if a.State != Removed {
			c.wanted[rank(a.Verdict)]++
		}
		switch a.State {
		case UpToDate:
			c.UpToDate++
		case New:
			c.New++
		case Changed:
			c.Changed++
		case Removed:
			c.Removed++
		default:
			c.Unknown++
		}
		c.Waiting += oneIf(a.WaitsFor != "")
	}
	for i := range p.Clusters {
		c.clusters[rank(p.Clusters[i].Verdict)]++
	}
	for i := range p.Rules {
		if rule := &p.Rules[i]; rule.Mode == "inform" {
			c.Informed += broken(rule)
		} else {
			c.Broken += broken(rule)
		}
	}
	return c
}

// broken returns the known violations of a rule; 1 if it could not be evaluated.
func broken(r *constraint.RuleResult) int { return r.Looked - r.Passed + oneIf(r.Error != "") }

func (p *Page) bounds() health.Bounds { return cmp.Or(p.Bounds, health.DefaultBounds()) }

// Grade returns the grade of a score.
func (p *Page) Grade(score *health.Score) health.Grade { return p.bounds().Grade(score.Value) }

func notReady(clusters []Cluster) []*Cluster {
	var found []*Cluster
	for i := range clusters {
		if v := clusters[i].Verdict; v != verdict.Ready && v != "" {
			found = append(found, &clusters[i])
		}
	}
	slices.SortStableFunc(found, func(a, b *Cluster) int { return cmp.Compare(rank(a.Verdict), rank(b.Verdict)) })
	return found
}
