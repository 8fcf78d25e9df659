// Package measure queries servers for the figures of checks: a Prometheus once for all subjects, a web server once per
// subject. Failures become messages of figures, never errors.
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

// The timeouts of a request, and the limits of concurrent work.
const (
	DefaultTimeout = 10 * time.Second
	MaxTimeout     = 2 * time.Minute
	// parallelChecks limits checks, and parallelRequests the requests of one check to web servers.
	parallelChecks, parallelRequests = 8, 64
)

// Check is a measurement with its source and criteria.
type Check struct {
	Name, Unit string
	Of         evidence.SubjectKind
	Pass, Fail string
	// Samples returns the query or expression for the number of events.
	Samples    string
	Prometheus *Prometheus
	Web        *Web // or
}

// Prometheus is a server with the API of Prometheus.
type Prometheus struct {
	URL     string // without /api/v1
	Query   string // PromQL
	Headers map[string]string
	// Labels renames the labels that identify the subject of a series.
	Labels  map[string]string
	Timeout time.Duration
}

// Web is a web server, or one for each subject.
type Web struct {
	URL     string // with placeholders, such as {cluster}, if they differ
	Value   string // CEL over status and body
	Headers map[string]string
	Timeout time.Duration
}

// Login has the credentials and headers for one server.
type Login struct {
	Token              string // precedes the password
	Username, Password string
	Headers            map[string]string
}

// Measurer queries servers.
type Measurer struct {
	Over http.RoundTripper
	// Login returns the login for a URL.
	Login func(url string) (Login, error)
	// Scrub removes all credentials from servers' texts.
	Scrub     secret.Scrubber
	UserAgent string
}

// Subjects has the names of subjects by kind.
type Subjects map[evidence.SubjectKind][]string

// Measurement is the result of a check.
type Measurement struct {
	evidence.Check
	Expected int // in the fleet
	// Others are series about subjects outside of the fleet, Unlabelled those without any.
	Others, Unlabelled int
	Warnings           []string // of the server

	wanted  string // of a series' subject
	isEmpty bool   // a valid answer
}

// Measure measures all checks in parallel.
func (c *Measurer) Measure(ctx context.Context, checks []Check, subjects Subjects) []Measurement {
	results := make([]Measurement, len(checks))
	parallel.EachAtMost(len(checks), parallelChecks, func(i int) {
		results[i] = checks[i].newMeasurement(subjects)
		if names := subjects.names(checks[i].Of); checks[i].Prometheus != nil {
			c.queryPrometheus(ctx, &checks[i], names, &results[i])
		} else {
			c.requestWeb(ctx, &checks[i], names, &results[i])
		}
	})
	return results
}

// Problems returns mistakes in the check itself. A query without series is valid because there may be no events yet.
func (r *Measurement) Problems() (all []string) {
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

// Measured counts figures with a value.
func (r *Measurement) Measured() int {
	count := 0
	for _, figure := range r.Figures {
		if figure.Message == "" {
			count++
		}
	}
	return count
}

// Lines describes the figures: first those without a value, then the highest, at most most.
func (r *Measurement) Lines(most int) []string {
	names := slices.SortedFunc(maps.Keys(r.Figures), func(a, b string) int {
		one, other := r.Figures[a], r.Figures[b]
		switch {
		case (one.Message == "") != (other.Message == ""):
			return cmp.Compare(other.Message, one.Message) // with a message
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

// UnaskedMeasurements returns results for checks that cannot be queried yet.
func UnaskedMeasurements(checks []Check, subjects Subjects, reason string) []Measurement {
	results := make([]Measurement, len(checks))
	for i := range checks {
		results[i] = checks[i].newMeasurement(subjects)
		results[i].Message = reason
	}
	return results
}

func (c *Check) newMeasurement(subjects Subjects) Measurement {
	return Measurement{
		Check:    evidence.Check{Name: c.Name, Of: c.Of, Unit: c.Unit, Pass: c.Pass, Fail: c.Fail, Figures: map[string]evidence.Figure{}},
		Expected: len(subjects.names(c.Of)),
	}
}

func (s Subjects) names(of evidence.SubjectKind) []string {
	if of == evidence.OfFleet {
		return []string{""}
	}
	return s[of]
}
