package evidence_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

func sampleMeasurements() *evidence.Measurements {
	return &evidence.Measurements{Environment: "prod", Time: at, Checks: []evidence.Check{
		{
			Name: "errors", Of: evidence.OfCluster, Unit: "%", Pass: "value < 0.4 && samples >= 100", Fail: "value > rest * 10.0",
			Figures: map[string]evidence.Figure{
				"c1": {Value: 0.2, Samples: new(340.0)}, "c2": {Value: 0.9, Samples: new(1.0)}, "c3": {Message: "the value is not a number"},
				"c4": {Value: 12, Samples: new(500.0)},
			},
		},
		{Name: "smoke", Of: evidence.OfFleet, Pass: "value == 1.0", Figures: map[string]evidence.Figure{"": {Value: 1}}},
		{
			Name:    "latency",
			Of:      evidence.OfAssignment,
			Unit:    "ms",
			Pass:    "value < rest * 1.5",
			Message: "https://prometheus.example.com did not answer within 10s",
		},
	}}
}

const measurementsText = `{"format":"1","kind":"measurements","environment":"prod","time":"2026-11-22T01:30:00Z","checks":[` +
	`{"name":"errors","of":"cluster","unit":"%","pass":"value < 0.4 && samples >= 100","fail":"value > rest * 10.0","figures":{` +
	`"c1":{"value":0.2,"samples":340},"c2":{"value":0.9,"samples":1},"c3":{"message":"the value is not a number"},"c4":{"value":12,"samples":500}}},` +
	`{"name":"smoke","of":"fleet","pass":"value == 1.0","figures":{"":{"value":1}}},` +
	`{"name":"latency","of":"assignment","unit":"ms","pass":"value < rest * 1.5","message":"https://prometheus.example.com did not answer within 10s"}]}`

func TestMeasurementsSurviveMarshalAndParse(t *testing.T) {
	t.Parallel()
	if text := sampleMeasurements().Marshal(); string(text) != measurementsText {
		t.Errorf("got\n%s\nwant\n%s", text, measurementsText)
	}
	read, err := evidence.ParseMeasurements([]byte(strings.ReplaceAll(measurementsText, `,"`, " ,\n\"")))
	if err != nil {
		t.Fatal(err)
	}
	if written := read.Marshal(); string(written) != measurementsText || !read.Time.Equal(at) || len(read.Checks) != 3 {
		t.Errorf("%s", written)
	}
}

func TestInvalidMeasurementsAreErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ old, with, want string }{
		{measurementsText, "", "unexpected end"},
		{`"format":"1",`, "", `it has no "format"`},
		{`"format":"1"`, `"format":"2"`, `it has the format "2", and this version of the provider reads "1"`},
		{`"kind":"measurements"`, `"kind":"facts"`, `its kind is not "measurements"`},
		{`"environment":"prod",`, "", `it has no "environment", no "time", or no "checks"`},
		{`"environment":"prod"`, `"environment":"` + strings.Repeat("a", 4097) + `"`, "a text is longer than 4096 bytes"},
		{`"time":"2026-11-22T01:30:00Z"`, `"time":"yesterday"`, `"yesterday" is not a time`},
		{`"name":"smoke"`, `"name":"errors"`, `two checks have the name "errors"`},
		{`"name":"smoke"`, `"name":""`, "a check needs a name"},
		{`"name":"smoke"`, `"name":"` + strings.Repeat("a", 4097) + `"`, "a text is longer than 4096 bytes"},
		{`"of":"fleet"`, `"of":"world"`, `"world" is none of cluster, host, assignment, fleet`},
		{`"of":"fleet"`, `"of":"cluster"`, `"smoke": "": it is not the name of what figures of "cluster" are of`},
		{`"of":"cluster"`, `"of":"fleet"`, `"c1": it is not the name of what figures of "fleet" are of`},
		{`"pass":"value == 1.0",`, "", `"smoke": pass: must be an expression, and is empty`},
		{`"pass":"value == 1.0"`, `"pass":"valeu == 1"`, `"smoke": pass: line 1, column 1: there is no variable or function "valeu"; did you mean "value"?`},
		{`"pass":"value == 1.0"`, `"pass":"value == rest"`, `"smoke": pass: has rest, and a check of the fleet has one figure alone`},
		{`"fail":"value > rest * 10.0"`, `"fail":"1"`, `"errors": fail: must give a bool, not int`},
		{`"c1":{"value":0.2`, `"c1":{"value":1e999`, "number 1e999 is not what belongs there"},
		{`"c1":{"value":0.2`, `"c1":{"value":"NaN"`, "string is not what belongs there"},
		{`"samples":340`, `"samples":-1`, `"c1": a number is not finite, or the samples are less than 0`},
		{`"c1":{"value":0.2,"samples":340}`, `"c1":{}`, `"c1": it has neither a value nor a message, or both`},
		{`"c1":{"value":0.2,`, `"c1":{"message":"a",`, `"c1": it has samples, and no value`},
		{`"c1":{"value":0.2,`, `"c1":{"message":"a","value":1,`, `"c1": it has neither a value nor a message, or both`},
		{`the value is not a number`, strings.Repeat("a", 4097), "a text is longer than 4096 bytes"},
		{`"c1"`, `"c2"`, `duplicate field "checks[0].figures.c2"`},
		{`"c1"`, `"` + strings.Repeat("a", 4097) + `"`, "a text is longer than 4096 bytes"},
	} {
		_, err := evidence.ParseMeasurements([]byte(strings.Replace(measurementsText, test.old, test.with, 1)))
		if err == nil || !strings.Contains(err.Error(), "the evidence is not what flotilla_measurements gives: ") ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%.60s: %v, want %s", test.with, err, test.want)
		}
	}
	many := &evidence.Measurements{Checks: make([]evidence.Check, evidence.MaxChecks+1), Time: at}
	if _, err := evidence.ParseMeasurements(many.Marshal()); err == nil ||
		!strings.Contains(err.Error(), "it has 51 checks, and 50 are the most") {
		t.Error(err)
	}
}

func TestAFigureIsComparedWithTheRest(t *testing.T) {
	t.Parallel()
	read, err := evidence.ParseMeasurements([]byte(measurementsText))
	if err != nil {
		t.Fatal(err)
	}
	rest := &evidence.Rest{Value: 0.2, Count: 12}
	for _, test := range []struct {
		check   int
		subject string
		rest    *evidence.Rest
		verdict verdict.Verdict
		message string
	}{
		{0, "c1", rest, verdict.Ready, ""},
		{0, "c2", rest, verdict.Progressing, "errors: 0.9 % (1 sample) against 0.2 % on 12 clusters (passes where value < 0.4 && samples >= 100)"},
		{0, "c3", rest, verdict.Unknown, "errors: the value is not a number"},
		{0, "c4", rest, verdict.Failed, "errors: 12 % (500 samples) against 0.2 % on 12 clusters (fails where value > rest * 10.0)"},
		{0, "c5", rest, verdict.Unknown, "errors: there is no figure"},
		{0, "c1", nil, verdict.Progressing, "errors: 0.2 % (340 samples): fail has no rest to compare with; test with `rest == null`"},
		{0, "c1", &evidence.Rest{Value: 0.01, Count: 1}, verdict.Failed, "errors: 0.2 % (340 samples) against 0.01 % on 1 cluster (fails where value > rest * 10.0)"},
		{1, "", nil, verdict.Ready, ""},
		{2, "large/web", nil, verdict.Unknown, "latency: https://prometheus.example.com did not answer within 10s"},
	} {
		want := verdict.Status{Verdict: test.verdict, Message: test.message}
		for range 2 {
			if got := read.Checks[test.check].Judge(test.subject, test.rest); got != want {
				t.Errorf("%q: %+v", test.subject, got)
			}
		}
	}
}

func TestAFigureThatCannotBeJudgedIsNeverReady(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ pass, fail, want string }{
		{"1 / int(value) == 1", "", "c: 0: pass cannot be evaluated at line 1, column 3: division by zero"},
		{"true", "1 / int(value) == 1", "c: 0: fail cannot be evaluated at line 1, column 3: division by zero"},
		{"samples < 1", "", "c: 0: pass cannot be evaluated at line 1, column 9: a function or operator does not take values of these types"},
		{"lists.range(1000).all(a, lists.range(1000).all(b, a > b || b >= a))", "", "c: 0: pass takes too long: it costs more than 200000, the most"},
	} {
		check := evidence.Check{
			Name:    "c",
			Of:      evidence.OfHost,
			Pass:    test.pass,
			Fail:    test.fail,
			Figures: map[string]evidence.Figure{"large": {}},
		}
		if got := check.Judge("large", nil); got.Verdict != verdict.Progressing || got.Message != test.want {
			t.Errorf("%s: %+v", test.pass, got)
		}
	}
	wrong := evidence.Check{Name: "c", Of: evidence.OfHost, Pass: "valeu"}
	if got := wrong.Judge("large", nil); got.Verdict != verdict.Unknown || !strings.HasPrefix(got.Message, "c: pass: line 1, column 1: ") {
		t.Errorf("%+v", got)
	}
}

func TestNumbersInMessagesAreShort(t *testing.T) {
	t.Parallel()
	for value, want := range map[float64]string{
		0: "0", 0.123456: "0.123", -2.5: "-2.5", 99.96: "100", 1234.5678: "1235", 123456789: "123456789", 0.00001234: "1.23e-05", 1e20: "1e+20",
	} {
		check := evidence.Check{Name: "c", Of: evidence.OfHost, Pass: "false", Figures: map[string]evidence.Figure{"h": {Value: value}}}
		if got := check.Judge("h", &evidence.Rest{Value: value, Count: 1}); got.Message != fmt.Sprintf(
			"c: %s against %s on 1 host (passes where false)",
			want,
			want,
		) {
			t.Errorf("%v: %s", value, got.Message)
		}
	}
}

func TestTheRestIsTheMeanWeightedBySamples(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		figures []evidence.Figure
		want    *evidence.Rest
	}{
		{nil, nil},
		{[]evidence.Figure{{Message: "nothing"}, {Value: 3, Samples: new(0.0)}}, nil},
		{[]evidence.Figure{{Value: 1}, {Value: 3}, {Message: "nothing"}}, &evidence.Rest{Value: 2, Count: 2}},
		{[]evidence.Figure{{Value: 1, Samples: new(300.0)}, {Value: 5, Samples: new(100.0)}}, &evidence.Rest{Value: 2, Count: 2}},
		{[]evidence.Figure{{Value: 1e308}, {Value: 1e308}}, nil},
	} {
		got := evidence.Mean(test.figures)
		if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
			t.Errorf("%+v: %+v", test.figures, got)
		}
	}
}

func TestAnExpressionUsesOnlyVariablesOfItsCheck(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		source     string
		of         evidence.SubjectKind
		hasSamples bool
		want       string
	}{
		{"value < rest * 2.0 && samples > 10", evidence.OfCluster, true, ""},
		{"rest == null || value < rest", evidence.OfHost, false, ""},
		{"value < rest", evidence.OfFleet, false, "has rest, and a check of the fleet has one figure alone: there is no rest to compare it with"},
		{"samples > 10", evidence.OfFleet, false, "has samples, and the check does not say what they are: set samples"},
		{"value", evidence.OfFleet, false, "must give a bool, not double"},
	} {
		if got := strings.Join(evidence.CheckExpression(test.source, test.of, test.hasSamples), "\n"); got != test.want {
			t.Errorf("%s: %s", test.source, got)
		}
	}
}

// FuzzMeasurements parses any text within the limits of time and memory. Accepted measurements judge all their figures and survive Marshal
// and ParseMeasurements.
func FuzzMeasurements(f *testing.F) {
	f.Add([]byte(measurementsText))
	f.Add(
		[]byte(
			`{"checks":[{"figures":{"a/b":{"value":-1e-9}},"of":"assignment","name":"x","pass":"value<rest","fail":"samples!=null"}],"time":"2026-11-22T02:30:00.5+01:00","environment":"","kind":"measurements","format":"1"}`,
		),
	)
	f.Fuzz(func(t *testing.T, text []byte) {
		var read *evidence.Measurements
		var err error
		fleettest.Bounded(t, string(text), func() { read, err = evidence.ParseMeasurements(text) })
		if err != nil {
			return
		}
		if !json.Valid(text) {
			t.Fatalf("accepted text is invalid JSON: %q", text)
		}
		for i := range read.Checks {
			check := &read.Checks[i]
			for subject, figure := range check.Figures {
				status := check.Judge(subject, evidence.Mean([]evidence.Figure{figure}))
				if (status.Message == "") != (status.Verdict == verdict.Ready) || figure.Message != "" && status.Verdict != verdict.Unknown {
					t.Fatalf("%q: %+v", subject, status)
				}
			}
		}
		written := read.Marshal()
		again, err := evidence.ParseMeasurements(written)
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		if string(again.Marshal()) != string(written) {
			t.Fatalf("got %s after a second Marshal, want %s", again.Marshal(), written)
		}
	})
}

// BenchmarkJudge judges 20,000 assignments by one check, first without and then with cached verdicts.
func BenchmarkJudge(b *testing.B) {
	figures := map[string]evidence.Figure{}
	subjects := make([]string, 20_000)
	for i := range subjects {
		subjects[i] = fmt.Sprintf("type-%d/target-%d", i%500, i/500)
		figures[subjects[i]] = evidence.Figure{Value: float64(i) / 1e5, Samples: new(float64(i))}
	}
	text := (&evidence.Measurements{Time: time.Unix(0, 0), Checks: []evidence.Check{
		{Name: "errors", Of: evidence.OfAssignment, Unit: "%", Pass: "samples >= 100 && (rest == null || value <= rest * 1.5 + 0.01)", Fail: "samples >= 1000 && value > 5", Figures: figures},
	}}).Marshal()
	rest := &evidence.Rest{Value: 0.1, Count: 12}
	for b.Loop() {
		read, err := evidence.ParseMeasurements(text)
		if err != nil {
			b.Fatal(err)
		}
		for range 2 {
			for _, subject := range subjects {
				if read.Checks[0].Judge(subject, rest).Verdict == verdict.Unknown {
					b.Fatal(subject)
				}
			}
		}
	}
}
