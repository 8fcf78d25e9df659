package observe

import (
	"math"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Summary counts the clusters of a result.
type Summary struct {
	Clusters int
	// ByVerdict has every verdict.
	ByVerdict map[verdict.Verdict]int
	// ReadyPercent is the share of clusters that are ready, from 0 to 100, rounded down; 100 of none.
	ReadyPercent int
	// BehindSince is the earliest time since which a cluster is behind; zero where none is.
	BehindSince time.Time
}

// Summary counts the clusters of the result.
func (r *Result) Summary() Summary {
	s := Summary{Clusters: len(r.Clusters), ByVerdict: map[verdict.Verdict]int{}, ReadyPercent: 100}
	for _, verdict := range verdict.All {
		s.ByVerdict[verdict] = 0
	}
	for i := range r.Clusters {
		c := &r.Clusters[i]
		s.ByVerdict[c.Verdict]++
		if c.Verdict == verdict.Behind && (s.BehindSince.IsZero() || c.Since.Before(s.BehindSince)) {
			s.BehindSince = c.Since
		}
	}
	if s.Clusters > 0 {
		s.ReadyPercent = int(math.Floor(100 * float64(s.ByVerdict[verdict.Ready]) / float64(s.Clusters)))
	}
	return s
}

// Trouble is an assignment that is not ready everywhere.
type Trouble struct {
	// Status is the worst of what is known of it, with the earliest time of those that are as bad.
	verdict.Status
	// Clusters are those on which it is not ready, in order.
	Clusters []string
}

// Troubles are the assignments that are not ready, by key, as far as they are on clusters of which something
// is known.
func (r *Result) Troubles() map[string]Trouble {
	troubles := map[string]Trouble{}
	for i := range r.Clusters {
		c := &r.Clusters[i]
		if !slices.ContainsFunc(c.Assignments, func(a AssignmentResult) bool { return a.Known }) {
			continue
		}
		for k := range c.Assignments {
			a := &c.Assignments[k]
			if a.Verdict == verdict.Ready {
				continue
			}
			t, ok := troubles[a.Key]
			if order := verdict.Compare(a.Verdict, t.Verdict); !ok || order < 0 || order == 0 && a.Since.Before(t.Since) {
				t.Status = a.Status
			}
			t.Clusters = append(t.Clusters, c.Name)
			troubles[a.Key] = t
		}
	}
	return troubles
}
