package gate

import (
	"slices"
	"strconv"
	"time"
)

// Promotion is the input of the decision whether a value is let through. The caller compares the values, so
// that their type does not matter here.
type Promotion struct {
	// Now is the time; zero where it was not given.
	Now time.Time
	// Missing says that there is no candidate.
	Missing bool
	// Open says that the gate is open for the candidate.
	Open bool
	// Soak is how long it must be open without a break.
	Soak    time.Duration
	Windows Windows
	// NeedsApproval says that Content must be among the approvals of Name.
	NeedsApproval bool
	Approvals     []string
	Content       string
	// Pinned says that the value is set by hand, Held that it stays what it is.
	Pinned, Held bool

	// Promoted says that the candidate is the value that was let through last; Same that it was the candidate
	// in the step before: one that arrives in this step is not let through.
	Promoted, Same bool
	// OpenedAt is when the gate opened for the candidate of the step before; zero where it was closed.
	OpenedAt time.Time
}

// Decision is what is decided about the candidate.
type Decision struct {
	// Promote says that the candidate goes through now.
	Promote bool
	// WaitsFor is a text of what it waits for; "" where it waits for nothing.
	WaitsFor string
	// OpenedAt is when the gate opened for the candidate; zero where it is closed, or nothing is waited for.
	OpenedAt time.Time
}

// Decide decides about the candidate. A gate that closes later reverts nothing, and a new candidate starts
// again.
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
