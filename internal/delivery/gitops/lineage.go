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
	if len(roots) == 0 {
		return nil, nil
	}
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
