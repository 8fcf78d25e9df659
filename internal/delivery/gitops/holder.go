package gitops

import (
	"context"
	"maps"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// findHeldByOthers returns the hosts whose records have another holder. It does not read records with a known id.
// Unreadable records have no holder.
func (w *layout) findHeldByOthers(
	ctx context.Context,
	entries map[string]git.Hash,
	known map[string]string,
	holder string,
) (map[string]bool, error) {
	if holder == "" {
		return nil, nil
	}
	changed := maps.Clone(entries)
	maps.DeleteFunc(changed, func(host string, id git.Hash) bool { return git.IsID(known[host], id) })
	records, err := w.readRecords(ctx, changed)
	held := map[string]bool{}
	for host, record := range records {
		if record.Holder != "" && record.Holder != holder {
			held[host] = true
		}
	}
	return held, err
}

// skipHeldHosts excludes hosts with another holder from a destroy. proposed, if not nil, counts like the tip.
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

// FindHeldByOthers returns the hosts at the tip whose records have another holder. It reads the records without a known id.
//
// Errors: see ReadBranch.
func (v *OwnerView) FindHeldByOthers(ctx context.Context, holder string, known map[string]string) (map[string]bool, error) {
	return withTip(ctx, v.Branch, func() (map[string]bool, error) { return v.work.findHeldByOthers(ctx, v.records, known, holder) })
}
