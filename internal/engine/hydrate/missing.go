package hydrate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

type suppliers struct {
	mergeIndex *mergeIndex
	found      map[string][]int // by pointer
}

const mostSuppliers = 3

func (s *suppliers) explain(pointer string, snapshot *Snapshot, assignment *schedule.Assignment) string {
	for _, member := range slices.Backward(snapshot.members) {
		one := &s.mergeIndex.containers[member]
		if value, has := LookUp(one.data, pointer); has && value == nil {
			return fmt.Sprintf(", but config container %q removes it", one.name)
		}
	}
	type supplier struct {
		name  string
		lacks fleet.Labels
	}
	var all []supplier
	for _, holder := range s.holders(pointer) {
		one := &s.mergeIndex.containers[holder]
		if lacks := lacking(one.labels, assignment, s.mergeIndex.environment); len(lacks) > 0 {
			all = append(all, supplier{one.name, lacks})
		}
	}
	if len(all) == 0 {
		return ", and no config container has it"
	}
	slices.SortFunc(all, func(a, b supplier) int {
		return cmp.Or(cmp.Compare(len(a.lacks), len(b.lacks)), cmp.Compare(a.name, b.name))
	})
	var offers []string
	for i, one := range all {
		if i == mostSuppliers {
			offers = append(offers, fmt.Sprintf("%d more have it, too", len(all)-mostSuppliers))
			break
		}
		offers = append(offers, fmt.Sprintf("config container %q has it, but asks for %s",
			one.name, strings.Join(labelTexts(one.lacks), ", ")))
	}
	return ", and no container that matches has it; " + strings.Join(offers, "; ")
}

func (s *suppliers) holders(pointer string) []int {
	if holders, known := s.found[pointer]; known {
		return holders
	}
	var holders []int
	for i := range s.mergeIndex.containers {
		if value, has := LookUp(s.mergeIndex.containers[i].data, pointer); has && value != nil {
			holders = append(holders, i)
		}
	}
	s.found[pointer] = holders
	return holders
}

func (s *Snapshot) sourceOf(pointer string) string {
	if pointer == "" {
		return ""
	}
	from := -1
	for at, leaf := range s.leavesBelow(pointer) {
		if at == pointer || strings.HasPrefix(at, pointer+"/") {
			from = max(from, leaf.from)
		}
	}
	if from < 0 {
		return ""
	}
	return s.mergeIndex.containers[from].name
}

func (s *Snapshot) leavesBelow(pointer string) map[string]leaf {
	key, _, _ := strings.Cut(pointer[1:], "/")
	return s.leaves(strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~"))
}
