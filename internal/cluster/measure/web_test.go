package measure_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/measure"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/webtest"
)

func TestAWebCheckSendsOneRequestPerSubject(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		of   evidence.SubjectKind
		path string
		want []string // escaped paths
	}{
		{evidence.OfCluster, "/{cluster}/healthz", []string{"/c1/healthz", "/c2/healthz", "/c3/healthz"}},
		{evidence.OfHost, "/hosts/{host}", []string{"/hosts/clusters%2Fc3", "/hosts/large"}},
		{evidence.OfAssignment, "/{host}/of/{deployment_target}", []string{"/clusters%2Fc3/of/web", "/large/of/api", "/large/of/web"}},
		{evidence.OfAssignment, "/x?of={assignment}", []string{"/x?of=clusters%2Fc3%2Fweb", "/x?of=large%2Fapi", "/x?of=large%2Fweb"}},
		{evidence.OfFleet, "/smoke", []string{"/smoke"}},
	} {
		var mu sync.Mutex
		asked := map[string]string{}
		url := startServer(t, func(_ http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			asked[r.URL.RequestURI()] = r.Method + " " + r.UserAgent() + " " + r.Header.Get("X-Team")
		})
		if problem := measure.CheckWebURL(url+test.path, test.of); problem != "" {
			t.Errorf("%s: %s", test.path, problem)
		}
		result := measureCheck(t, "", measure.Check{Of: test.of, Web: &measure.Web{URL: url + test.path, Headers: map[string]string{"x-team": "a"}}})
		want := map[string]string{}
		for _, path := range test.want {
			want[path] = "GET flotilla/test a"
		}
		if !reflect.DeepEqual(asked, want) || len(result.Figures) != len(test.want) {
			t.Errorf("%s: %v, %+v", test.path, asked, result.Figures)
		}
		for name, figure := range result.Figures {
			if figure != (evidence.Figure{Value: 1}) {
				t.Errorf("%s: %+v", name, figure)
			}
		}
	}
}

func TestTheValueOfAWebCheckIsComputedFromStatusAndBody(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status               int
		body, value, samples string
		want                 evidence.Figure
	}{
		{200, "", "", "", evidence.Figure{Value: 1}},
		{204, "", "", "", evidence.Figure{Value: 1}},
		{500, "", "", "", evidence.Figure{Value: 0}},
		{302, "", "", "", evidence.Figure{Value: 0}},
		{418, "", "status", "", evidence.Figure{Value: 418}},
		{200, `{"errors": 3, "of": 1200}`, "double(body.errors) / double(body.of) * 100.0", "body.of", evidence.Figure{Value: 0.25, Samples: new(1200.0)}},
		{200, `{"checks": [{"ok": true}, {"ok": false}]}`, "body.checks.filter(c, !c.ok).size()", "", evidence.Figure{Value: 1}},
		{200, `{"data":{"result":[{"value":[1700000000,"0.5"]}]}}`, "double(body.data.result[0].value[1])", "", evidence.Figure{Value: 0.5}},
		{200, "ok\n", `body.startsWith("ok")`, "", evidence.Figure{Value: 1}},
		{200, `{} {}`, `body == "{} {}"`, "", evidence.Figure{Value: 1}},
		{200, `1e400`, `body`, "", evidence.Figure{Message: "value cannot be evaluated: a number or an index is out of range"}},
		{200, `"NaN"`, `double(body)`, "", evidence.Figure{Message: "the value is NaN, which is not a number"}},
		{200, `{"state": "hunter2"}`, "body.state", "", evidence.Figure{Message: "value cannot be evaluated: it gives a string, and no number or bool"}},
		{200, `{"state": "hunter2"}`, "double(body.state)", "", evidence.Figure{Message: "value cannot be evaluated at line 1, column 7: a value cannot be converted"}},
		{200, `{"value": 1}`, "body.value", "body.of", evidence.Figure{Message: "samples cannot be evaluated at line 1, column 5: there is no key \"of\"; test with has() or `in`, or use `[?…].orValue(…)`"}},
		{200, `{"value": 1}`, "body.value", "-1", evidence.Figure{Message: "samples is less than 0, or no number"}},
		{200, strings.Repeat("[", 100_000), "body == null", "", evidence.Figure{Value: 0}},
	} {
		url := startServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			fmt.Fprint(w, test.body)
		})
		result := measureCheck(t, "", measure.Check{Of: evidence.OfFleet, Samples: test.samples, Web: &measure.Web{URL: url, Value: test.value}})
		got := result.Figures[""]
		if strings.HasPrefix(test.want.Message, "value cannot be evaluated: a number") {
			got.Message, test.want.Message = strings.SplitN(got.Message, " ", 2)[0], "value"
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%d %.80s: %s: %+v", test.status, test.body, test.value, got)
		}
	}
}

func TestEachFailedWebRequestHasItsOwnReason(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	url := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/c1":
			<-stop
		case "/c2":
			for range 2 << 10 {
				_, _ = w.Write(make([]byte, 1<<10))
			}
		}
	})
	t.Cleanup(func() { close(stop) })
	webtest.GrowDeadline(t, func(deadline time.Duration) error {
		result := measureCheck(t, "", measure.Check{Of: evidence.OfCluster, Web: &measure.Web{URL: url + "/{cluster}", Timeout: deadline}})
		want := map[string]evidence.Figure{
			"c1": {Message: url + " did not answer within " + deadline.String()},
			"c2": {Message: url + " answered with more than 1 MiB"},
			"c3": {Value: 1},
		}
		if !reflect.DeepEqual(result.Figures, want) {
			return fmt.Errorf("%+v", result.Figures)
		}
		return nil
	})
}

func TestURLsAreChecked(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		of        evidence.SubjectKind // "" for a URL of Prometheus
		url, want string
	}{
		{"", "https://prometheus.example.com", ""},
		{"", "http://127.0.0.1:9090/mimir/prometheus/", ""},
		{"", "prometheus.example.com", "must be a URL that begins with https:// or http://"},
		{"", "ftp://prometheus.example.com", "must be a URL that begins with https:// or http://"},
		{"", "https://", "must be a URL that begins with https:// or http://"},
		{"", "https://a b", "cannot be parsed as a URL"},
		{"", "https://me:hunter2@prometheus.example.com", "has credentials in it, and would be in the state"},
		{"", "https://prometheus.example.com/#x", "has a fragment"},
		{"", "https://prometheus.example.com?query=up", "has a query, which belongs into query"},
		{"", "https://prometheus.example.com/api/v1", "has /api/v1 in it, which is added"},
		{"", "https://prometheus.example.com/api/v1/query", "has /api/v1 in it, which is added"},
		{"", "https://{cluster}.example.com", "is of one server for the whole fleet, and has no placeholders"},
		{evidence.OfCluster, "https://{cluster}.example.com:8443/x?of={cluster}", ""},
		{evidence.OfCluster, "https://example.com", "must have {cluster}, and no other placeholder"},
		{evidence.OfCluster, "https://{host}.example.com", "must have {cluster}, and no other placeholder"},
		{evidence.OfCluster, "https://{clutser}.example.com", "has a placeholder that is none of {assignment}, {cluster}, {deployment_target}, {host}"},
		{evidence.OfHost, "https://example.com/{host}", ""},
		{evidence.OfHost, "https://example.com/{host}/{cluster}", "must have {host}, and no other placeholder"},
		{evidence.OfAssignment, "https://example.com/{host}", "must have {assignment}, or {host} and {deployment_target}"},
		{evidence.OfAssignment, "https://example.com/{host}/{deployment_target}", ""},
		{evidence.OfFleet, "https://example.com/smoke", ""},
		{evidence.OfFleet, "https://example.com/{cluster}", "has a placeholder, and a check of the fleet is one request"},
		{evidence.OfCluster, "{cluster}://example.com", "must be a URL that begins with https:// or http://"},
		{evidence.OfCluster, "https://me:{cluster}@example.com", "has credentials in it"},
	} {
		got := measure.CheckPrometheusURL(test.url)
		if test.of != "" {
			got = measure.CheckWebURL(test.url, test.of)
		}
		if !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") || strings.Contains(got, "hunter2") {
			t.Errorf("%s: %s", test.url, got)
		}
	}
}

// FuzzWebURL replaces the placeholders of any URL by any name. Requests go only to the server of the URL.
func FuzzWebURL(f *testing.F) {
	f.Add("https://example.com/{cluster}", "c1")
	f.Add("https://{cluster}.example.com/", "evil@c1#?/..")
	f.Fuzz(func(t *testing.T, url, name string) {
		if measure.CheckWebURL(url, evidence.OfCluster) != "" {
			return
		}
		var asked []string
		client := &measure.Measurer{Over: requestObserver(func(r *http.Request) {
			asked = append(asked, r.URL.Host)
			if r.URL.User != nil {
				t.Errorf("%q with %q sends credentials %s", url, name, r.URL.User)
			}
		})}
		client.Measure(
			t.Context(),
			[]measure.Check{{Name: "a", Of: evidence.OfCluster, Pass: "true", Web: &measure.Web{URL: url}}},
			measure.Subjects{evidence.OfCluster: {name}},
		)
		before, _, inHost := strings.Cut(strings.SplitN(url, "://", 2)[1], "{cluster}")
		if inHost && strings.ContainsAny(before, "/?#") && len(asked) == 1 && !strings.HasPrefix(before, asked[0]) {
			t.Errorf("%q with %q sends a request to %s", url, name, asked[0])
		}
	})
}

// requestObserver is a transport that passes each request to a function.
type requestObserver func(*http.Request)

func (o requestObserver) RoundTrip(request *http.Request) (*http.Response, error) {
	o(request)
	return fixedAnswer{http.StatusOK, ""}.RoundTrip(request)
}
