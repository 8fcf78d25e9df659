package hydrate

import (
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
)

// reach says which containers and schemas reach which assignment. Each distinct set is there once.
type reach struct {
	set     []int     // by assignment: the number of its set of containers
	sets    [][]int32 // the containers, in merge order
	schemas [][]int32 // by assignment: the config schemas; shared: read only
	any     []bool    // by container: reaches any assignment
}

func (e *engine) reach(f *fleet.Fleet, assignments []*schedule.Assignment) *reach {
	matcher := newMatcher(e.environment)
	for i := range e.containers {
		matcher.add(e.containers[i].labels)
	}
	for i := range f.ConfigSchemas {
		matcher.add(f.ConfigSchemas[i].Labels)
	}
	pairs, pair := matcher.pairs(assignments)
	matches := make([]match, len(pairs))
	parallel.EachWith(len(pairs), func() func(int) {
		matching := newMatching(matcher)
		return func(i int) { matches[i] = matching.match(pairs[i], len(e.containers)) }
	})

	made := &reach{
		set:     make([]int, len(assignments)),
		schemas: make([][]int32, len(assignments)),
		any:     make([]bool, len(e.containers)),
	}
	numbers := make([]int, len(pairs))
	known := make(map[uint64][]int, len(pairs)) // by hash: sets
	for i := range matches {
		numbers[i] = made.number(matches[i].containers, matches[i].hash, known)
	}
	for i, pair := range pair {
		made.set[i], made.schemas[i] = numbers[pair], matches[pair].schemas
	}
	return made
}

// number returns the number of a set of containers.
func (r *reach) number(set []int32, hash uint64, known map[uint64][]int) int {
	for _, number := range known[hash] {
		if slices.Equal(r.sets[number], set) {
			return number
		}
	}
	number := len(r.sets)
	known[hash] = append(known[hash], number)
	r.sets = append(r.sets, set)
	for _, container := range set {
		r.any[container] = true
	}
	return number
}
