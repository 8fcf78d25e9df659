// Package claim decides which clusters of a pool a claim has. It is pure: what clusters there are, what the claim
// has and what others have goes in, names and reasons come out.
//
// A claim keeps what it has, in the order in which it took it, as long as the fleet has the cluster and no other
// claim does. Wanting more, it takes clusters of the pool that no other claim has, in the order of their names.
// Wanting fewer, it releases those that it took last. So the result depends on the input alone, and not on a clock, on
// chance, or on the order in which clusters were added.
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
	// Number is how many clusters are wanted.
	Number int
	// Fleet names all clusters of the fleet, and Pool those that the claim may take from, in any order.
	Fleet, Pool []string
	// Held is what the claim has, in the order in which it was taken. Names may be there twice.
	Held []string
	// Elsewhere maps the clusters that other claims have to the names of those claims.
	Elsewhere map[string]string
}

// Decision is what a claim gets.
type Decision struct {
	// Clusters in the order in which they were taken; those that are taken now come last.
	Clusters []string
	// Taken are those of them that the claim did not have.
	Taken []string
	// Released are those beyond the wanted number.
	Released []string
	// Gone are those that the fleet does not have any more.
	Gone []string
	// Lost are those that another claim has.
	Lost []string
}

// Keep decides which clusters the claim keeps. It takes none, and ignores the pool: a cluster whose labels have
// changed stays.
func Keep(s Situation) Decision {
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

// Decide is Keep, and then takes the clusters that are missing.
//
// Errors: *ShortError.
func Decide(s Situation) (Decision, error) {
	d := Keep(s)
	wanting := s.Number - len(d.Clusters)
	if wanting <= 0 {
		return d, nil
	}
	free := Free(s, d.Clusters)
	if len(free) < wanting {
		return Decision{}, &ShortError{Number: s.Number, Kept: len(d.Clusters), Free: free, Pool: len(setOf(s.Pool)), Elsewhere: Elsewhere(s)}
	}
	d.Taken = free[:wanting:wanting]
	d.Clusters = append(d.Clusters, d.Taken...)
	return d, nil
}

// Free are the clusters of the pool that may be taken, in order: those that neither the claim nor another one has.
func Free(s Situation, kept []string) []string {
	has := setOf(kept)
	var free []string
	for _, cluster := range slices.Sorted(maps.Keys(setOf(s.Pool))) {
		if _, taken := s.Elsewhere[cluster]; !taken && !has[cluster] {
			free = append(free, cluster)
		}
	}
	return free
}

// Elsewhere are the clusters of the pool that other claims have, by claim, in order.
func Elsewhere(s Situation) map[string][]string {
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

// ShortError says that a pool has fewer clusters than are wanted.
type ShortError struct {
	Number    int                 // wanted
	Kept      int                 // of those that the claim has
	Free      []string            // what could be taken
	Pool      int                 // clusters in all
	Elsewhere map[string][]string // what others have of the pool, by claim
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
