package rollout

import "github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"

// reason is why something other than an agent does not call a cluster ready.
type reason struct{ source, message string }

// reasons counts clusters by what they are waited for, or why they failed.
type reasons struct {
	by     map[reason]int
	first  reason // the most common one; of equally common ones the first
	agents int    // of which agents say so
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

// maxReason is how many bytes of a reason a plan has.
const maxReason = 300

// text is the most common reason in one line; "" where agents alone say so.
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

// isMost says whether agents call no more of the clusters not ready than others do.
func (r *reasons) isMost() bool {
	others := 0
	for _, clusters := range r.by {
		others += clusters
	}
	return others > 0 && others >= r.agents
}
