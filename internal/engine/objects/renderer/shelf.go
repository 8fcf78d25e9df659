package renderer

import (
	"path"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

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
	// ofFlux are the books of the same artifact as sources of Flux archive it.
	ofFlux map[objects.FluxSource]*book
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
	b := newBook(t)
	s.books.keep(key, b, t.size)
	return b, nil
}

func newBook(t *tree) *book {
	return &book{tree: t, charts: map[string]*loadedChart{}, ofFlux: map[objects.FluxSource]*book{}}
}

// archived returns the artifact as a source of Flux archives it.
func (b *book) archived(by *objects.FluxSource) (*book, error) {
	if known := b.ofFlux[*by]; known != nil {
		return known, nil
	}
	t, err := b.tree.archived(by)
	if err == nil {
		b.ofFlux[*by] = newBook(t)
	}
	return b.ofFlux[*by], err
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
