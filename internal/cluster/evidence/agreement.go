package evidence

import (
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// opinion is what one document says of an assignment on a cluster.
type opinion struct {
	verdict.Status
	// source is the name of a check, or "facts"; "" for what agents report.
	source string
	// wide says that it is of more than this cluster: it does not tell whether anything hears of the cluster.
	wide bool
}

// agree is what several documents together say of an assignment on a cluster. Ready is what all call ready, failed what any
// calls failed. What is of this cluster alone and is unknown to all makes it unknown, as a cluster that nothing hears of; what
// is unknown to some is progressing, so that it is waited for. Anything else is the worst. It holds since the latest time that
// is known: of a failure, of those that call it failed. The source and the message are those of the opinion that decides.
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

// worse is the worse one of two opinions, as [verdict.Worst] has it. The zero value is none.
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
