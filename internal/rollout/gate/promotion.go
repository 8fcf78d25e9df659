package gate

import (
	"slices"
	"strconv"
	"time"
)

// Promotion is the input of a decision. The caller compares the values.
type Promotion struct {
	Now     time.Time
	Missing bool
	Open    bool
	// Soak is the time that the gate must stay open.
	Soak          time.Duration
	Windows       Windows
	NeedsApproval bool
	Approvals     []string
	Content       string
	// Pinned: the value is set by hand. Held: it must not change.
	Pinned, Held bool

	// Promoted: the candidate was promoted last. Same: it was the candidate of the step before. A new candidate is never promoted
	// at once.
	Promoted, Same bool
	OpenedAt       time.Time
}

// Decision is the decision about the candidate.
type Decision struct {
	Promote bool
	// WaitsFor describes the missing condition, or is "".
	WaitsFor string
	// OpenedAt is when the gate opened for the candidate; zero if it is closed or not needed.
	OpenedAt time.Time
}

// Decide decides about the candidate. A gate that closes later reverts nothing.
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
		waits.WaitsFor = WaitText(p.Now, p.Windows)
	case !p.Same:
		waits.WaitsFor = "the next plan, since the candidate is new"
	default:
		return Decision{Promote: true, OpenedAt: opened}
	}
	return waits
}
