package gitops

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Claims are all claims at one path of a branch.
type Claims struct {
	Commit string
	Claims []Claim
	// Unreadable has paths.
	Unreadable []string
}

// ClaimedTwice is a cluster in the records of several claims.
type ClaimedTwice struct {
	Path, Cluster string
	Claims        []string
}

// String describes the cluster, its claims and their records.
func (t ClaimedTwice) String() string {
	listed := make([]string, len(t.Claims))
	for i, name := range t.Claims {
		listed[i] = fmt.Sprintf("claim %q (%s)", name, ClaimRecordPath(t.Path, name))
	}
	return fmt.Sprintf("cluster %q belongs to %s", t.Cluster, wording.List(listed, wording.Named))
}

// FindClaimedTwice returns the clusters that several claims at one path have, in order.
func FindClaimedTwice(claims []Claim) []ClaimedTwice {
	type place struct{ path, cluster string }
	by := map[place][]string{}
	for _, claim := range claims {
		for _, cluster := range claim.Names() {
			at := place{claim.Path, cluster}
			if !slices.Contains(by[at], claim.Name) {
				by[at] = append(by[at], claim.Name)
			}
		}
	}
	var twice []ClaimedTwice
	for at, names := range by {
		if len(names) > 1 {
			slices.Sort(names)
			twice = append(twice, ClaimedTwice{at.path, at.cluster, names})
		}
	}
	slices.SortFunc(twice, func(a, b ClaimedTwice) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Cluster, b.Cluster))
	})
	return twice
}

// ReadClaims reads the records of all claims at a path.
func (l *Branch) ReadClaims(ctx context.Context, at string) (Claims, error) {
	return withTip(ctx, l, func() (Claims, error) {
		entries, err := l.opened.openClaims(ctx, at)
		if err != nil {
			return Claims{}, err
		}
		found, err := l.opened.readClaims(ctx, at, entries)
		found.Commit = l.Tip()
		return found, err
	})
}

func (w *layout) openClaims(ctx context.Context, at string) (map[string]git.Hash, error) {
	if err := git.CheckPath(at); err != nil {
		return nil, err
	}
	if err := w.Open(ctx, []string{claimsPath(at)}); err != nil {
		return nil, err
	}
	if err := w.Blocked(claimsPath(at)); err != nil {
		return nil, err
	}
	return w.claimEntries(at), nil
}

// claimEntries lists the records in an open folder, by name.
func (w *layout) claimEntries(at string) map[string]git.Hash {
	entries := map[string]git.Hash{}
	w.eachEntry(claimsPath(at), func(e git.Entry) {
		name, ok := strings.CutSuffix(e.Name, recordSuffix)
		if ok && e.IsFile() && CheckClaim(name) == nil {
			entries[name] = e.ID
		}
	})
	return entries
}

func (w *layout) readClaims(ctx context.Context, at string, entries map[string]git.Hash) (found Claims, err error) {
	if err := w.Need(ctx, slices.Collect(maps.Values(entries))); err != nil {
		return found, err
	}
	left := claimBudget(at)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		content, err := w.Blob(entries[name])
		if err = cmp.Or(err, left.spend(len(content))); err != nil {
			return found, err
		}
		claim, err := parseClaim(content)
		if err != nil {
			found.Unreadable = append(found.Unreadable, ClaimRecordPath(at, name))
			continue
		}
		claim.Name, claim.Path, claim.Record = name, at, entries[name].String()
		found.Claims = append(found.Claims, claim)
	}
	return found, nil
}
