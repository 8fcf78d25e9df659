package evidence

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"

	"github.com/google/cel-go/cel"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/expression"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Rest is the mean of the hosts without the change, for comparison.
type Rest struct {
	Value float64
	Count int // number of figures
}

// Mean returns the mean weighted by samples, or by one without samples; nil without values.
func Mean(figures []Figure) *Rest {
	rest, sum, weights := &Rest{}, 0.0, 0.0
	for _, figure := range figures {
		weight := 1.0
		if figure.Samples != nil {
			weight = *figure.Samples
		}
		if figure.Message != "" || weight == 0 {
			continue
		}
		rest.Count++
		sum += figure.Value * weight
		weights += weight
	}
	if rest.Value = sum / weights; rest.Count == 0 || !isFinite(rest.Value) {
		return nil
	}
	return rest
}

type judgement struct {
	pass, fail    *expression.Expression
	passes, fails string // endings of messages
}

// variables is built once because that takes longer than a thousand judgements.
var variables = sync.OnceValues(func() (*expression.Language, error) {
	return expression.New([]expression.Variable{
		{Name: "value", Type: cel.DoubleType},
		{Name: "samples", Type: cel.NullableType(cel.DoubleType)},
		{Name: "rest", Type: cel.NullableType(cel.DoubleType)},
	})
})

// CheckExpression returns the problems of a pass or fail expression, such as `line 1, column 7: there is no …`.
// hasSamples reports whether the check has samples.
func CheckExpression(source string, of SubjectKind, hasSamples bool) []string {
	_, wrong := compileExpression(source, of, hasSamples)
	return wrong
}

func compileExpression(source string, of SubjectKind, hasSamples bool) (*expression.Expression, []string) {
	language, err := variables()
	if err != nil {
		return nil, []string{err.Error()}
	}
	compiled, wrong := language.Compile(source, cel.BoolType)
	if len(wrong) > 0 {
		return nil, wrong
	}
	if of == OfFleet && compiled.Uses("rest") {
		wrong = append(wrong, "has rest, and a check of the fleet has one figure alone: there is no rest to compare it with")
	}
	if !hasSamples && compiled.Uses("samples") {
		wrong = append(wrong, "has samples, and the check does not say what they are: set samples")
	}
	return compiled, wrong
}

// NeedsRest reports whether an expression fails without a rest.
func NeedsRest(source string, of SubjectKind) bool {
	if source == "" || of == OfFleet {
		return false
	}
	compiled, wrong := compileExpression(source, of, true)
	if len(wrong) > 0 || !compiled.Uses("rest") {
		return false
	}
	for _, value := range []float64{0, 1e12} { // either result of a preceding test
		for _, samples := range []float64{0, 1e12} {
			if _, err := compiled.Bool(map[string]any{"value": value, "samples": samples, "rest": nil}); err != nil {
				return true
			}
		}
	}
	return false
}

func (c *Check) compile() error {
	j := &judgement{passes: " (passes where " + shown(c.Pass) + ")", fails: " (fails where " + shown(c.Fail) + ")"}
	for _, one := range []struct {
		name, source string
		into         **expression.Expression
	}{{"pass", c.Pass, &j.pass}, {"fail", c.Fail, &j.fail}} {
		if one.name == "fail" && one.source == "" {
			continue
		}
		compiled, wrong := compileExpression(one.source, c.Of, true)
		if len(wrong) > 0 {
			return fmt.Errorf("%s: %s", one.name, wrong[0])
		}
		*one.into = compiled
	}
	c.judgement = j
	return nil
}

func (c *Check) unknown(reason string) verdict.Status {
	return verdict.Status{Verdict: verdict.Unknown, Message: c.Name + ": " + reason}
}

// Judge compares the figure of a subject with the rest, which may be nil. Unless it is ready, the message has the name
// of the check and the figures. The status has no time. Judge is safe for concurrent use with checks from
// [ParseMeasurements].
func (c *Check) Judge(subject string, rest *Rest) verdict.Status {
	if c.judgement == nil {
		if err := c.compile(); err != nil {
			return c.unknown(err.Error())
		}
	}
	figure, ok := c.Figures[subject]
	switch {
	case c.Message != "":
		return c.unknown(c.Message)
	case !ok:
		return c.unknown("there is no figure")
	case figure.Message != "":
		return c.unknown(figure.Message)
	}
	values := map[string]any{"value": figure.Value, "samples": nil, "rest": nil}
	if figure.Samples != nil {
		values["samples"] = *figure.Samples
	}
	if rest != nil {
		values["rest"] = rest.Value
	}
	hasFailed, err := evaluate(c.judgement.fail, "fail", values)
	hasPassed := false
	if err == nil && !hasFailed {
		hasPassed, err = evaluate(c.judgement.pass, "pass", values)
	}
	if hasPassed {
		return verdict.Status{Verdict: verdict.Ready}
	}
	figures := c.figures(figure, rest)
	switch {
	case err != nil:
		return verdict.Status{Verdict: verdict.Progressing, Message: figures + ": " + err.Error()}
	case hasFailed:
		return verdict.Status{Verdict: verdict.Failed, Message: figures + c.judgement.fails}
	}
	return verdict.Status{Verdict: verdict.Progressing, Message: figures + c.judgement.passes}
}

func evaluate(compiled *expression.Expression, name string, values map[string]any) (bool, error) {
	if compiled == nil {
		return false, nil
	}
	answer, err := compiled.Bool(values)
	switch {
	case err == nil:
		return answer, nil
	case values["rest"] == nil && compiled.Uses("rest"):
		return false, errors.New(name + " has no rest to compare with; test with `rest == null`")
	}
	return false, fmt.Errorf("%s %w", name, err)
}

// figures returns a text such as `errors: 0.9 % (340 samples) against 0.2 % on 12 clusters`.
func (c *Check) figures(figure Figure, rest *Rest) string {
	text := c.Name + ": " + c.Text(figure)
	switch {
	case rest == nil:
		return text
	case c.Of == OfCluster:
		return text + " against " + c.number(rest.Value) + " on " + wording.Count(rest.Count, "cluster", "clusters")
	}
	return text + " against " + c.number(rest.Value) + " on " + wording.Count(rest.Count, "host", "hosts")
}

// Text returns a figure, as in `0.9 % (340 samples)`, or the reason why there is none.
func (c *Check) Text(figure Figure) string {
	switch {
	case figure.Message != "":
		return figure.Message
	case figure.Samples == nil:
		return c.number(figure.Value)
	case *figure.Samples == 1:
		return c.number(figure.Value) + " (1 sample)"
	}
	return c.number(figure.Value) + " (" + round(*figure.Samples) + " samples)"
}

func (c *Check) number(value float64) string {
	if c.Unit == "" {
		return round(value)
	}
	return round(value) + " " + c.Unit
}

// round keeps three digits, or all before the decimal point.
func round(value float64) string {
	if size := math.Abs(value); size >= 1000 && size < 1e15 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'g', 3, 64)
}

const maxShown = 100

func shown(source string) string { return wording.Cut(wording.Line(source), maxShown) }
