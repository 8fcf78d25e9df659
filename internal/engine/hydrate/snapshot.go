package hydrate

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"iter"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/encrypted"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// Snapshot is the hydrated configuration of all assignments with the same containers. It is safe for concurrent use.
type Snapshot struct {
	Known         bool   // false if a container's values are unknown; Version and JSON are then empty
	Version       string // hash of JSON, references and encrypted files, 16 hexadecimal digits
	JSON          string // canonical JSON of the values, without references
	ValuesVersion string

	mergeIndex *mergeIndex
	members    []int32
	fields     []keyedValue // remaining keys in order, with references
	references int          // number of references in fields
	files      []encrypted.File
}

// Containers returns the matching containers in merge order.
func (s *Snapshot) Containers() []string {
	return s.mergeIndex.names(s.members)
}

// Values returns a copy of the values by top-level key, or nil if unknown. The values are shared.
func (s *Snapshot) Values() map[string]any {
	if !s.Known {
		return nil
	}
	values := make(map[string]any, len(s.fields)-s.references)
	for _, field := range s.fields {
		if !field.value.isReference() {
			values[s.mergeIndex.keys[field.key]] = field.value.clean
		}
	}
	return values
}

// HasSecrets reports whether there are references to secrets.
func (s *Snapshot) HasSecrets() bool { return s.references > 0 }

// References iterates over the references to secrets, sorted by key.
func (s *Snapshot) References() iter.Seq2[string, fleet.SecretReference] {
	return func(yield func(string, fleet.SecretReference) bool) {
		if s.references == 0 {
			return
		}
		for _, field := range s.fields {
			if of, is := field.value.raw.(secretReference); is && !yield(s.mergeIndex.keys[field.key], fleet.SecretReference(of)) {
				return
			}
		}
	}
}

// Secrets returns a copy of the references by key, or nil.
func (s *Snapshot) Secrets() map[string]fleet.SecretReference {
	if s.references == 0 {
		return nil
	}
	secrets := make(map[string]fleet.SecretReference, s.references)
	maps.Insert(secrets, s.References())
	return secrets
}

// Encrypted returns the encrypted files, sorted by name, or nil if unknown.
func (s *Snapshot) Encrypted() []encrypted.File { return s.files }

// Origin is the source of a value.
type Origin struct {
	Container  string   `json:"container"`
	Overridden []string `json:"overridden,omitempty"` // losing containers, in merge order
}

// Provenance returns the origin of each leaf by JSON pointer, or nil if unknown. Leaves are scalars, nulls in lists,
// and empty objects and lists.
func (s *Snapshot) Provenance() map[string]Origin {
	if !s.Known {
		return nil
	}
	return s.provenance(s.leaves())
}

func (s *Snapshot) provenance(leaves map[string]leaf) map[string]Origin {
	origins := make(map[string]Origin, len(leaves))
	for pointer, leaf := range leaves {
		origin := Origin{Container: s.mergeIndex.containers[leaf.from].name}
		for _, container := range leaf.lost {
			origin.Overridden = append(origin.Overridden, s.mergeIndex.containers[container].name)
		}
		origins[pointer] = origin
	}
	return origins
}

// leaves traces the snapshot, or only the given top-level keys.
func (s *Snapshot) leaves(keys ...string) map[string]leaf {
	to := &report{leaves: map[string]leaf{}}
	columns := map[string][]contribution{}
	for _, member := range s.members {
		for key, value := range s.mergeIndex.containers[member].data {
			if len(keys) == 0 || slices.Contains(keys, key) {
				columns[key] = append(columns[key], contribution{int(member), value})
			}
		}
	}
	for key, column := range columns {
		s.mergeIndex.compose((&trace{to: to}).child(escapePointer(key)), column)
	}
	return to.leaves
}

// composer composes snapshots one at a time and merges equal values once.
type composer struct {
	*mergeIndex
	columns [][]keptValue     // by key: values of the current snapshot, in merge order
	keys    []int32           // keys with a column, in order
	merged  map[string]*value // by ids of the merged values
	results map[string]*value // merged values by JSON
	fields  []keyedValue
	buffer  []byte
	secrets []byte
}

type keptValue struct {
	from  int32
	value *value
}

func newComposer(e *mergeIndex) *composer {
	return &composer{
		mergeIndex: e, columns: make([][]keptValue, len(e.keys)), merged: map[string]*value{}, results: map[string]*value{},
	}
}

// snapshot composes containers, given in merge order, and finds nodes that only names decide.
func (c *composer) snapshot(members []int32) (*Snapshot, []ambiguity) {
	made := &Snapshot{Known: true, mergeIndex: c.mergeIndex, members: members}
	c.keys = c.keys[:0]
	certain := 0 // rank from which unknown values cannot resolve ambiguities
	for _, member := range members {
		one := &c.containers[member]
		if !one.known {
			made.Known = false
			if c.ranks != nil {
				certain = c.ranks[member]
			}
		}
		for _, entry := range one.entries {
			if len(c.columns[entry.key]) == 0 {
				c.keys = append(c.keys, int32(entry.key))
			}
			c.columns[entry.key] = append(c.columns[entry.key], keptValue{member, entry.value})
		}
	}
	slices.Sort(c.keys)
	var ambiguities []ambiguity
	if c.files {
		made.files, ambiguities = c.filesOf(members)
	}
	if c.ranks != nil {
		var doubtful []ambiguity
		for _, key := range c.keys {
			if c.isDoubtful(c.columns[key]) {
				doubtful = append(doubtful, c.ambiguities(int(key))...)
			}
		}
		ambiguities = slices.DeleteFunc(append(doubtful, ambiguities...), func(a ambiguity) bool { return c.ranks[a.containers[0]] < certain })
	}
	if made.Known {
		c.finish(made)
	} else {
		made.files = nil
	}
	for _, key := range c.keys {
		c.columns[key] = c.columns[key][:0]
	}
	return made, ambiguities
}

func (c *composer) startOf(column []keptValue) int {
	return c.runStart(len(column), func(i int) any { return column[i].value.raw })
}

// isDoubtful reports whether containers of equal rank give different values. A trace then decides whether that
// matters.
func (c *composer) isDoubtful(column []keptValue) bool {
	start, last := c.startOf(column), column[len(column)-1].value.raw
	for i := len(column) - 1; i > 0; i-- {
		switch {
		case c.ranks[column[i-1].from] == c.ranks[column[i].from]:
			if column[i-1].value.id != column[i].value.id {
				return true
			}
		case i < start, !c.combine(last, last):
			return false
		}
	}
	return false
}

func (c *composer) ambiguities(key int) []ambiguity {
	to := &report{ranks: c.ranks}
	c.compose((&trace{to: to}).child(escapePointer(c.mergeIndex.keys[key])), contributions(c.columns[key]))
	return to.ambiguities
}

func contributions(column []keptValue) []contribution {
	all := make([]contribution, len(column))
	for i, one := range column {
		all[i] = contribution{int(one.from), one.value.raw}
	}
	return all
}

func (c *composer) finish(made *Snapshot) {
	c.fields, c.buffer, c.secrets = c.fields[:0], append(c.buffer[:0], '{'), c.secrets[:0]
	for _, key := range c.keys {
		value := c.remaining(c.columns[key])
		if value.raw == nil {
			continue
		}
		to := &c.buffer
		if value.isReference() {
			to, made.references = &c.secrets, made.references+1
		}
		if len(*to) > 1 {
			*to = append(*to, ',')
		}
		*to = append(append(*to, c.keysJSON[key]...), value.json...)
		c.fields = append(c.fields, keyedValue{int(key), value})
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

func (c *composer) remaining(column []keptValue) *value {
	run := column[c.startOf(column):]
	if len(run) == 1 {
		return run[0].value
	}
	ids := make([]byte, 0, 64)
	for _, one := range run {
		ids = binary.LittleEndian.AppendUint32(ids, uint32(one.value.id))
	}
	if known := c.merged[string(ids)]; known != nil {
		return known
	}
	composed, _ := c.compose(nil, contributions(run))
	json, err := fleet.CanonicalJSON(composed)
	if err != nil {
		panic("hydrate: values that have a JSON form merged into one that has none: " + err.Error())
	}
	if c.results[json] == nil {
		c.results[json] = &value{raw: composed, clean: composed, json: json, extreme: isExtreme(composed)}
	}
	c.merged[string(ids)] = c.results[json]
	return c.results[json]
}
