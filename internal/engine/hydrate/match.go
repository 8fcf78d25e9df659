package hydrate

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
)

// matcher matches labelled things (config containers and schemas) with assignments. A thing is a candidate only for
// assignments with its rarest label.
type matcher struct {
	environment string
	labels      map[label]int32
	need        [][]int32 // labels, by thing
	rarest      [][]int32 // things, by label
	always      []int32   // things without labels

	hosts   map[*schedule.Host]*side
	targets map[*schedule.Target]*side
	sides   map[string]*side
}

type label struct{ key, value string }

// side has the relevant labels of a host or deployment target.
type side struct{ has []int32 }

func newMatcher(environment string, things []fleet.Labels) *matcher {
	m := &matcher{
		environment: environment, labels: map[label]int32{}, need: make([][]int32, len(things)),
		hosts: map[*schedule.Host]*side{}, targets: map[*schedule.Target]*side{}, sides: map[string]*side{},
	}
	var holders []int // by label
	for thing, labels := range things {
		for key, value := range labels {
			number, seen := m.labels[label{key, value}]
			if !seen {
				number = int32(len(holders))
				m.labels[label{key, value}] = number
				holders = append(holders, 0)
			}
			holders[number]++
			m.need[thing] = append(m.need[thing], number)
		}
	}
	m.rarest = make([][]int32, len(holders))
	for thing, need := range m.need {
		if len(need) == 0 {
			m.always = append(m.always, int32(thing))
			continue
		}
		rarest := slices.MinFunc(need, func(a, b int32) int { return cmp.Compare(holders[a], holders[b]) })
		m.rarest[rarest] = append(m.rarest[rarest], int32(thing))
	}
	return m
}

func (m *matcher) pairs(assignments []*schedule.Assignment) (pairs [][2]*side, pair []int32) {
	numbers := map[[2]*side]int32{}
	pair = make([]int32, len(assignments))
	for i, assignment := range assignments {
		host, target := m.hosts[assignment.Host], m.targets[assignment.Target]
		if host == nil {
			host = m.side(assignment, assignment.Host.Labels, true)
			m.hosts[assignment.Host] = host
		}
		if target == nil {
			target = m.side(assignment, assignment.Target.Labels, false)
			m.targets[assignment.Target] = target
		}
		both := [2]*side{host, target}
		number, known := numbers[both]
		if !known {
			number = int32(len(pairs))
			numbers[both] = number
			pairs = append(pairs, both)
		}
		pair[i] = number
	}
	return pairs, pair
}

func (m *matcher) side(assignment *schedule.Assignment, labels fleet.Labels, ofHost bool) *side {
	var has []int32
	for key, value := range labels {
		if number, wanted := m.labels[label{key, value}]; wanted && !schedule.IsReserved(key) {
			has = append(has, number)
		}
	}
	for key, value := range assignment.Reserved(m.environment) {
		if number, wanted := m.labels[label{key, value}]; wanted && ofHost == (key == "cluster-type" || key == "cluster") {
			has = append(has, number)
		}
	}
	slices.Sort(has)
	key := listKey(has)
	if m.sides[key] == nil {
		m.sides[key] = &side{has}
	}
	return m.sides[key]
}

func (m *matcher) held() []bool {
	held := make([]bool, len(m.rarest))
	for _, side := range m.sides {
		for _, number := range side.has {
			held[number] = true
		}
	}
	return held
}

type match struct {
	containers, schemas []int32
}

type matching struct {
	*matcher
	has   []bool // labels of the current pair
	found []int32
}

// match returns the matching things. Those below border are containers.
func (m *matching) match(sides [2]*side, border int) match {
	labels := distinct(slices.Concat(sides[0].has, sides[1].has))
	for _, label := range labels {
		m.has[label] = true
	}
	lacks := func(label int32) bool { return !m.has[label] }
	m.found = append(m.found[:0], m.always...)
	for _, label := range labels {
		for _, thing := range m.rarest[label] {
			if !slices.ContainsFunc(m.need[thing], lacks) {
				m.found = append(m.found, thing)
			}
		}
	}
	for _, label := range labels {
		m.has[label] = false
	}
	slices.Sort(m.found)
	end, _ := slices.BinarySearch(m.found, int32(border))
	made := match{containers: slices.Clone(m.found[:end])}
	for _, thing := range m.found[end:] {
		made.schemas = append(made.schemas, thing-int32(border))
	}
	return made
}

func listKey(list []int32) string {
	bytes := make([]byte, 0, 4*len(list))
	for _, number := range list {
		bytes = binary.LittleEndian.AppendUint32(bytes, uint32(number))
	}
	return string(bytes)
}

func lacking(labels fleet.Labels, assignment *schedule.Assignment, environment string) fleet.Labels {
	reserved := assignment.Reserved(environment)
	missing := fleet.Labels{}
	for key, value := range labels {
		sets := []fleet.Labels{assignment.Host.Labels, assignment.Target.Labels}
		if schedule.IsReserved(key) {
			sets = []fleet.Labels{reserved}
		}
		met := false
		for _, set := range sets {
			actual, has := set[key]
			met = met || (has && actual == value)
		}
		if !met {
			missing[key] = value
		}
	}
	return missing
}

type reach struct {
	set     []int     // set, by assignment
	sets    [][]int32 // containers in merge order
	schemas [][]int32 // config schemas, by assignment; shared, read-only
	any     []bool    // by container: has assignments
	idle    []ValueFinding
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
		matching := &matching{matcher: matcher, has: make([]bool, len(matcher.rarest))}
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
		set := matches[i].containers
		key := listKey(set)
		number, isKnown := known[key]
		if !isKnown {
			number = len(made.sets)
			known[key] = number
			made.sets = append(made.sets, set)
			for _, container := range set {
				made.any[container] = true
			}
		}
		numbers[i] = number
	}
	for i, pair := range pair {
		made.set[i], made.schemas[i] = numbers[pair], matches[pair].schemas
	}
	if len(assignments) > 0 {
		made.idle = idleSchemas(f, matcher, matches)
	}
	return made
}

// idleSchemas warns about schemas that check nothing. Idle containers are normal with layers.
func idleSchemas(f *fleet.Fleet, matcher *matcher, matches []match) []ValueFinding {
	matched := make([]bool, len(f.ConfigSchemas))
	for i := range matches {
		for _, schema := range matches[i].schemas {
			matched[schema] = true
		}
	}
	var idle []ValueFinding
	var held []bool
	for i := range f.ConfigSchemas {
		if matched[i] {
			continue
		}
		if held == nil {
			held = matcher.held()
		}
		unknown := fleet.Labels{}
		for key, value := range f.ConfigSchemas[i].Labels {
			if !held[matcher.labels[label{key, value}]] {
				unknown[key] = value
			}
		}
		message := "matches no assignment: none has all of its labels"
		if len(unknown) > 0 {
			message = "matches no assignment: none of their hosts and deployment targets has label " + enumerate(labelTexts(unknown), "or")
		}
		idle = append(idle, ValueFinding{Schema: schemaName(&f.ConfigSchemas[i]), Message: message})
	}
	return idle
}

func labelTexts(labels fleet.Labels) []string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, key+"="+labels[key])
	}
	return texts
}
