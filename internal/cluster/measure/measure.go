// Package measure asks servers for the figures of checks: a Prometheus by one query for all that a check is of, or a web
// server by a request for each. What cannot be asked or read is a reason, never an error.
package measure

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

const (
	// DefaultTimeout is how long one request may take.
	DefaultTimeout = 10 * time.Second
	// MaxTimeout is how long one request may be given.
	MaxTimeout = 2 * time.Minute
	// parallelChecks is how many checks are asked at once, and parallelRequests how many requests one check of web servers
	// sends at once.
	parallelChecks, parallelRequests = 8, 64
)

// Check is one measurement: where its figures come from, and what they are judged by.
type Check struct {
	Name, Unit string
	Of         evidence.Of
	Pass, Fail string
	// Samples says how many events a figure is of: a query, or an expression over what a web server answers; "" where that is
	// not asked.
	Samples    string
	Prometheus *Prometheus // this
	Web        *Web        // or this
}

// Prometheus is a server with the API of Prometheus.
type Prometheus struct {
	URL     string // without /api/v1
	Query   string // PromQL
	Headers map[string]string
	// Labels are the names of the labels that say what a series is of, where they differ from ours: `cluster`, `host`,
	// `assignment` and `deployment_target`.
	Labels  map[string]string
	Timeout time.Duration
}

// Web is a web server, or one for each that a check is of.
type Web struct {
	URL     string // with {cluster}, {host}, {deployment_target} or {assignment} where they differ
	Value   string // CEL over status and body
	Headers map[string]string
	Timeout time.Duration
}

// Login is what is sent to one server besides what the check says.
type Login struct {
	Token              string // bearer; wins over the password
	Username, Password string
	Headers            map[string]string
}

// Client asks servers.
type Client struct {
	Over http.RoundTripper
	// Login returns what is sent to the server of a URL.
	Login func(url string) (Login, error)
	// Scrub takes all credentials out of what servers say, those for other servers, too.
	Scrub     secret.Scrubber
	UserAgent string
}

// Subjects are the names of what checks can be of, by that.
type Subjects map[evidence.Of][]string

// Result is what became of a check.
type Result struct {
	evidence.Check
	Expected int // how many there are in the fleet of what the check is of
	// Others are how many series are of nothing in the fleet, and Unlabelled how many do not say what they are of.
	Others, Unlabelled int
	Warnings           []string // of the server, each in one line

	wanted  string // the labels that say what a series is of
	isEmpty bool   // whether the answer was right, and had no series
}

// Measure asks for the figures of all checks, in parallel. Where the context ends before, the reason says so.
func (c *Client) Measure(ctx context.Context, checks []Check, subjects Subjects) []Result {
	results := make([]Result, len(checks))
	parallel.EachAtMost(len(checks), parallelChecks, func(i int) {
		results[i] = checks[i].result(subjects)
		if names := subjects.of(checks[i].Of); checks[i].Prometheus != nil {
			c.query(ctx, &checks[i], names, &results[i])
		} else {
			c.request(ctx, &checks[i], names, &results[i])
		}
	})
	return results
}

// Problems says what is wrong with a check itself: a query that the server refuses, series that do not say what they are of, and an
// expression that fails where there is no rest. A query without a series is no problem: there may be no events yet.
func (r *Result) Problems() (all []string) {
	switch {
	case r.Message != "" && !r.isEmpty:
		all = append(all, r.Message)
	case r.Unlabelled > 0:
		all = append(
			all,
			fmt.Sprintf("the query gives %s without the %s, which count for nothing", wording.Count(r.Unlabelled, "series", "series"), r.wanted),
		)
	}
	if len(r.Figures) > 0 && r.Measured() == 0 {
		first := slices.Sorted(maps.Keys(r.Figures))[0]
		all = append(all, fmt.Sprintf("there is no value, as of %s: %s", cmp.Or(first, "the fleet"), r.Figures[first].Message))
	}
	for _, one := range []struct{ name, source string }{{"pass", r.Pass}, {"fail", r.Fail}} {
		if evidence.NeedsRest(one.source, r.Of) {
			all = append(
				all,
				fmt.Sprintf(
					"%s fails where there is no rest, as on the first cluster that gets a change: write rest == null ? … : … for that case",
					one.name,
				),
			)
		}
	}
	return all
}

// Measured is how many figures have a value.
func (r *Result) Measured() int {
	count := 0
	for _, figure := range r.Figures {
		if figure.Message == "" {
			count++
		}
	}
	return count
}

// Lines are the figures for people: first those without a value, then from the highest. The last one counts what is beyond
// the most.
func (r *Result) Lines(most int) []string {
	names := slices.SortedFunc(maps.Keys(r.Figures), func(a, b string) int {
		one, other := r.Figures[a], r.Figures[b]
		switch {
		case (one.Message == "") != (other.Message == ""):
			return cmp.Compare(other.Message, one.Message) // that with a message
		case one.Value != other.Value:
			return cmp.Compare(other.Value, one.Value)
		}
		return cmp.Compare(a, b)
	})
	lines := make([]string, 0, min(len(names), most))
	for i, name := range names {
		if i == most-1 && len(names) > most {
			return append(lines, fmt.Sprintf("and %d more", len(names)-i))
		}
		line := r.Text(r.Figures[name])
		if name != "" {
			line = name + ": " + line
		}
		lines = append(lines, line)
	}
	return lines
}

// Unasked are the results of checks that cannot be asked yet.
func Unasked(checks []Check, subjects Subjects, reason string) []Result {
	results := make([]Result, len(checks))
	for i := range checks {
		results[i] = checks[i].result(subjects)
		results[i].Message = reason
	}
	return results
}

// result is that of a check before it is asked.
func (c *Check) result(subjects Subjects) Result {
	return Result{
		Check:    evidence.Check{Name: c.Name, Of: c.Of, Unit: c.Unit, Pass: c.Pass, Fail: c.Fail, Figures: map[string]evidence.Figure{}},
		Expected: len(subjects.of(c.Of)),
	}
}

// of are the names of what a check of something has figures of.
func (s Subjects) of(of evidence.Of) []string {
	if of == evidence.OfFleet {
		return []string{""}
	}
	return s[of]
}
