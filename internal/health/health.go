// Package health makes one number of what is known of a fleet: the health score, of a host and of all. It is
// pure.
//
// Every assignment on every cluster earns points: 100 when it is ready, and less for all else. The score is the
// mean of the points, rounded down. So it is 100 only where everything is ready, it never falls because
// something becomes ready, and it never rises because something fails, stays behind or falls silent.
package health

import (
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/observe"
)

// What an assignment on a cluster earns.
const (
	readyPoints       = 100
	progressingPoints = 75
	behindPoints      = 75 // at first; they fall evenly
	longBehindPoints  = 25 // to these, which are left after BehindFor
	unknownPoints     = 25 // who falls silent never earns more than before, unless it had failed
	failedPoints      = 0
)

// BehindFor is how long it takes until what is behind earns as little as what is unknown.
const BehindFor = 24 * time.Hour

// Tally adds up what assignments on clusters earn. The zero value has none.
type Tally struct {
	sum
	by [verdictCount]sum // in the order of observe.Verdicts
}

type sum struct {
	points int64 // of each, times the seconds of BehindFor
	count  int64
}

func (s *sum) add(other sum) { s.points, s.count = s.points+other.points, s.count+other.count }

// verdictCount is how many there are.
const verdictCount = 5

const scale = int64(BehindFor / time.Second)

// Add counts one assignment on one cluster. age is for how long the verdict is as it is; only that of what is behind
// matters, and a negative one is none.
func (t *Tally) Add(verdict observe.Verdict, age time.Duration) {
	at := slices.Index(observe.Verdicts, verdict)
	if at < 0 {
		at = slices.Index(observe.Verdicts, observe.Unknown)
	}
	one := sum{points(observe.Verdicts[at], age), 1}
	t.add(one)
	t.by[at].add(one)
}

// points are what a verdict earns, times the seconds of BehindFor.
func points(verdict observe.Verdict, age time.Duration) int64 {
	switch verdict {
	case observe.Ready:
		return readyPoints * scale
	case observe.Progressing:
		return progressingPoints * scale
	case observe.Behind:
		seconds := min(max(int64(age/time.Second), 0), scale)
		return behindPoints*scale - (behindPoints-longBehindPoints)*seconds
	case observe.Failed:
		return failedPoints * scale
	}
	return unknownPoints * scale
}

// Join counts all of another tally.
func (t *Tally) Join(other Tally) {
	t.add(other.sum)
	for i := range t.by {
		t.by[i].add(other.by[i])
	}
}

// Score is the mean of the points, from 0 to 100, rounded down. ok is false where there is nothing to judge.
func (t Tally) Score() (score int, ok bool) {
	if t.count == 0 {
		return 0, false
	}
	return int(t.points / (t.count * scale)), true
}

// Grade is a score in a word.
type Grade string

// The grades.
const (
	Good Grade = "good"
	Fair Grade = "fair"
	Poor Grade = "poor"
)

// Bounds part scores into grades: what reaches Good is good, what is below Poor is poor, and what is between is fair.
type Bounds struct{ Good, Poor int }

// DefaultBounds are those where none are set.
func DefaultBounds() Bounds { return Bounds{Good: 75, Poor: 40} }

// Grade is the grade of a score.
func (b Bounds) Grade(score int) Grade {
	switch {
	case score >= b.Good:
		return Good
	case score < b.Poor:
		return Poor
	}
	return Fair
}
