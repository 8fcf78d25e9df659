package delivery

import (
	"context"
	"sync"
)

// turn lets one caller at a time go on; it has room for one. Unlike with a mutex, nobody waits longer
// than their context lasts.
type turn chan struct{}

func (t turn) take(ctx context.Context) (release func(), err error) {
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// turns are the turns of many things, by their names.
type turns struct{ byName sync.Map }

func (t *turns) take(ctx context.Context, name string) (release func(), err error) {
	one, _ := t.byName.LoadOrStore(name, make(turn, 1))
	return one.(turn).take(ctx)
}
