// Package health computes the health score of fleets and hosts. It is pure.
//
// Every assignment on every cluster earns points, 100 if it is ready. The score is their mean, rounded down. It is 100 only if
// everything is ready. It never falls because something becomes ready, and never rises because something fails, stays behind or
// stops reporting.
package health

import (
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// The points that an assignment on a cluster earns.
const (
	readyPoints       = 100
	progressingPoints = 75
	behindPoints      = 75 // at first; they fall evenly
	longBehindPoints  = 25 // down to these, after BehindFor
	unknownPoints     = 25 // so that silence earns no more, except after a failure
	failedPoints      = 0
)

// BehindFor is the time after which an assignment that is behind earns as little as an unknown one.
const BehindFor = 24 * time.Hour

// Tally sums the points of assignments on clusters. The zero value is empty.
type Tally struct {
	sum
	by [verdictCount]sum // in the order of verdict.All
}

type sum struct {
	points int64 // of each, times the seconds of BehindFor
	count  int64
}

func (s *sum) add(other sum) { s.points, s.count = s.points+other.points, s.count+other.count }

const verdictCount = 5

const scale = int64(BehindFor / time.Second)

// Add adds one assignment on one cluster. Its age counts only for behind.
func (t *Tally) Add(of verdict.Verdict, age time.Duration) {
	at := slices.Index(verdict.All, of)
	if at < 0 {
		at = slices.Index(verdict.All, verdict.Unknown)
	}
	one := sum{points(verdict.All[at], age), 1}
	t.add(one)
	t.by[at].add(one)
}

// Age returns the age for [Tally.Add]. An assignment behind on a cluster without a known commit earns no more than an unknown
// one.
func Age(status verdict.Status, at time.Time, commit string) time.Duration {
	if commit == "" && status.Verdict == verdict.Behind {
		return BehindFor
	}
	return at.Sub(status.Since)
}

func points(of verdict.Verdict, age time.Duration) int64 {
	switch of {
	case verdict.Ready:
		return readyPoints * scale
	case verdict.Progressing:
		return progressingPoints * scale
	case verdict.Behind:
		seconds := min(max(int64(age/time.Second), 0), scale)
		return behindPoints*scale - (behindPoints-longBehindPoints)*seconds
	case verdict.Failed:
		return failedPoints * scale
	}
	return unknownPoints * scale
}

// Join adds another tally.
func (t *Tally) Join(other Tally) {
	t.add(other.sum)
	for i := range t.by {
		t.by[i].add(other.by[i])
	}
}

// Counts returns the numbers in the order of verdict.All.
func (t Tally) Counts() (counts [verdictCount]int) {
	for i := range t.by {
		counts[i] = int(t.by[i].count)
	}
	return counts
}

// Score is the health of a host, or of a fleet.
type Score struct {
	// Value is from 0 to 100.
	Value int
	// Parts has the verdicts that occur, ready first and failed last.
	Parts []Part
}

// Score returns the score; nil for an empty tally.
func (t Tally) Score() *Score {
	if t.count == 0 {
		return nil
	}
	return &Score{Value: int(t.points / (t.count * scale)), Parts: t.parts()}
}

// Grade is a score as a word.
type Grade string

// The grades.
const (
	Good Grade = "good"
	Fair Grade = "fair"
	Poor Grade = "poor"
)

// Bounds divides scores: Good or more is good, less than Poor is poor.
type Bounds struct{ Good, Poor int }

// DefaultBounds returns the default bounds.
func DefaultBounds() Bounds { return Bounds{Good: 75, Poor: 40} }

// Grade returns the grade of a score.
func (b Bounds) Grade(score int) Grade {
	switch {
	case score >= b.Good:
		return Good
	case score < b.Poor:
		return Poor
	}
	return Fair
}

// Part is the share of one verdict in a score.
type Part struct {
	Verdict verdict.Verdict
	// Count of Of assignments have the verdict.
	Count, Of int
	// Points is their mean, rounded down.
	Points int
	// Percent is their share. All shares add up to 100.
	Percent int
}

func (t Tally) parts() []Part {
	var parts []Part
	var remainders []int64
	left := 100
	for _, one := range []verdict.Verdict{verdict.Ready, verdict.Progressing, verdict.Behind, verdict.Unknown, verdict.Failed} {
		of := t.by[slices.Index(verdict.All, one)]
		if of.count == 0 {
			continue
		}
		part := Part{
			Verdict: one, Count: int(of.count), Of: int(t.count), Points: int(of.points / (of.count * scale)),
			Percent: int(100 * of.count / t.count),
		}
		left -= part.Percent
		parts, remainders = append(parts, part), append(remainders, 100*of.count%t.count)
	}
	for ; left > 0; left-- { // the largest remainders round up
		most := 0
		for i := range remainders {
			if remainders[i] > remainders[most] {
				most = i
			}
		}
		parts[most].Percent, remainders[most] = parts[most].Percent+1, -1
	}
	return parts
}
