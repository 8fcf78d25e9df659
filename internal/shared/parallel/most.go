package parallel

import (
	"sync"
	"sync/atomic"
)

// EachAtMost calls work with every number below count, at most so many at once, and waits for all. It is for work that waits;
// [Each] is for work that computes.
func EachAtMost(count, most int, work func(int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(most, count) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= count {
					return
				}
				work(i)
			}
		})
	}
	workers.Wait()
}
