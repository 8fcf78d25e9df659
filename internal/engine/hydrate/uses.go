package hydrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// Uses returns the keys of assignments with a value at the JSON pointer (RFC 6901), in order. Known containers of
// unknown snapshots count.
func Uses(result *Snapshots, assignments []*schedule.Assignment, pointer string) ([]string, error) {
	if err := checkPointer(pointer); err != nil {
		return nil, err
	}
	using := []string{}
	verdicts := map[*Snapshot]bool{}
	for i, assignment := range assignments {
		snapshot := result.All[i]
		has, known := verdicts[snapshot]
		if !known {
			has = snapshot.has(pointer)
			verdicts[snapshot] = has
		}
		if has {
			using = append(using, assignment.Key())
		}
	}
	return using, nil
}

func (s *Snapshot) has(pointer string) bool {
	if s.Known {
		if pointer == "" {
			return len(s.fields) > 0
		}
		key, rest, nested := strings.Cut(pointer[1:], "/")
		for _, field := range s.fields {
			if escapePointer(s.mergeIndex.keys[field.key]) == key {
				_, has := LookUp(field.value.clean, "/"+rest)
				return has || !nested
			}
		}
		return false
	}
	for _, member := range s.members {
		if value, has := LookUp(s.mergeIndex.containers[member].data, pointer); has && value != nil {
			return true
		}
	}
	return false
}

func checkPointer(pointer string) error {
	if pointer != "" && !strings.HasPrefix(pointer, "/") {
		return fmt.Errorf("%q is not a JSON pointer: it does not begin with a slash, as in \"/DATABASE_URL\"", pointer)
	}
	for i := range len(pointer) {
		if pointer[i] == '~' && (i+1 == len(pointer) || (pointer[i+1] != '0' && pointer[i+1] != '1')) {
			return fmt.Errorf("%q is not a JSON pointer: a tilde in a key is written ~0", pointer)
		}
	}
	return nil
}

// Match returns the matching config containers of each assignment in merge order. Equal lists are shared. Errors are
// as in [Hydrate].
func Match(f *fleet.Fleet, assignments []*schedule.Assignment) ([][]string, error) {
	mergeIndex, reached, err := containersReaching(f, assignments)
	if err != nil {
		return nil, err
	}
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

// IdleContainers returns the config containers without assignments, sorted.
func IdleContainers(f *fleet.Fleet, assignments []*schedule.Assignment) ([]string, error) {
	mergeIndex, reached, err := containersReaching(f, assignments)
	if err != nil {
		return nil, err
	}
	var idle []string
	for container, hasAssignments := range reached.any {
		if !hasAssignments {
			idle = append(idle, mergeIndex.containers[container].name)
		}
	}
	slices.Sort(idle)
	return idle, nil
}

func containersReaching(f *fleet.Fleet, assignments []*schedule.Assignment) (*mergeIndex, *reach, error) {
	bare := *f
	bare.ConfigSchemas = nil
	mergeIndex, err := newMergeIndex(&bare, nil)
	if err != nil {
		return nil, nil, err
	}
	return mergeIndex, mergeIndex.reach(&bare, assignments), nil
}

func (e *mergeIndex) names(members []int32) []string {
	names := make([]string, len(members))
	for i, member := range members {
		names[i] = e.containers[member].name
	}
	return names
}

// DecidedBy returns the last container that provides or removes a top-level key, or "".
func (s *Snapshot) DecidedBy(key string) string {
	if from := s.sourceOf("/" + escapePointer(key)); from != "" {
		return from
	}
	for _, member := range slices.Backward(s.members) {
		if _, has := s.mergeIndex.containers[member].data[key]; has {
			return s.mergeIndex.containers[member].name
		}
	}
	return ""
}
