// Package wait waits until a time has passed or a context ends.
package wait

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// For waits for d, or returns the context's error.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Answers caches answers by name. The zero value is ready for concurrent use.
type Answers[T any] struct {
	mutex  sync.Mutex
	byName map[string]*answer[T]
}

type answer[T any] struct {
	done  chan struct{} // closed after the answer arrives
	value T
	err   error
}

// hasLeft reports whether the caller was canceled. A plain deadline limits the answer instead.
func hasLeft(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) ||
		err != nil && ctx.Err() != nil && context.Cause(ctx) != context.DeadlineExceeded //nolint:errorlint // the error itself
}

// Get returns the answer for a name. The first caller calls ask, and others wait until their contexts end. Errors are cached,
// too, unless the first caller was canceled.
func (a *Answers[T]) Get(ctx context.Context, name string, ask func() (T, error)) (T, error) {
	a.mutex.Lock()
	known, ok := a.byName[name]
	if ok {
		a.mutex.Unlock()
		select {
		case <-known.done:
			return known.value, known.err
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
	known = &answer[T]{done: make(chan struct{}), err: errors.New("asking for it did not end")}
	if a.byName == nil {
		a.byName = map[string]*answer[T]{}
	}
	a.byName[name] = known
	a.mutex.Unlock()
	defer close(known.done)
	known.value, known.err = ask()
	if hasLeft(ctx, known.err) {
		a.mutex.Lock()
		delete(a.byName, name)
		a.mutex.Unlock()
	}
	return known.value, known.err
}

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
