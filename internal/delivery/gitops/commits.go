package gitops

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
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
	if len(found) == 0 {
		return commits, nil
	}
	roots := map[git.Hash]bool{}
	for _, id := range found {
		roots[l.past.heads[id].Tree] = true
	}
	trees, err := l.past.readTrees(ctx, owner, roots, want)
	if err != nil {
		return nil, err
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

// lineage is the fetched history of a tip.
type lineage struct {
	tip        *git.Tip
	heads      map[git.Hash]git.CommitHead
	numbers    map[git.Hash]int // index of each commit in ids, parents and times
	ids        []git.Hash
	parents    [][]int
	times      []time.Time
	depth      int // of the fetched history; 0 before the first fetch
	isComplete bool
}

func newLineage(tip *git.Tip) *lineage {
	l := &lineage{tip: tip, isComplete: tip.Commit.IsZero()}
	if text, ok := tip.CommitText(tip.Commit); ok {
		if head, err := git.ParseCommitHead(text); err == nil {
			l.setHeads(map[git.Hash]git.CommitHead{tip.Commit: head})
		}
	}
	return l
}

func (l *lineage) isExhausted() bool { return l.isComplete || l.depth >= l.tip.MaxPast() }

func (l *lineage) deepen(ctx context.Context) error {
	depth := max(git.FirstDepth, 4*l.depth)
	heads, whole, err := l.tip.PastCommits(ctx, depth)
	if err != nil {
		return err
	}
	l.depth = depth
	l.setHeads(heads)
	l.isComplete = l.isComplete || whole
	return nil
}

func (l *lineage) setHeads(heads map[git.Hash]git.CommitHead) {
	l.heads, l.isComplete = heads, true
	l.ids = slices.Collect(maps.Keys(heads))
	l.numbers, l.parents, l.times = make(map[git.Hash]int, len(heads)), make([][]int, len(heads)), make([]time.Time, len(heads))
	for number, id := range l.ids {
		l.numbers[id] = number
	}
	for number, id := range l.ids {
		l.times[number] = heads[id].Time
		for _, parent := range heads[id].Parents {
			if before, ok := l.numbers[parent]; ok {
				l.parents[number] = append(l.parents[number], before)
			} else {
				l.isComplete = false
			}
		}
	}
}

func (l *lineage) matchPrefixes(sought []string, found map[string]git.Hash, commits map[string]ReportedCommit) (missing []string) {
	clear(found)
	ids := make([]string, 0, len(l.heads))
	for id := range l.heads {
		ids = append(ids, id.String())
	}
	slices.Sort(ids)
	for _, prefix := range sought {
		digits := strings.ToLower(prefix)
		at, _ := slices.BinarySearch(ids, digits)
		switch {
		case at == len(ids) || !strings.HasPrefix(ids[at], digits):
			missing = append(missing, prefix)
		case at+1 < len(ids) && strings.HasPrefix(ids[at+1], digits):
			commits[prefix] = ReportedCommit{Reason: fmt.Sprintf("the branch has several commits whose id begins with %s", prefix)}
		default:
			found[prefix], _ = git.ParseID(ids[at])
		}
	}
	return missing
}

func (l *lineage) explainMissing(id string) string {
	switch {
	case l.tip.Commit.IsZero():
		return "the branch has no commits"
	case !l.isComplete:
		return fmt.Sprintf("commit %s is not among the last %d commits of the branch, or the branch was rewritten", id, l.depth)
	}
	return fmt.Sprintf("commit %s is not in the history of the branch, which may have been rewritten", id)
}

// measureLag returns a function that counts the commits of a tip that a commit does not contain. ahead reports that the tip
// does not contain the commit. The present tip replaces one that a rewritten branch has lost.
func (l *lineage) measureLag(tip git.Hash) func(commit git.Hash) (behind int, since time.Time, ahead bool) {
	number, ok := l.numbers[tip]
	if !ok {
		number = l.numbers[l.tip.Commit]
	}
	all := l.listContained(number)
	return func(commit git.Hash) (behind int, since time.Time, ahead bool) {
		if !all[l.numbers[commit]] {
			return 0, time.Time{}, true
		}
		contained := l.listContained(l.numbers[commit])
		for number, at := range l.times {
			if !all[number] || contained[number] {
				continue
			}
			behind++
			if since.IsZero() || at.Before(since) {
				since = at
			}
		}
		return behind, since, false
	}
}

// listNewest returns the numbers of the newest commits. A commit comes after all that contain it; equal times are ordered by id.
func (l *lineage) listNewest(limit int) []int {
	if len(l.ids) == 0 {
		return nil
	}
	newestFirst := func(a, b int) int {
		return cmp.Or(l.times[b].Compare(l.times[a]), bytes.Compare(l.ids[a][:], l.ids[b][:]))
	}
	// children counts those not taken yet.
	children := make([]int, len(l.times))
	for _, parents := range l.parents {
		for _, parent := range parents {
			children[parent]++
		}
	}
	var found []int
	for next := []int{l.numbers[l.tip.Commit]}; len(next) > 0 && len(found) < limit; {
		slices.SortFunc(next, newestFirst)
		taken := next[0]
		next = next[1:]
		found = append(found, taken)
		for _, parent := range l.parents[taken] {
			if children[parent]--; children[parent] == 0 {
				next = append(next, parent)
			}
		}
	}
	return found
}

func (l *lineage) listContained(commit int) []bool {
	contained := make([]bool, len(l.times))
	contained[commit] = true
	for next := []int{commit}; len(next) > 0; {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		for _, parent := range l.parents[at] {
			if !contained[parent] {
				contained[parent] = true
				next = append(next, parent)
			}
		}
	}
	return contained
}

func (l *lineage) readTrees(
	ctx context.Context, owner Owner, roots map[git.Hash]bool, want folder.Trees,
) (map[git.Hash]folder.Trees, error) {
	type hostTree struct {
		host string
		id   git.Hash
	}
	trees := make(map[git.Hash]folder.Trees, len(roots))
	err := l.readPast(ctx, func(past *pastTrees) {
		hosts := map[hostTree]map[string]string{}
		for root := range roots {
			base := past.findTree(root, owner.Path)
			folders := make(folder.Trees, len(want))
			for host, targets := range want {
				at := hostTree{host, past.findTree(base, host)}
				if hosts[at] == nil {
					hosts[at] = pickFolders(past.readEntries(at.id), targets)
				}
				folders[host] = hosts[at]
			}
			trees[root] = folders
		}
	})
	return trees, err
}

func pickFolders(entries []git.Entry, targets map[string]string) map[string]string {
	picked := make(map[string]string, len(targets))
	for target := range targets {
		if e := git.Search(entries, target, true); e != nil {
			picked[target] = e.ID.String()
		}
	}
	return picked
}

// pastTrees reads trees of several commits, and collects missing ones to fetch with one request.
type pastTrees struct {
	*git.Tip
	missing []git.Hash
	parsed  map[git.Hash][]git.Entry
}

// readPast calls read until all objects that it misses are fetched, with one request each time.
func (l *lineage) readPast(ctx context.Context, read func(*pastTrees)) error {
	trees := &pastTrees{Tip: l.tip, parsed: map[git.Hash][]git.Entry{}}
	for {
		if read(trees); len(trees.missing) == 0 {
			return nil
		}
		if err := l.tip.NeedPast(ctx, trees.missing, max(l.depth, git.FirstDepth)); err != nil {
			return err
		}
		trees.missing = nil
	}
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
	p.parsed[id] = entries
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
