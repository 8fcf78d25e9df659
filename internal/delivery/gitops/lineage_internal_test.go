package gitops

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

func TestTheBeginningOfSeveralIDsNamesNone(t *testing.T) {
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
