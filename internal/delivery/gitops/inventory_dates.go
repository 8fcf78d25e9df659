package gitops

import (
	"context"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// maxInventoryDepth bounds the commits that an inventory reads back. If trees come with commits, it reads only the first
// step.
const maxInventoryDepth = 1 << 10

// dateInventory finds the commits that changed folders last, by owner and time in the record. It skips a time with several
// commits.
func (l *inventoryReader) dateInventory(ctx context.Context, assignments []InventoryAssignment) error {
	wanted := map[time.Time]bool{}
	var oldest time.Time
	for _, a := range assignments {
		if at := a.Changed.UTC(); !at.IsZero() {
			wanted[at] = true
			if oldest.IsZero() || at.Before(oldest) {
				oldest = at
			}
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	for !l.past.isDeep() && !l.past.hasReached(oldest) {
		if err := l.deepenHistory(ctx); err != nil {
			return err
		}
	}
	made := l.past.findMadeAt(wanted)
	for i := range assignments {
		if commits := made[madeBy{assignments[i].Changed.UTC(), assignments[i].Owner.Name}]; len(commits) == 1 {
			assignments[i].Commit = commits[0].String()
		}
	}
	return nil
}

// isDeep reports that an inventory reads no more commits.
func (l *lineage) isDeep() bool {
	limit := maxInventoryDepth
	if l.tip.MaxPast() < git.LastDepth {
		limit = git.FirstDepth
	}
	return l.isExhausted() || l.depth >= limit
}

// hasReached reports that all commits since a moment were fetched.
func (l *lineage) hasReached(moment time.Time) bool {
	return slices.ContainsFunc(l.times, moment.After)
}

// madeBy identifies the commits of an owner at one moment.
type madeBy struct {
	at    time.Time
	owner string
}

func (l *lineage) findMadeAt(wanted map[time.Time]bool) map[madeBy][]git.Hash {
	made := map[madeBy][]git.Hash{}
	for id, number := range l.numbers {
		if at := l.times[number]; wanted[at] {
			text, _ := l.tip.CommitText(id)
			owners := parseCommit(text).Owners
			slices.Sort(owners)
			for _, owner := range slices.Compact(owners) {
				made[madeBy{at, owner}] = append(made[madeBy{at, owner}], id)
			}
		}
	}
	return made
}
