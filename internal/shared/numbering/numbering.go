// Package numbering numbers distinct values, so that documents have each of them once.
package numbering

// Numbers numbers values from 0, in the order of their first use. The zero value is empty.
type Numbers[K comparable] struct {
	all []K
	of  map[K]int
}

// Of returns the number of a value.
func (n *Numbers[K]) Of(value K) int {
	number, ok := n.of[value]
	if !ok {
		if n.of == nil {
			n.of = map[K]int{}
		}
		number = len(n.all)
		n.of[value], n.all = number, append(n.all, value)
	}
	return number
}

// All returns the values in the order of their numbers, at least an empty list.
func (n *Numbers[K]) All() []K { return append([]K{}, n.all...) }
