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

// composer composes snapshots one at a time. It visits containers from last to first and reads each step once: the
// first value at a node remains. A set of containers therefore costs little more than reading it. Objects merged from
// equal parts are reused. With [merger.compose] for each key instead, the reference fleet takes twice the processor
// time and memory (BenchmarkHydrate).
type composer struct {
	*mergeIndex
	generation uint32        // number of the current snapshot
	met        []meeting     // by node
	columns    [][]entryFrom // by node merged as a whole: remaining values, last first
	touched    numberSet     // visited nodes
	order      []int32       // visited nodes, in order
	doubtful   numberSet     // top-level nodes with different values of equal rank
	merged     map[string]*value
	fields     []keyedValue
	buffer     []byte
	secrets    []byte

	name, wholeName []byte
}

// meeting is the current snapshot's value at a node so far.
type meeting struct {
	generation uint32 // outdated if of an older snapshot
	state      state
	rank       int32  // last visited or deciding container
	value      *value // remaining value, or the last visited one at a node merged as a whole
}

// state tells which containers can still contribute to a node.
type state uint8

const (
	decided  state = iota // decided
	open                  // merge members
	closed                // decided: a lower value is no object
	combined              // merge values as a whole
	ended                 // decided: a lower value does not combine
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

// snapshot composes containers, given in merge order, and finds nodes that only container names decide.
func (c *composer) snapshot(members []int32) (*Snapshot, []ambiguity) {
	made := &Snapshot{Known: true, mergeIndex: c.mergeIndex, members: members}
	certain := 0 // rank from which unknown values cannot resolve ambiguities
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

// take visits the steps of the next lower container.
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

// meet handles the first container with a node, and reports whether to visit its members.
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

// meetAgain handles lower containers. Equal rank and another value make the node doubtful; ambiguities decides later
// whether that matters.
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

// ambiguities examines a key with different values of equal rank.
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

// finish builds the values of a snapshot.
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

// Marks in the name of merged values for nodes without a container's value.
const (
	nothing  = math.MinInt32
	anObject = math.MinInt32 + 1
	wholes   = math.MaxUint32 // replaces a node's number
)

// remaining returns the value of the first node, given with its members, or nil.
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

// object builds a value from members.
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

// each yields the remaining values of outermost nodes, each with its members.
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

// combination returns the value of a node merged as a whole, or nil. The last value comes first.
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
