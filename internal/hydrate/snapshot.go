package hydrate

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// Snapshot is the values hydrated for an assignment, and for all others that the same containers
// reach. It is safe for concurrent use.
type Snapshot struct {
	Known      bool     // false: reaches a container whose values are not known yet; Version and JSON are empty
	Containers []string // the containers that matched, in merge order
	Version    string   // 16 hexadecimal digits of the hash of JSON: equal values, equal version
	JSON       string   // the canonical JSON object of the values

	engine  *engine
	members []int
	fields  []entry // what remains, in the order of keys
}

// Values returns the values by top-level key; nil where they are not known. The map is the caller's,
// what it holds is shared: read only.
func (s *Snapshot) Values() map[string]any {
	if !s.Known {
		return nil
	}
	values := make(map[string]any, len(s.fields))
	for _, field := range s.fields {
		values[s.engine.keys[field.key]] = field.value.clean
	}
	return values
}

// Origin says where a value comes from.
type Origin struct {
	Container  string   `json:"container"`
	Overridden []string `json:"overridden,omitempty"` // the containers that lost, in merge order
}

// Provenance returns the origin of every leaf by its JSON pointer; nil where values are not known. A
// leaf is what has no members: a scalar, a null in a list, an empty object or list. Who gave another
// value for the leaf, or for what it is part of, has lost. It is composed anew at each call.
func (s *Snapshot) Provenance() map[string]Origin {
	if !s.Known {
		return nil
	}
	origins := map[string]Origin{}
	for pointer, leaf := range s.leaves() {
		origins[pointer] = s.origin(leaf)
	}
	return origins
}

func (s *Snapshot) origin(leaf leaf) Origin {
	origin := Origin{Container: s.engine.containers[leaf.from].name}
	for _, container := range leaf.lost {
		origin.Overridden = append(origin.Overridden, s.engine.containers[container].name)
	}
	return origin
}

// leaves traces the snapshot, or only what is below some of its top-level keys.
func (s *Snapshot) leaves(keys ...string) map[string]leaf {
	to := &report{leaves: map[string]leaf{}}
	columns := map[string][]contribution{}
	for _, member := range s.members {
		for key, value := range s.engine.containers[member].data {
			if len(keys) == 0 || slices.Contains(keys, key) {
				columns[key] = append(columns[key], contribution{member, value})
			}
		}
	}
	for key, column := range columns {
		s.engine.compose((&trace{to: to}).child(escapePointer(key)), column)
	}
	return to.leaves
}

// composer composes snapshots, one at a time. It remembers what it merged.
type composer struct {
	*engine
	columns [][]entryFrom // by key; empty between snapshots
	touched []int
	merged  map[string]*value
	buffer  []byte
	name    []byte
}

type entryFrom struct {
	from  int
	value *value
}

func newComposer(e *engine) *composer {
	return &composer{engine: e, columns: make([][]entryFrom, len(e.keys)), merged: map[string]*value{}}
}

// snapshot composes what the containers, in merge order, give together, and finds the places where
// only their names decide.
func (c *composer) snapshot(members []int) (*Snapshot, []ambiguity) {
	made := &Snapshot{Known: true, Containers: make([]string, len(members)), engine: c.engine, members: members}
	certain := 0 // the rank from which on no unknown value can resolve an ambiguity
	for i, member := range members {
		one := &c.containers[member]
		made.Containers[i] = one.name
		if !one.known {
			made.Known = false
			if c.ranks != nil {
				certain = c.ranks[member]
			}
		}
		for _, entry := range one.entries {
			if len(c.columns[entry.key]) == 0 {
				c.touched = append(c.touched, entry.key)
			}
			c.columns[entry.key] = append(c.columns[entry.key], entryFrom{member, entry.value})
		}
	}
	slices.Sort(c.touched)
	var ambiguities []ambiguity
	c.buffer = append(c.buffer[:0], '{')
	made.fields = make([]entry, 0, len(c.touched))
	for _, key := range c.touched {
		column := c.columns[key]
		if c.doubtful(column) {
			to := &report{ranks: c.ranks}
			c.compose((&trace{to: to}).child(escapePointer(c.keys[key])), contributions(column))
			for _, found := range to.ambiguities {
				if c.ranks[found.containers[0]] >= certain {
					ambiguities = append(ambiguities, found)
				}
			}
		}
		if value := c.resolve(column); made.Known && value != nil {
			if len(made.fields) > 0 {
				c.buffer = append(c.buffer, ',')
			}
			c.buffer = append(append(append(c.buffer, c.keysJSON[key]...), ':'), value.json...)
			made.fields = append(made.fields, entry{key, value})
		}
		c.columns[key] = column[:0]
	}
	c.touched = c.touched[:0]
	if made.Known {
		made.JSON = string(append(c.buffer, '}'))
		sum := sha256.Sum256([]byte(made.JSON))
		made.Version = hex.EncodeToString(sum[:8])
	}
	return made, ambiguities
}

// doubtful says whether containers of equal rank give different values: whether that does any harm is
// a longer question.
func (c *composer) doubtful(column []entryFrom) bool {
	for i := 1; i < len(column); i++ {
		if c.ranks != nil && c.ranks[column[i-1].from] == c.ranks[column[i].from] && column[i-1].value.id != column[i].value.id {
			return true
		}
	}
	return false
}

// resolve returns what remains for a top-level key, or nil.
func (c *composer) resolve(column []entryFrom) *value {
	last := column[len(column)-1].value
	start := len(column) - 1
	for start > 0 && c.combine(column[start-1].value.raw, column[start].value.raw) {
		start--
	}
	if last.raw == nil {
		return nil
	}
	if start == len(column)-1 {
		return last
	}
	c.name = c.name[:0]
	for _, one := range column[start:] {
		c.name = binary.LittleEndian.AppendUint32(c.name, uint32(one.value.id))
	}
	known := c.merged[string(c.name)]
	if known == nil {
		composed, _ := c.compose(nil, contributions(column[start:]))
		made, err := newValue(composed)
		if err != nil {
			panic("hydrate: values that have a JSON form merged into one that has none: " + err.Error())
		}
		made.id = -1
		c.merged[string(c.name)] = made
		return made
	}
	return known
}

func contributions(column []entryFrom) []contribution {
	all := make([]contribution, len(column))
	for i, one := range column {
		all[i] = contribution{one.from, one.value.raw}
	}
	return all
}
