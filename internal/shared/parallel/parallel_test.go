package parallel_test

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
)

func TestEachCallsEveryNumberOnce(t *testing.T) {
	for _, count := range []int{0, 1, 15, 16, 17, 1000} {
		calls := make([]atomic.Int32, count)
		parallel.Each(count, func(i int) { calls[i].Add(1) })
		for i := range calls {
			if got := calls[i].Load(); got != 1 {
				t.Errorf("of %d, number %d was worked on %d times", count, i, got)
			}
		}
	}
}

func TestAtMostSoManyWorkAtOnce(t *testing.T) {
	t.Parallel()
	for _, count := range []int{0, 1, 3, 100} {
		var now, most, done atomic.Int64
		parallel.EachAtMost(count, 3, func(int) {
			if n := now.Add(1); n > 3 {
				most.Store(n)
			}
			runtime.Gosched()
			now.Add(-1)
			done.Add(1)
		})
		if most.Load() > 0 || done.Load() != int64(count) {
			t.Errorf("%d: %d were done, up to %d at once", count, done.Load(), most.Load())
		}
	}
}
