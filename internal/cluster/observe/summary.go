package observe

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
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

// Difference is a difference between fleet, Git and clusters.
type Difference struct {
	Assignment string   // key; "" if the difference is in no folder
	Wanted     bool     // whether the fleet has the assignment
	Git        string   // tree on the branch
	Deployed   string   // tree on the clusters; "" if none is affected
	Clusters   []string // affected ones, sorted; none if fleet and Git differ
	Objects    []string // differing from Git, as in "ConfigMap web/settings"
	Reason     string
}

// Drift lists the differences, sorted by assignment. wanted has the keys of the fleet's assignments.
func (r *Observation) Drift(wanted map[string]bool) []Difference {
	found := map[string]*Difference{} // by everything but the clusters
	add := func(d Difference, cluster string) {
		key := strings.Join(append([]string{d.Assignment, d.Git, d.Deployed, d.Reason}, d.Objects...), "\x00")
		if found[key] == nil {
			d.Wanted = wanted[d.Assignment]
			found[key] = &d
		}
		if cluster != "" {
			found[key].Clusters = append(found[key].Clusters, cluster)
		}
	}
	written := map[string]bool{}
	for i := range r.folders {
		folder := &r.folders[i]
		written[folder.Key()] = true
		switch {
		case !wanted[folder.Key()]:
			add(Difference{Assignment: folder.Key(), Git: folder.Tree, Reason: "Git has a folder that the fleet does not want any more"}, "")
		case folder.Tree == "":
			add(Difference{Assignment: folder.Key(), Reason: "the branch does not have the folder that its record lists"}, "")
		case folder.Recorded != "" && folder.Recorded != folder.Tree:
			add(Difference{Assignment: folder.Key(), Git: folder.Tree, Reason: "the folder on the branch is not what its record says"}, "")
		}
	}
	for key := range wanted {
		if !written[key] {
			add(Difference{Assignment: key, Reason: "Git does not have the folder yet"}, "")
		}
	}
	for i := range r.Clusters {
		c := &r.Clusters[i]
		for k := range c.Assignments {
			a := &c.Assignments[k]
			switch {
			case a.Known && a.Tree != a.Folder.Tree:
				add(Difference{Assignment: a.Key, Git: a.Folder.Tree, Deployed: a.Tree, Reason: "clusters have other content than Git"}, c.Name)
			case len(a.Edited) > 0:
				add(Difference{
					Assignment: a.Key, Git: a.Folder.Tree, Deployed: a.Tree, Objects: texts(a.Edited),
					Reason: "objects on clusters are not as Git has them",
				}, c.Name)
			}
		}
		if len(c.Leftover) > 0 {
			add(Difference{Objects: texts(c.Leftover), Reason: "clusters still have objects that Git does not have any more"}, c.Name)
		}
	}
	differences := make([]Difference, 0, len(found))
	for _, key := range slices.Sorted(maps.Keys(found)) {
		differences = append(differences, *found[key])
	}
	slices.SortStableFunc(differences, func(a, b Difference) int { return cmp.Compare(a.Assignment, b.Assignment) })
	return differences
}

func texts(names []reconciler.ObjectName) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = name.String()
	}
	return all
}
