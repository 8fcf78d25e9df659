package gitops

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// UnsignedRecord is a record whose last change no allowed key has signed.
type UnsignedRecord struct {
	Record string
	// Commit made the last change; "" if it is older than the read history.
	Commit string
	read   int
}

// String describes the record and the commit.
func (u UnsignedRecord) String() string {
	if u.Commit == "" {
		return fmt.Sprintf("the record %q was changed before the last %d commits, so that it is not known who signed it", u.Record, u.read)
	}
	return fmt.Sprintf("the record %q was changed by commit %s, which none of allowed_signers has signed", u.Record, u.Commit)
}

func compareUnsigned(a, b UnsignedRecord) int {
	if (a.Commit == "") != (b.Commit == "") {
		return cmp.Compare(len(b.Commit), len(a.Commit))
	}
	return strings.Compare(a.Record, b.Record)
}

// FindUnsigned returns the hosts whose record was last changed without a signature by an allowed key, each with a sentence.
// Records with a known id need none. It reads commits as far back as needed.
func (v *OwnerView) FindUnsigned(ctx context.Context, known map[string]string) (map[string]string, error) {
	files := map[string]string{}
	for host, record := range known {
		if id, ok := v.records[host]; ok && !git.IsID(record, id) {
			files[host] = v.owner.RecordPath(host)
		}
	}
	found, err := withTip(ctx, v.Branch, func() (map[string]UnsignedRecord, error) { return v.findUnsigned(ctx, files) })
	return unsignedTexts(found), err
}

// FindUnsignedClaims is OwnerView.FindUnsigned for claims, by name.
func (l *Branch) FindUnsignedClaims(ctx context.Context, at string, names []string) (map[string]string, error) {
	found, err := withTip(ctx, l, func() (map[string]UnsignedRecord, error) {
		entries, err := l.opened.openClaims(ctx, at)
		if err != nil {
			return nil, err
		}
		files := map[string]string{}
		for _, name := range names {
			if _, ok := entries[name]; ok {
				files[name] = ClaimRecordPath(at, name)
			}
		}
		return l.findUnsigned(ctx, files)
	})
	return unsignedTexts(found), err
}

func unsignedTexts(found map[string]UnsignedRecord) map[string]string {
	texts := map[string]string{}
	for name, record := range found {
		texts[name] = record.String()
	}
	return texts
}

func (l *inventoryReader) findUnsignedIn(ctx context.Context, records []ownedRecord, claims []Claim) ([]UnsignedRecord, error) {
	files := map[string]string{}
	for _, r := range records {
		at := r.owner.RecordPath(r.host)
		files[at] = at
	}
	for _, claim := range claims {
		at := ClaimRecordPath(claim.Path, claim.Name)
		files[at] = at
	}
	found, err := l.findUnsigned(ctx, files)
	return slices.SortedFunc(maps.Values(found), compareUnsigned), err
}

func (l *Branch) findUnsigned(ctx context.Context, files map[string]string) (map[string]UnsignedRecord, error) {
	unsigned := map[string]UnsignedRecord{}
	if l.signers == nil || len(files) == 0 {
		return unsigned, nil
	}
	changed, past, err := l.findChangers(ctx, files)
	if err != nil {
		return nil, err
	}
	for name, file := range files {
		commit, ok := changed[name]
		if !ok {
			unsigned[name] = UnsignedRecord{Record: file, read: past.depth}
			continue
		}
		if text, _ := past.tip.CommitText(commit); !l.signers.Verify(text) {
			unsigned[name] = UnsignedRecord{Record: file, Commit: commit.String()}
		}
	}
	return unsigned, nil
}

// findChangers returns the commits that last changed files, if the readable history tells. files has paths by any key.
func (l *Branch) findChangers(ctx context.Context, files map[string]string) (changed map[string]git.Hash, past *lineage, err error) {
	past, changed = newLineage(l.tip), map[string]git.Hash{}
	for {
		reader := pastTrees{Tip: l.tip, parsed: map[git.Hash][]git.Entry{}}
		for _, head := range past.heads { // all heads, to fetch missing trees of all with one request
			for _, file := range files {
				reader.findFile(head.Tree, file)
			}
		}
		if len(reader.missing) > 0 {
			if err := l.tip.NeedPast(ctx, reader.missing, max(past.depth, git.FirstDepth)); err != nil {
				return nil, nil, err
			}
			continue
		}
		for name, file := range files {
			if commit, ok := past.findChanger(&reader, file, l.tip.Commit, map[git.Hash]git.Hash{}); ok {
				changed[name] = commit
			}
		}
		if len(changed) == len(files) || past.isDeep() {
			return changed, past, nil
		}
		if err := past.deepen(ctx); err != nil {
			return nil, nil, err
		}
	}
}

// findChanger returns the commit that last changed a file, as seen from a commit. At a merge, it follows the side that the
// file came from, unless another side changed the file later: then the merge restored it. known has earlier results.
func (l *lineage) findChanger(reader *pastTrees, file string, at git.Hash, known map[git.Hash]git.Hash) (git.Hash, bool) {
	start := at
	for {
		if by, ok := known[at]; ok {
			known[start] = by
			return by, !by.IsZero()
		}
		from, others, ok := l.findSides(reader, file, at)
		if !ok {
			known[start] = git.Hash{}
			return git.Hash{}, false
		}
		switch {
		case from.IsZero():
			known[start] = at
			return at, true
		case len(others) > 0:
			known[start] = l.findMergeChanger(reader, file, at, from, others, known)
			return known[start], !known[start].IsZero()
		}
		at = from
	}
}

// findSides returns the first parent with the same file, if any, and the parents with another one.
func (l *lineage) findSides(reader *pastTrees, file string, at git.Hash) (from git.Hash, others []git.Hash, ok bool) {
	head, ok := l.heads[at]
	if !ok {
		return git.Hash{}, nil, false
	}
	id := reader.findFile(head.Tree, file)
	for _, parent := range head.Parents {
		before, ok := l.heads[parent]
		switch {
		case !ok:
			return git.Hash{}, nil, false
		case reader.findFile(before.Tree, file) != id:
			others = append(others, parent)
		case from.IsZero():
			from = parent
		}
	}
	return from, others, true
}

// findMergeChanger returns the changer at a merge of sides that differ; zero if unknown.
func (l *lineage) findMergeChanger(
	reader *pastTrees, file string, at, from git.Hash, others []git.Hash, known map[git.Hash]git.Hash,
) git.Hash {
	by, ok := l.findChanger(reader, file, from, known)
	if !ok {
		return git.Hash{}
	}
	for _, other := range others {
		last, ok := l.findChanger(reader, file, other, known)
		switch isThere := !reader.findFile(l.heads[other].Tree, file).IsZero(); {
		case ok && l.heads[last].Time.After(l.heads[by].Time):
			return at
		case !ok && isThere:
			return git.Hash{}
		}
	}
	return by
}

func (p *pastTrees) findFile(root git.Hash, at string) git.Hash {
	e := git.Search(p.readEntries(p.findTree(root, path.Dir(at))), path.Base(at), false)
	if e == nil || !e.IsFile() {
		return git.Hash{}
	}
	return e.ID
}
