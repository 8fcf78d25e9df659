package report

import (
	"cmp"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
)

// verdicts lists the verdicts in the order of the page, worst first; "" means none.
var verdicts = append(slices.Clone(verdict.All), "")

// rank returns the position of a verdict in verdicts.
func rank(v verdict.Verdict) int {
	if at := slices.Index(verdicts, v); at >= 0 {
		return at
	}
	return slices.Index(verdicts, verdict.Unknown)
}

// summary has the sums over the whole page.
type summary struct {
	// assignments and clusters count by the rank of the verdict.
	assignments, clusters [6]int
	// New, Changed and Removed count differences from the wanted content, and Waiting the assignments that wait.
	New, Changed, Removed, Waiting int
	// Broken counts violations of enforced rules, and Informed those of others.
	Broken, Informed int
}

func summarize(p *Page) summary {
	var s summary
	for i := range p.Assignments {
		a := &p.Assignments[i]
		s.assignments[rank(a.Verdict)]++
		switch a.State {
		case New:
			s.New++
		case Changed:
			s.Changed++
		case Removed:
			s.Removed++
		}
		if a.WaitsFor != "" {
			s.Waiting++
		}
	}
	for i := range p.Clusters {
		s.clusters[rank(p.Clusters[i].Verdict)]++
	}
	for i := range p.Rules {
		rule := &p.Rules[i]
		if rule.Mode == "inform" {
			s.Informed += broken(rule)
		} else {
			s.Broken += broken(rule)
		}
	}
	return s
}

// broken returns the known number of violations of a rule; 1 if it could not be evaluated.
func broken(r *constraint.RuleResult) int { return r.Looked - r.Passed + oneIf(r.Error != "") }

// bounds returns the bounds of grades.
func (p *Page) bounds() health.Bounds { return cmp.Or(p.Bounds, health.DefaultBounds()) }

// Grade returns the grade of a score.
func (p *Page) Grade(score *health.Score) health.Grade { return p.bounds().Grade(score.Value) }

// notReady returns the clusters that are not ready, worst first.
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
