// Package hydrate composes, for every assignment, the snapshot of configuration values that reach it
// from the fleet's config containers, checks it against the config schemas, and says of each value
// where it comes from. It is pure: the same fleet gives the same result, byte for byte.
package hydrate

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
)

// Snapshots is the hydrated fleet.
type Snapshots struct {
	All            []*Snapshot    // by assignment, in their order; assignments with the same containers share one
	Findings       []ValueFinding // errors, sorted
	Warnings       []ValueFinding // what has no effect at present, and ambiguities where hydration.on_conflict is "warn", sorted
	IdleContainers []string       // containers that reach no assignment, by name

	checks  *checks   // for an [Advisor]
	schemas [][]int32 // by assignment: the config schemas
}

// Hydrate composes the snapshot of every assignment.
//
// A container reaches an assignment when each of its labels is the host's or the deployment target's;
// a reserved key is decided by the assignment's reserved label alone, and a container without labels
// reaches all. For containers from ConfigMaps, Flux's owner labels and platform-config do not count.
// They merge in the order of priority, number of labels, and name, the later winning (the
// number of labels is no matter where hydration.precedence is "name"); see [Merge] for how.
//
// Containers of equal priority and specificity that give different values for the same node are an
// ambiguity unless a container of higher rank decides that node anyway. Each schema whose labels
// match, and the deployment target's own, is checked. Where values are not known yet, that waits,
// except for ambiguities that no unknown value could resolve.
//
// Before that, the values of each container are checked alone against the properties of every schema
// that it can meet. What breaks one is an error even where values that are not known yet keep the
// whole from being composed, and a warning where other containers override it everywhere.
//
// Where a cluster type's config_type is the built-in "configmap", keys that Kubernetes refuses in a
// ConfigMap are errors.
//
// Errors of the user in values or schemas are in the result's findings. The error is about
// input that the fleet's own validation refuses: container data that is not a JSON object, a priority
// that is not a number, unknown hydration options.
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
	result.Findings, result.Warnings, result.IdleContainers = errors.sorted(), warnings.sorted(), mergeIndex.idle(reached)
	return result, nil
}
