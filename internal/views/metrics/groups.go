package metrics

import (
	"cmp"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// groups joins series with the same labels.
type groups struct {
	all  []series
	join func(a, b int64) int64
	at   map[values]int
}

// values has the values of all labels of a metric; missing ones are empty.
type values [6]string

func sum(a, b int64) int64   { return a + b }
func least(a, b int64) int64 { return min(a, b) }

func newGroups(join func(a, b int64) int64) *groups {
	return &groups{join: join, at: map[values]int{}}
}

// add cuts labels to one line of 300 bytes, so that text from clusters cannot forge metrics.
func (g *groups) add(value int64, labels ...string) {
	var key values
	for i, label := range labels {
		key[i] = wording.OneLine(label)
	}
	if at, ok := g.at[key]; ok {
		g.all[at].value = g.join(g.all[at].value, value)
		return
	}
	g.at[key] = len(g.all)
	g.all = append(g.all, series{slices.Clone(key[:len(labels)]), value})
}

func (g *groups) byValue() []series {
	slices.SortFunc(g.all, func(a, b series) int {
		return cmp.Or(cmp.Compare(a.value, b.value), slices.Compare(a.labels, b.labels))
	})
	return g.all
}
