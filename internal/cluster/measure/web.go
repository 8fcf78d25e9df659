package measure

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/expression"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// DefaultValue is 1 for success, else 0.
const DefaultValue = "status >= 200 && status < 300"

var answers = sync.OnceValues(func() (*expression.Language, error) {
	return expression.New([]expression.Variable{{Name: "status", Type: cel.IntType}, {Name: "body", Type: cel.DynType}})
})

// CheckAnswer returns the problems of an expression.
func CheckAnswer(source string) []string {
	_, wrong := compileAnswer(source)
	return wrong
}

func compileAnswer(source string) (*expression.Expression, []string) {
	language, err := answers()
	if err != nil {
		return nil, []string{err.Error()}
	}
	return language.Compile(source, cel.DoubleType, cel.IntType, cel.UintType, cel.BoolType, cel.DynType)
}

var placeholders = map[evidence.SubjectKind][][]string{
	evidence.OfFleet: {nil}, evidence.OfCluster: {{"{cluster}"}}, evidence.OfHost: {{"{host}"}},
	evidence.OfAssignment: {{"{assignment}"}, {"{deployment_target}", "{host}"}},
}

// CheckURL returns the problem of a server's URL without the URL, which may contain a password.
func CheckURL(address string) string {
	parsed, err := url.Parse(address)
	switch {
	case err != nil:
		return "cannot be parsed as a URL"
	case parsed.Scheme != "https" && parsed.Scheme != "http" || parsed.Host == "":
		return "must be a URL that begins with https:// or http://"
	case parsed.User != nil:
		return "has credentials in it, and would be in the state: set them in measurements.credentials of the provider"
	case parsed.Fragment != "":
		return "has a fragment, which no server is sent"
	}
	return ""
}

// CheckPrometheusURL is [CheckURL] for a Prometheus.
func CheckPrometheusURL(address string) string {
	if strings.ContainsAny(address, "{}") {
		return "is of one server for the whole fleet, and has no placeholders: where each cluster has its own Prometheus, ask it by web"
	}
	if problem := CheckURL(address); problem != "" {
		return problem
	}
	switch parsed, _ := url.Parse(address); {
	case parsed.RawQuery != "" || parsed.ForceQuery:
		return "has a query, which belongs into query"
	case strings.HasSuffix(strings.TrimRight(parsed.Path, "/"), "/api/v1") || strings.Contains(parsed.Path, "/api/v1/"):
		return "has /api/v1 in it, which is added: give what comes before that"
	}
	return ""
}

// CheckWebURL is [CheckURL] for a web server, with exactly the placeholders of the kind of subject.
func CheckWebURL(address string, of evidence.SubjectKind) string {
	var found []string
	rest := address
	for _, name := range []string{"{assignment}", "{cluster}", "{deployment_target}", "{host}"} {
		if strings.Contains(rest, name) {
			found = append(found, name)
			rest = strings.ReplaceAll(rest, name, "x")
		}
	}
	if strings.ContainsAny(rest, "{}") {
		return "has a placeholder that is none of {assignment}, {cluster}, {deployment_target}, {host}"
	}
	if !slices.ContainsFunc(placeholders[of], func(one []string) bool { return slices.Equal(one, found) }) {
		switch of {
		case evidence.OfFleet:
			return "has a placeholder, and a check of the fleet is one request"
		case evidence.OfAssignment:
			return "must have {assignment}, or {host} and {deployment_target}, and no other placeholder: each assignment is asked for by its own URL"
		}
		return fmt.Sprintf("must have {%s}, and no other placeholder: each %s is asked for by its own URL", of, of)
	}
	return CheckURL(rest)
}

// urlOf returns the URL for a subject. An escaped name is one part of the path.
func (w *Web) urlOf(of evidence.SubjectKind, name string) string {
	host, target := name, ""
	if at := strings.LastIndexByte(name, '/'); of == evidence.OfAssignment && at >= 0 {
		host, target = name[:at], name[at+1:]
	}
	escape := url.PathEscape
	return strings.NewReplacer(
		"{cluster}", escape(name), "{assignment}", escape(name), "{host}", escape(host), "{deployment_target}", escape(target),
	).Replace(w.URL)
}

func (c *Measurer) requestWeb(ctx context.Context, check *Check, names []string, result *Measurement) {
	value, wrong := compileAnswer(cmp.Or(check.Web.Value, DefaultValue))
	var samples *expression.Expression
	if check.Samples != "" && len(wrong) == 0 {
		samples, wrong = compileAnswer(check.Samples)
	}
	if len(wrong) > 0 {
		result.Message = wrong[0]
		return
	}
	figures := make([]evidence.Figure, len(names))
	var one sync.Mutex // a decoded body takes much more memory than its text
	parallel.EachAtMost(len(names), parallelRequests, func(i int) {
		status, body, reason := c.get(ctx, check.Web, check.Web.urlOf(check.Of, names[i]))
		if reason != "" {
			figures[i].Message = reason
			return
		}
		one.Lock()
		defer one.Unlock()
		figures[i] = evaluateAnswer(map[string]any{"status": status, "body": parseBody(body)}, value, samples)
	})
	for i, name := range names {
		result.Figures[name] = figures[i]
	}
}

func evaluateAnswer(a map[string]any, value, samples *expression.Expression) evidence.Figure {
	number, err := value.Number(a)
	if err != nil {
		return evidence.Figure{Message: "value " + err.Error()}
	}
	found := figure(number, false)
	if samples == nil || found.Message != "" {
		return found
	}
	count, err := samples.Number(a)
	switch {
	case err != nil:
		return evidence.Figure{Message: "samples " + err.Error()}
	case math.IsNaN(count) || math.IsInf(count, 0) || count < 0:
		return evidence.Figure{Message: "samples is less than 0, or no number"}
	}
	found.Samples = &count
	return found
}

func (c *Measurer) get(ctx context.Context, web *Web, address string) (status int, body []byte, reason string) {
	if CheckURL(address) != "" {
		return 0, nil, "its name cannot be a part of the url"
	}
	s := c.session(address, web.Headers, cmp.Or(web.Timeout, DefaultTimeout), maxPage)
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(within, http.MethodGet, address, http.NoBody)
	if err != nil {
		return 0, nil, "its name cannot be a part of the url"
	}
	request.Header.Set("Accept", "application/json, */*;q=0.5")
	response, err := s.http().Do(request)
	if err != nil {
		return 0, nil, s.describeFailure(ctx, within, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, s.describeFailure(ctx, within, err)
	}
	return response.StatusCode, body, ""
}

func parseBody(text []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err == nil {
		if _, err := decoder.Token(); err == io.EOF {
			return value
		}
	}
	return wording.Visible(string(text))
}
