package hydrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
)

// Merge merges objects in order; the later wins. Objects merge deeply, other values and types override. A null removes
// its key, also within lists, but list elements may be null.
//
// options.Lists determines lists: "replace" (default) overrides, "append" concatenates, and "merge" merges objects with
// equal scalars at options.ListKey (default "name") and appends all other elements, as Kalypso does.
//
// The result is independent of the arguments. Values without JSON, and unknown list modes, are errors.
func Merge(objects []map[string]any, options fleet.Hydration) (map[string]any, error) {
	merging, err := newMerger((&fleet.Fleet{Hydration: &options}).HydrationOrDefault())
	if err != nil {
		return nil, err
	}
	contributions := []contribution{{value: map[string]any{}}}
	for i, object := range objects {
		value, err := fleet.Canonical(object)
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", i+1, err)
		}
		contributions = append(contributions, contribution{from: i, value: value})
	}
	merged, _ := merging.compose(nil, contributions)
	// List elements may be shared: copy them.
	result, err := fleet.Canonical(merged)
	if err != nil {
		return nil, err
	}
	return result.(map[string]any), nil
}

type merger struct {
	lists   string
	listKey string
}

func newMerger(options fleet.Hydration) (merger, error) {
	switch options.Lists {
	case "replace", "append", "merge":
		return merger{lists: options.Lists, listKey: options.ListKey}, nil
	}
	return merger{}, fmt.Errorf("lists is %q, and must be one of replace, append, merge", options.Lists)
}

type contribution struct {
	from  int
	value any
}

// compose merges at least one contribution, in merge order, and reports whether a value remains. Values may be shared
// with the contributions.
func (m merger) compose(at *trace, all []contribution) (value any, remains bool) {
	start := m.runStart(len(all), func(i int) any { return all[i].value })
	run, last := all[start:], all[len(all)-1]
	at.recordNode(m, all, start)
	if at == nil && len(run) == 1 {
		return clean(last.value), last.value != nil
	}
	switch value := last.value.(type) {
	case nil:
		return nil, false
	case map[string]any:
		return m.composeObject(at, run), true
	case []any:
		return m.composeList(at, run), true
	default:
		at.recordLeaf(last.from)
		return value, true
	}
}

// runStart returns the first of the last values that combine without interruption.
func (m merger) runStart(count int, value func(i int) any) int {
	start := count - 1
	for start > 0 && m.combine(value(start-1), value(start)) {
		start--
	}
	return start
}

func (m merger) combine(a, b any) bool {
	switch a.(type) {
	case map[string]any:
		_, both := b.(map[string]any)
		return both
	case []any:
		_, both := b.([]any)
		return both && m.lists != "replace"
	}
	return false
}

func (m merger) composeObject(at *trace, run []contribution) map[string]any {
	columns := map[string][]contribution{}
	for _, object := range run {
		for key, value := range object.value.(map[string]any) {
			columns[key] = append(columns[key], contribution{object.from, value})
		}
	}
	merged := make(map[string]any, len(columns))
	if at == nil {
		for key, column := range columns {
			if value, remains := m.compose(nil, column); remains {
				merged[key] = value
			}
		}
		return merged
	}
	for _, key := range slices.Sorted(maps.Keys(columns)) {
		if value, remains := m.compose(at.child(escapePointer(key)), columns[key]); remains {
			merged[key] = value
		}
	}
	if len(merged) == 0 {
		at.recordLeaf(run[len(run)-1].from)
	}
	return merged
}

func (m merger) composeList(at *trace, run []contribution) []any {
	var elements [][]contribution
	byKey := map[string][]int{}
	for i, list := range run {
		for _, element := range list.value.([]any) {
			key := m.keyOf(element)
			if partners := byKey[key]; i > 0 && len(partners) > 0 {
				for _, partner := range partners {
					elements[partner] = append(elements[partner], contribution{list.from, element})
				}
				continue
			}
			if key != "" {
				byKey[key] = append(byKey[key], len(elements))
			}
			elements = append(elements, []contribution{{list.from, element}})
		}
	}
	merged := make([]any, len(elements))
	for i, element := range elements {
		node := at.child(strconv.Itoa(i))
		if last := element[len(element)-1]; last.value == nil {
			node.recordLeaf(last.from)
			continue
		}
		merged[i], _ = m.compose(node, element)
	}
	if len(merged) == 0 {
		at.recordLeaf(run[len(run)-1].from)
	}
	return merged
}

func (m merger) keyOf(element any) string {
	object, ok := element.(map[string]any)
	if m.lists != "merge" || !ok {
		return ""
	}
	switch key := object[m.listKey].(type) {
	case string:
		return "string " + key
	case json.Number:
		return "number " + string(key)
	case bool:
		return "bool " + strconv.FormatBool(key)
	}
	return ""
}

// clean returns the value without nulls in objects, itself if it has none.
func clean(value any) any {
	if !deep.Holds(value, hasNullMember) {
		return value
	}
	return deep.Without(value, func(_ string, member any) bool { return member == nil })
}

func hasNullMember(value any) bool {
	object, _ := value.(map[string]any)
	for _, member := range object {
		if member == nil {
			return true
		}
	}
	return false
}

func escapePointer(key string) string {
	if !strings.ContainsAny(key, "~/") {
		return key
	}
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// trace follows a composition and reports origins. A nil trace costs nothing.
type trace struct {
	to      *report
	pointer string // JSON pointer of the node
	lost    []int  // containers overridden here or above, in merge order, with repeats
}

type report struct {
	ranks       []int // by container: only names decide between equal ranks; nil disables ambiguities
	leaves      map[string]leaf
	ambiguities []ambiguity
}

type leaf struct {
	from int
	lost []int // sorted, without from
}

// ambiguity is a node that only container names decide.
type ambiguity struct {
	pointer    string
	containers []int  // in merge order
	secret     string // for encrypted files: name of the Secret
}

func (t *trace) child(token string) *trace {
	if t == nil {
		return nil
	}
	return &trace{to: t.to, pointer: t.pointer + "/" + token, lost: t.lost}
}

func (t *trace) recordNode(m merger, all []contribution, start int) {
	if t == nil {
		return
	}
	if start > 0 {
		t.lost = slices.Concat(t.lost, sources(all[:start]))
	}
	if t.to.ranks == nil || len(all) == 1 {
		return
	}
	if containers := m.disagreement(all, t.to.ranks); len(containers) > 1 {
		t.to.ambiguities = append(t.to.ambiguities, ambiguity{pointer: t.pointer, containers: containers})
	}
}

func (t *trace) recordLeaf(from int) {
	if t == nil || t.to.leaves == nil {
		return
	}
	lost := slices.DeleteFunc(distinct(t.lost), func(container int) bool { return container == from })
	t.to.leaves[t.pointer] = leaf{from, lost}
}

// disagreement returns containers of equal rank whose order affects this node, members aside.
func (m merger) disagreement(all []contribution, ranks []int) []int {
	higher := all[len(all):]
	for end := len(all); end > 0; end = len(all) - len(higher) {
		start := end - 1
		for start > 0 && ranks[all[start-1].from] == ranks[all[start].from] {
			start--
		}
		group := all[start:end]
		isApart := func(one contribution) bool { return !m.combine(all[start].value, one.value) }
		if !slices.ContainsFunc(all[start:], isApart) {
			higher = all[start:]
			continue
		}
		if len(higher) == 0 {
			differs := func(one contribution) bool { return !reflect.DeepEqual(clean(one.value), clean(group[0].value)) }
			if !slices.ContainsFunc(group[1:], differs) {
				return nil
			}
			return distinct(sources(group))
		}
		// Values of another kind than the higher ones always lose. The others matter if they come last and no higher
		// one covers them.
		without, _ := m.compose(nil, higher)
		for _, one := range group {
			if !m.combine(one.value, higher[0].value) {
				continue
			}
			with, _ := m.compose(nil, append([]contribution{one}, higher...))
			if !reflect.DeepEqual(with, without) {
				return distinct(sources(group))
			}
		}
		return nil
	}
	return nil
}

func sources(contributions []contribution) []int {
	from := make([]int, len(contributions))
	for i := range contributions {
		from[i] = contributions[i].from
	}
	return from
}

func distinct[T int | int32](numbers []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(numbers)))
}
