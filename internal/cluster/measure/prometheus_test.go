package measure_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/webtest"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/measure"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/prometheustest"
)

// startScrapedPrometheus starts a Prometheus and waits until it has scraped metrics.
func startScrapedPrometheus(t testing.TB, metrics string) string {
	t.Helper()
	page := startServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, metrics, "scraped 1\n")
	})
	server := prometheustest.Start(t, t.TempDir(), fmt.Sprintf(
		"scrape_configs: [{job_name: fleet, scrape_interval: 1s, static_configs: [{targets: [%q]}]}]\n", strings.TrimPrefix(page, "http://")))
	server.Wait(t, "Prometheus has not read the metrics", func() bool { return len(server.Query(t, "scraped")) == 1 })
	return server.URL
}

// clusterMetrics returns the metrics and names of count clusters. The third cluster has no requests, and the fifth has no metrics.
func clusterMetrics(count int) (metrics string, names []string) {
	var text strings.Builder
	for i := range count {
		name := fmt.Sprintf("cluster-%04d", i)
		names = append(names, name)
		requests := 1000 + i
		switch i {
		case 2:
			requests = 0
		case 4:
			continue
		}
		fmt.Fprintf(&text, "requests{cluster=%q,code=\"200\"} %d\nrequests{cluster=%q,code=\"500\"} %d\n", name, requests, name, i%2*requests)
	}
	return text.String(), names
}

const errorShare = `100 * sum by (cluster) (requests{code="500"}) / sum by (cluster) (requests)`

// requestLog records the distinct methods and paths of requests.
type requestLog struct {
	mu    sync.Mutex
	paths []string
}

func (a *requestLog) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	if request := r.Method + " " + r.URL.Path; !slices.Contains(a.paths, request) {
		a.paths = append(a.paths, request)
	}
	a.mu.Unlock()
	return webtest.Transport.RoundTrip(r)
}

func TestPrometheusIsAskedForThousandsOfClustersAtOnce(t *testing.T) {
	t.Parallel()
	metrics, names := clusterMetrics(3000)
	url := startScrapedPrometheus(t, metrics)
	asked := &requestLog{}
	client := &measure.Measurer{Over: asked}
	found := client.Measure(t.Context(), []measure.Check{
		{
			Name: "errors", Of: evidence.OfCluster, Unit: "%", Pass: "value < 10.0 && samples >= 100", Samples: "sum by (cluster) (requests)",
			Prometheus: &measure.Prometheus{URL: url, Query: errorShare},
		},
		{Name: "all", Of: evidence.OfFleet, Pass: "value > 0", Prometheus: &measure.Prometheus{URL: url + "/", Query: "sum(requests)"}},
		{Name: "pods", Of: evidence.OfCluster, Pass: "true", Prometheus: &measure.Prometheus{URL: url, Query: "requests"}},
		{Name: "wrong", Of: evidence.OfCluster, Pass: "true", Prometheus: &measure.Prometheus{URL: url, Query: "sum by (cluster (requests)"}},
		{Name: "none", Of: evidence.OfCluster, Pass: "true", Prometheus: &measure.Prometheus{URL: url, Query: "no_such_metric"}},
		{Name: "range", Of: evidence.OfCluster, Pass: "true", Prometheus: &measure.Prometheus{URL: url, Query: "requests[5m]"}},
	}, measure.Subjects{evidence.OfCluster: names})
	for _, test := range []struct {
		check   int
		subject string
		verdict verdict.Verdict
		message string
	}{
		{0, "cluster-0000", verdict.Ready, ""},
		{0, "cluster-0001", verdict.Progressing, "errors: 50 % (2002 samples) (passes where value < 10.0 && samples >= 100)"},
		{0, "cluster-0002", verdict.Unknown, "errors: the value is NaN, which is not a number"},
		{0, "cluster-0004", verdict.Unknown, "errors: there is no figure"},
		{1, "", verdict.Ready, ""},
		{2, "cluster-0001", verdict.Unknown, "pods: the query gives 2 series of it, and one is needed: aggregate them, as in sum by (…)"},
		{3, "cluster-0001", verdict.Unknown, "wrong: " + url + ` does not take the query: invalid parameter "query": 1:`},
		{4, "cluster-0001", verdict.Unknown, "none: the query gives no series"},
		{5, "cluster-0001", verdict.Unknown, "range: the query gives a matrix, and no instant vector: one value for each series"},
	} {
		if got := found[test.check].Judge(test.subject, nil); got.Verdict != test.verdict || !strings.HasPrefix(got.Message, test.message) {
			t.Errorf("%s: %+v", test.subject, got)
		}
	}
	if want := []string{"POST /api/v1/query"}; !slices.Equal(asked.paths, want) { // the only right in the guide
		t.Errorf("got requests %q, want %q", asked.paths, want)
	}
	if got := found[0]; got.Expected != 3000 || len(got.Figures) != 2999 || got.Measured() != 2998 {
		t.Errorf("got %d expected, %d figures, %d measured", got.Expected, len(got.Figures), got.Measured())
	}
}

// BenchmarkThousandsOfClusters queries a real Prometheus for the figures and samples of 3,000 clusters, and writes the document.
func BenchmarkThousandsOfClusters(b *testing.B) {
	metrics, names := clusterMetrics(3000)
	url := startScrapedPrometheus(b, metrics)
	client := &measure.Measurer{Over: webtest.Transport}
	checks := []measure.Check{{
		Name: "errors", Of: evidence.OfCluster, Pass: "value < 10.0 && samples >= 100", Samples: "sum by (cluster) (requests)",
		Prometheus: &measure.Prometheus{URL: url, Query: errorShare},
	}}
	for b.Loop() {
		found := client.Measure(b.Context(), checks, measure.Subjects{evidence.OfCluster: names})
		document := evidence.Measurements{Time: time.Unix(0, 0), Checks: []evidence.Check{found[0].Check}}
		if text := document.Marshal(); found[0].Measured() != 2998 || len(text) == 0 {
			b.Fatal(found[0].Message)
		}
	}
}
