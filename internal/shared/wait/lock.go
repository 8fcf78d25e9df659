package wait

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Locks holds fair locks by name. The zero value is ready.
type Locks struct{ byName sync.Map }

// Take acquires a lock, or returns the context's error.
func (l *Locks) Take(ctx context.Context, name string) (release func(), err error) {
	found, _ := l.byName.LoadOrStore(name, semaphore.NewWeighted(1))
	lock := found.(*semaphore.Weighted)
	if err := lock.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { lock.Release(1) }, nil
}
