package gitops

import (
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// pastTrees reads trees of several commits, and collects missing ones to fetch with one request.
type pastTrees struct {
	*git.Tip
	missing []git.Hash
	parsed  map[git.Hash][]git.Entry
}

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
		return nil // malformed, so without folders of ours
	}
	if p.parsed != nil {
		p.parsed[id] = entries
	}
	return entries
}

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
