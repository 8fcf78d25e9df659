// Package numbering numbers distinct values, so that documents have each of them once.
package numbering

// Numbers numbers values from 0, in the order of their first use. The zero value is empty.
type Numbers[K comparable] struct {
	all     []K
	numbers map[K]int
}

// Number returns the number of a value.
func (n *Numbers[K]) Number(value K) int {
	number, ok := n.numbers[value]
	if !ok {
		if n.numbers == nil {
			n.numbers = map[K]int{}
		}
		number = len(n.all)
		n.numbers[value], n.all = number, append(n.all, value)
	}
	return number
}

// All returns the values in the order of their numbers, at least an empty list.
func (n *Numbers[K]) All() []K { return append([]K{}, n.all...) }
