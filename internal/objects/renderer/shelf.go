package renderer

import (
	"container/list"
	"path"
)

// maxShelfBytes bounds the files of the artifacts that a worker keeps for the next requests.
const maxShelfBytes = 64 << 20

// shelf keeps the artifacts that were used last, so that each is read and each of its charts parsed once.
type shelf struct {
	books    map[string]*list.Element // of *book
	order    *list.List               // the one that was used last is first
	size     int64
	repeated repeats
}

type book struct {
	id     string
	tree   *tree
	charts map[string]*loadedChart // by folder
}

func newShelf() *shelf {
	return &shelf{books: map[string]*list.Element{}, order: list.New()}
}

// take returns an artifact, and reads its archive where it is not here.
func (s *shelf) take(id, archive string) (*book, error) {
	if at, has := s.books[id]; has {
		s.order.MoveToFront(at)
		return at.Value.(*book), nil
	}
	t, err := readTree(archive)
	if err != nil {
		return nil, err
	}
	b := &book{id: id, tree: t, charts: map[string]*loadedChart{}}
	s.books[id] = s.order.PushFront(b)
	s.size += t.size
	for s.size > maxShelfBytes && s.order.Len() > 1 {
		last := s.order.Remove(s.order.Back()).(*book)
		delete(s.books, last.id)
		s.size -= last.tree.size
	}
	return b, nil
}

func (b *book) chart(folder string, isPacked bool) (*loadedChart, error) {
	key := folder
	if isPacked {
		key = path.Join("packed", folder)
	}
	if c := b.charts[key]; c != nil {
		return c, nil
	}
	c, err := loadChart(b.tree, folder, isPacked)
	if err == nil {
		b.charts[key] = c
	}
	return c, err
}
