package wording

import "iter"

// Groups groups values by key, in the order of addition. The zero value is empty.
type Groups[K comparable, V any] struct {
	keys []K
	of   map[K][]V
}

// Add appends a value to a key's group.
func (g *Groups[K, V]) Add(key K, value V) {
	if g.of == nil {
		g.of = map[K][]V{}
	}
	if g.of[key] == nil {
		g.keys = append(g.keys, key)
	}
	g.of[key] = append(g.of[key], value)
}

// All yields each key with its values, at least one.
func (g *Groups[K, V]) All() iter.Seq2[K, []V] {
	return func(yield func(K, []V) bool) {
		for _, key := range g.keys {
			if !yield(key, g.of[key]) {
				return
			}
		}
	}
}
