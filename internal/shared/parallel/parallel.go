// Package parallel loops over independent numbers on all processors.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// batch is the numbers that a worker takes at a time.
const batch = 16

// Each calls work with every number below count, and waits for all.
func Each(count int, work func(int)) {
	each(count, batch, runtime.GOMAXPROCS(0), func() func(int) { return work })
}

// EachPart is [Each] for a few long pieces of work.
func EachPart(count int, work func(int)) {
	each(count, 1, runtime.GOMAXPROCS(0), func() func(int) { return work })
}

// EachAtMost is [Each] for work that waits: at most so many numbers at once, on any number of processors.
func EachAtMost(count, most int, work func(int)) {
	each(count, 1, most, func() func(int) { return work })
}

// EachWith is [Each] with a new work function for each worker.
func EachWith(count int, newWorker func() func(int)) {
	each(count, batch, runtime.GOMAXPROCS(0), newWorker)
}

func each(count, batch, workers int, newWorker func() func(int)) {
	var next atomic.Int64
	var running sync.WaitGroup
	for range min(workers, (count+batch-1)/batch) {
		running.Go(func() {
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
	running.Wait()
}
