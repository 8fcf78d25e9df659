// Package verdict has the words for what is known of an assignment on a cluster. It is pure, and imports no other package
// of the provider.
package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verdict is what is known of an assignment on a cluster, or of a cluster.
type Verdict string

// The verdicts.
const (
	Ready       Verdict = "ready"       // has the wanted content, and its objects are ready
	Progressing Verdict = "progressing" // has the wanted content, and its objects are not ready yet
	Failed      Verdict = "failed"      // tried the wanted content, and failed
	Behind      Verdict = "behind"      // has other content than wanted
	Unknown     Verdict = "unknown"     // nothing is known
)

// All are all verdicts, the worst first: a cluster has the worst of its assignments.
var All = []Verdict{Failed, Behind, Progressing, Unknown, Ready}

// Check says what is wrong with a text that has to be a verdict.
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

// Status is a verdict with its reason.
type Status struct {
	Verdict Verdict
	// Since is the time since which this holds; zero when it is not known. For Ready it is when this content
	// became ready, never before its commit.
	Since time.Time
	// Message is the reason, in one line; the cluster's own text where there is one.
	Message string
	// OfRoot reports that this is said of a host or a cluster as a whole, such as of the object that follows the folder of a
	// host, and of no assignment in particular: it is not known which one causes a failure.
	OfRoot bool
}

// Compare orders verdicts: negative when a is worse than b.
func Compare(a, b Verdict) int {
	return cmp.Compare(slices.Index(All, a), slices.Index(All, b))
}

// Worst is the worse one of two; of equally bad ones the one that is not of a root, else the first, with the later time.
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

// Latest is the later one of two times.
func Latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
