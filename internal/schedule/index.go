package schedule

import (
	"iter"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// labelIndex finds the objects that have a label without looking at all of them.
type labelIndex struct {
	size    int
	byLabel map[label][]int32
}

type label struct{ key, value string }

func indexLabels[T any](objects []T, labels func(T) fleet.Labels) labelIndex {
	index := labelIndex{size: len(objects), byLabel: map[label][]int32{}}
	for i, object := range objects {
		for key, value := range labels(object) {
			at := label{key, value}
			index.byLabel[at] = append(index.byLabel[at], int32(i))
		}
	}
	return index
}

// candidates yields, in order, all objects that may meet the requirements: those with the rarest
// label that a match cannot do without, or all.
func (x labelIndex) candidates(requirements fleet.Requirements) iter.Seq[int32] {
	var rarest []int32
	narrowed := false
	for key, value := range requirements.Equalities {
		with := x.byLabel[label{key, value}]
		if !narrowed || len(with) < len(rarest) {
			rarest, narrowed = with, true
		}
	}
	return func(yield func(int32) bool) {
		if narrowed {
			for _, i := range rarest {
				if !yield(i) {
					return
				}
			}
			return
		}
		for i := range int32(x.size) {
			if !yield(i) {
				return
			}
		}
	}
}
