package health

import (
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

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
