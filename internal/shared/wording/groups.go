package wording

import "iter"

// Groups has what messages say of several things once: by the key that these have in common, in the order in which keys were
// added. The zero value has none.
type Groups[K comparable, V any] struct {
	keys []K
	of   map[K][]V
}

// Add adds something to those of a key.
func (g *Groups[K, V]) Add(key K, value V) {
	if g.of == nil {
		g.of = map[K][]V{}
	}
	if g.of[key] == nil {
		g.keys = append(g.keys, key)
	}
	g.of[key] = append(g.of[key], value)
}

// All yields each key with what was added to it, at least one.
func (g *Groups[K, V]) All() iter.Seq2[K, []V] {
	return func(yield func(K, []V) bool) {
		for _, key := range g.keys {
			if !yield(key, g.of[key]) {
				return
			}
		}
	}
}
