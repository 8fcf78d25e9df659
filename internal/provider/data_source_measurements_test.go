package provider_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func readMeasurements(t *testing.T, providerBlock any, checks ...any) (map[string]any, providertest.Diagnostics) {
	t.Helper()
	configuration := providertest.Configuration{Provider: map[string]any{}}
	if providerBlock != nil {
		configuration.Provider["measurements"] = providerBlock
	}
	return providertest.New(startProvider).
		ReadData(t.Context(), configuration, "flotilla_measurements", map[string]any{"fleet": fleetWithClusters(nil), "checks": checks})
}

// newCheck returns a check of Prometheus with further keys. A nil value removes a key.
func newCheck(url string, further map[string]any) map[string]any {
	check := map[string]any{
		"name":       "errors",
		"of":         "cluster",
		"pass":       "value < 0.4",
		"prometheus": map[string]any{"url": url, "query": "errors"},
	}
	maps.Copy(check, further)
	return check
}

// prometheusStandIn answers like Prometheus, and records the headers of requests.
type prometheusStandIn struct {
	*httptest.Server
	answer func(query string) string

	mu      sync.Mutex
	headers []http.Header
}

func newPrometheusStandIn(t *testing.T, answer func(query string) string) *prometheusStandIn {
	s := &prometheusStandIn{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.headers = append(s.headers, r.Header.Clone())
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, s.answer(r.FormValue("query")))
	}))
	t.Cleanup(s.Close)
	return s
}

// vectorResult returns the result of a query with alternating labels and values.
func vectorResult(labelsAndValues ...string) string {
	var result []string
	for i := 0; i < len(labelsAndValues); i += 2 {
		result = append(result, fmt.Sprintf(`{"metric":{%s},"value":[1700000000,%q]}`, labelsAndValues[i], labelsAndValues[i+1]))
	}
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(result, ",") + `]}}`
}

func TestMeasurementsReturnEvidenceAndResults(t *testing.T) {
	t.Parallel()
	server := newPrometheusStandIn(t, func(query string) string {
		if query == "requests" {
			return vectorResult(`"cluster":"drone-1"`, "340", `"cluster":"drone-2"`, "12")
		}
		return vectorResult(`"cluster":"drone-1"`, "0.9", `"cluster":"drone-2"`, "0.2", `"cluster":"elsewhere"`, "7")
	})
	values, diags := readMeasurements(
		t,
		nil,
		newCheck(server.URL, map[string]any{"unit": "%", "samples": "requests", "fail": "value > 50.0"}),
		map[string]any{
			"name": "smoke",
			"of":   "assignment",
			"pass": "value == 1.0",
			"web":  map[string]any{"url": server.URL + "/{host}/{deployment_target}", "timeout": "30s"},
		},
		newCheck("http://127.0.0.1:1", map[string]any{"name": "none"}),
	)
	if len(diags) != 1 || diags.Err() != nil || !strings.Contains(diags.String(), `Check "none": http://127.0.0.1:1 could not be asked`) {
		t.Fatal(diags)
	}
	found, err := evidence.ParseMeasurements([]byte(values["evidence"].(string)))
	if err != nil {
		t.Fatal(err)
	}
	if found.Environment != "dev" || found.Time.Format("2006-01-02T15:04:05Z") != values["time"] || len(found.Checks) != 3 {
		t.Errorf("got evidence %+v", found)
	}
	for _, test := range []struct {
		check   int
		subject string
		want    verdict.Status
	}{
		{0, "drone-1", verdict.Status{Verdict: verdict.Progressing, Message: "errors: 0.9 % (340 samples) against 0.2 % on 12 clusters (passes where value < 0.4)"}},
		{0, "drone-2", verdict.Status{Verdict: verdict.Ready}},
		{0, "large-1", verdict.Status{Verdict: verdict.Unknown, Message: "errors: there is no figure"}},
		{1, "drone/app-edge", verdict.Status{Verdict: verdict.Ready}},
		{2, "drone-1", verdict.Status{Verdict: verdict.Unknown, Message: "none: http://127.0.0.1:1 could not be asked: dial tcp 127.0.0.1:1: connect: connection refused"}},
	} {
		if got := found.Checks[test.check].Judge(test.subject, &evidence.Rest{Value: 0.2, Count: 12}); got != test.want {
			t.Errorf("%s: got %+v", test.subject, got)
		}
	}
	results, _ := json.Marshal(values["results"])
	for _, want := range []string{
		`"figures":["drone-1: 0.9 % (340 samples)","drone-2: 0.2 % (12 samples)"]`, `"expected":3`, `"measured":2`, `"passed_over":1`,
		`"figures":["drone/app-core: 1","drone/app-edge: 1","large/app-core: 1"]`, `"message":"http://127.0.0.1:1 could not be asked`,
	} {
		if !strings.Contains(string(results), want) {
			t.Errorf("the results have no %s: %s", want, results)
		}
	}
	if model := values["fleet"].(map[string]any)["model"].(string); len(model) > 100 {
		t.Errorf("the state contains the model of %d bytes", len(model))
	}
}

func TestInvalidChecksAreErrorsAtPlan(t *testing.T) {
	t.Parallel()
	const url = "https://prometheus.example.com"
	with := func(key string, further map[string]any) map[string]any {
		from := map[string]any{"url": url, "query": "errors"}
		if key == "web" {
			from = map[string]any{"url": "https://{cluster}.example.com"}
		}
		maps.Copy(from, further)
		check := newCheck(url, map[string]any{"prometheus": nil})
		check[key] = from
		return check
	}
	for want, check := range map[string]any{
		`checks[0]: must be an object, not a string`:                                                       "hunter2",
		`checks[0].name: is required`:                                                                      newCheck(url, map[string]any{"name": nil}),
		`checks["errors\nx"].name: must be one line of at most 63 bytes`:                                   newCheck(url, map[string]any{"name": "errors\nx"}),
		`checks["errors"].of: is required: what the figures are of, cluster, host, assignment or fleet`:    newCheck(url, map[string]any{"of": nil}),
		`checks["errors"].of: must be one of cluster, host, assignment, fleet, not "clutser"; did you`:     newCheck(url, map[string]any{"of": "clutser"}),
		`checks["errors"].pass: is required`:                                                               newCheck(url, map[string]any{"pass": nil}),
		`checks["errors"].pass: line 1, column 1: there is no variable or function "valeu"; did you mean`:  newCheck(url, map[string]any{"pass": "valeu < 1.0"}),
		`checks["errors"].pass: has samples, and the check does not say what they are: set samples`:        newCheck(url, map[string]any{"pass": "samples > 1.0"}),
		`checks["errors"].fail: must give a bool, not double`:                                              newCheck(url, map[string]any{"fail": "value"}),
		`checks["errors"].fail: has rest, and a check of the fleet has one figure alone`:                   newCheck(url, map[string]any{"of": "fleet", "fail": "value > rest"}),
		`checks["errors"].unit: must be one line of at most 16 bytes`:                                      newCheck(url, map[string]any{"unit": strings.Repeat("x", 17)}),
		`checks["errors"].prometheus: is required, or web: where the figures come from`:                    newCheck(url, map[string]any{"prometheus": nil}),
		`checks["errors"].web: is set, and prometheus, too: a check has one of them`:                       newCheck(url, map[string]any{"web": map[string]any{"url": "https://{cluster}.example.com"}}),
		`checks["errors"].sample: unknown attribute; did you mean "samples"?`:                              newCheck(url, map[string]any{"sample": "x"}),
		`checks["errors"].samples: line 1, column 1: there is no variable or function "requests"`:          map[string]any{"name": "errors", "of": "cluster", "pass": "true", "samples": "requests", "web": map[string]any{"url": "https://{cluster}.example.com"}},
		`checks["errors"].prometheus.url: is required`:                                                     with("prometheus", map[string]any{"url": nil}),
		`checks["errors"].prometheus.url: has credentials in it`:                                           with("prometheus", map[string]any{"url": "https://me:hunter2@example.com"}),
		`checks["errors"].prometheus.url: is longer than 2048 bytes`:                                       with("prometheus", map[string]any{"url": url + strings.Repeat("/x", 2048)}),
		`checks["errors"].prometheus.query: is required`:                                                   with("prometheus", map[string]any{"query": ""}),
		`checks["errors"].prometheus.query: is longer than 16384 bytes`:                                    with("prometheus", map[string]any{"query": strings.Repeat("x", 20_000)}),
		`checks["errors"].prometheus.labels: has "host", and a check of a cluster has the labels cluster`:  with("prometheus", map[string]any{"labels": map[string]any{"host": "x"}}),
		`checks["errors"].prometheus.labels: the name for "cluster" must be one line of at most 128 bytes`: with("prometheus", map[string]any{"labels": map[string]any{"cluster": strings.Repeat("x", 5000)}}),
		`checks["errors"].prometheus.timeout: is longer than 2m0s`:                                         with("prometheus", map[string]any{"timeout": "3m"}),
		`checks["errors"].prometheus.headers: Authorization is a credential, and would be in the state`:    with("prometheus", map[string]any{"headers": map[string]any{"authorization": "hunter2"}}),
		`checks["errors"].prometheus.qurey: unknown attribute; did you mean "query"?`:                      with("prometheus", map[string]any{"qurey": "x"}),
		`checks["errors"].web.url: must have {cluster}, and no other placeholder`:                          with("web", map[string]any{"url": "https://example.com"}),
		`checks["errors"].web.value: must give a double or int or uint or bool, not string`:                with("web", map[string]any{"value": "string(status)"}),
		`checks["errors"].web.headers: the value of X-Team cannot be sent`:                                 with("web", map[string]any{"headers": map[string]any{"x-team": "a\nhunter2"}}),
	} {
		_, diags := readMeasurements(t, nil, check)
		if len(diags) != 1 || diags[0].At != `AttributeName("checks")` || !strings.Contains(diags[0].Detail, strings.TrimSpace(want)) ||
			strings.Contains(diags.String(), "hunter2") {
			t.Errorf("got diagnostics %s, want %s", diags, want)
		}
	}
	_, diags := readMeasurements(
		t,
		nil,
		newCheck(url, nil),
		newCheck(url, map[string]any{"fail": "1"}),
		newCheck(url, map[string]any{"name": "other", "pass": "("}),
	)
	if text := diags.String(); !strings.Contains(text, `name: "errors" is the name of another check, too`) ||
		!strings.Contains(text, "fail: must give a bool, not int") ||
		!strings.Contains(text, `checks["other"].pass: line 1`) {
		t.Errorf("got diagnostics %s, want all mistakes at once", diags)
	}
	if _, diags = readMeasurements(t, nil, slices.Repeat([]any{newCheck(url, nil)}, 51)...); !strings.Contains(
		diags.String(),
		"checks has 51 checks, and 50 are the most",
	) &&
		!strings.Contains(diags.String(), "has 51 checks, and 50 are the most") {
		t.Errorf("got diagnostics %s", diags)
	}
}

// Any part of a check may be unknown.
func TestChecksMayBeKnownOnlyAtApply(t *testing.T) {
	t.Parallel()
	web := map[string]any{"name": "web", "of": "cluster", "pass": "value == samples", "samples": "status", "web": map[string]any{
		"url": "https://{cluster}.example.com", "value": "status == 200", "timeout": "5s", "headers": map[string]any{"x-team": "a"},
	}}
	prometheus := newCheck(
		"",
		map[string]any{"samples": "requests", "unit": "%", "fail": "value > 1.0 && samples > 1.0", "prometheus": map[string]any{
			"url": "https://example.com", "query": "errors", "timeout": "5s", "headers": map[string]any{"x-team": "a"}, "labels": map[string]any{"cluster": "k8s_cluster"},
		}},
	)
	cases := map[string]any{"checks": providertest.Unknown{}, "a check": []any{prometheus, providertest.Unknown{}}}
	for _, check := range []map[string]any{web, prometheus} {
		for key, value := range check {
			without := maps.Clone(check)
			without[key] = providertest.Unknown{}
			cases[fmt.Sprint(check["name"], ".", key)] = []any{without}
			from, _ := value.(map[string]any)
			for inner, value := range from {
				part := maps.Clone(from)
				part[inner] = providertest.Unknown{}
				within := maps.Clone(check)
				within[key] = part
				cases[fmt.Sprint(check["name"], ".", key, ".", inner)] = []any{within}
				if entries, ok := value.(map[string]any); ok {
					part = maps.Clone(from)
					part[inner] = map[string]any{slices.Collect(maps.Keys(entries))[0]: providertest.Unknown{}}
					within = maps.Clone(check)
					within[key] = part
					cases[fmt.Sprint(check["name"], ".", key, ".", inner, ".*")] = []any{within}
				}
			}
		}
	}
	if len(cases) < 25 {
		t.Errorf("got %d cases, want at least 25", len(cases))
	}
	for name, checks := range cases {
		arguments := map[string]any{"fleet": fleetWithClusters(nil), "checks": checks}
		if _, diags := providertest.New(startProvider).PlanData(t.Context(), providertest.Configuration{}, "flotilla_measurements", arguments); len(
			diags,
		) > 0 {
			t.Errorf("%s: got diagnostics %s", name, diags)
		}
	}
}

func TestTheProvidersMeasurementsAreReadStrictly(t *testing.T) {
	t.Parallel()
	entry := func(attributes map[string]any) map[string]any {
		return map[string]any{"credentials": []any{attributes}}
	}
	for name, c := range map[string]struct {
		block any
		want  string // "" for no error
	}{
		"nothing":                  {},
		"an empty object":          {block: map[string]any{}},
		"everything unknown":       {block: providertest.Unknown{}},
		"an unknown token":         {block: map[string]any{"url": "https://x", "token": providertest.Unknown{Then: "x"}}},
		"a url known at apply":     {block: map[string]any{"url": providertest.Unknown{Then: "https://x"}, "token": "hunter2"}},
		"a token without a url":    {block: map[string]any{"token": "hunter2"}, want: "url: is required with token, username and password"},
		"a username without a url": {block: map[string]any{"username": "hunter2"}, want: "url: is required with token, username and password"},
		"an invalid url":           {block: map[string]any{"url": "ssh://x", "token": "hunter2"}, want: "url: must be a URL that begins with https:// or http://"},
		"a password in its url":    {block: map[string]any{"url": "https://me:hunter2@x"}, want: "url: has credentials in it, and would be in the state: set them beside it"},
		"a url of both":            {block: map[string]any{"url": "https://x.example", "token": "hunter2", "credentials": []any{map[string]any{"url": "https://x.example", "token": "b"}}}, want: `credentials: there are two for "https://x.example"`},
		"an unknown entry":         {block: map[string]any{"credentials": []any{providertest.Unknown{}}}},
		"an unknown url":           {block: entry(map[string]any{"url": providertest.Unknown{Then: "https://x"}, "token": "hunter2"})},
		"another type":             {block: "hunter2", want: "Must be an object, not a string"},
		"a misspelt key":           {block: map[string]any{"tokn": "hunter2"}, want: `tokn: unknown attribute; did you mean "token"?`},
		"a misspelt key inside":    {block: entry(map[string]any{"url": "https://x.example", "tokn": "hunter2"}), want: `credentials[0].tokn: unknown attribute; did you mean "token"?`},
		"no url":                   {block: entry(map[string]any{"token": "hunter2"}), want: "credentials[0].url: is required"},
		"another scheme":           {block: entry(map[string]any{"url": "ssh://x.example"}), want: "credentials[0].url: must be a URL that begins with https:// or http://"},
		"a password in the url":    {block: entry(map[string]any{"url": "https://me:hunter2@x.example"}), want: "credentials[0].url: has credentials in it, and would be in the state: set them beside it"},
		"a duplicate url":          {block: map[string]any{"credentials": []any{map[string]any{"url": "https://x.example", "token": "a"}, map[string]any{"url": "https://x.example/", "token": "b"}}}, want: `credentials: there are two for "https://x.example/"`},
		"a header":                 {block: entry(map[string]any{"url": "https://x.example", "headers": map[string]any{"a b": "hunter2"}}), want: `credentials[0].headers: "a b" is not the name of a header`},
		"certificates":             {block: map[string]any{"ca_certificates": "hunter2"}, want: "ca_certificates: the CA"},
	} {
		_, diags := providertest.New(startProvider).
			Plan(t.Context(), providertest.Configuration{Provider: map[string]any{"measurements": c.block}})
		if c.want == "" && len(diags) > 0 ||
			c.want != "" && (len(diags) == 0 || !strings.Contains(diags.String(), c.want) || diags[0].At != `AttributeName("measurements")`) ||
			strings.Contains(diags.String(), "hunter2") {
			t.Errorf("%s: got diagnostics %s", name, diags)
		}
	}
}

// TestCanariesAppearInNoMeasurement reads from a server that repeats secrets, and searches logs, plans and states.
func TestCanariesAppearInNoMeasurement(t *testing.T) {
	requireAcceptance(t)
	secrets := map[string]string{"token": "t0ken-0123-/+%", "password": `passw0rd-01 "q" & /+ü%`, "key": "k3y-0123456789abcdef"}
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			bearer, basic := httptest.NewServer(repeatSecrets(secrets)), httptest.NewServer(repeatSecrets(secrets))
			t.Cleanup(bearer.Close)
			t.Cleanup(basic.Close)
			var checks strings.Builder
			for _, server := range []string{bearer.URL, basic.URL} {
				for _, query := range []string{"error", "text", "redirect", "warn"} {
					for _, subject := range []string{"cluster", "fleet"} {
						fmt.Fprintf(
							&checks,
							"{ name = %q, of = %q, pass = \"value < 1.0\", prometheus = { url = %q, query = %q } },\n",
							server+query+subject,
							subject,
							server,
							query,
						)
					}
				}
				fmt.Fprintf(
					&checks,
					"{ name = %q, of = \"fleet\", pass = \"true\", web = { url = %q, value = \"double(body.warnings[0])\" } },\n",
					server,
					server,
				)
			}
			w := newWorkdir(t, tool, map[string]string{"main.tf": requiredProviders + fmt.Sprintf(`
variable "secret" {
  type      = map(string)
  ephemeral = true
}

provider "flotilla" {
  measurements = {
    credentials = [
      { url = %q, token = var.secret.token, headers = { x-api-key = var.secret.key } },
      { url = %q, username = "me", password = var.secret.password, headers = { x-api-key = var.secret.key } },
    ]
  }
}

data "flotilla_measurements" "test" {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    cluster_types = [{ name = "drone" }]
    clusters      = [{ name = "drone-1", cluster_type = "drone" }]
  })
  checks = [%s]
}

output "results" { value = data.flotilla_measurements.test.results }
output "evidence" { value = data.flotilla_measurements.test.evidence }
`, bearer.URL, basic.URL, checks.String())})
			variable, err := json.Marshal(secrets)
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("TF_VAR_secret", string(variable))
			if printed, err := w.runTraced(t, "plan", "plan", "-input=false", "-no-color", "-out=plan.out"); err != nil ||
				!strings.Contains(printed, "does not take the query") {
				t.Fatalf("%v\n%s", err, printed)
			}
			if _, err := w.runTraced(t, "apply", "apply", "-input=false", "-no-color", "plan.out"); err != nil {
				t.Fatal(err)
			}
			checkNoSecrets(t, w.path, secrets)
		})
	}
}

// The second plan is empty, and a dead server causes no error.
func TestMeasurementsAreOutputsOfTerraform(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	server := newPrometheusStandIn(t, func(string) string { return vectorResult(`"cluster":"drone-1"`, "0.25") })
	config := func(url, output string) string {
		return `
locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    cluster_types = [{ name = "drone" }]
    clusters      = [{ name = "drone-1", cluster_type = "drone" }]
  })
}

data "flotilla_measurements" "dev" {
  fleet    = local.fleet
  timeouts = { read = "1m" }
  checks = [
    { name = "errors", of = "cluster", unit = "%", pass = "value < 0.4", prometheus = { url = "` + url + `", query = "errors" } },
  ]
}

output "said" { value = data.flotilla_measurements.dev.results[0].` + output + ` }
`
	}
	testSteps(t, resource.TestCase{ProtoV6ProviderFactories: factories(), Steps: []resource.TestStep{
		{Config: config(server.URL, "figures[0]"), Check: resource.TestCheckOutput("said", "drone-1: 0.25 %")},
		{Config: config(server.URL, "figures[0]"), PlanOnly: true},
		{
			Config: config("http://127.0.0.1:1", "message"),
			Check:  resource.TestCheckOutput("said", "http://127.0.0.1:1 could not be asked: dial tcp 127.0.0.1:1: connect: connection refused"),
		},
	}})
}
