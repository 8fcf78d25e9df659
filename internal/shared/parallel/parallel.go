// Package parallel is the one loop over independent numbers that uses all processors.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// batch is how many numbers a worker takes at a time: enough that taking them costs nothing.
const batch = 16

// Each calls work with every number below count, on all processors, and returns when all is done.
func Each(count int, work func(int)) {
	each(count, batch, func() func(int) { return work })
}

// EachPart is Each for a few pieces of work that each take long: they are taken one at a time.
func EachPart(count int, work func(int)) {
	each(count, 1, func() func(int) { return work })
}

// EachWith is Each where each worker has something of its own: newWorker is called once for each of
// them. Which worker gets which number is left to chance.
func EachWith(count int, newWorker func() func(int)) {
	each(count, batch, newWorker)
}

func each(count, batch int, newWorker func() func(int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (count+batch-1)/batch) {
		workers.Go(func() {
			work := newWorker()
			for {
				end := int(next.Add(int64(batch)))
				for i := end - batch; i < min(end, count); i++ {
					work(i)
				}
				if end >= count {
					return
				}
			}
		})
	}
	workers.Wait()
}
