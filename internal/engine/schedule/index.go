package schedule

import (
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

type labelIndex map[label][]int32

type label struct{ key, value string }

func indexLabels[T any](objects []T, labels func(T) fleet.Labels) labelIndex {
	index := labelIndex{}
	for i, object := range objects {
		for key, value := range labels(object) {
			at := label{key, value}
			index[at] = append(index[at], int32(i))
		}
	}
	return index
}

type candidates []int32

func everything(size int) candidates {
	all := make(candidates, size)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// narrow returns the objects with the rarest required label, a superset of the matching ones.
func (x labelIndex) narrow(all candidates, requirements fleet.Requirements) candidates {
	fewest := len(all)
	var key string
	var values []string
	for wantedKey, wantedValues := range requirements.Wanted {
		count := 0
		for _, value := range wantedValues {
			count += len(x[label{wantedKey, value}])
		}
		if count < fewest {
			fewest, key, values = count, wantedKey, wantedValues
		}
	}
	switch {
	case fewest == len(all):
		return all
	case len(values) == 1:
		return x[label{key, values[0]}]
	}
	narrowed := make(candidates, 0, fewest)
	for _, value := range values {
		narrowed = append(narrowed, x[label{key, value}]...)
	}
	slices.Sort(narrowed)
	return narrowed
}
