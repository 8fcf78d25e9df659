package renderer

import "container/list"

// lastUsed keeps the values used last, up to most bytes. It is not safe for concurrent use.
type lastUsed[T any] struct {
	most, size int64
	byName     map[string]*list.Element // of used[T]
	order      list.List                // most recent first
}

type used[T any] struct {
	name  string
	value T
	size  int64
}

func (l *lastUsed[T]) get(name string) (value T, has bool) {
	at, has := l.byName[name]
	if has {
		l.order.MoveToFront(at)
		value = at.Value.(used[T]).value
	}
	return value, has
}

// keep adds a value under a new name.
func (l *lastUsed[T]) keep(name string, value T, size int64) {
	if l.byName == nil {
		l.byName = map[string]*list.Element{}
	}
	l.byName[name] = l.order.PushFront(used[T]{name, value, size})
	for l.size += size; l.size > l.most && l.order.Len() > 1; {
		last := l.order.Remove(l.order.Back()).(used[T])
		delete(l.byName, last.name)
		l.size -= last.size
	}
}
