package gitops

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
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

// HolderLength is the length of a holder in bytes. Records have it in hex; any other text is no holder.
const HolderLength = 8

// ErrOtherHolder reports records of another holder.
var ErrOtherHolder = errors.New("the records have another holder")

func isHolder(text string) bool {
	decoded, err := hex.DecodeString(text)
	return err == nil && len(decoded) == HolderLength
}

// RecordCommit is the last commit that changed records.
type RecordCommit struct {
	Commit string // in hex; "" if older than the readable history
	Time   time.Time
	Author git.Signature
	Source folder.Source
	Run    string
}

// String describes the commit.
func (w RecordCommit) String() string {
	if w.Commit == "" {
		return "a commit before the oldest one that can be read"
	}
	text := fmt.Sprintf("commit %.12s of %s by %s", w.Commit, w.Time.UTC().Format("2006-01-02 15:04 UTC"), w.Author.Name)
	if w.Run != "" {
		text += ", run " + w.Run
	}
	if w.Source != "" {
		text += ", configuration " + w.Source.Short()
	}
	return text
}

// FindOtherHolder returns the newest commit that changed a record with a holder other than this one, which may be ""; nil if
// there is none. It skips records with a known id, and those without a signature by an allowed key.
func (v *OwnerView) FindOtherHolder(ctx context.Context, holder string, known map[string]string) (*RecordCommit, error) {
	return withTip(ctx, v.Branch, func() (*RecordCommit, error) {
		others, err := v.work.readOtherHolders(ctx, v.records, known, holder)
		if err != nil {
			return nil, err
		}
		files := map[string]string{}
		for host, other := range others {
			if isHolder(other) {
				files[host] = v.owner.RecordPath(host)
			}
		}
		unsigned, err := v.findUnsigned(ctx, files)
		if err != nil {
			return nil, err
		}
		maps.DeleteFunc(files, func(host, _ string) bool { _, ok := unsigned[host]; return ok })
		if len(files) == 0 {
			return nil, nil
		}
		changed, past, err := findChangers(ctx, v.tip, files)
		if err != nil || len(changed) == 0 {
			return &RecordCommit{}, err
		}
		newest := past.findNewest(slices.Collect(maps.Values(changed)))
		text, _ := past.tip.CommitText(newest)
		commit := parseCommit(text)
		return &RecordCommit{newest.String(), past.heads[newest].Time, commit.Author, commit.Source, commit.Run}, nil
	})
}

func (l *lineage) findNewest(commits []git.Hash) git.Hash {
	for _, number := range l.listNewest(len(l.ids)) {
		if slices.Contains(commits, l.ids[number]) {
			return l.ids[number]
		}
	}
	return git.Hash{}
}

// readOtherHolders returns the holders other than this one in records without a known id, by host.
func (w *layout) readOtherHolders(
	ctx context.Context, entries map[string]git.Hash, known map[string]string, holder string,
) (map[string]string, error) {
	changed := maps.Clone(entries)
	maps.DeleteFunc(changed, func(host string, id git.Hash) bool { return git.IsID(known[host], id) })
	records, err := readRecords(ctx, w, changed)
	others := map[string]string{}
	for host, record := range records {
		if record.Holder != "" && record.Holder != holder {
			others[host] = record.Holder
		}
	}
	return others, err
}

// checkHolders fails if records, on the tip or proposed, have another holder than the edit. A destroy excludes their hosts.
func (s *staging) checkHolders(ctx context.Context, proposed *layout) error {
	isDestroy := s.edit.LeaveOthers || s.edit.Abandon
	if s.edit.Holder == "" || s.edit.TakesOver && !isDestroy {
		return nil
	}
	held := map[string]string{}
	read := func(w *layout, entries map[string]git.Hash) error {
		others, err := w.readOtherHolders(ctx, entries, s.edit.Records, s.edit.Holder)
		maps.Copy(held, others)
		return err
	}
	if proposed == nil || isDestroy { // otherwise the base may have the earlier records
		if err := cmp.Or(read(s.layout, s.atTip), read(s.layout, s.formerAtTip)); err != nil {
			return err
		}
	}
	if proposed != nil {
		entries, err := proposed.openOwner(ctx, s.edit.Owner, nil)
		if err != nil {
			return err
		}
		if err := read(proposed, entries); err != nil {
			return err
		}
	}
	if isDestroy {
		s.excludeHosts(held)
		return nil
	}
	for _, host := range slices.Sorted(maps.Keys(held)) {
		if isHolder(held[host]) {
			return &completeError{fmt.Sprintf("the record %q has another holder since the plan: another state writes the assignment %q",
				s.edit.Owner.RecordPath(host), s.edit.Owner.Name), ErrOtherHolder}
		}
	}
	return nil
}

// excludeHosts excludes hosts with another holder from a destroy.
func (s *staging) excludeHosts(held map[string]string) {
	if len(held) == 0 {
		return
	}
	s.edit.Written = maps.Clone(s.edit.Written)
	for host := range held {
		delete(s.atTip, host)
		delete(s.edit.Written, host)
	}
	s.change.edit, s.change.held = s.edit, true
}

// FindHeldByOthers returns the hosts whose records, among those without a known id, have another holder.
func (v *OwnerView) FindHeldByOthers(ctx context.Context, holder string, known map[string]string) (map[string]string, error) {
	if holder == "" {
		return nil, nil
	}
	return withTip(ctx, v.Branch, func() (map[string]string, error) {
		return v.work.readOtherHolders(ctx, v.records, known, holder)
	})
}
