package hydrate

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"iter"
	"math"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// composer composes snapshots, one at a time. It goes through the containers from the last to the first, and
// reads each step once: the first value that it meets at a node is the one that remains there. So the work for
// a set of containers is little more than reading it. Objects that are merged from the same parts are kept and
// used again. With [merger.compose] for each key in its place, the reference fleet takes twice the processor's time
// and twice the memory, by BenchmarkHydrate.
type composer struct {
	*mergeIndex
	generation uint32        // the number of the snapshot that is being composed
	met        []meeting     // by node
	columns    [][]entryFrom // by node that is merged as a whole: what remains, the last first
	touched    numberSet     // the nodes that were met
	order      []int32       // the same, in order
	doubtful   numberSet     // the top-level nodes at which containers of equal rank give different values
	merged     map[string]*value
	fields     []keyedValue
	buffer     []byte
	secrets    []byte

	name, wholeName []byte
}

// meeting is what the snapshot that is being composed has at a node so far.
type meeting struct {
	generation uint32 // of an older snapshot: nothing yet
	state      state
	rank       int32  // of the container that was met last, or that decided
	value      *value // what remains; at a node merged as a whole, what was met last
}

// state is what further containers can do at a node.
type state uint8

const (
	decided  state = iota // nothing: the node has its value
	open                  // objects are merged by their parts
	closed                // nothing: something below the objects was no object
	combined              // values are merged as a whole
	ended                 // nothing: something below them does not combine
)

type entryFrom struct {
	from  int
	value *value
}

func newComposer(e *mergeIndex) *composer {
	return &composer{
		mergeIndex: e, met: make([]meeting, len(e.nodes)), columns: make([][]entryFrom, e.wholes),
		touched: newNumberSet(len(e.nodes)), doubtful: newNumberSet(len(e.nodes)), merged: map[string]*value{},
	}
}

// snapshot composes what the containers, in merge order, give together, and finds the nodes where
// only their names decide.
func (c *composer) snapshot(members []int32) (*Snapshot, []ambiguity) {
	made := &Snapshot{Known: true, mergeIndex: c.mergeIndex, members: members}
	certain := 0 // the rank from which on no unknown value can resolve an ambiguity
	c.generation++
	for i := len(members) - 1; i >= 0; i-- {
		member := members[i]
		one := &c.containers[member]
		rank := member
		if c.ranks != nil {
			rank = int32(c.ranks[member])
		}
		if !one.known {
			if made.Known && c.ranks != nil {
				certain = int(rank)
			}
			made.Known = false
		}
		c.take(one, int(member), rank)
	}
	var ambiguities []ambiguity
	c.order = c.doubtful.drain(c.order[:0])
	for _, node := range c.order {
		for _, found := range c.ambiguities(c.nodes[node].name, members) {
			if c.ranks[found.containers[0]] >= certain {
				ambiguities = append(ambiguities, found)
			}
		}
	}
	c.order = c.touched.drain(c.order[:0])
	if c.files {
		var doubtful []ambiguity
		made.files, doubtful = c.filesOf(members)
		for _, found := range doubtful {
			if c.ranks != nil && c.ranks[found.containers[0]] >= certain {
				ambiguities = append(ambiguities, found)
			}
		}
	}
	if made.Known {
		c.finish(made)
	} else {
		made.files = nil
	}
	return made, ambiguities
}

// take goes through the steps of the next container down.
func (c *composer) take(one *container, from int, rank int32) {
	for at := 0; at < len(one.steps); {
		step := &one.steps[at]
		met := &c.met[step.node]
		var enter bool
		if met.generation != c.generation {
			enter = c.meet(step, met, from, rank)
		} else {
			enter = c.meetAgain(step, met, from, rank)
		}
		if enter {
			at++
		} else {
			at = int(step.end)
		}
	}
}

// meet is for the first container that has the node. It returns whether its parts are to be looked at.
func (c *composer) meet(step *step, met *meeting, from int, rank int32) bool {
	c.touched.add(step.node)
	*met = meeting{c.generation, decided, rank, step.value}
	if step.value == nil {
		met.state = open
		return true
	}
	if whole := c.nodes[step.node].whole; whole >= 0 {
		met.state = combined
		c.columns[whole] = append(c.columns[whole][:0], entryFrom{from, step.value})
	}
	return false
}

// meetAgain is for containers further down. One with the same rank as the container above it and another value
// makes the node doubtful; ambiguities finds out later whether that matters.
func (c *composer) meetAgain(step *step, met *meeting, from int, rank int32) bool {
	differs := met.rank == rank && (step.value == nil || met.value == nil || step.value.id != met.value.id)
	switch met.state {
	case open:
		if step.value == nil {
			met.rank = rank
			return true
		}
		met.state, met.rank = closed, rank
	case closed:
		differs = differs && step.value == nil
	case decided:
	case combined, ended:
		column := &c.columns[c.nodes[step.node].whole]
		if met.state == combined && c.combine(step.value.raw, (*column)[len(*column)-1].value.raw) {
			*column = append(*column, entryFrom{from, step.value})
		} else {
			met.state = ended
		}
		met.rank, met.value = rank, step.value
	}
	if differs {
		c.doubtful.add(c.nodes[step.node].top)
	}
	return false
}

// ambiguities examines a key for which containers of equal rank give different values.
func (c *composer) ambiguities(key string, members []int32) []ambiguity {
	var column []contribution
	for _, member := range members {
		if value, has := c.containers[member].data[key]; has {
			column = append(column, contribution{int(member), value})
		}
	}
	to := &report{ranks: c.ranks}
	c.compose((&trace{to: to}).child(escapePointer(key)), column)
	return to.ambiguities
}

// finish makes the values of a snapshot of what was met.
func (c *composer) finish(made *Snapshot) {
	c.fields, c.buffer, c.secrets = c.fields[:0], append(c.buffer[:0], '{'), c.secrets[:0]
	for node, value := range c.each(c.order) {
		to := &c.buffer
		if value.isReference() {
			to, made.references = &c.secrets, made.references+1
		}
		if len(*to) > 1 {
			*to = append(*to, ',')
		}
		*to = append(append(*to, node.json...), value.json...)
		c.fields = append(c.fields, keyedValue{node.key, value})
	}
	made.fields = slices.Clone(c.fields)
	c.buffer = append(c.buffer, '}')
	made.JSON = string(c.buffer)
	made.ValuesVersion = versionOf(c.buffer)
	made.Version = made.ValuesVersion
	if made.references == 0 && len(made.files) == 0 {
		return
	}
	c.buffer = append(c.buffer, c.secrets...)
	for i := range made.files {
		hash := sha256.Sum256([]byte(made.files[i].Text))
		c.buffer = append(c.buffer, hash[:]...)
	}
	made.Version = versionOf(c.buffer)
}

func versionOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// Marks in the name of merged values for a node without a value of a container.
const (
	nothing  = math.MinInt32
	anObject = math.MinInt32 + 1
	wholes   = math.MaxUint32 // in place of a node's number
)

// remaining returns what remains at the first of the nodes, of which the others are parts, or nil.
func (c *composer) remaining(nodes []int32) *value {
	met := &c.met[nodes[0]]
	switch met.state {
	case decided:
		if met.value.raw == nil {
			return nil
		}
		return met.value
	case combined, ended:
		return c.combination(c.columns[c.nodes[nodes[0]].whole])
	}
	c.name = c.name[:0]
	for _, node := range nodes {
		id := anObject
		switch met := &c.met[node]; met.state {
		case decided:
			id = met.value.id
		case combined, ended:
			id = nothing
			if value := c.combination(c.columns[c.nodes[node].whole]); value != nil {
				id = value.id
			}
		}
		c.name = binary.LittleEndian.AppendUint32(c.name, uint32(node))
		c.name = binary.LittleEndian.AppendUint32(c.name, uint32(int32(id)))
	}
	if known := c.merged[string(c.name)]; known != nil {
		return known
	}
	name := string(c.name)
	made := c.object(nodes[1:])
	made.id = -1 - len(c.merged)
	c.merged[name] = made
	return made
}

// object makes a value of what remains at nodes, which are the parts of one.
func (c *composer) object(parts []int32) *value {
	object := make(map[string]any, len(parts))
	made, json := &value{raw: object, clean: object}, []byte{'{'}
	for node, part := range c.each(parts) {
		if len(object) > 0 {
			json = append(json, ',')
		}
		json = append(append(json, node.json...), part.json...)
		object[node.name] = part.clean
		made.extreme = made.extreme || part.extreme
	}
	made.json = string(append(json, '}'))
	return made
}

// each yields the values that remain at nodes of which none is a part of another before it in the list
// but those that follow it.
func (c *composer) each(nodes []int32) iter.Seq2[*node, *value] {
	return func(yield func(*node, *value) bool) {
		for len(nodes) > 0 {
			first, count := &c.nodes[nodes[0]], 1
			for count < len(nodes) && nodes[count] < first.end {
				count++
			}
			if value := c.remaining(nodes[:count]); value != nil && !yield(first, value) {
				return
			}
			nodes = nodes[count:]
		}
	}
}

// combination returns the merged value of a node whose values are merged as a whole, or nil. The last
// value comes first.
func (c *composer) combination(column []entryFrom) *value {
	if column[0].value.raw == nil {
		return nil
	}
	if len(column) == 1 {
		return column[0].value
	}
	c.wholeName = binary.LittleEndian.AppendUint32(c.wholeName[:0], wholes)
	for _, one := range column {
		c.wholeName = binary.LittleEndian.AppendUint32(c.wholeName, uint32(one.value.id))
	}
	if known := c.merged[string(c.wholeName)]; known != nil {
		return known
	}
	all := make([]contribution, len(column))
	for i, one := range column {
		all[len(all)-1-i] = contribution{one.from, one.value.raw}
	}
	composed, _ := c.compose(nil, all)
	json, err := fleet.CanonicalJSON(composed)
	if err != nil {
		panic("hydrate: values that have a JSON form merged into one that has none: " + err.Error())
	}
	made := &value{raw: composed, clean: composed, json: json, extreme: isExtreme(composed), id: -1 - len(c.merged)}
	c.merged[string(c.wholeName)] = made
	return made
}
