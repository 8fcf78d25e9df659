// Package parallel loops over independent numbers on all processors.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls work with every number below count, and waits for all.
func Each(count int, work func(int)) { EachAtMost(count, runtime.GOMAXPROCS(0), work) }

// EachAtMost is [Each] for work that waits: at most so many numbers at once, on any number of processors.
func EachAtMost(count, most int, work func(int)) {
	each(count, most, func() func(int) { return work })
}

// EachWith is [Each] with a new work function for each worker.
func EachWith(count int, newWorker func() func(int)) { each(count, runtime.GOMAXPROCS(0), newWorker) }

func each(count, workers int, newWorker func() func(int)) {
	var next atomic.Int64
	var running sync.WaitGroup
	for range min(workers, count) {
		running.Go(func() {
			work := newWorker()
			for i := next.Add(1) - 1; i < int64(count); i = next.Add(1) - 1 {
				work(int(i))
			}
		})
	}
	running.Wait()
}
