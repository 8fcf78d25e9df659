package renderer

import "path"

// maxShelfBytes bounds the files of the artifacts that a worker keeps for the next requests.
const maxShelfBytes = 64 << 20

// shelf keeps the artifacts that were used last, so that each is read and each of its charts parsed once.
type shelf struct {
	books    lastUsed[*book] // by the keys of artifacts
	repeated *repeats
}

type book struct {
	tree   *tree
	charts map[string]*loadedChart // by folder
}

func newShelf() *shelf {
	return &shelf{books: lastUsed[*book]{most: maxShelfBytes}, repeated: newRepeats()}
}

// take returns an artifact, and reads its archive where it is not here.
func (s *shelf) take(key, archive string) (*book, error) {
	if b, has := s.books.get(key); has {
		return b, nil
	}
	t, err := readTree(archive)
	if err != nil {
		return nil, err
	}
	b := &book{tree: t, charts: map[string]*loadedChart{}}
	s.books.keep(key, b, t.size)
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
