package measure_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/webtest"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/measure"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

var subjects = measure.Subjects{
	evidence.OfCluster: {
		"c1",
		"c2",
		"c3",
	}, evidence.OfHost: {"clusters/c3", "large"}, evidence.OfAssignment: {"clusters/c3/web", "large/api", "large/web"},
}

func startServer(t testing.TB, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

// seriesAnswer returns the answer of Prometheus for pairs of labels and values.
func seriesAnswer(labelsAndValues ...string) string {
	var result []string
	for i := 0; i < len(labelsAndValues); i += 2 {
		result = append(result, fmt.Sprintf(`{"metric":{%s},"value":[1700000000,%q]}`, labelsAndValues[i], labelsAndValues[i+1]))
	}
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(result, ",") + `]}}`
}

// startPrometheus starts a stand-in for Prometheus with fixed answers by query, and returns its URL.
func startPrometheus(t testing.TB, answers map[string]string) string {
	return startServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/query" || r.Method != http.MethodPost {
			t.Errorf("got request %s %s", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answers[r.FormValue("query")])
	})
}

// measureCheck returns the result of one check. Without a source, the check queries the Prometheus at url.
func measureCheck(t testing.TB, url string, check measure.Check) measure.Measurement {
	t.Helper()
	if check.Web == nil && check.Prometheus == nil {
		check.Prometheus = &measure.Prometheus{}
	}
	if check.Prometheus != nil {
		check.Prometheus.URL, check.Prometheus.Query = url, "value"
	}
	client := &measure.Measurer{Over: webtest.Transport, UserAgent: "flotilla/test"}
	check.Name, check.Pass = "errors", "true"
	found := client.Measure(t.Context(), []measure.Check{check}, subjects)
	for name := range found[0].Figures {
		if status := found[0].Judge(name, nil); (status.Verdict == verdict.Ready) != (found[0].Figures[name].Message == "") {
			t.Errorf("%s: %+v", name, status)
		}
	}
	return found[0]
}

func TestLabelsIdentifyTheSubjectOfASeries(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		of              evidence.SubjectKind
		labels          map[string]string
		answer          string
		want            map[string]evidence.Figure
		others, without int
	}{
		{evidence.OfCluster, nil, seriesAnswer(`"cluster":"c1"`, "0.5", `"cluster":"c2"`, "-1e3", `"cluster":"elsewhere"`, "7", `"job":"x"`, "8"), map[string]evidence.Figure{"c1": {Value: 0.5}, "c2": {Value: -1000}}, 1, 1},
		{evidence.OfCluster, map[string]string{"cluster": "k8s"}, seriesAnswer(`"k8s":"c1","cluster":"c2"`, "1"), map[string]evidence.Figure{"c1": {Value: 1}}, 0, 0},
		{evidence.OfHost, nil, seriesAnswer(`"host":"large"`, "1", `"host":"clusters/c3"`, "2", `"host":"c3"`, "3"), map[string]evidence.Figure{"large": {Value: 1}, "clusters/c3": {Value: 2}}, 1, 0},
		{evidence.OfAssignment, nil, seriesAnswer(`"assignment":"large/web"`, "1", `"host":"clusters/c3","deployment_target":"web"`, "2", `"host":"large"`, "3"),
			map[string]evidence.Figure{"large/web": {Value: 1}, "clusters/c3/web": {Value: 2}}, 0, 1},
		{evidence.OfAssignment, map[string]string{"deployment_target": "app"}, seriesAnswer(`"host":"large","app":"api"`, "4"), map[string]evidence.Figure{"large/api": {Value: 4}}, 0, 0},
		{evidence.OfFleet, nil, seriesAnswer(`"any":"label"`, "1"), map[string]evidence.Figure{"": {Value: 1}}, 0, 0},
		{evidence.OfFleet, nil, `{"status":"success","data":{"resultType":"scalar","result":[1700000000,"2"]}}`, map[string]evidence.Figure{"": {Value: 2}}, 0, 0},
	} {
		result := measureCheck(
			t,
			startPrometheus(t, map[string]string{"value": test.answer}),
			measure.Check{Of: test.of, Prometheus: &measure.Prometheus{Labels: test.labels}},
		)
		if !reflect.DeepEqual(result.Figures, test.want) || result.Others != test.others || result.Unlabelled != test.without ||
			result.Message != "" {
			t.Errorf("%s: %+v", test.answer, result)
		}
	}
}

func TestAnInvalidFigureHasAReason(t *testing.T) {
	t.Parallel()
	const many = "the query gives 2 series of it, and one is needed: aggregate them, as in sum by (…)"
	for _, test := range []struct {
		of     evidence.SubjectKind
		answer string
		want   map[string]string
	}{
		{evidence.OfCluster, seriesAnswer(`"cluster":"c1"`, "NaN", `"cluster":"c2"`, "+Inf", `"cluster":"c3"`, "-Inf"),
			map[string]string{"c1": "the value is NaN, which is not a number", "c2": "the value is infinite", "c3": "the value is infinite"}},
		{evidence.OfCluster, seriesAnswer(`"cluster":"c1","pod":"a"`, "1", `"cluster":"c1","pod":"b"`, "2", `"cluster":"c2"`, "3"), map[string]string{"c1": many, "c2": ""}},
		{evidence.OfFleet, seriesAnswer(`"a":"b"`, "1", `"a":"c"`, "1"), map[string]string{"": many}},
		{evidence.OfCluster, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"cluster":"c1"},"histogram":[1700000000,{"count":"1","sum":"1","buckets":[]}]}]}}`,
			map[string]string{"c1": "the value is a histogram, and no number"}},
	} {
		result := measureCheck(t, startPrometheus(t, map[string]string{"value": test.answer}), measure.Check{Of: test.of})
		got := map[string]string{}
		for name, figure := range result.Figures {
			got[name] = figure.Message
		}
		if !reflect.DeepEqual(got, test.want) || result.Message != "" {
			t.Errorf("%s: %+v", test.answer, result)
		}
	}
}

func TestSamplesAreASecondQuery(t *testing.T) {
	t.Parallel()
	values := seriesAnswer(`"cluster":"c1"`, "0.5", `"cluster":"c2"`, "1", `"cluster":"c3"`, "NaN")
	for samples, want := range map[string]map[string]evidence.Figure{
		seriesAnswer(`"cluster":"c1"`, "340", `"cluster":"c2"`, "0", `"cluster":"c3"`, "1"): {
			"c1": {Value: 0.5, Samples: new(340.0)}, "c2": {Value: 1, Samples: new(0.0)}, "c3": {Message: "the value is NaN, which is not a number"},
		},
		seriesAnswer(`"cluster":"c1"`, "-1"): {
			"c1": {Message: "samples is less than 0"}, "c2": {Message: "there is a value, and samples gives none"}, "c3": {Message: "the value is NaN, which is not a number"},
		},
		seriesAnswer(`"cluster":"c1"`, "NaN", `"cluster":"c2"`, "+Inf"): {
			"c1": {Message: "samples: the value is NaN, which is not a number"}, "c2": {Message: "samples: the value is infinite"}, "c3": {Message: "the value is NaN, which is not a number"},
		},
	} {
		result := measureCheck(
			t,
			startPrometheus(t, map[string]string{"value": values, "count": samples}),
			measure.Check{Of: evidence.OfCluster, Samples: "count"},
		)
		if !reflect.DeepEqual(result.Figures, want) || result.Message != "" {
			t.Errorf("%s: %+v", samples, result)
		}
	}
	result := measureCheck(
		t,
		startPrometheus(t, map[string]string{"value": values, "count": "not JSON"}),
		measure.Check{Of: evidence.OfCluster, Samples: "count"},
	)
	if !strings.HasPrefix(result.Message, "samples: http://127.0.0.1:") || len(result.Figures) > 0 {
		t.Errorf("%+v", result)
	}
}

func TestAnAnswerWithoutFiguresHasAReason(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		of           evidence.SubjectKind
		answer, want string
	}{
		{evidence.OfCluster, seriesAnswer(), "the query gives no series"},
		{evidence.OfCluster, seriesAnswer(`"pod":"a"`, "1"), "the query gives 1 series without the label cluster"},
		{evidence.OfHost, seriesAnswer(`"host":"small"`, "1", `"host":"tiny"`, "1"), "the query gives 2 series, and none of a host of this fleet"},
		{evidence.OfAssignment, seriesAnswer(`"host":"large"`, "1", `"assignment":"x/y"`, "1"),
			"the query gives 2 series: 1 of no assignment of this fleet, 1 without the label assignment, or host and deployment_target"},
		{evidence.OfCluster, `{"status":"success","data":{"resultType":"matrix","result":[]}}`, "the query gives a matrix, and no instant vector: one value for each series"},
	} {
		result := measureCheck(t, startPrometheus(t, map[string]string{"value": test.answer}), measure.Check{Of: test.of})
		if result.Message != test.want || len(result.Figures) > 0 {
			t.Errorf("%s: %s", test.answer, result.Message)
		}
	}
}

func TestAFailedQueryHasAReason(t *testing.T) {
	t.Parallel()
	answerWith := func(status int, kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			fmt.Fprint(w, text)
		}
	}
	waitForClose := func(r *http.Request) { // waits until the client closes; the server notices only after it has read the request
		_ = r.ParseForm()
		<-r.Context().Done()
	}
	const timeout = 300 * time.Millisecond
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string // the message after the URL
	}{
		"bad query":    {answerWith(400, "application/json", `{"status":"error","errorType":"bad_data","error":"invalid parameter \"query\": 1:7: parse error"}`), ` does not take the query: invalid parameter "query": 1:7: parse error`},
		"limits":       {answerWith(422, "application/json", `{"status":"error","errorType":"execution","error":"query processing would load too many samples"}`), " answered: query processing would load too many samples"},
		"unauthorized": {answerWith(401, "text/plain", "no org id\n"), " answered: client error: 401: no org id"},
		"forbidden":    {answerWith(403, "text/html", "<html>sign in</html>"), " answered: client error: 403"},
		"gateway":      {answerWith(502, "text/html", "<html>bad gateway</html>"), " answered: server error: 502"},
		"starting":     {answerWith(503, "text/plain", "Service Unavailable"), " answered: server error: 503: Service Unavailable"},
		"a page":       {answerWith(200, "text/html", "<html>Grafana</html>"), " answered with something else than the API of Prometheus: "},
		"other JSON":   {answerWith(200, "application/json", `[1]`), " answered with something else than the API of Prometheus: "},
		"nothing":      {answerWith(200, "application/json", ``), " answered with something else than the API of Prometheus: "},
		"no result":    {answerWith(200, "application/json", `{"status":"success"}`), " answered without a result"},
		"an error":     {answerWith(200, "application/json", `{"status":"error","errorType":"timeout","error":"query timed out"}`), " answered: query timed out"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://login.example.com/sign?in=here", http.StatusFound)
		},
			" could not be asked: it redirects to https://login.example.com, and redirects are not followed; is it the right url?"},
		"too large": {func(w http.ResponseWriter, _ *http.Request) {
			for range 33 << 10 {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		}, " answered with more than 32 MiB"},
		"slow": {func(_ http.ResponseWriter, r *http.Request) { waitForClose(r) }, " did not answer within 300ms"},
		"slow body": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"status":`)
			_ = http.NewResponseController(w).Flush()
			waitForClose(r)
		}, " did not answer within 300ms"},
		"closes": {func(w http.ResponseWriter, _ *http.Request) {
			connection, _, _ := http.NewResponseController(w).Hijack()
			_ = connection.Close()
		}, " could not be asked: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := startServer(t, test.answer)
			from := &measure.Prometheus{Timeout: time.Minute}
			if strings.HasPrefix(name, "slow") {
				from.Timeout = timeout
			}
			result := measureCheck(t, url, measure.Check{Of: evidence.OfCluster, Prometheus: from})
			if !strings.HasPrefix(result.Message, url+test.want) || len(result.Figures) > 0 || strings.Contains(result.Message, "\n") {
				t.Errorf("%s", result.Message)
			}
			if status := result.Judge("c1", nil); status.Verdict != verdict.Unknown || !strings.HasPrefix(status.Message, "errors: "+url) {
				t.Errorf("%+v", status)
			}
		})
	}
}

func TestAnUnreachableServerHasAReason(t *testing.T) {
	t.Parallel()
	const url = "http://127.0.0.1:1"
	for _, check := range []measure.Check{{Of: evidence.OfFleet}, {Of: evidence.OfFleet, Web: &measure.Web{URL: url}}} {
		result := measureCheck(t, url, check)
		if got := result.Judge("", nil); got.Verdict != verdict.Unknown ||
			!strings.HasPrefix(got.Message, "errors: "+url+" could not be asked: dial tcp 127.0.0.1:") {
			t.Errorf("%+v", got)
		}
	}
}

func TestACancelledReadHasAReason(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	url := startServer(t, func(_ http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		cancel()
		<-r.Context().Done()
	})
	client := &measure.Measurer{Over: webtest.Transport}
	for _, check := range []measure.Check{
		{Of: evidence.OfFleet, Pass: "true", Prometheus: &measure.Prometheus{URL: url, Query: "value"}},
		{Of: evidence.OfFleet, Pass: "true", Web: &measure.Web{URL: url}},
	} {
		result := client.Measure(ctx, []measure.Check{check}, subjects)[0]
		if got := result.Judge("", nil); got.Verdict != verdict.Unknown ||
			!strings.HasSuffix(got.Message, url+" was not asked to the end: the read was over") {
			t.Errorf("%+v", got)
		}
	}
}

// If Thanos cannot reach a store, it answers with a warning.
func TestAFigureOfTheFleetNeedsAnAnswerWithoutWarnings(t *testing.T) {
	t.Parallel()
	answer := strings.Replace(
		seriesAnswer(`"cluster":"c1"`, "1"),
		`"data"`,
		`"warnings":["no store for\nberlin"],"infos":["metric might not be a counter"],"data"`,
		1,
	)
	url := startPrometheus(t, map[string]string{"value": answer})
	result := measureCheck(t, url, measure.Check{Of: evidence.OfCluster})
	if result.Message != "" || len(result.Figures) != 1 || !reflect.DeepEqual(result.Warnings, []string{"no store for berlin"}) {
		t.Errorf("%+v", result)
	}
	result = measureCheck(t, url, measure.Check{Of: evidence.OfFleet})
	if result.Message != "the answer is not complete: no store for berlin" || len(result.Figures) > 0 {
		t.Errorf("%+v", result)
	}
}

func TestOneQueryForEachCheck(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	url := startServer(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, seriesAnswer(`"cluster":"c1"`, "1"))
	})
	check := measure.Check{Of: evidence.OfCluster, Prometheus: &measure.Prometheus{URL: url, Query: "value"}}
	withSamples := check
	withSamples.Samples = "count"
	(&measure.Measurer{Over: webtest.Transport}).Measure(t.Context(), []measure.Check{check, withSamples}, subjects)
	if asked.Load() != 3 {
		t.Errorf("got %d queries, want 3", asked.Load())
	}
}

func TestUnaskedChecksHaveAReason(t *testing.T) {
	t.Parallel()
	found := measure.UnaskedMeasurements(
		[]measure.Check{{Name: "errors", Of: evidence.OfCluster, Pass: "true"}, {Name: "all", Of: evidence.OfFleet, Pass: "true"}},
		subjects,
		"the credentials are not known yet",
	)
	for i, subject := range []string{"c1", ""} {
		if got := found[i].Judge(subject, nil); got.Verdict != verdict.Unknown ||
			got.Message != found[i].Name+": the credentials are not known yet" ||
			found[i].Expected != []int{3, 1}[i] {
			t.Errorf("%+v", got)
		}
	}
}

func TestLinesAreSortedAndBounded(t *testing.T) {
	t.Parallel()
	result := measure.Measurement{Check: evidence.Check{Unit: "%", Figures: map[string]evidence.Figure{
		"a": {Value: 1}, "b": {Value: 3, Samples: new(340.0)}, "c": {Message: "the value is NaN"}, "d": {Value: 2}, "e": {Value: 2},
	}}}
	for most, want := range map[int][]string{
		5: {"c: the value is NaN", "b: 3 % (340 samples)", "d: 2 %", "e: 2 %", "a: 1 %"},
		3: {"c: the value is NaN", "b: 3 % (340 samples)", "and 3 more"},
	} {
		if got := result.Lines(most); !reflect.DeepEqual(got, want) {
			t.Errorf("%q", got)
		}
	}
	if result.Measured() != 4 {
		t.Error(result.Measured())
	}
}

// FuzzAnswer measures checks by any answer to a query. The resulting document can be parsed.
func FuzzAnswer(f *testing.F) {
	f.Add(seriesAnswer(`"cluster":"c1"`, "0.5", `"cluster":"c2"`, "NaN", `"x":"y"`, "1"), 200)
	f.Add(`{"status":"error","errorType":"bad_data","error":"x"}`, 400)
	f.Add(`{"status":"success","data":{"resultType":"scalar","result":[1,"2"]},"warnings":["a"]}`, 200)
	f.Fuzz(func(t *testing.T, answer string, status int) {
		if status < 200 || status > 599 {
			return
		}
		over := fixedAnswer{status, answer}
		checks := []measure.Check{
			{
				Name:       "a",
				Of:         evidence.OfCluster,
				Pass:       "true",
				Samples:    "count",
				Prometheus: &measure.Prometheus{URL: "http://127.0.0.1", Query: "value"},
			},
			{Name: "b", Of: evidence.OfFleet, Pass: "true", Prometheus: &measure.Prometheus{URL: "http://127.0.0.1", Query: "value"}},
			{Name: "c", Of: evidence.OfFleet, Pass: "true", Samples: "body.count", Web: &measure.Web{URL: "http://127.0.0.1", Value: "body.value"}},
		}
		document := evidence.Measurements{Time: time.Unix(0, 0)}
		for _, result := range (&measure.Measurer{Over: over}).Measure(t.Context(), checks, subjects) {
			document.Checks = append(document.Checks, result.Check)
		}
		text := document.Marshal()
		if _, err := evidence.ParseMeasurements(text); err != nil || !json.Valid(text) {
			t.Fatalf("%s: %v", text, err)
		}
	})
}

// fixedAnswer is a transport with the same answer to each request.
type fixedAnswer struct {
	status int
	text   string
}

func (a fixedAnswer) RoundTrip(request *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	recorder.Code = a.status
	recorder.Body.WriteString(a.text)
	response := recorder.Result()
	response.StatusCode, response.Request = a.status, request
	return response, nil
}
