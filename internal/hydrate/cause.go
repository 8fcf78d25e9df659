package hydrate

import (
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
)

// Match returns the names of the config containers that match each assignment, in merge order, from the
// model alone. Assignments with the same containers share one list: read only. The error is about input
// that the fleet's own validation refuses, as in [Hydrate].
func Match(f *fleet.Fleet, assignments []*schedule.Assignment) ([][]string, error) {
	bare := *f
	bare.ConfigSchemas = nil
	mergeIndex, err := newMergeIndex(&bare, nil)
	if err != nil {
		return nil, err
	}
	reached := mergeIndex.reach(&bare, assignments)
	sets := make([][]string, len(reached.sets))
	for i, members := range reached.sets {
		sets[i] = mergeIndex.names(members)
	}
	matched := make([][]string, len(assignments))
	for i, set := range reached.set {
		matched[i] = sets[set]
	}
	return matched, nil
}

func (e *mergeIndex) names(members []int32) []string {
	names := make([]string, len(members))
	for i, member := range members {
		names[i] = e.containers[member].name
	}
	return names
}

// ProvenanceOf is [Snapshot.Provenance] of what is at the JSON pointer and below it, without tracing the
// other top-level keys. Where values are not known it says what the known ones tell.
func (s *Snapshot) ProvenanceOf(pointer string) map[string]Origin {
	leaves := s.leaves
	if pointer != "" {
		leaves = func(...string) map[string]leaf { return s.leavesBelow(pointer) }
	}
	origins := map[string]Origin{}
	for at, leaf := range leaves() {
		if at == pointer || strings.HasPrefix(at, pointer+"/") {
			origins[at] = s.origin(leaf)
		}
	}
	return origins
}

// DecidedBy returns the name of the container that decides what is at the JSON pointer: where a value is,
// the one that it comes from (of several, the one that was merged last), and where none is, the one that
// removed it, or that replaced the object it would be part of. It is empty where no container has the
// node.
func (s *Snapshot) DecidedBy(pointer string) string {
	if pointer == "" {
		return ""
	}
	if from := s.sourceOf(pointer); from != "" {
		return from
	}
	for _, member := range slices.Backward(s.members) {
		if s.mergeIndex.containers[member].ends(pointer) {
			return s.mergeIndex.containers[member].name
		}
	}
	return ""
}

// ends says whether the container has a null, or anything that is not an object, at the pointer or on the
// way to it.
func (c *container) ends(pointer string) bool {
	for end := 1; end <= len(pointer); end++ {
		if end < len(pointer) && pointer[end] != '/' {
			continue
		}
		value, has := lookUp(c.data, pointer[:end])
		if !has {
			return false
		}
		if _, isObject := value.(map[string]any); !isObject {
			return true
		}
	}
	return false
}
