package report

import (
	"cmp"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
)

// verdicts are in the order in which they are shown, the worst first; "" is none.
var verdicts = append(slices.Clone(verdict.All), "")

// rank is the place of a verdict among verdicts.
func rank(v verdict.Verdict) int {
	if at := slices.Index(verdicts, v); at >= 0 {
		return at
	}
	return slices.Index(verdicts, verdict.Unknown)
}

// summary has the sums over the whole page.
type summary struct {
	// assignments and clusters are counted by the rank of their verdict.
	assignments, clusters [6]int
	// New, Changed and Removed are not deployed as wanted; Waiting are assignments that wait for something.
	New, Changed, Removed, Waiting int
	// Broken are violations of enforced rules, Informed those of others.
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

// broken is how many subjects do not satisfy a rule, as far as is known; 1 where it could not be evaluated as a whole.
func broken(r *constraint.RuleResult) int { return r.Looked - r.Passed + oneIf(r.Error != "") }

// bounds are those of a score.
func (p *Page) bounds() health.Bounds { return cmp.Or(p.Bounds, health.DefaultBounds()) }

// Grade is the grade of a score.
func (p *Page) Grade(score *health.Score) health.Grade { return p.bounds().Grade(score.Value) }

// notReady are the clusters that are not ready, the worst first.
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
