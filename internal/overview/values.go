package overview

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/report"
)

// shownSnapshots returns what is shown of the values of each assignment; nil where they are not known yet. Assignments
// with the same snapshot share one. Without withValues they have no values, only the config container of each.
func shownSnapshots(of []*hydrate.Snapshot, withValues bool) []*report.Snapshot {
	number := make(map[*hydrate.Snapshot]int, len(of))
	var distinct []*hydrate.Snapshot
	for _, snapshot := range of {
		if _, ok := number[snapshot]; !ok {
			number[snapshot] = len(distinct)
			distinct = append(distinct, snapshot)
		}
	}
	snapshots := make([]*report.Snapshot, len(distinct))
	parallel.Each(len(distinct), func(i int) { snapshots[i] = shownSnapshot(distinct[i], withValues) })
	all := make([]*report.Snapshot, len(of))
	for i, snapshot := range of {
		all[i] = snapshots[number[snapshot]]
	}
	return all
}

func shownSnapshot(of *hydrate.Snapshot, withValues bool) *report.Snapshot {
	if !of.Known {
		return nil
	}
	origins := of.Provenance()
	var values map[string]any
	if withValues {
		values = of.Values()
	}
	snapshot := &report.Snapshot{Version: of.Version, Values: make([]report.Value, 0, len(origins))}
	for _, pointer := range slices.Sorted(maps.Keys(origins)) {
		snapshot.Values = append(snapshot.Values, shownValue(pointer, origins[pointer], values))
	}
	return snapshot
}

func shownValue(pointer string, origin hydrate.Origin, values map[string]any) report.Value {
	v := report.Value{Pointer: pointer, Container: origin.Container, Overridden: origin.Overridden}
	if values != nil {
		v.Text, _ = fleet.CanonicalJSON(valueAt(values, pointer)) // cannot fail: hydrate has written the value itself
	}
	return v
}

// valueAt looks a value up by its JSON pointer.
func valueAt(values any, pointer string) any {
	for _, step := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch of := values.(type) {
		case map[string]any:
			values = of[step]
		case []any:
			number, err := strconv.Atoi(step)
			if err != nil || number < 0 || number >= len(of) {
				return nil
			}
			values = of[number]
		default:
			return nil
		}
	}
	return values
}
