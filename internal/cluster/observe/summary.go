package observe

import (
	"math"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Summary counts clusters.
type Summary struct {
	Clusters     int
	ByVerdict    map[verdict.Verdict]int
	ReadyPercent int       // from 0 to 100, rounded down; 100 without clusters
	BehindSince  time.Time // earliest time
}

// Summary counts the clusters of the observation.
func (r *Observation) Summary() Summary {
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

// UnreadyAssignment is an assignment that is not ready everywhere.
type UnreadyAssignment struct {
	verdict.Status          // the worst; of equally bad ones, the earliest
	Clusters       []string // where it is not ready, sorted
}

// UnreadyAssignments returns the assignments that are not ready, by key, without clusters whose whole content is
// unknown.
func (r *Observation) UnreadyAssignments() map[string]UnreadyAssignment {
	troubles := map[string]UnreadyAssignment{}
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
