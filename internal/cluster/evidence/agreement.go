package evidence

import (
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// opinion is the statement of one document about an assignment on a cluster.
type opinion struct {
	verdict.Status
	// source is the name of a check, or "facts"; "" for reports of agents.
	source string
	// wide reports whether the statement is about more than this cluster. It then proves no contact with the cluster.
	wide bool
}

// agree merges the opinions of several documents about an assignment on a cluster. It is ready if all call it ready, and failed if
// any calls it failed. It is unknown if all statements about this cluster alone are unknown, and progressing, to be waited for, if
// only some are. Otherwise the worst verdict counts. The latest known time counts; for a failure, that of the failures. Source and
// message are those of the deciding opinion.
func agree(opinions []opinion) opinion {
	var own, unknown, ownUnknown int
	var first, worst opinion // of the unknown ones, and of the others
	var latest time.Time
	for _, o := range opinions {
		if o.Verdict == "" {
			o.Verdict = verdict.Unknown
		}
		latest = verdict.Latest(latest, o.Since)
		if !o.wide {
			own++
		}
		if o.Verdict == verdict.Unknown {
			if unknown++; unknown == 1 || first.wide && !o.wide {
				first = o
			}
			if !o.wide {
				ownUnknown++
			}
			continue
		}
		worst = worse(worst, o)
	}
	switch {
	case worst.Verdict == verdict.Failed:
		return worst
	case unknown == len(opinions), own > 0 && ownUnknown == own:
		worst = first
	case unknown > 0 && worst.Verdict == verdict.Ready:
		worst = first
		worst.Verdict = verdict.Progressing
	case unknown > 0:
		worst.Verdict = verdict.Progressing
	}
	worst.Since = latest
	return worst
}

// worse returns the worse opinion, like [verdict.Worst]. The zero value is no opinion.
func worse(a, b opinion) opinion {
	if a.Verdict == "" {
		return b
	}
	status := verdict.Worst(a.Status, b.Status)
	if status.Verdict != a.Verdict || status.OfRoot != a.OfRoot {
		a = b
	}
	a.Status = status
	return a
}
