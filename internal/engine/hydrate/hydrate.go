// Package hydrate composes each assignment's configuration values from config containers, checks them against config
// schemas, and traces their origin. It is pure: output is identical byte for byte.
package hydrate

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
)

// Snapshots is a hydrated fleet.
type Snapshots struct {
	All      []*Snapshot    // by assignment; equal containers share one
	Findings []ValueFinding // errors, sorted
	Warnings []ValueFinding // ineffective values and schemas, and ambiguities if hydration.on_conflict is "warn", sorted

	checks  *checks   // for [Advisor]
	schemas [][]int32 // config schemas by assignment
}

// Hydrate composes the snapshot of every assignment.
//
// A container reaches an assignment if the host or deployment target has all of its labels. Only the assignment's
// reserved labels decide reserved keys. Flux's owner labels and platform-config on ConfigMaps do not count. Containers
// merge by priority, number of labels (unless hydration.precedence is "name") and name; the later wins. See [Merge].
//
// Different values from containers of equal priority and specificity are an ambiguity, unless a higher container decides
// the node. Unknown values postpone checks, except for ambiguities that they cannot resolve. Each container alone is
// checked against the properties of all schemas that it may meet: a violation is an error even if unknown values prevent
// the whole check, and a warning if it is overridden everywhere.
//
// The error is for input that the fleet's validation refuses: invalid data or priority, unknown hydration options.
func Hydrate(f *fleet.Fleet, config fleet.Config, assignments []*schedule.Assignment) (*Snapshots, error) {
	mergeIndex, err := newMergeIndex(f, config)
	if err != nil {
		return nil, err
	}
	checks := newChecks(f, mergeIndex)
	reached := mergeIndex.reach(f, assignments)

	result := &Snapshots{All: make([]*Snapshot, len(assignments)), checks: checks, schemas: reached.schemas}
	snapshots := make([]*Snapshot, len(reached.sets))
	ambiguities, clashes := make([][]ambiguity, len(reached.sets)), make([][]clash, len(reached.sets))
	parallel.EachWith(len(reached.sets), func() func(int) {
		composer := newComposer(mergeIndex)
		return func(i int) {
			snapshots[i], ambiguities[i] = composer.snapshot(reached.sets[i])
			clashes[i] = mergeIndex.clashes(reached.sets[i])
			ambiguities[i] = withoutClashes(ambiguities[i], clashes[i])
		}
	})
	for i, set := range reached.set {
		result.All[i] = snapshots[set]
	}

	errors, warnings, conflicts := newCollector(), newCollector(), newCollector()
	for i, set := range reached.set {
		for _, ambiguity := range ambiguities[set] {
			conflicts.add(assignments[i].Key(), mergeIndex.ambiguityFinding(ambiguity))
		}
		for _, clash := range clashes[set] {
			errors.add(assignments[i].Key(), mergeIndex.clashFinding(clash))
		}
	}
	checks.run(assignments, reached, snapshots, errors, warnings)
	mergeIndex.checkConfigMapKeys(f, assignments, reached, errors)
	reached.warnOfIdleSchemas(f, warnings)
	switch f.HydrationOrDefault().OnConflict {
	case "warn":
		warnings.join(conflicts)
	case "error":
		errors.join(conflicts)
	}
	result.Findings, result.Warnings = errors.sorted(), warnings.sorted()
	return result, nil
}
