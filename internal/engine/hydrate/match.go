package hydrate

import (
	"encoding/binary"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// matcher matches labelled things (config containers and schemas) with assignments. Each host and target is looked up
// once, and an assignment merges two short lists. Sets are ascending lists of numbers, because bit sets would grow
// with the fleet.
type matcher struct {
	labels  map[label]int32
	need    [][]int32 // labels, by thing
	holders [][]int32 // things, by label
	always  []int32   // things without labels

	environment string
	hosts       map[*schedule.Host]*side
	targets     map[*schedule.Target]*side
	sides       map[sideKey]*side
}

type label struct{ key, value string }

// side is the contribution of a host or deployment target to a match.
type side struct {
	has     []int32   // relevant labels
	alone   []int32   // things that need only these labels
	partial []partial // of a target: things that also need others
}

type sideKey struct {
	has    string
	ofHost bool
}

type partial struct {
	thing int32
	rest  []int32 // labels needed of the other side
}

func newMatcher(environment string) *matcher {
	return &matcher{
		labels:      map[label]int32{},
		environment: environment,
		hosts:       map[*schedule.Host]*side{},
		targets:     map[*schedule.Target]*side{},
		sides:       map[sideKey]*side{},
	}
}

func (m *matcher) add(labels fleet.Labels) {
	thing := int32(len(m.need))
	m.need = append(m.need, nil)
	if len(labels) == 0 {
		m.always = append(m.always, thing)
	}
	for key, value := range labels {
		number, seen := m.labels[label{key, value}]
		if !seen {
			number = int32(len(m.holders))
			m.labels[label{key, value}] = number
			m.holders = append(m.holders, nil)
		}
		m.need[thing] = append(m.need[thing], number)
		m.holders[number] = append(m.holders[number], thing)
	}
}

func (m *matcher) sidesOf(assignment *schedule.Assignment) (host, target *side) {
	host, target = m.hosts[assignment.Host], m.targets[assignment.Target]
	if host == nil {
		host = m.side(assignment, assignment.Host.Labels, true)
		m.hosts[assignment.Host] = host
	}
	if target == nil {
		target = m.side(assignment, assignment.Target.Labels, false)
		m.targets[assignment.Target] = target
	}
	return host, target
}

func (m *matcher) pairs(assignments []*schedule.Assignment) (pairs [][2]*side, pair []int32) {
	numbers := map[[2]*side]int32{}
	pair = make([]int32, len(assignments))
	for i, assignment := range assignments {
		host, target := m.sidesOf(assignment)
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

func (m *matcher) held() []bool {
	held := make([]bool, len(m.holders))
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
	has    []bool // labels of the current host
	things numberSet
	found  []int32
}

func newMatching(m *matcher) *matching {
	return &matching{matcher: m, has: make([]bool, len(m.holders)), things: newNumberSet(len(m.need))}
}

// match returns the matching things. Those below border are containers.
func (m *matching) match(sides [2]*side, border int) match {
	host, target := sides[0], sides[1]
	for _, list := range [][]int32{m.always, host.alone, target.alone} {
		for _, thing := range list {
			m.things.add(thing)
		}
	}
	for _, label := range host.has {
		m.has[label] = true
	}
	for i := range target.partial {
		if m.hasAll(target.partial[i].rest) {
			m.things.add(target.partial[i].thing)
		}
	}
	for _, label := range host.has {
		m.has[label] = false
	}
	m.found = m.things.drain(m.found[:0])
	made := match{}
	end, _ := slices.BinarySearch(m.found, int32(border))
	made.containers = slices.Clone(m.found[:end])
	for _, thing := range m.found[end:] {
		made.schemas = append(made.schemas, thing-int32(border))
	}
	return made
}

func (m *matching) hasAll(wanted []int32) bool {
	for _, label := range wanted {
		if !m.has[label] {
			return false
		}
	}
	return true
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
	key := sideKey{listKey(has), ofHost}
	if m.sides[key] == nil {
		m.sides[key] = m.newSide(has, ofHost)
	}
	return m.sides[key]
}

func (m *matcher) newSide(has []int32, ofHost bool) *side {
	made := &side{has: has}
	var touched []int32 // things with any of the labels
	for _, number := range has {
		touched = append(touched, m.holders[number]...)
	}
	for _, thing := range distinct(touched) {
		switch rest := m.rest(thing, has); {
		case len(rest) == 0:
			made.alone = append(made.alone, thing)
		case !ofHost:
			made.partial = append(made.partial, partial{thing, rest})
		}
	}
	return made
}

func (m *matcher) rest(thing int32, has []int32) []int32 {
	var rest []int32
	for _, number := range m.need[thing] {
		if !slices.Contains(has, number) {
			rest = append(rest, number)
		}
	}
	return rest
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
