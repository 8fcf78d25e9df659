package hydrate

import (
	"slices"

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

// DecidedBy returns the name of the container that decides a top-level key: where it has a value, the one that this comes
// from (of several, the one that was merged last), and where it has none, the one that removed it. It is empty where no
// container has the key.
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
