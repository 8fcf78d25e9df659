package hydrate

import (
	"encoding/binary"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
)

// matcher decides which labelled things (config containers, config schemas) reach an assignment: those
// each of whose labels is the host's or the deployment target's, or a reserved one. Each host and each
// target is looked up in an index once; for an assignment little is left to do but to unite two short
// lists. Sets of things and labels are ascending lists of numbers: bit sets would make the work for an
// assignment grow with the fleet.
type matcher struct {
	labels  map[label]int
	need    [][]int // by thing: its labels
	holders [][]int // by label: the things that have it
	always  []int   // the things without labels

	environment string
	hosts       map[*schedule.Host]*side
	targets     map[*schedule.Target]*side
	sides       map[string]*side // by what is in them
}

type label struct{ key, value string }

// side is what the host or the deployment target contributes to a match.
type side struct {
	has     []int     // labels that any thing asks for
	alone   []int     // the things that ask for nothing else
	partial []partial // the things that ask for some of these labels and for others
}

type partial struct {
	thing int
	rest  []int // the labels that the other side must have
}

func newMatcher(environment string) *matcher {
	return &matcher{
		labels:      map[label]int{},
		environment: environment,
		hosts:       map[*schedule.Host]*side{},
		targets:     map[*schedule.Target]*side{},
		sides:       map[string]*side{},
	}
}

// add numbers the next thing, and says what it asks for. All are added before the first match.
func (m *matcher) add(labels fleet.Labels) {
	thing := len(m.need)
	m.need = append(m.need, nil)
	if len(labels) == 0 {
		m.always = append(m.always, thing)
	}
	for key, value := range labels {
		number, seen := m.labels[label{key, value}]
		if !seen {
			number = len(m.holders)
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

// match returns the things that reach what is on both sides.
func (m *matcher) match(host, target *side) []int {
	matched := slices.Concat(m.always, host.alone, target.alone)
	for _, one := range target.partial {
		if containsAll(host.has, one.rest) {
			matched = append(matched, one.thing)
		}
	}
	slices.Sort(matched)
	return slices.Compact(matched)
}

// side returns what the assignment's host or target contributes. A reserved key is decided by the
// reserved label alone, and each of these belongs to one side.
func (m *matcher) side(assignment *schedule.Assignment, labels fleet.Labels, ofHost bool) *side {
	var has []int
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
	name := listKey(has)
	if m.sides[name] == nil {
		m.sides[name] = m.newSide(has)
	}
	return m.sides[name]
}

func (m *matcher) newSide(has []int) *side {
	made := &side{has: has}
	var touched []int
	for _, number := range has {
		touched = append(touched, m.holders[number]...)
	}
	for _, thing := range distinct(touched) {
		var rest []int
		for _, number := range m.need[thing] {
			if !slices.Contains(has, number) {
				rest = append(rest, number)
			}
		}
		if len(rest) == 0 {
			made.alone = append(made.alone, thing)
		} else {
			made.partial = append(made.partial, partial{thing, rest})
		}
	}
	return made
}

func containsAll(list, wanted []int) bool {
	for _, number := range wanted {
		if !slices.Contains(list, number) {
			return false
		}
	}
	return true
}

// listKey returns a string that equal lists have in common.
func listKey(list []int) string {
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
