package hydrate

import (
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

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
	return mergeIndex.idle(reached), nil
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

func (e *mergeIndex) idle(reached *reach) []string {
	var idle []string
	for container := range e.containers {
		if !reached.any[container] {
			idle = append(idle, e.containers[container].name)
		}
	}
	slices.Sort(idle)
	return idle
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
