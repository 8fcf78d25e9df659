package hydrate

import (
	"iter"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/encrypted"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// Snapshot is the values hydrated for an assignment, and for all others that the same containers
// reach. It is safe for concurrent use.
type Snapshot struct {
	Known   bool   // false: reaches a container whose values are not known yet; Version and JSON are empty
	Version string // 16 hexadecimal digits of the hash of JSON, references and encrypted files: equal ones, equal version
	JSON    string // the canonical JSON object of the values, without references to secrets
	// ValuesVersion is the hash of JSON alone: Version where there is nothing else.
	ValuesVersion string

	mergeIndex *mergeIndex
	members    []int32
	fields     []keyedValue // what remains, in the order of keys, references among them
	references int          // how many of the fields are references
	files      []encrypted.File
}

// Containers returns the names of the containers that matched, in merge order.
func (s *Snapshot) Containers() []string {
	return s.mergeIndex.names(s.members)
}

// Values returns the values by top-level key; nil where they are not known. The map is the caller's,
// what it holds is shared: read only.
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

// HasSecrets says whether there are references to secrets.
func (s *Snapshot) HasSecrets() bool { return s.references > 0 }

// References are the references to secrets by top-level key, sorted; none where values are not known.
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

// Secrets returns the references to secrets by top-level key; nil where there are none, or values are not known. The map is
// the caller's.
func (s *Snapshot) Secrets() map[string]fleet.SecretReference {
	if s.references == 0 {
		return nil
	}
	secrets := make(map[string]fleet.SecretReference, s.references)
	maps.Insert(secrets, s.References())
	return secrets
}

// Encrypted returns the encrypted files that reach the assignment, sorted by name, with the containers that give them; nil
// where values are not known. Read only.
func (s *Snapshot) Encrypted() []encrypted.File { return s.files }

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
	return s.provenance(s.leaves())
}

func (s *Snapshot) provenance(leaves map[string]leaf) map[string]Origin {
	origins := make(map[string]Origin, len(leaves))
	for pointer, leaf := range leaves {
		origins[pointer] = s.origin(leaf)
	}
	return origins
}

func (s *Snapshot) origin(leaf leaf) Origin {
	origin := Origin{Container: s.mergeIndex.containers[leaf.from].name}
	for _, container := range leaf.lost {
		origin.Overridden = append(origin.Overridden, s.mergeIndex.containers[container].name)
	}
	return origin
}

// leaves traces the snapshot, or only what is below some of its top-level keys.
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
