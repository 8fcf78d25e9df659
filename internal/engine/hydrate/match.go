package hydrate

import (
	"encoding/binary"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// matcher decides which labelled things (config containers, config schemas) reach an assignment: those
// each of whose labels is the host's or the deployment target's, or a reserved one. Each host and each
// target is looked up in an index once; for an assignment little is left to do but to unite two short
// lists. Sets of things and labels are ascending lists of numbers: bit sets would make the work for an
// assignment grow with the fleet.
type matcher struct {
	labels  map[label]int32
	need    [][]int32 // by thing: its labels
	holders [][]int32 // by label: the things that have it
	always  []int32   // the things without labels

	environment string
	hosts       map[*schedule.Host]*side
	targets     map[*schedule.Target]*side
	sides       map[sideKey]*side
}

type label struct{ key, value string }

// side is what the host or the deployment target contributes to a match.
type side struct {
	has     []int32   // labels that any thing asks for
	alone   []int32   // the things that ask for these labels alone
	partial []partial // of a target's: the things that ask for some of these labels and for others
}

// sideKey is what sides that contribute the same have in common.
type sideKey struct {
	has    string
	ofHost bool
}

type partial struct {
	thing int32
	rest  []int32 // the labels that the other side must have
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

// add numbers the next thing, and says what it asks for. All are added before the first match.
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

// sidesOf returns what the host and the target of an assignment contribute. Those that contribute the
// same are the same.
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

// pairs returns the distinct pairs of sides of the assignments, and by assignment the number of its pair.
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

// held says of each label whether any host or target has it.
func (m *matcher) held() []bool {
	held := make([]bool, len(m.holders))
	for _, side := range m.sides {
		for _, number := range side.has {
			held[number] = true
		}
	}
	return held
}

// match is the things that reach what is on both sides.
type match struct {
	containers, schemas []int32
}

// matching matches pairs of sides, one at a time.
type matching struct {
	*matcher
	has    []bool // by label: the host at hand has it
	things numberSet
	found  []int32
}

func newMatching(m *matcher) *matching {
	return &matching{matcher: m, has: make([]bool, len(m.holders)), things: newNumberSet(len(m.need))}
}

// match returns the things that reach what is on both sides; containers are those before border.
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

// side returns what the assignment's host or target contributes. A reserved key is decided by the
// reserved label alone, and each of these belongs to one side.
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
	var touched []int32 // the things that have any of the labels
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

// rest returns what else a thing asks for.
func (m *matcher) rest(thing int32, has []int32) []int32 {
	var rest []int32
	for _, number := range m.need[thing] {
		if !slices.Contains(has, number) {
			rest = append(rest, number)
		}
	}
	return rest
}

// listKey returns a string that equal lists have in common.
func listKey(list []int32) string {
	bytes := make([]byte, 0, 4*len(list))
	for _, number := range list {
		bytes = binary.LittleEndian.AppendUint32(bytes, uint32(number))
	}
	return string(bytes)
}

// lacking returns those of the labels that neither the host nor the target of the assignment has.
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
