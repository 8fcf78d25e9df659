// Package verdict defines the status of an assignment on a cluster.
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

// The verdicts.
const (
	Ready       Verdict = "ready"       // runs the wanted content, and its objects are ready
	Progressing Verdict = "progressing" // runs the wanted content, but its objects are not ready yet
	Failed      Verdict = "failed"      // tried the wanted content and failed
	Behind      Verdict = "behind"      // runs other content
	Unknown     Verdict = "unknown"     // no report, or an old one
)

// All lists the verdicts, worst first.
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
	// Since is zero if unknown. Content is never ready before its commit.
	Since time.Time
	// Message is the reason in one line.
	Message string
	// OfRoot marks the status of a whole host or cluster, which does not identify the assignment that causes a failure.
	OfRoot bool
}

// Compare orders verdicts. It is negative if a is worse than b.
func Compare(a, b Verdict) int {
	return cmp.Compare(slices.Index(All, a), slices.Index(All, b))
}

// Worst returns the worse status. For equal verdicts it prefers a status without OfRoot, with the later time.
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
