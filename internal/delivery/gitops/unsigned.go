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
	changed, past, err := findChangers(ctx, l.tip, files)
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
func findChangers(
	ctx context.Context, tip *git.Tip, files map[string]string,
) (changed map[string]git.Hash, past *lineage, err error) {
	past = newLineage(tip)
	for {
		err := past.readPast(ctx, func(trees *pastTrees) {
			changed = map[string]git.Hash{}
			newest := past.listNewest(len(past.ids))
			for name, file := range files {
				if commit := past.findChanger(trees, file, newest); !commit.IsZero() {
					changed[name] = commit
				}
			}
		})
		if err != nil {
			return nil, nil, err
		}
		if len(changed) == len(files) || past.isDeep() {
			return changed, past, nil
		}
		if err := past.deepen(ctx); err != nil {
			return nil, nil, err
		}
	}
}

// findChanger returns the commit that last changed a file; zero if the fetched history does not tell. It reads all commits, so
// that missing trees of all come with one request.
func (l *lineage) findChanger(trees *pastTrees, file string, newest []int) git.Hash {
	versions, changers := make([]git.Hash, len(l.ids)), make([]git.Hash, len(l.ids)) // by commit
	for _, commit := range slices.Backward(newest) {
		versions[commit] = trees.findFile(l.heads[l.ids[commit]].Tree, file)
		changers[commit] = l.findChangerAt(commit, versions, changers)
	}
	return changers[l.numbers[l.tip.Commit]]
}

// findChangerAt returns the commit that changed a file last, as seen from a commit. At a merge, it follows the side that the
// file came from, unless another side changed the file later: then the merge restored it.
func (l *lineage) findChangerAt(commit int, versions, changers []git.Hash) git.Hash {
	parents := l.parents[commit]
	if len(parents) < len(l.heads[l.ids[commit]].Parents) {
		return git.Hash{}
	}
	isSame := func(parent int) bool { return versions[parent] == versions[commit] }
	from := slices.IndexFunc(parents, isSame)
	if from < 0 {
		return l.ids[commit]
	}
	changer := changers[parents[from]]
	for _, other := range parents {
		last := changers[other]
		switch {
		case isSame(other) || changer.IsZero():
		case last.IsZero() && !versions[other].IsZero():
			return git.Hash{}
		case !last.IsZero() && l.heads[last].Time.After(l.heads[changer].Time):
			return l.ids[commit]
		}
	}
	return changer
}

func (p *pastTrees) findFile(root git.Hash, at string) git.Hash {
	e := git.Search(p.readEntries(p.findTree(root, path.Dir(at))), path.Base(at), false)
	if e == nil || !e.IsFile() {
		return git.Hash{}
	}
	return e.ID
}
