package observe_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

const (
	tip          = "1111111111111111111111111111111111111111"
	older        = "2222222222222222222222222222222222222222"
	absent       = "3333333333333333333333333333333333333333"
	treeA        = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	treeB        = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	evidenceText = `{"format":"3","owner":"web","environment":"dev","branch":"main","path":"clusters/web","time":"2026-11-22T01:30:00Z","tip":"` + tip + `","clusters":{` +
		`"drone-1":{"type":"drone","commit":"` + older + `","verdict":"failed","since":"2026-11-22T01:00:00Z","message":"no space","assignments":{"drone":[1,1800,2,0]},"running":{"drone/db-main":0,"drone/web-main":1}},` +
		`"drone-2":{"type":"drone","commit":"","verdict":"unknown","running":{}},` +
		`"large-1":{"type":"large","commit":"` + absent + `","verdict":"unknown"}},` +
		`"trees":{"` + older + `":{"drone/db-main":"` + treeA + `","drone/old-main":""}},"targets":{"drone":["db-main","web-main"]},` +
		`"statuses":[{"commit":"` + older + `","verdict":"ready"},{"commit":"` + tip + `","verdict":"failed","since":"","message":"no space"}],` +
		`"runs":[{"version":"main","revision":"` + older + `","images":"a:1 b:2"},{"version":"1.2.3","chart":"web","app_version":"v7"}],` +
		`"running":{"db-main":1,"drone/web-main":2}}`
)

var (
	runningMain  = reconciler.Running{Version: "main", Revision: older, Images: "a:1 b:2"}
	runningChart = reconciler.Running{Version: "1.2.3", Chart: "web", AppVersion: "v7"}
)

func sampleEvidence() *observe.Evidence {
	at := time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)
	return &observe.Evidence{
		About: observe.About{Owner: "web", Environment: "dev", Branch: "main", Path: "clusters/web"},
		Time:  at.Add(30 * time.Minute), Tip: tip,
		Clusters: map[string]observe.ClusterEvidence{
			"drone-1": {Type: "drone", Commit: older, Status: verdict.Status{Verdict: verdict.Failed, Since: at, Message: "no space"},
				Assignments: map[string]observe.AssignmentStatus{
					"drone/db-main":  {Commit: older, Status: verdict.Status{Verdict: verdict.Ready, Since: at}},
					"drone/web-main": {Commit: tip, Status: verdict.Status{Verdict: verdict.Failed, Message: "no space"}},
				}, Running: map[string]reconciler.Running{"drone/db-main": {}, "drone/web-main": runningMain}},
			"drone-2": {Type: "drone", Status: verdict.Status{Verdict: verdict.Unknown}, Running: map[string]reconciler.Running{}},
			"large-1": {Type: "large", Commit: absent, Status: verdict.Status{Verdict: verdict.Unknown}},
		},
		Trees:   map[string]map[string]string{older: {"drone/db-main": treeA, "drone/old-main": ""}},
		Running: map[string]reconciler.Running{"db-main": runningMain, "drone/web-main": runningChart},
	}
}

func TestEvidenceSurvivesMarshalAndParse(t *testing.T) {
	t.Parallel()
	if got := string(sampleEvidence().Marshal()); got != evidenceText {
		t.Errorf("got  %s\nwant %s", got, evidenceText)
	}
	read, err := observe.Parse([]byte(evidenceText))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, sampleEvidence()) {
		t.Errorf("got  %+v\nwant %+v", read, sampleEvidence())
	}
	same := sampleEvidence()
	same.Clusters["drone-1"].Assignments["drone/same-main"] = observe.AssignmentStatus{
		Commit: older, Status: verdict.Status{Verdict: verdict.Failed, Since: same.Clusters["drone-1"].Since, Message: "no space"},
	}
	if got := string(same.Marshal()); got != evidenceText {
		t.Errorf("an assignment with the status of its cluster is written: %s", got)
	}
}

// jsonencode(jsondecode()) sorts attributes by name and escapes more characters than necessary.
func TestEvidenceIsReadInAnyOrderAndIndentation(t *testing.T) {
	t.Parallel()
	var decoded map[string]any
	if err := json.Unmarshal([]byte(evidenceText), &decoded); err != nil {
		t.Fatal(err)
	}
	decoded["clusters"].(map[string]any)["drone-1"].(map[string]any)["message"] = "a <b> & \"c\"\n\t\\ \u2028 ü"
	decoded["statuses"].([]any)[1].(map[string]any)["message"] = "a <b> & \"c\"\n\t\\ \u2028 ü"
	text, err := json.MarshalIndent(decoded, " ", "\t")
	if err != nil {
		t.Fatal(err)
	}
	read, err := observe.Parse(append([]byte(" \r\n"), append(text, ' ', '\n')...))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := read.Clusters["drone-1"].Message, "a <b> & \"c\"\n\t\\ \u2028 ü"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := read.Clusters["drone-1"].Assignments["drone/web-main"].Message; got != read.Clusters["drone-1"].Message {
		t.Errorf("got message %q, want the message of the cluster", got)
	}
	again, err := observe.Parse(read.Marshal())
	if err != nil || !reflect.DeepEqual(again, read) {
		t.Errorf("got %+v, %v", again, err)
	}
}

func TestInvalidEvidenceIsRefused(t *testing.T) {
	t.Parallel()
	replace := func(old, by string) string {
		if !strings.Contains(evidenceText, old) {
			t.Fatalf("%q is not in the text", old)
		}
		return strings.Replace(evidenceText, old, by, 1)
	}
	for name, test := range map[string]struct{ text, want string }{
		"nothing":                    {"", "unexpected end of JSON input"},
		"a text":                     {`"a"`, "string is not what belongs there"},
		"an empty object":            {`{}`, `it has no "format"`},
		"half a document":            {evidenceText[:len(evidenceText)/2], "unexpected end of JSON input"},
		"no end":                     {evidenceText[:len(evidenceText)-1], "unexpected end of JSON input"},
		"text after it":              {evidenceText + "{}", "after top-level value"},
		"another format":             {replace(`"format":"3"`, `"format":"4"`), `it has the format "4", and this version of the provider reads "3"; use one version everywhere`},
		"a newer format":             {`{"format":"4","clusters":[]}`, `it has the format "4"`},
		"an older format":            {`{"format":"1","time":"2026-11-22T01:30:00Z","tip":"","clusters":{},"trees":{}}`, `it has the format "1", and this version`},
		"an unknown run":             {replace(`"db-main":1`, `"db-main":3`), `"db-main" runs number 3 of 2`},
		"a negative run":             {replace(`"drone/db-main":0`, `"drone/db-main":-1`), `"drone-1": "drone/db-main" runs number -1 of 2`},
		"a fractional run":           {replace(`"db-main":1`, `"db-main":1.5`), `is not what belongs there`},
		"a run of an invalid key":    {replace(`"drone/web-main":2`, `"drone/":2`), `it is not the key of an assignment`},
		"an unknown field of a run":  {replace(`"chart":"web"`, `"charts":"web"`), `unknown field "runs[1].charts"`},
		"no owner":                   {replace(`"owner":"web",`, ``), `it has no "owner"`},
		"no path":                    {replace(`"path":"clusters/web",`, ``), `it has no "path"`},
		"an owner twice":             {replace(`"owner":"web",`, `"owner":"web","owner":"web",`), `duplicate field "owner"`},
		"a number":                   {replace(`"format":"3"`, `"format":3`), "number is not what belongs there"},
		"no time":                    {replace(`"time":"2026-11-22T01:30:00Z",`, ``), `it has no "time"`},
		"an invalid time":            {replace(`2026-11-22T01:30:00Z`, `yesterday`), `"yesterday" is not a time as in 2026-01-31T00:00:00Z (RFC 3339)`},
		"an empty time":              {replace(`2026-11-22T01:30:00Z`, ``), `"" is not a time`},
		"an unknown member":          {replace(`"tip":`, `"top":`), `unknown field "top"`},
		"a member twice":             {replace(`"format":"3"`, `"format":"3","format":"3"`), `duplicate field "format"`},
		"a cluster twice":            {replace(`"drone-2"`, `"drone-1"`), `duplicate field "clusters.drone-1"`},
		"a cluster without name":     {replace(`"drone-2"`, `""`), `a cluster needs a name`},
		"a misspelt verdict":         {replace(`"verdict":"ready"`, `"verdict":"redy"`), `the verdict "redy" is none of failed, behind, progressing, unknown, ready`},
		"no verdict":                 {replace(`"commit":"","verdict":"unknown"`, `"commit":""`), `"drone-2": it has no "verdict"`},
		"cluster's member":           {replace(`"type":"large"`, `"typ":"large"`), `unknown field "clusters.large-1.typ"`},
		"cluster's member twice":     {replace(`"type":"large"`, `"type":"large","type":"large"`), `duplicate field "clusters.large-1.type"`},
		"a status' member":           {replace(`"verdict":"ready"}`, `"tree":"ready"}`), `unknown field "statuses[0].tree"`},
		"a status' member twice":     {replace(`"verdict":"ready"}`, `"verdict":"ready","verdict":"ready"}`), `duplicate field "statuses[0].verdict"`},
		"a status without a verdict": {replace(`,"verdict":"ready"}`, `}`), `status 1 has no verdict, or a time`},
		"a status with a time":       {replace(`"verdict":"ready"}`, `"verdict":"ready","since":"2026-11-22T01:00:00Z"}`), `status 1 has no verdict, or a time`},
		"a host twice":               {replace(`{"drone":[1,1800,2,0]}`, `{"drone":[1,1800,2,0],"drone":[0,0]}`), `duplicate field "clusters.drone-1.assignments.drone"`},
		"an unknown status":          {replace(`[1,1800,2,0]`, `[3,1800,2,0]`), `"drone-1": "drone": 3, 1800 is no number of a status with its time`},
		"a negative status":          {replace(`[1,1800,2,0]`, `[-1,1800,2,0]`), `-1, 1800 is no number of a status`},
		"a time long ago":            {replace(`[1,1800,2,0]`, `[1,99999999999,2,0]`), `1, 99999999999 is no number of a status`},
		"too few numbers":            {replace(`[1,1800,2,0]`, `[1,1800,2]`), `"drone-1": "drone": it has fewer numbers than its host has deployment targets`},
		"too many numbers":           {replace(`[1,1800,2,0]`, `[1,1800,2,0,0]`), `"drone-1": "drone": it has more numbers than`},
		"numbers of another host":    {replace(`{"drone":[1,1800,2,0]}`, `{"large":[2,1800]}`), `"drone-1": "large": it has more numbers than`},
		"a fractional number":        {replace(`[1,1800,2,0]`, `[1,1800.5,2,0]`), `is not what belongs there`},
		"a host without a name":      {replace(`{"drone":["db-main"`, `{"":["db-main"`), `"/db-main": it is not the key of an assignment`},
		"a target with a slash":      {replace(`["db-main"`, `["a/db-main"`), `"drone/a/db-main": a deployment target has no slash in its name`},
		"a tree's key":               {replace(`drone/old-main`, `drone/`), `"drone/": it is not the key of an assignment`},
		"a short commit":             {replace(`"tip":"`+tip, `"tip":"`+tip[:7]), `is not the id of a commit`},
		"a short tree":               {replace(treeA, treeA[:7]), `is not the id of a tree`},
		"trees of an invalid commit": {replace(`"trees":{"`+older, `"trees":{"dev`), `"dev": it is not the id of a commit`},
		"a long text":                {replace(`no space`, strings.Repeat("x", 5000)), "longer than 4096 bytes"},
		"a bad escape":               {replace(`no space`, `no \x space`), "in string escape code"},
		"a line break":               {replace(`no space`, "no\nspace"), "in string literal"},
		"no UTF-8":                   {replace(`no space`, "no \xff space"), "is not UTF-8"},
		"an escape at the end":       {`{"format":"\`, "in string escape code"},
		"too long":                   {strings.Repeat(" ", 64<<20+1), "it is longer than 64 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, err := observe.Parse([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) ||
				!strings.HasPrefix(err.Error(), "the evidence is not what flotilla_compliance gives: ") {
				t.Errorf("got %v, %v, want %q", read, err, test.want)
			}
		})
	}
}

func TestEvidenceHasTheContentOfAssignments(t *testing.T) {
	t.Parallel()
	e := sampleEvidence()
	for _, test := range []struct {
		cluster, key          string
		known, atTip          bool
		tree                  string
		verdict               verdict.Verdict
		has, hasOther, hasNot bool // has treeA, treeB or no folder; the tip has treeB
	}{
		{"drone-1", "drone/db-main", true, false, treeA, verdict.Ready, true, false, false},
		{"drone-1", "drone/old-main", true, false, "", verdict.Failed, false, false, true},
		{"drone-1", "drone/same-main", true, true, "", verdict.Failed, false, true, false},
		{"drone-1", "drone/web-main", true, true, "", verdict.Failed, false, true, false}, // at the tip
		{"drone-2", "drone/db-main", false, false, "", verdict.Unknown, false, false, false},
		{"large-1", "large/db-main", false, false, "", verdict.Unknown, false, false, false}, // at a commit that is missing from the branch
		{"nobody", "drone/db-main", false, false, "", verdict.Unknown, false, false, false},
	} {
		got := e.Assignment(test.cluster, test.key)
		if got.Known != test.known || got.AtTip != test.atTip || got.Tree != test.tree || got.Verdict != test.verdict {
			t.Errorf("%s %s: %+v", test.cluster, test.key, got)
		}
		if got.Has(treeA, treeB) != test.has || got.Has(treeB, treeB) != test.hasOther || got.Has("", treeB) != test.hasNot {
			t.Errorf("%s %s: %v %v %v", test.cluster, test.key, got.Has(treeA, treeB), got.Has(treeB, treeB), got.Has("", treeB))
		}
	}
}

// The worst case: each assignment became ready at a different time on each cluster.
func TestEvidenceOfTheReferenceFleetIsUnder4MiB(t *testing.T) {
	t.Parallel()
	e := makeEvidence(500, 6, 40)
	text := e.Marshal()
	if t.Logf("%d bytes", len(text)); len(text) > 4<<20 {
		t.Errorf("the evidence has %d bytes, want at most 4 MiB", len(text))
	}
	read, err := observe.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for name, cluster := range e.Clusters {
		for key, status := range cluster.Assignments {
			if got := read.Assignment(name, key); got.Status != status.Status || got.Commit != status.Commit {
				t.Fatalf("%s on %s is %+v, want %+v", key, name, got, status)
			}
		}
	}
}

func TestEvidenceHasTheRunningVersionOfAssignments(t *testing.T) {
	t.Parallel()
	e := sampleEvidence()
	for _, test := range []struct {
		cluster, key string
		want         reconciler.Running
	}{
		{"drone-1", "drone/web-main", runningMain}, {"drone-1", "drone/db-main", reconciler.Running{}},
		{"drone-2", "drone/web-main", runningChart}, {"drone-2", "drone/db-main", runningMain}, {"drone-2", "clusters/drone-2/db-main", runningMain}, {"drone-2", "drone/other", reconciler.Running{}},
		{"large-1", "large/db-main", reconciler.Running{}}, {"nobody", "drone/db-main", reconciler.Running{}},
	} {
		if got := e.RunningOn(test.cluster, test.key); got != test.want {
			t.Errorf("%s on %s runs %+v, want %+v", test.key, test.cluster, got, test.want)
		}
	}
}

// FuzzEvidence parses any text within the limits of time and memory. Accepted text is valid JSON for encoding/json, and the evidence
// survives Marshal and Parse.
func FuzzEvidence(f *testing.F) {
	f.Add([]byte(evidenceText))
	f.Add(
		[]byte(
			`{"trees":{},"clusters":{},"tip":"","time":"2026-11-22T02:30:00.5+01:00","path":"","branch":"a","environment":"b","owner":"c","format":"3"}`,
		),
	)
	f.Add(
		[]byte(
			`{"format":"3","targets":{"a":["b"]},"statuses":[{"verdict":"ready"}],"owner":"c","environment":"b","branch":"a","path":"","time":"2026-11-22T01:30:00Z","tip":"","clusters":{"\u00fc":{"assignments":{"a":[1,-60]},"type":"","commit":"","verdict":"ready"}},"trees":{}}`,
		),
	)
	f.Add(smallEvidence().Marshal())
	f.Fuzz(func(t *testing.T, text []byte) {
		var e *observe.Evidence
		var err error
		fleettest.Bounded(t, string(text), func() { e, err = observe.Parse(text) })
		if err != nil {
			return
		}
		if !json.Valid(text) {
			t.Fatalf("accepted text is invalid JSON: %q", text)
		}
		written := e.Marshal()
		again, err := observe.Parse(written)
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		if string(again.Marshal()) != string(written) {
			t.Fatalf("got %s after a second Marshal, want %s", again.Marshal(), written)
		}
	})
}

// smallEvidence returns evidence of three cluster types.
func smallEvidence() *observe.Evidence { return makeEvidence(3, 5, 2) }

// makeEvidence returns evidence of cluster types with the given numbers of clusters and assignments each.
func makeEvidence(types, clusters, assignments int) *observe.Evidence {
	random := rand.New(rand.NewPCG(1, 2))
	at := time.Date(2026, 11, 22, 1, 30, 0, 0, time.UTC)
	e := &observe.Evidence{Time: at, Tip: tip, Clusters: map[string]observe.ClusterEvidence{}, Trees: map[string]map[string]string{older: {}}}
	for i := range types {
		clusterType := fmt.Sprintf("type-%04d", i)
		for j := range assignments {
			key := fmt.Sprintf("%s/workload-%04d-main", clusterType, (i+j)%500)
			if random.IntN(4) == 0 {
				e.Trees[older][key] = treeA
			}
			for k := range clusters {
				name := fmt.Sprintf("%s-%02d", clusterType, k)
				c, ok := e.Clusters[name]
				if !ok {
					c = observe.ClusterEvidence{Type: clusterType, Commit: older, Assignments: map[string]observe.AssignmentStatus{},
						Status: verdict.Status{Verdict: verdict.Ready, Since: at.Add(-time.Minute)}}
				}
				c.Assignments[key] = observe.AssignmentStatus{Commit: older,
					Status: verdict.Status{Verdict: verdict.Ready, Since: at.Add(-time.Duration(random.IntN(1000)) * time.Second)}}
				e.Clusters[name] = c
			}
		}
	}
	return e
}

// BenchmarkEvidence measures the reference fleet in the worst case: each assignment became ready at a different time on each cluster.
func BenchmarkEvidence(b *testing.B) {
	e := makeEvidence(500, 6, 40)
	text := e.Marshal()
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if _, err := observe.Parse(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("marshal", func(b *testing.B) {
		for b.Loop() {
			e.Marshal()
		}
	})
	b.Run("look up", func(b *testing.B) {
		names := slices.Sorted(maps.Keys(e.Clusters))
		for b.Loop() {
			for _, name := range names {
				for key := range e.Clusters[name].Assignments {
					if !e.Assignment(name, key).Known {
						b.Fatal(name, key)
					}
				}
			}
		}
	})
}
