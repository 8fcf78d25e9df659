package overview

import (
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

type shown struct {
	snapshot *hydrate.Snapshot
	advice   *hydrate.Advice
}

// shownSnapshots returns the visible values of each assignment; nil while unknown. Equal ones are shared.
func shownSnapshots(result *pipeline.Computation, withValues bool) []*report.Snapshot {
	assignments := result.Schedule.Assignments
	if result.Snapshots == nil { // records have no values
		return make([]*report.Snapshot, len(assignments))
	}
	advisor := result.Snapshots.Advisor()
	number := map[shown]int{}
	var distinct []shown
	numbers := make([]int, len(assignments))
	for i, assignment := range assignments {
		one := shown{result.Snapshots.All[i], advisor.ForAssignment(i, assignment)}
		if _, ok := number[one]; !ok {
			number[one] = len(distinct)
			distinct = append(distinct, one)
		}
		numbers[i] = number[one]
	}
	snapshots := make([]*report.Snapshot, len(distinct))
	parallel.Each(len(distinct), func(i int) { snapshots[i] = distinct[i].show(withValues) })
	all := make([]*report.Snapshot, len(assignments))
	for i, number := range numbers {
		all[i] = snapshots[number]
	}
	return all
}

// show includes schema keys without a value.
func (s shown) show(withValues bool) *report.Snapshot {
	if !s.snapshot.Known {
		return nil
	}
	origins := s.advice.Provenance()
	var values map[string]any
	if withValues {
		values = s.snapshot.Values()
		for key, reference := range s.snapshot.Secrets() {
			values[key] = reference
		}
	}
	made := &report.Snapshot{Version: s.snapshot.Version, Checked: s.advice.Checked, Values: make([]report.Value, 0, len(origins))}
	for pointer, origin := range origins {
		value := shownValue(pointer, origin, values)
		value.Schemas = s.advice.Schemas(pointer)
		made.Values = append(made.Values, value)
	}
	for pointer, asked := range s.advice.Asked {
		if len(asked.Containers) == 0 {
			made.Values = append(made.Values, report.Value{Pointer: pointer, Schemas: asked.Schemas})
		}
	}
	slices.SortFunc(made.Values, func(a, b report.Value) int { return strings.Compare(a.Pointer, b.Pointer) })
	return made
}

func shownValue(pointer string, origin hydrate.Origin, values map[string]any) report.Value {
	v := report.Value{Pointer: pointer, Container: origin.Container, Overridden: origin.Overridden}
	if values == nil {
		return v
	}
	found, _ := hydrate.LookUp(values, pointer)
	switch value := found.(type) {
	case fleet.SecretReference:
		v.Text = "secret " + value.Store + ": " + value.Key
	default:
		v.Text, _ = fleet.CanonicalJSON(value) // cannot fail: hydrate wrote the value
	}
	return v
}
