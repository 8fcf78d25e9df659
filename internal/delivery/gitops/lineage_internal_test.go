package gitops

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

func TestAnAmbiguousPrefixMatchesNoCommit(t *testing.T) {
	t.Parallel()
	one, other := git.Hash{0x12, 0x34, 0x56, 0x78}, git.Hash{0x12, 0x34, 0x56, 0x79}
	l := &lineage{heads: map[git.Hash]git.CommitHead{one: {}, other: {}}}
	found, commits := map[string]git.Hash{}, map[string]ReportedCommit{}
	missing := l.matchPrefixes([]string{"1234567", "12345678", "1234568"}, found, commits)
	if len(missing) != 1 || missing[0] != "1234568" || len(found) != 1 || found["12345678"] != one {
		t.Errorf("found %v, missing %v", found, missing)
	}
	if reason := commits["1234567"].Reason; !strings.Contains(reason, "several commits whose id begins with 1234567") {
		t.Errorf("reason = %q", reason)
	}
}

// Merge number i has the id 2i. It merges the commit 2i-1, whose parent is the merge before the previous one. Quadratic time would
// take minutes.
func TestMergedCommitsAreFoundInOnePass(t *testing.T) {
	t.Parallel()
	const merges = 1 << 16
	id := func(number int) (id git.Hash) {
		binary.BigEndian.PutUint64(id[:], uint64(number))
		return id
	}
	heads := map[git.Hash]git.CommitHead{id(2): {}}
	for i := 2; i <= merges; i++ {
		heads[id(2*i-1)] = git.CommitHead{Parents: []git.Hash{id(max(2, 2*i-4))}}
		heads[id(2*i)] = git.CommitHead{Parents: []git.Hash{id(2*i - 2), id(2*i - 1)}}
	}
	l := &lineage{tip: &git.Tip{Commit: id(2 * merges)}}
	l.setHeads(heads)
	began := time.Now()
	merged := l.listMerged()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the search took %s", took)
	}
	for i := 2; i <= merges; i++ {
		if got := merged[id(2*i)]; !slices.Equal(got, []git.Hash{id(2*i - 1)}) {
			t.Fatalf("merge %d: got %v", i, got)
		}
	}
}
