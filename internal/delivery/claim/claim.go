// Package claim decides which clusters of a pool a claim has. It is pure.
//
// A claim keeps its clusters, oldest first, while the fleet has them and no other claim does. It takes free clusters in the
// order of their names, and releases the last taken ones first, independent of clocks and chance.
package claim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Situation is the input of a decision.
type Situation struct {
	Number int
	// Fleet has all clusters, and Pool the selectable ones, in any order.
	Fleet, Pool []string
	// Held are the claim's clusters, ordered by the time of taking, perhaps with duplicates.
	Held []string
	// Elsewhere maps the clusters of other claims to those claims.
	Elsewhere map[string]string
}

// Decision is the outcome.
type Decision struct {
	// Clusters are ordered by the time of taking.
	Clusters []string
	Taken    []string
	// Released are clusters beyond the wanted number.
	Released []string
	// Gone are clusters that left the fleet.
	Gone []string
	// Lost are clusters that another claim has.
	Lost []string
}

// KeepClusters decides which clusters the claim keeps, even if the pool no longer selects them.
func KeepClusters(s Situation) Decision {
	fleet := setOf(s.Fleet)
	var d Decision
	seen := map[string]bool{}
	for _, cluster := range s.Held {
		if seen[cluster] {
			continue
		}
		seen[cluster] = true
		_, lost := s.Elsewhere[cluster]
		switch {
		case lost:
			d.Lost = append(d.Lost, cluster)
		case !fleet[cluster]:
			d.Gone = append(d.Gone, cluster)
		case len(d.Clusters) >= s.Number:
			d.Released = append(d.Released, cluster)
		default:
			d.Clusters = append(d.Clusters, cluster)
		}
	}
	return d
}

// Decide calls KeepClusters and takes the missing clusters. Errors: *ShortError.
func Decide(s Situation) (Decision, error) {
	d := KeepClusters(s)
	wanting := s.Number - len(d.Clusters)
	if wanting <= 0 {
		return d, nil
	}
	free := freeClusters(s, d.Clusters)
	if len(free) < wanting {
		return Decision{}, &ShortError{
			Number:    s.Number,
			Kept:      len(d.Clusters),
			Free:      free,
			Pool:      len(setOf(s.Pool)),
			Elsewhere: ClaimedElsewhere(s),
		}
	}
	d.Taken = free[:wanting:wanting]
	d.Clusters = append(d.Clusters, d.Taken...)
	return d, nil
}

func freeClusters(s Situation, kept []string) []string {
	has := setOf(kept)
	var free []string
	for _, cluster := range slices.Sorted(maps.Keys(setOf(s.Pool))) {
		if _, taken := s.Elsewhere[cluster]; !taken && !has[cluster] {
			free = append(free, cluster)
		}
	}
	return free
}

// ClaimedElsewhere returns the clusters of the pool that other claims have, by claim.
func ClaimedElsewhere(s Situation) map[string][]string {
	by := map[string][]string{}
	for _, cluster := range slices.Sorted(maps.Keys(setOf(s.Pool))) {
		if other, ok := s.Elsewhere[cluster]; ok {
			by[other] = append(by[other], cluster)
		}
	}
	return by
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// ShortError reports a pool with too few free clusters.
type ShortError struct {
	Number    int // wanted
	Kept      int
	Free      []string
	Pool      int                 // clusters in all
	Elsewhere map[string][]string // by other claim
}

func (e *ShortError) Error() string {
	if e.Pool == 0 {
		return fmt.Sprintf("%s wanted, and the pool selects no cluster of the fleet", wording.Count(e.Number, "cluster is", "clusters are"))
	}
	text := fmt.Sprintf("%s wanted, and the pool of %s has %d free", wording.Count(e.Number, "cluster is", "clusters are"),
		wording.Count(e.Pool, "cluster", "clusters"), len(e.Free))
	if e.Kept > 0 {
		text += fmt.Sprintf(" beside the %d that the claim has", e.Kept)
	}
	if len(e.Elsewhere) == 0 {
		return text
	}
	var others []string
	for _, name := range slices.Sorted(maps.Keys(e.Elsewhere)) {
		others = append(others, fmt.Sprintf("claim %q has %s", name, wording.List(e.Elsewhere[name], wording.Named)))
	}
	more := ""
	if rest := len(others) - wording.Named; rest > 0 {
		others, more = others[:wording.Named], fmt.Sprintf("; and %s more", wording.Count(rest, "claim", "claims"))
	}
	return text + ": " + strings.Join(others, "; ") + more
}
