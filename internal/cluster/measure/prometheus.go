package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Default label names.
const (
	labelCluster          = "cluster"
	labelHost             = "host"
	labelAssignment       = "assignment"
	labelDeploymentTarget = "deployment_target"
)

// Labels lists the label names that a check can override, by kind of subject.
var Labels = map[evidence.SubjectKind][]string{
	evidence.OfCluster:    {labelCluster},
	evidence.OfHost:       {labelHost},
	evidence.OfAssignment: {labelAssignment, labelDeploymentTarget, labelHost},
}

func (c *Measurer) queryPrometheus(ctx context.Context, check *Check, names []string, result *Measurement) {
	values, reason := c.querySeries(ctx, check, check.Prometheus.Query, result)
	var samples model.Vector
	if reason == "" && check.Samples != "" {
		if samples, reason = c.querySeries(ctx, check, check.Samples, result); reason != "" {
			reason = "samples: " + reason
		}
	}
	if reason == "" && check.Of == evidence.OfFleet && len(result.Warnings) > 0 {
		reason = "the answer is not complete: " + result.Warnings[0]
	}
	if reason != "" {
		result.Message = reason
		return
	}
	known := make(map[string]bool, len(names))
	for _, name := range names {
		known[name] = true
	}
	found := check.figures(values, known)
	result.Figures, result.Others, result.Unlabelled = found.figures, found.others, found.unlabelled
	if check.Samples != "" {
		addSamples(result.Figures, check.figures(samples, known).figures)
	}
	result.wanted, result.isEmpty = check.wantedLabels(), len(values) == 0
	if len(result.Figures) == 0 {
		result.Message = check.explainNoFigures(len(values), found)
	}
}

func (c *Measurer) querySeries(ctx context.Context, check *Check, query string, result *Measurement) (model.Vector, string) {
	from := check.Prometheus
	s := c.session(from.URL, from.Headers, cmp.Or(from.Timeout, DefaultTimeout), maxAnswer)
	s.isQuery = true
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	client, err := api.NewClient(api.Config{Address: from.URL, Client: s.http()})
	if err != nil {
		return nil, "the url cannot be parsed"
	}
	value, warnings, _, err := v1.NewAPI(client).Query(within, query, time.Time{}, v1.WithTimeout(s.timeout))
	for _, warning := range warnings {
		if len(result.Warnings) < maxWarnings {
			result.Warnings = append(result.Warnings, s.cleanText(warning))
		}
	}
	if said, ok := errors.AsType[*v1.Error](err); ok && within.Err() == nil {
		return nil, s.describeRefusal(said)
	}
	if err != nil {
		return nil, s.describeFailure(ctx, within, err)
	}
	switch value := value.(type) {
	case model.Vector:
		return value, ""
	case *model.Scalar:
		return model.Vector{{Metric: model.Metric{}, Value: value.Value}}, ""
	case nil:
		return nil, s.server + " answered without a result"
	}
	return nil, fmt.Sprintf("the query gives a %s, and no instant vector: one value for each series", value.Type())
}

const maxWarnings = 5

func (s *session) describeRefusal(said *v1.Error) string {
	text := said.Msg
	if detail := strings.TrimSpace(wording.Cut(said.Detail, maxRefusal)); detail != "" && !strings.HasPrefix(detail, "<") {
		text += ": " + detail
	}
	switch said.Type {
	case v1.ErrBadResponse:
		return s.server + " answered with something else than the API of Prometheus: " + s.cleanText(text)
	case v1.ErrBadData:
		return s.server + " does not take the query: " + s.cleanText(text)
	}
	return s.server + " answered: " + s.cleanText(text)
}

type figures struct {
	figures            map[string]evidence.Figure
	others, unlabelled int
}

func (c *Check) figures(series model.Vector, known map[string]bool) figures {
	found := figures{figures: map[string]evidence.Figure{}}
	counts := map[string]int{}
	for _, one := range series {
		name, ok := c.subject(one.Metric)
		switch {
		case !ok:
			found.unlabelled++
		case !known[name]:
			found.others++
		default:
			counts[name]++
			found.figures[name] = figure(float64(one.Value), one.Histogram != nil)
		}
	}
	for name, count := range counts {
		if count > 1 {
			found.figures[name] = evidence.Figure{
				Message: fmt.Sprintf("the query gives %d series of it, and one is needed: aggregate them, as in sum by (…)", count),
			}
		}
	}
	return found
}

func figure(value float64, isHistogram bool) evidence.Figure {
	switch {
	case isHistogram:
		return evidence.Figure{Message: "the value is a histogram, and no number"}
	case math.IsNaN(value):
		return evidence.Figure{Message: "the value is NaN, which is not a number"}
	case math.IsInf(value, 0):
		return evidence.Figure{Message: "the value is infinite"}
	}
	return evidence.Figure{Value: value}
}

func (c *Check) subject(metric model.Metric) (string, bool) {
	label := func(name string) string {
		return string(metric[model.LabelName(cmp.Or(c.Prometheus.Labels[name], name))])
	}
	var name string
	switch c.Of {
	case evidence.OfFleet:
		return "", true
	case evidence.OfCluster:
		name = label(labelCluster)
	case evidence.OfHost:
		name = label(labelHost)
	case evidence.OfAssignment:
		host, target := label(labelHost), label(labelDeploymentTarget)
		if name = label(labelAssignment); name == "" && host != "" && target != "" {
			name = host + "/" + target
		}
	}
	return name, name != ""
}

func addSamples(figures, samples map[string]evidence.Figure) {
	for name, figure := range figures {
		count, ok := samples[name]
		switch {
		case figure.Message != "":
			continue
		case !ok:
			figure = evidence.Figure{Message: "there is a value, and samples gives none"}
		case count.Message != "":
			figure = evidence.Figure{Message: "samples: " + count.Message}
		case count.Value < 0:
			figure = evidence.Figure{Message: "samples is less than 0"}
		default:
			figure.Samples = new(count.Value)
		}
		figures[name] = figure
	}
}

func (c *Check) explainNoFigures(series int, found figures) string {
	count := wording.Count(series, "series", "series")
	switch {
	case series == 0:
		return "the query gives no series"
	case found.others > 0 && found.unlabelled == 0:
		return fmt.Sprintf("the query gives %s, and none of a %s of this fleet", count, c.Of)
	case found.others == 0:
		return fmt.Sprintf("the query gives %s without the %s", count, c.wantedLabels())
	}
	return fmt.Sprintf(
		"the query gives %s: %d of no %s of this fleet, %d without the %s",
		count,
		found.others,
		c.Of,
		found.unlabelled,
		c.wantedLabels(),
	)
}

func (c *Check) wantedLabels() string {
	label := func(name string) string { return cmp.Or(c.Prometheus.Labels[name], name) }
	if c.Of == evidence.OfAssignment {
		return fmt.Sprintf("label %s, or %s and %s", label(labelAssignment), label(labelHost), label(labelDeploymentTarget))
	}
	return "label " + label(string(c.Of))
}
