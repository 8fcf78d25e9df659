package gitops

import (
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// pastTrees reads trees of several commits, and notes what has to be fetched for
// that, so that it can come for all of them in one request.
type pastTrees struct {
	*git.Tip
	missing []git.Hash
	// parsed caches trees for callers that read them repeatedly; nil for others.
	parsed map[git.Hash][]git.Entry
}

// entries reads a tree. One that was not fetched is noted, and has no entries yet.
func (p *pastTrees) readEntries(id git.Hash) []git.Entry {
	if id.IsZero() || id == git.EmptyTree {
		return nil
	}
	if entries, ok := p.parsed[id]; ok {
		return entries
	}
	if !p.Has(id) {
		p.missing = append(p.missing, id)
		return nil
	}
	entries, err := p.Entries(id)
	if err != nil {
		return nil // malformed: nothing of ours is in it
	}
	if p.parsed != nil {
		p.parsed[id] = entries
	}
	return entries
}

// below is the id of the tree at a path; zero when there is none.
func (p *pastTrees) findTree(id git.Hash, at string) git.Hash {
	for segment := range strings.SplitSeq(at, "/") {
		if segment == "" {
			continue
		}
		e := git.Search(p.readEntries(id), segment, true)
		if e == nil {
			return git.Hash{}
		}
		id = e.ID
	}
	return id
}
