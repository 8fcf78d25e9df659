package hydrate

import (
	"encoding/binary"
	"math/bits"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
)

// matcher decides which labelled things (config containers, config schemas) reach an assignment: those
// each of whose labels is the host's or the deployment target's, or a reserved one. Each host and each
// target is looked at once; for an assignment little is left to do but to unite two bit sets.
type matcher struct {
	things  int
	pairs   map[label]int
	need    [][]int // by thing: its labels
	holders [][]int // by label: the things that have it
	always  bitset  // things without labels

	environment string
	hosts       map[*schedule.Host]*side
	targets     map[*schedule.Target]*side
	sides       map[string]*side
	matched     map[[2]*side]bitset
}

type label struct{ key, value string }

// side is what the host or the deployment target contributes to a match.
type side struct {
	has     bitset    // labels
	alone   bitset    // things that ask for nothing else
	partial []partial // things that ask for some of these labels and for others
}

type partial struct {
	thing int
	rest  []int // the labels that the other side must have
}

func newMatcher(environment string, things int) *matcher {
	return &matcher{
		things:      things,
		pairs:       map[label]int{},
		need:        make([][]int, things),
		always:      newBitset(things),
		environment: environment,
		hosts:       map[*schedule.Host]*side{},
		targets:     map[*schedule.Target]*side{},
		sides:       map[string]*side{},
		matched:     map[[2]*side]bitset{},
	}
}

// add says what a thing asks for. All things are added before the first match.
func (m *matcher) add(thing int, labels fleet.Labels) {
	if len(labels) == 0 {
		m.always.add(thing)
	}
	for key, value := range labels {
		pair, seen := m.pairs[label{key, value}]
		if !seen {
			pair = len(m.holders)
			m.pairs[label{key, value}] = pair
			m.holders = append(m.holders, nil)
		}
		m.need[thing] = append(m.need[thing], pair)
		m.holders[pair] = append(m.holders[pair], thing)
	}
}

// match returns the things that reach the assignment. The set is shared: read only.
func (m *matcher) match(assignment *schedule.Assignment) bitset {
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
	if set, seen := m.matched[both]; seen {
		return set
	}
	set := newBitset(m.things)
	for i := range set {
		set[i] = m.always[i] | host.alone[i] | target.alone[i]
	}
	for _, one := range target.partial {
		if host.has.hasAll(one.rest) {
			set.add(one.thing)
		}
	}
	m.matched[both] = set
	return set
}

// side returns what the assignment's host or target contributes. A reserved key is decided by the
// reserved label alone, and each of these belongs to one side.
func (m *matcher) side(assignment *schedule.Assignment, labels fleet.Labels, ofHost bool) *side {
	has := newBitset(len(m.holders))
	for key, value := range labels {
		if pair, wanted := m.pairs[label{key, value}]; wanted && !schedule.IsReserved(key) {
			has.add(pair)
		}
	}
	for key, value := range assignment.Reserved(m.environment) {
		if pair, wanted := m.pairs[label{key, value}]; wanted && ofHost == (key == "cluster-type" || key == "cluster") {
			has.add(pair)
		}
	}
	name := has.key()
	if !ofHost {
		name = "target" + name
	}
	if m.sides[name] == nil {
		m.sides[name] = m.newSide(has)
	}
	return m.sides[name]
}

func (m *matcher) newSide(has bitset) *side {
	made := &side{has: has, alone: newBitset(m.things)}
	touched := newBitset(m.things)
	for pair := range has.all {
		for _, thing := range m.holders[pair] {
			touched.add(thing)
		}
	}
	for thing := range touched.all {
		var rest []int
		for _, pair := range m.need[thing] {
			if !has.has(pair) {
				rest = append(rest, pair)
			}
		}
		if len(rest) == 0 {
			made.alone.add(thing)
		} else {
			made.partial = append(made.partial, partial{thing, rest})
		}
	}
	return made
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

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(size int) bitset { return make(bitset, (size+63)/64) }

func (b bitset) add(number int)      { b[number/64] |= 1 << (number % 64) }
func (b bitset) has(number int) bool { return b[number/64]&(1<<(number%64)) != 0 }

func (b bitset) hasAll(numbers []int) bool {
	for _, number := range numbers {
		if !b.has(number) {
			return false
		}
	}
	return true
}

// all yields the numbers in ascending order.
func (b bitset) all(yield func(int) bool) {
	for i, word := range b {
		for ; word != 0; word &= word - 1 {
			if !yield(i*64 + bits.TrailingZeros64(word)) {
				return
			}
		}
	}
}

// key returns a string that equal sets of equal size have in common.
func (b bitset) key() string {
	bytes := make([]byte, 0, 8*len(b))
	for _, word := range b {
		bytes = binary.LittleEndian.AppendUint64(bytes, word)
	}
	return string(bytes)
}
