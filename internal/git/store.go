package git

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

type objectStore map[Hash]RawObject

// Has reports whether an object was fetched.
func (s objectStore) Has(id Hash) bool {
	_, ok := s[id]
	return ok || id == EmptyTree
}

// Fetched returns the fetched objects in no order.
func (s objectStore) Fetched() iter.Seq2[Hash, RawObject] { return maps.All(s) }

// Entries parses a fetched tree.
func (s objectStore) Entries(id Hash) ([]Entry, error) {
	if id == EmptyTree {
		return nil, nil
	}
	o, ok := s[id]
	if !ok {
		return nil, fmt.Errorf("tree %s was not fetched", id)
	}
	if o.Kind != plumbing.TreeObject {
		return nil, errMalformedTree
	}
	return ParseTree(o.Content)
}

// Blob returns a fetched file.
func (s objectStore) Blob(id Hash) ([]byte, error) {
	o, ok := s[id]
	if !ok || o.Kind != plumbing.BlobObject {
		return nil, fmt.Errorf("blob %s was not fetched", id)
	}
	return o.Content, nil
}

// CommitText returns the content of a fetched commit.
func (s objectStore) CommitText(id Hash) ([]byte, bool) {
	o, ok := s[id]
	return o.Content, ok && o.Kind == plumbing.CommitObject
}

func (s objectStore) hasAll(ids []Hash) bool {
	return !slices.ContainsFunc(ids, func(id Hash) bool { return !s.Has(id) })
}

func (s objectStore) missing(ids []Hash) []Hash {
	missing := slices.DeleteFunc(slices.Clone(ids), s.Has)
	slices.SortFunc(missing, func(a, b Hash) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(missing)
}
