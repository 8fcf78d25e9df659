package gitops

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	records, err := w.readRecords(ctx, changed)
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
