package gitops

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

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
		return "a commit that is older than those that can be read"
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

// FindOtherHolder returns the newest commit that changed a record with a holder other than this one, which may be "". It
// skips records with a known id, and those without a signature by an allowed key.
func (v *OwnerView) FindOtherHolder(
	ctx context.Context, holder string, known map[string]string,
) (writer RecordCommit, found bool, err error) {
	_, err = withTip(ctx, v.Branch, func() (struct{}, error) {
		writer, found, err = v.findOtherHolder(ctx, holder, known)
		return struct{}{}, err
	})
	return writer, found, err
}

func (v *OwnerView) findOtherHolder(ctx context.Context, holder string, known map[string]string) (RecordCommit, bool, error) {
	held, err := v.work.readHolders(ctx, v.records, known)
	if err != nil {
		return RecordCommit{}, false, err
	}
	files := map[string]string{}
	for host, other := range held {
		if other != holder && isHolder(other) {
			files[host] = v.owner.RecordPath(host)
		}
	}
	unsigned, err := v.findUnsigned(ctx, files)
	if err != nil {
		return RecordCommit{}, false, err
	}
	maps.DeleteFunc(files, func(host, _ string) bool { _, ok := unsigned[host]; return ok })
	if len(files) == 0 {
		return RecordCommit{}, false, nil
	}
	changed, past, err := v.findChangers(ctx, files)
	if err != nil || len(changed) == 0 {
		return RecordCommit{}, true, err
	}
	newest := past.findNearest(slices.Collect(maps.Values(changed)))
	text, _ := past.tip.CommitText(newest)
	commit := parseCommit(text)
	return RecordCommit{newest.String(), past.heads[newest].Time, commit.Author, commit.Source, commit.Run}, true, nil
}

func (l *lineage) findNearest(commits []git.Hash) git.Hash {
	for at, ok := l.tip.Commit, true; ok; {
		if slices.Contains(commits, at) {
			return at
		}
		head := l.heads[at]
		if ok = len(head.Parents) > 0; ok {
			at = head.Parents[0]
		}
	}
	return slices.MaxFunc(commits, func(a, b git.Hash) int {
		return cmp.Or(l.heads[a].Time.Compare(l.heads[b].Time), strings.Compare(a.String(), b.String()))
	})
}

// readHolders returns the holders in records without a known id, by host.
func (w *layout) readHolders(ctx context.Context, entries map[string]git.Hash, known map[string]string) (map[string]string, error) {
	changed := maps.Clone(entries)
	maps.DeleteFunc(changed, func(host string, id git.Hash) bool { return git.IsID(known[host], id) })
	records, err := w.readRecords(ctx, changed)
	held := map[string]string{}
	for host, record := range records {
		if record.Holder != "" {
			held[host] = record.Holder
		}
	}
	return held, err
}

// checkHolder fails if records, on the tip or proposed, have another holder than the edit.
func (s *staging) checkHolder(ctx context.Context, proposed *layout) error {
	if s.edit.TakesOver || s.edit.Holder == "" {
		return nil
	}
	check := func(w *layout, entries map[string]git.Hash) error {
		held, err := w.readHolders(ctx, entries, s.edit.Records)
		if err != nil {
			return err
		}
		for host, holder := range held {
			if holder != s.edit.Holder && isHolder(holder) {
				return &completeError{fmt.Sprintf("the record %q has another holder since the plan: another state writes the assignment %q",
					s.edit.Owner.RecordPath(host), s.edit.Owner.Name), ErrOtherHolder}
			}
		}
		return nil
	}
	if proposed != nil { // the base may have the earlier records
		entries, err := proposed.openOwner(ctx, s.edit.Owner, nil)
		if err != nil {
			return err
		}
		return check(proposed, entries)
	}
	return cmp.Or(check(s.layout, s.atTip), check(s.layout, s.formerAtTip))
}

// findHeldByOthers returns the hosts whose records have another holder, among those without a known id.
func (w *layout) findHeldByOthers(
	ctx context.Context, entries map[string]git.Hash, known map[string]string, holder string,
) (map[string]bool, error) {
	if holder == "" {
		return nil, nil
	}
	held, err := w.readHolders(ctx, entries, known)
	others := map[string]bool{}
	for host, by := range held {
		if by != holder {
			others[host] = true
		}
	}
	return others, err
}

// skipHeldHosts excludes hosts with another holder, on the tip or proposed, from a destroy.
func (s *staging) skipHeldHosts(ctx context.Context, proposed *layout) error {
	held, err := s.findHeldByOthers(ctx, s.atTip, s.edit.Records, s.edit.Holder)
	if err != nil {
		return err
	}
	if proposed != nil && s.edit.Holder != "" {
		entries, err := proposed.openOwner(ctx, s.edit.Owner, nil)
		if err != nil {
			return err
		}
		more, err := proposed.findHeldByOthers(ctx, entries, s.edit.Records, s.edit.Holder)
		if err != nil {
			return err
		}
		maps.Copy(held, more)
	}
	if len(held) == 0 {
		return nil
	}
	s.edit.Written = maps.Clone(s.edit.Written)
	for host := range held {
		delete(s.atTip, host)
		delete(s.edit.Written, host)
	}
	s.change.edit, s.change.held = s.edit, true
	return nil
}

// FindHeldByOthers returns the hosts whose records, among those without a known id, have another holder.
func (v *OwnerView) FindHeldByOthers(ctx context.Context, holder string, known map[string]string) (map[string]bool, error) {
	return withTip(ctx, v.Branch, func() (map[string]bool, error) { return v.work.findHeldByOthers(ctx, v.records, known, holder) })
}
