// Package verdict defines the status of an assignment on a cluster. It is pure, and imports no other package
// of the provider.
package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verdict is the status of an assignment on a cluster, or of a cluster.
type Verdict string

const (
	Ready       Verdict = "ready"       // has the wanted content, and its objects are ready
	Progressing Verdict = "progressing" // has the wanted content, and its objects are not ready yet
	Failed      Verdict = "failed"      // tried the wanted content and failed
	Behind      Verdict = "behind"      // has other content
	Unknown     Verdict = "unknown"     // no report, or an old one
)

// All are the verdicts, worst first. A cluster has the worst verdict of its assignments.
var All = []Verdict{Failed, Behind, Progressing, Unknown, Ready}

// Check returns an error unless the text is a verdict.
func Check(is Verdict) error {
	if slices.Contains(All, is) {
		return nil
	}
	all := make([]string, len(All))
	for i := range All {
		all[i] = string(All[i])
	}
	return fmt.Errorf("the verdict %q is none of %s", is, strings.Join(all, ", "))
}

// Status is a verdict with its reason and time.
type Status struct {
	Verdict Verdict
	// Since is the start of this status, or zero if it is unknown. Ready content is never ready before its
	// commit.
	Since time.Time
	// Message is the reason in one line, in the cluster's words if it gives one.
	Message string
	// OfRoot means that the status belongs to a host or cluster as a whole, such as the object that follows a
	// host's folder. It does not identify the assignment that causes a failure.
	OfRoot bool
}

// Compare orders verdicts. It is negative if a is worse than b.
func Compare(a, b Verdict) int {
	return cmp.Compare(slices.Index(All, a), slices.Index(All, b))
}

// Worst returns the worse status. Of equal verdicts it prefers the one that is not of a root, then the first,
// with the later time.
func Worst(a, b Status) Status {
	order := Compare(a.Verdict, b.Verdict)
	if order == 0 && a.OfRoot && !b.OfRoot {
		a, b = b, a
	}
	if order > 0 {
		return b
	} else if order == 0 && b.Since.After(a.Since) {
		a.Since = b.Since
	}
	return a
}

// Latest returns the later time.
func Latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
