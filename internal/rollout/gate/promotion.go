package gate

import (
	"slices"
	"strconv"
	"time"
)

// Promotion is the input of the decision to promote a value. The caller compares the values: their type does not matter here.
type Promotion struct {
	// Now is the time; zero if it was not given.
	Now time.Time
	// Missing reports that there is no candidate.
	Missing bool
	// Open reports whether the gate is open for the candidate.
	Open bool
	// Soak is the time for which the gate must be open without interruption.
	Soak    time.Duration
	Windows Windows
	// NeedsApproval reports whether Approvals must have Content of Name.
	NeedsApproval bool
	Approvals     []string
	Content       string
	// Pinned reports that the value is set by hand, and Held that it must not change.
	Pinned, Held bool

	// Promoted reports whether the candidate was promoted last, and Same whether it was the candidate of the step before: a new
	// candidate is never promoted at once.
	Promoted, Same bool
	// OpenedAt is when the gate opened for the candidate of the step before; zero if it was closed.
	OpenedAt time.Time
}

// Decision is the decision about the candidate.
type Decision struct {
	// Promote reports whether the candidate is promoted now.
	Promote bool
	// WaitsFor describes the missing condition; "" if there is none.
	WaitsFor string
	// OpenedAt is when the gate opened for the candidate; zero if it is closed or not needed.
	OpenedAt time.Time
}

// Decide decides about the candidate. A gate that closes later reverts nothing, and a new candidate starts again.
func (p Promotion) Decide() Decision {
	switch {
	case p.Pinned:
		return Decision{WaitsFor: "the end of pin"}
	case p.Promoted:
		return Decision{}
	}
	opened := time.Time{}
	if p.Open {
		opened = p.Now
		if p.Same && !p.OpenedAt.IsZero() {
			opened = p.OpenedAt
		}
	}
	waits := Decision{OpenedAt: opened}
	done, at := Soaked(opened, p.Now, p.Soak)
	switch {
	case p.Held:
		waits.WaitsFor = "the end of hold"
	case p.Missing:
		return Decision{WaitsFor: "a candidate"}
	case !p.Open:
		waits.WaitsFor = "the gate to open"
	case p.Soak > 0 && !done:
		if opens := Opens(at, p.Windows); !opens.IsZero() {
			at = opens
		}
		waits.WaitsFor = "the soak time, " + NotBefore(at)
	case p.NeedsApproval && !slices.Contains(p.Approvals, p.Content):
		waits.WaitsFor = "an approval: " + strconv.Quote(p.Content)
	case len(p.Windows) > 0 && !p.Windows.Open(p.Now):
		waits.WaitsFor = Waits(p.Now, p.Windows)
	case !p.Same:
		waits.WaitsFor = "the next plan, since the candidate is new"
	default:
		return Decision{Promote: true, OpenedAt: opened}
	}
	return waits
}
