// Package observe says what became of what was written: reports of clusters and the trees of commits in,
// verdicts and evidence out. It is pure: it asks nobody, and reads no clock.
package observe

import (
	"cmp"
	"slices"
	"time"
)

// Verdict is what is known of an assignment on a cluster, or of a cluster.
type Verdict string

// The verdicts.
const (
	Ready       Verdict = "ready"       // has the wanted content, and what came of it is ready
	Progressing Verdict = "progressing" // has the wanted content, and what came of it is not ready yet
	Failed      Verdict = "failed"      // tried the wanted content, and failed
	Behind      Verdict = "behind"      // has other content than wanted
	Unknown     Verdict = "unknown"     // nothing is known
)

// Verdicts are all verdicts, the worst first: a cluster has the worst of its assignments.
var Verdicts = []Verdict{Failed, Behind, Progressing, Unknown, Ready}

// Status is a verdict with its reason.
type Status struct {
	Verdict Verdict
	// Since is from when on this is so, as far as is known; zero when it is not. Of Ready it is when this
	// content became ready, never before its commit.
	Since time.Time
	// Message is the reason, in one line; where there is one, in the words of the cluster.
	Message string
}

// worse orders verdicts: negative when a is worse than b.
func worse(a, b Verdict) int {
	return cmp.Compare(slices.Index(Verdicts, a), slices.Index(Verdicts, b))
}

// worst is the worse one of two; of equally bad ones the first, with the later time.
func worst(a, b Status) Status {
	if order := worse(a.Verdict, b.Verdict); order > 0 {
		return b
	} else if order == 0 && b.Since.After(a.Since) {
		a.Since = b.Since
	}
	return a
}
