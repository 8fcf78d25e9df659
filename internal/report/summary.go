package report

import (
	"cmp"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/verdict"
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
	// added, changed and removed are not deployed as wanted; waiting are assignments that wait for something.
	added, changed, removed, waiting int
	// violations are of enforced rules and of others.
	violations, informed int
}

func summarize(p *Page) summary {
	var s summary
	for i := range p.Assignments {
		a := &p.Assignments[i]
		s.assignments[rank(a.Verdict)]++
		switch a.State {
		case New:
			s.added++
		case Changed:
			s.changed++
		case Removed:
			s.removed++
		}
		if a.WaitsFor != "" {
			s.waiting++
		}
	}
	for i := range p.Clusters {
		s.clusters[rank(p.Clusters[i].Verdict)]++
	}
	for i := range p.Rules {
		rule := &p.Rules[i]
		if rule.Mode == "inform" {
			s.informed += rule.broken()
		} else {
			s.violations += rule.broken()
		}
	}
	return s
}

// broken is how many objects violate the rule.
func (r *Rule) broken() int { return max(r.Looked-r.Passed, len(r.Violations)) }

// bounds are those of a score.
func (p *Page) bounds() (good, poor int) {
	if p.Good == 0 && p.Poor == 0 {
		return 75, 40
	}
	return p.Good, p.Poor
}

// grade is a score as a word.
func (p *Page) grade(score *Score) string {
	good, poor := p.bounds()
	switch {
	case score == nil:
		return ""
	case score.Value >= good:
		return "good"
	case score.Value < poor:
		return "poor"
	}
	return "fair"
}

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
