package hydrate

import (
	"reflect"
	"slices"
)

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
		if m.combineAll(all[start:]) {
			higher = all[start:]
			continue
		}
		if len(higher) == 0 {
			if allEqual(group) {
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

func (m merger) combineAll(all []contribution) bool {
	for _, one := range all {
		if !m.combine(all[0].value, one.value) {
			return false
		}
	}
	return true
}

func allEqual(group []contribution) bool {
	for _, one := range group[1:] {
		if !reflect.DeepEqual(clean(one.value), clean(group[0].value)) {
			return false
		}
	}
	return true
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
