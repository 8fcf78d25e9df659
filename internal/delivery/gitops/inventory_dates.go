package gitops

import (
	"context"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// maxInventoryDepth bounds the commits to read. If trees come with commits, only the first step is read.
const maxInventoryDepth = 1 << 10

// dateInventory finds the commits that changed folders last, by owner and time in the record. It skips ambiguous times.
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

func (l *lineage) isDeep() bool {
	limit := maxInventoryDepth
	if l.tip.MaxPast() < git.LastDepth {
		limit = git.FirstDepth
	}
	return l.isExhausted() || l.depth >= limit
}

func (l *lineage) hasReached(moment time.Time) bool {
	return slices.ContainsFunc(l.times, moment.After)
}

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
