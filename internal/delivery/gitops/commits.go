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

// ReportedCommit is what is known of a commit that a report names.
type ReportedCommit struct {
	// ID is the full id of the commit; "" when the branch does not have it.
	ID string
	// Reason says why there is no ID: the branch does not have such a commit, or
	// not any more, or the id is the beginning of several.
	Reason string
	// Time is when it was committed.
	Time time.Time
	// Behind is how many commits the branch had that this one does not contain,
	// when it was looked at, and Since when the oldest of them was committed.
	Behind int
	Since  time.Time
	// Ahead says that the branch has got the commit since it was looked at.
	Ahead bool
	// Trees are the folders that were asked for as they are at the commit. A
	// folder that is not there is absent. Commits share the maps of hosts that are
	// the same: they must not be changed.
	Trees folder.Trees
}

// FindCommits looks commits up in the history of the branch, by their ids, full or
// of seven digits at least, and reads the trees that the wanted folders have at
// each. It fetches the commits of the branch as far back as it has to, and
// then, in a request for each level, the trees on the way to the wanted hosts
// that are not here yet; no file. A branch that lacks a commit is looked at once
// more, since it may have moved. What was fetched is kept with the Branch.
//
// A commit that is not found is no error. Errors: as of Branch.
func (v *OwnerView) FindCommits(ctx context.Context, ids []string, want folder.Trees) (map[string]ReportedCommit, error) {
	return withTip(ctx, v.Branch, func() (map[string]ReportedCommit, error) { return v.findCommits(ctx, v.owner, ids, want) })
}

// ListRecentCommits returns the newest commits of the branch, newest first, and none before
// one that it contains; fewer where there are fewer. It looks where the branch is
// now.
//
// Errors: as of Branch.
func (l *Branch) ListRecentCommits(ctx context.Context, limit int) ([]string, error) {
	return withTip(ctx, l, func() ([]string, error) {
		if _, err := l.refetchTip(ctx); err != nil {
			return nil, err
		}
		for l.past.depth < limit && !l.past.exhausted() {
			if err := l.deepenHistory(ctx); err != nil {
				return nil, err
			}
		}
		return l.past.listNewest(limit), nil
	})
}

func (l *Branch) findCommits(ctx context.Context, owner Owner, ids []string, want folder.Trees) (map[string]ReportedCommit, error) {
	for host := range want {
		if err := checkHost(host); err != nil {
			return nil, err
		}
	}
	commits := make(map[string]ReportedCommit, len(ids))
	sought := make([]commitPrefix, 0, len(ids))
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		prefix, ok := parsePrefix(id)
		if !ok {
			commits[id] = ReportedCommit{Reason: fmt.Sprintf("%q is not the id of a commit, 40 hexadecimal digits or the first of them", id)}
			continue
		}
		sought = append(sought, prefix)
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
		commit := ReportedCommit{ID: id.String(), Time: l.past.heads[id].Time, Trees: trees[l.past.heads[id].Tree]}
		commit.Behind, commit.Since, commit.Ahead = lag(id)
		commits[asked] = commit
	}
	return commits, nil
}

// minPrefix is how many digits name a commit: what git shows of one.
const minPrefix = 7

// commitPrefix is an id, or the beginning of one, in lower case.
type commitPrefix struct{ asked, digits string }

func parsePrefix(id string) (commitPrefix, bool) {
	if len(id) < minPrefix || len(id) > 2*len(git.Hash{}) || strings.Trim(id, "0123456789abcdefABCDEF") != "" {
		return commitPrefix{}, false
	}
	return commitPrefix{asked: id, digits: strings.ToLower(id)}, true
}

// find looks for commits: in what is here, then in the last commits of the
// branch, then in those that it has got since, and then as far back as there are
// any. Those that are nowhere get a reason.
func (l *Branch) findPrefixes(ctx context.Context, sought []commitPrefix, commits map[string]ReportedCommit) (map[string]git.Hash, error) {
	found := map[string]git.Hash{}
	missing := l.past.matchPrefixes(sought, found, commits)
	if len(missing) > 0 && l.past.depth == 0 && !l.past.exhausted() {
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
	for len(missing) > 0 && !l.past.exhausted() {
		if err := l.deepenHistory(ctx); err != nil {
			return nil, err
		}
		missing = l.past.matchPrefixes(sought, found, commits)
	}
	for _, prefix := range missing {
		commits[prefix.asked] = ReportedCommit{Reason: l.past.explainMissing(prefix.asked)}
	}
	return found, nil
}

// maxTips is from how many tips the branch is read back, when it keeps moving.
const maxTips = 4

// deepen reads the branch further back. A server may refuse a tip that the branch
// has left behind: then it goes from the one that it has now.
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

// lookAgain finds out where the branch is now, and goes from there if it moved.
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
		now = l.tip.At(now.Commit, now.Root) // whose trees are here for the most part
	}
	l.past = newLineage(now)
	return true, nil
}
