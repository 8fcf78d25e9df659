package evidence_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

var at = time.Date(2026, 11, 22, 1, 30, 0, 0, time.UTC)

func sampleFacts() *evidence.Facts {
	return &evidence.Facts{Time: at, Clusters: map[string]evidence.ClusterFacts{
		"large-1": {
			Status: verdict.Status{Verdict: verdict.Ready, Since: at.Add(-time.Hour), Message: "3 nodes are ready"},
			Facts: map[string]any{
				"kubernetes_version": "1.31.2", "nodes": float64(3), "zones": []any{"a", "b"}, "gpu": true,
				"capacity": map[string]any{"cpu": 7.5}, "labels": map[string]any{"<a>": "&"},
			},
		},
		"edge-1": {Status: verdict.Status{Verdict: verdict.Unknown, Message: "the API server did not answer within 10s"}},
	}}
}

const factsText = `{"format":"1","kind":"facts","time":"2026-11-22T01:30:00Z","clusters":{` +
	`"edge-1":{"verdict":"unknown","message":"the API server did not answer within 10s"},` +
	`"large-1":{"verdict":"ready","since":"2026-11-22T00:30:00Z","message":"3 nodes are ready","facts":{"capacity":{"cpu":7.5},"gpu":true,` +
	`"kubernetes_version":"1.31.2","labels":{"<a>":"&"},"nodes":3,"zones":["a","b"]}}}}`

func TestFactsSurviveMarshalAndParse(t *testing.T) {
	t.Parallel()
	text := sampleFacts().Marshal()
	if string(text) != factsText {
		t.Errorf("got\n%s\nwant\n%s", text, factsText)
	}
	read, err := evidence.ParseFacts([]byte(strings.ReplaceAll(factsText, ",", " ,\n")))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, sampleFacts()) {
		t.Errorf("%+v", read)
	}
	whole := sampleFacts()
	whole.Clusters["large-1"].Facts["nodes"] = 3
	if string(whole.Marshal()) != factsText {
		t.Errorf("got whole number %s", whole.Marshal())
	}
}

func TestInvalidFactsAreErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ old, with, want string }{
		{factsText, "", "unexpected end"},
		{factsText, "[]", "array is not what belongs there at byte"},
		{`"format":"1",`, "", `it has no "format"`},
		{`"format":"1"`, `"format":"2"`, `it has the format "2", and this version of the provider reads "1"`},
		{`"kind":"facts",`, "", `its kind is not "facts"`},
		{`"kind":"facts"`, `"kind":"measurements"`, `its kind is not "facts"`},
		{`"kind":"facts"`, `"kind":"facts","kind":"facts"`, `duplicate field "kind"`},
		{`"kind":"facts"`, `"kind":"facts","other":1`, `unknown field "other"`},
		{`"time":"2026-11-22T01:30:00Z",`, "", `it has no "time", or no "clusters"`},
		{`"time":"2026-11-22T01:30:00Z"`, `"time":"yesterday"`, `"yesterday" is not a time`},
		{`"since":"2026-11-22T00:30:00Z"`, `"since":"yesterday"`, `"large-1": "yesterday" is not a time`},
		{`"edge-1"`, `""`, "a cluster needs a name"},
		{`"verdict":"unknown"`, `"verdict":"fine"`, `"edge-1": the verdict "fine" is none of`},
		{`"verdict":"unknown",`, "", `"edge-1": the verdict "" is none of`},
		{`"gpu":true`, `"gpu":null`, `"large-1": a fact is null`},
		{`"gpu":true`, `"gpu":1,"gpu":2`, `duplicate field "clusters.large-1.facts.gpu"`},
		{`"gpu":true`, `"gpu":1e999`, "number 1e999 is not what belongs there"},
		{`"gpu":true`, `"gpu":"` + strings.Repeat("a", 4097) + `"`, "a text is longer than 4096 bytes"},
		{`"gpu":true`, `"gpu":` + strings.Repeat("[", 20) + strings.Repeat("]", 20), "a fact is deeper than 16 lists and maps"},
		{`"gpu":true`, "\"gpu\":\"\xff\"", "it is not UTF-8"},
	} {
		_, err := evidence.ParseFacts([]byte(strings.Replace(factsText, test.old, test.with, 1)))
		if err == nil || !strings.Contains(err.Error(), "the evidence is not what flotilla_cluster_facts gives: ") ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%.60s: %v, want %s", test.with, err, test.want)
		}
	}
	if _, err := evidence.ParseFacts(make([]byte, 65<<20)); err == nil || !strings.Contains(err.Error(), "longer than 64 MiB") {
		t.Error(err)
	}
}

// FuzzFacts parses any text within the limits of time and memory. Accepted facts survive Marshal and ParseFacts.
func FuzzFacts(f *testing.F) {
	f.Add([]byte(factsText))
	f.Add(
		[]byte(
			`{"clusters":{"a":{"facts":{"b":[{"c":-1e-9}]},"verdict":"progressing"}},"time":"2026-11-22T02:30:00.5+01:00","kind":"facts","format":"1"}`,
		),
	)
	f.Fuzz(func(t *testing.T, text []byte) {
		var read *evidence.Facts
		var err error
		fleettest.Bounded(t, string(text), func() { read, err = evidence.ParseFacts(text) })
		if err != nil {
			return
		}
		if !json.Valid(text) {
			t.Fatalf("accepted text is invalid JSON: %q", text)
		}
		written := read.Marshal()
		again, err := evidence.ParseFacts(written)
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		if string(again.Marshal()) != string(written) {
			t.Fatalf("got %s after a second Marshal, want %s", again.Marshal(), written)
		}
	})
}
