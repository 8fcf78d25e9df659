package gitops

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
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
	numbers    map[git.Hash]int // index of each commit in parents and times
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
	if l.isExhausted() {
		return nil
	}
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
	l.numbers, l.parents, l.times = make(map[git.Hash]int, len(heads)), make([][]int, len(heads)), make([]time.Time, len(heads))
	for id := range heads {
		l.numbers[id] = len(l.numbers)
	}
	for id, number := range l.numbers {
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

func (l *lineage) matchPrefixes(sought []commitPrefix, found map[string]git.Hash, commits map[string]ReportedCommit) []commitPrefix {
	clear(found)
	var missing []commitPrefix
	var sorted []string
	for _, prefix := range sought {
		if len(prefix.digits) == 2*len(git.Hash{}) {
			id, _ := git.ParseID(prefix.digits)
			if _, ok := l.heads[id]; ok {
				found[prefix.asked] = id
			} else {
				missing = append(missing, prefix)
			}
			continue
		}
		if sorted == nil {
			sorted = make([]string, 0, len(l.heads))
			for id := range l.heads {
				sorted = append(sorted, id.String())
			}
			slices.Sort(sorted)
		}
		at, _ := slices.BinarySearch(sorted, prefix.digits)
		switch {
		case at == len(sorted) || !strings.HasPrefix(sorted[at], prefix.digits):
			missing = append(missing, prefix)
		case at+1 < len(sorted) && strings.HasPrefix(sorted[at+1], prefix.digits):
			commits[prefix.asked] = ReportedCommit{Reason: fmt.Sprintf("the branch has several commits whose id begins with %s", prefix.asked)}
		default:
			found[prefix.asked], _ = git.ParseID(sorted[at])
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

// listNewest returns the newest commits. A commit comes after all that contain it; equal times are ordered by id.
func (l *lineage) listNewest(limit int) []string {
	if len(l.times) == 0 {
		return nil
	}
	ids := make([]git.Hash, len(l.times))
	for id, number := range l.numbers {
		ids[number] = id
	}
	newestFirst := func(a, b int) int {
		return cmp.Or(l.times[b].Compare(l.times[a]), bytes.Compare(ids[a][:], ids[b][:]))
	}
	// children counts those not taken yet.
	children := make([]int, len(l.times))
	for _, parents := range l.parents {
		for _, parent := range parents {
			children[parent]++
		}
	}
	var found []string
	for next := []int{l.numbers[l.tip.Commit]}; len(next) > 0 && len(found) < limit; {
		slices.SortFunc(next, newestFirst)
		taken := next[0]
		next = next[1:]
		found = append(found, ids[taken].String())
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
	reader := pastTrees{Tip: l.tip, parsed: map[git.Hash][]git.Entry{}}
	type hostTree struct {
		host string
		id   git.Hash
	}
	for {
		reader.missing = nil
		hosts, trees := map[hostTree]map[string]string{}, make(map[git.Hash]folder.Trees, len(roots))
		for root := range roots {
			base := reader.findTree(root, owner.Path)
			folders := make(folder.Trees, len(want))
			for host, targets := range want {
				at := hostTree{host, reader.findTree(base, host)}
				if hosts[at] == nil {
					hosts[at] = pickFolders(reader.readEntries(at.id), targets)
				}
				folders[host] = hosts[at]
			}
			trees[root] = folders
		}
		if len(reader.missing) == 0 {
			return trees, nil
		}
		if err := l.tip.NeedPast(ctx, reader.missing, max(l.depth, git.FirstDepth)); err != nil {
			return nil, err
		}
	}
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
