package rollout

import "github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"

// reason is the message of a check about a cluster that is not ready.
type reason struct{ source, message string }

// reasons counts clusters by reason.
type reasons struct {
	by     map[reason]int
	first  reason // the most common one, or the first of several
	agents int    // clusters that only agents call not ready
}

func (r *reasons) add(report Report) {
	if report.Source == "" {
		r.agents++
		return
	}
	if r.by == nil {
		r.by = map[reason]int{}
	}
	why := reason{report.Source, report.Message}
	if r.by[why]++; r.by[why] > r.by[r.first] {
		r.first = why
	}
}

// maxReason limits the bytes of a reason in a plan.
const maxReason = 300

// text returns the most common reason in one line; "" without checks.
func (r *reasons) text() string {
	if r.first.source == "" {
		return ""
	}
	text, others := wording.Cut(wording.Line(r.first.message), maxReason), 0
	for why, clusters := range r.by {
		if why.source == r.first.source && why != r.first {
			others += clusters
		}
	}
	if others > 0 {
		text += ", and other figures of " + wording.Count(others, "cluster", "clusters")
	}
	return text
}

// isMost reports whether checks call at least as many clusters not ready as agents do.
func (r *reasons) isMost() bool {
	others := 0
	for _, clusters := range r.by {
		others += clusters
	}
	return others > 0 && others >= r.agents
}
