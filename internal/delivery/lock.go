package delivery

import (
	"context"
	"sync"
)

// lock is a mutex that can be waited for with a context. It is a channel with room for one element.
type lock chan struct{}

// take waits until the lock is free, or until the context ends.
func (l lock) take(ctx context.Context) (release func(), err error) {
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// locks are locks by name; each is made when it is first taken.
type locks struct{ byName sync.Map }

func (l *locks) take(ctx context.Context, name string) (release func(), err error) {
	one, _ := l.byName.LoadOrStore(name, make(lock, 1))
	return one.(lock).take(ctx)
}
