package rollout

// reason is the message of a check.
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

// most returns the most common reason; zero without checks.
func (r *reasons) most() Reason {
	if r.first.source == "" {
		return Reason{}
	}
	most, all := Reason{Message: r.first.message}, 0
	for why, clusters := range r.by {
		all += clusters
		if why.source == r.first.source && why != r.first {
			most.Others += clusters
		}
	}
	most.IsMost = all >= r.agents
	return most
}
