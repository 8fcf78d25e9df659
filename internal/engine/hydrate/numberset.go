package hydrate

import "math/bits"

// numberSet is a reusable set of numbers. Filling and emptying take time proportional to its size.
type numberSet struct {
	words  []uint64
	filled []uint64 // one bit per non-empty word
}

func newNumberSet(bound int) numberSet {
	words := (bound + 63) / 64
	return numberSet{make([]uint64, words), make([]uint64, (words+63)/64)}
}

func (s *numberSet) add(number int32) {
	word := number >> 6
	s.words[word] |= 1 << (number & 63)
	s.filled[word>>6] |= 1 << (word & 63)
}

func (s *numberSet) drain(to []int32) []int32 {
	for i, filled := range s.filled {
		for ; filled != 0; filled &= filled - 1 {
			word := i<<6 + bits.TrailingZeros64(filled)
			for rest := s.words[word]; rest != 0; rest &= rest - 1 {
				to = append(to, int32(word<<6+bits.TrailingZeros64(rest)))
			}
			s.words[word] = 0
		}
		s.filled[i] = 0
	}
	return to
}
