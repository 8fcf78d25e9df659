package hydrate

import (
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
