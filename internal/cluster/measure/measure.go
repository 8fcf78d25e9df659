// Package measure queries servers for the figures of checks: a Prometheus once for all subjects, a web server once per
// subject. Failures become messages of figures, never errors.
package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
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
		count := wording.Count(r.Unlabelled, "series", "series")
		all = append(all, fmt.Sprintf("the query gives %s without the %s, which count for nothing", count, r.wanted))
	}
	if len(r.Figures) > 0 && r.Measured() == 0 {
		first := slices.Sorted(maps.Keys(r.Figures))[0]
		all = append(all, fmt.Sprintf("there is no value, as of %s: %s", cmp.Or(first, "the fleet"), r.Figures[first].Message))
	}
	for _, one := range []struct{ name, source string }{{"pass", r.Pass}, {"fail", r.Fail}} {
		if evidence.NeedsRest(one.source, r.Of) {
			const format = "%s fails where there is no rest, as on the first cluster that gets a change: write rest == null ? … : … for that case"
			all = append(all, fmt.Sprintf(format, one.name))
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

const (
	// maxAnswer bounds the bytes of an answer; 20,000 series take a tenth.
	maxAnswer = 32 << 20
	// maxPage bounds a web server's answer, because there may be thousands.
	maxPage = 1 << 20
	// maxRefusal bounds the answer to a failed query.
	maxRefusal = 64 << 10
)

var errTooLarge = errors.New("the answer is too large")

type session struct {
	client  *Measurer
	server  string // scheme, host and port
	login   Login
	headers map[string]string // of the check
	most    int64             // bytes of an answer
	timeout time.Duration
	isQuery bool  // redirects are errors
	denied  error // why no request is sent
}

func (c *Measurer) session(address string, headers map[string]string, timeout time.Duration, most int64) *session {
	s := &session{client: c, headers: headers, most: most, timeout: timeout}
	if c.Login != nil {
		s.login, s.denied = c.Login(address)
	}
	if parsed, err := url.Parse(address); err == nil {
		s.server = parsed.Scheme + "://" + parsed.Host
	}
	return s
}

// http returns a client that follows no redirects: another server must not get the credentials, and would describe
// something else.
func (s *session) http() *http.Client {
	return &http.Client{Transport: s, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// RoundTrip adds credentials and limits the size of the answer.
func (s *session) RoundTrip(request *http.Request) (*http.Response, error) {
	if s.denied != nil {
		return nil, s.denied
	}
	request = request.Clone(request.Context())
	for name, value := range s.headers {
		request.Header.Set(name, value)
	}
	switch {
	case s.login.Token != "":
		request.Header.Set("Authorization", "Bearer "+s.login.Token)
	case s.login.Username != "" || s.login.Password != "":
		request.SetBasicAuth(s.login.Username, s.login.Password)
	}
	for name, value := range s.login.Headers {
		request.Header.Set(name, value)
	}
	request.Header.Set("User-Agent", s.client.UserAgent)
	response, err := s.client.Over.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if s.isQuery && response.StatusCode/100 == 3 {
		_ = response.Body.Close()
		to, err := response.Location()
		if err != nil {
			return nil, fmt.Errorf("it answers %d", response.StatusCode)
		}
		return nil, fmt.Errorf("it redirects to %s://%s, and redirects are not followed; is it the right url?", to.Scheme, to.Host)
	}
	response.Body = bounded.Body(response.Body, s.most, errTooLarge)
	return response, nil
}

func (s *session) describeFailure(ctx, within context.Context, err error) string {
	switch {
	case ctx.Err() != nil:
		return s.server + " was not asked to the end: the read was over"
	case within.Err() != nil:
		return fmt.Sprintf("%s did not answer within %s", s.server, s.timeout)
	case errors.Is(err, errTooLarge):
		return fmt.Sprintf("%s answered with more than %d MiB", s.server, s.most>>20)
	}
	if about, ok := errors.AsType[*url.Error](err); ok {
		err = about.Err // without the URL
	}
	return s.server + " could not be asked: " + s.cleanText(err.Error())
}

// cleanText returns a text as one line. It removes credentials first, so no part of one remains.
func (s *session) cleanText(text string) string { return wording.OneLine(s.client.Scrub.Scrub(text)) }

// CheckHeaders returns the problems of headers without their values. areSecret means that no state has them.
func CheckHeaders(headers map[string]string, areSecret bool) []string {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		switch canonical := http.CanonicalHeaderKey(name); {
		case !httpguts.ValidHeaderFieldName(name):
			wrong = append(wrong, fmt.Sprintf("%q is not the name of a header", name))
		case !httpguts.ValidHeaderFieldValue(headers[name]):
			wrong = append(wrong, fmt.Sprintf("the value of %s cannot be sent", canonical))
		case slices.Contains(secretHeaders, canonical) && !areSecret:
			wrong = append(wrong, canonical+" is a credential, and would be in the state: set it in measurements.credentials of the provider")
		case slices.Contains(ownHeaders, canonical):
			wrong = append(wrong, canonical+" cannot be set")
		}
	}
	return wrong
}

var (
	secretHeaders = []string{"Authorization", "Cookie", "Proxy-Authorization"}
	ownHeaders    = []string{
		"Accept-Encoding", "Connection", "Content-Length", "Content-Type", "Expect", "Host",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent",
	}
)
