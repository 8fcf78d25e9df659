package hydrate

import (
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
)

type reach struct {
	set     []int     // set, by assignment
	sets    [][]int32 // containers in merge order
	schemas [][]int32 // config schemas, by assignment; shared, read-only
	any     []bool    // by container: has assignments
	idle    []idleSchema
}

type idleSchema struct {
	number  int
	unknown fleet.Labels // labels that no assignment has
}

func (e *mergeIndex) reach(f *fleet.Fleet, assignments []*schedule.Assignment) *reach {
	var things []fleet.Labels
	for i := range e.containers {
		things = append(things, e.containers[i].labels)
	}
	for i := range f.ConfigSchemas {
		things = append(things, f.ConfigSchemas[i].Labels)
	}
	matcher := newMatcher(e.environment, things)
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
	known := make(map[string]int, len(pairs)) // by key
	for i := range matches {
		numbers[i] = made.number(matches[i].containers, known)
	}
	for i, pair := range pair {
		made.set[i], made.schemas[i] = numbers[pair], matches[pair].schemas
	}
	if len(assignments) > 0 {
		made.idle = idleSchemas(f, matcher, matches)
	}
	return made
}

func idleSchemas(f *fleet.Fleet, matcher *matcher, matches []match) []idleSchema {
	matched := make([]bool, len(f.ConfigSchemas))
	for i := range matches {
		for _, schema := range matches[i].schemas {
			matched[schema] = true
		}
	}
	var idle []idleSchema
	var held []bool
	for i := range f.ConfigSchemas {
		if matched[i] {
			continue
		}
		if held == nil {
			held = matcher.held()
		}
		one := idleSchema{i, fleet.Labels{}}
		for key, value := range f.ConfigSchemas[i].Labels {
			if !held[matcher.labels[label{key, value}]] {
				one.unknown[key] = value
			}
		}
		idle = append(idle, one)
	}
	return idle
}

// warnOfIdleSchemas warns about schemas that check nothing. Idle containers are normal with layers.
func (r *reach) warnOfIdleSchemas(f *fleet.Fleet, warnings *collector) {
	for _, one := range r.idle {
		declared := &f.ConfigSchemas[one.number]
		message := "matches no assignment: none has all of its labels"
		if len(one.unknown) > 0 {
			message = "matches no assignment: none of their hosts and deployment targets has label " + enumerate(labelTexts(one.unknown), "or")
		}
		warnings.add("", ValueFinding{Schema: schemaName(declared), Message: message})
	}
}

func labelTexts(labels fleet.Labels) []string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, key+"="+labels[key])
	}
	return texts
}

func (r *reach) number(set []int32, known map[string]int) int {
	key := listKey(set)
	if number, isKnown := known[key]; isKnown {
		return number
	}
	number := len(r.sets)
	known[key] = number
	r.sets = append(r.sets, set)
	for _, container := range set {
		r.any[container] = true
	}
	return number
}
