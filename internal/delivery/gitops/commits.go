package gitops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// ReportedCommit is a commit that a cluster reports.
type ReportedCommit struct {
	ID string
	// Reason explains an empty ID.
	Reason string
	// Behind counts the commits of the branch that this one does not contain. Since is the time of the oldest.
	Behind int
	Since  time.Time
	// Ahead reports that the branch got the commit after it was read.
	Ahead bool
	// Trees has the requested folders that exist at the commit. Commits share maps, so callers must not change them.
	Trees folder.Trees
}

// FindCommits looks up commits by ids or prefixes of at least seven digits, with the trees of the wanted folders. It
// fetches the history as far back as needed, then the missing trees with one request for each level. It reads the branch
// once more if a commit is missing.
func (v *OwnerView) FindCommits(ctx context.Context, ids []string, want folder.Trees) (map[string]ReportedCommit, error) {
	return withTip(ctx, v.Branch, func() (map[string]ReportedCommit, error) { return v.findCommits(ctx, v.owner, ids, want) })
}

// ListRecentCommits fetches the branch again and returns its newest commits. Children come before their parents.
func (l *Branch) ListRecentCommits(ctx context.Context, limit int) ([]string, error) {
	return withTip(ctx, l, func() ([]string, error) {
		if _, err := l.refetchTip(ctx); err != nil {
			return nil, err
		}
		for l.past.depth < limit && !l.past.isExhausted() {
			if err := l.deepenHistory(ctx); err != nil {
				return nil, err
			}
		}
		var ids []string
		for _, number := range l.past.listNewest(limit) {
			ids = append(ids, l.past.ids[number].String())
		}
		return ids, nil
	})
}

func (l *Branch) findCommits(ctx context.Context, owner Owner, ids []string, want folder.Trees) (map[string]ReportedCommit, error) {
	for host := range want {
		if err := checkHost(host); err != nil {
			return nil, err
		}
	}
	commits := make(map[string]ReportedCommit, len(ids))
	sought := make([]string, 0, len(ids))
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		if len(id) < minPrefix || len(id) > 2*len(git.Hash{}) || strings.Trim(id, "0123456789abcdefABCDEF") != "" {
			commits[id] = ReportedCommit{Reason: fmt.Sprintf("%q is not the id of a commit, 40 hexadecimal digits or the first of them", id)}
			continue
		}
		sought = append(sought, id)
	}
	found, err := l.findPrefixes(ctx, sought, commits)
	if err != nil {
		return nil, err
	}
	roots := map[git.Hash]bool{}
	for _, id := range found {
		roots[l.past.heads[id].Tree] = true
	}
	trees, err := l.past.readTrees(ctx, owner, roots, want)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return commits, nil
	}
	lag := l.past.measureLag(l.tip.Commit)
	for asked, id := range found {
		commit := ReportedCommit{ID: id.String(), Trees: trees[l.past.heads[id].Tree]}
		commit.Behind, commit.Since, commit.Ahead = lag(id)
		commits[asked] = commit
	}
	return commits, nil
}

// minPrefix is the number of digits that git shows.
const minPrefix = 7

func (l *Branch) findPrefixes(ctx context.Context, sought []string, commits map[string]ReportedCommit) (map[string]git.Hash, error) {
	found := map[string]git.Hash{}
	missing := l.past.matchPrefixes(sought, found, commits)
	if len(missing) > 0 && l.past.depth == 0 && !l.past.isExhausted() {
		if err := l.deepenHistory(ctx); err != nil {
			return nil, err
		}
		missing = l.past.matchPrefixes(sought, found, commits)
	}
	if len(missing) > 0 {
		moved, err := l.refetchTip(ctx)
		if err != nil {
			return nil, err
		}
		if moved {
			missing = sought
		}
	}
	for len(missing) > 0 && !l.past.isExhausted() {
		if err := l.deepenHistory(ctx); err != nil {
			return nil, err
		}
		missing = l.past.matchPrefixes(sought, found, commits)
	}
	for _, prefix := range missing {
		commits[prefix] = ReportedCommit{Reason: l.past.explainMissing(prefix)}
	}
	return found, nil
}

const maxTips = 4

// deepenHistory fetches more of the history. A server may refuse a tip that is no longer current.
func (l *Branch) deepenHistory(ctx context.Context) error {
	for try := 1; ; try++ {
		err := l.past.deepen(ctx)
		if err == nil || ctx.Err() != nil || git.Classify(err) != nil || try == maxTips {
			return err
		}
		if moved, lookErr := l.refetchTip(ctx); lookErr != nil || !moved {
			return err
		}
	}
}

func (l *Branch) refetchTip(ctx context.Context) (moved bool, err error) {
	now, err := l.git.OpenPatiently(ctx, l.remote, 1)
	if err != nil {
		return false, err
	}
	now.Close()
	if now.Commit.IsZero() || now.Commit == l.past.tip.Commit {
		return false, nil
	}
	if !l.tip.Commit.IsZero() {
		now = l.tip.At(now.Commit, now.Root) // shares the fetched trees
	}
	l.past = newLineage(now)
	return true, nil
}
