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
	// wide marks a statement about more than this cluster, which proves no contact with it.
	wide bool
}

// agree merges the opinions of several documents about an assignment on a cluster:
//   - ready if every opinion is ready;
//   - failed if any opinion is failed;
//   - unknown if all statements about this cluster alone are unknown;
//   - progressing, which callers must wait for, if only some are unknown;
//   - otherwise the worst verdict.
//
// The time is the latest known, but for a failure only failures count. Source and message come from the deciding
// opinion.
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

// worse is [verdict.Worst] for opinions; the zero value is none.
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
