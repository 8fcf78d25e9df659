package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

func TestSummaryTellsWhatFailedAndWhatWasSkipped(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		events  []string
		mustRun string
		want    string
		ok      bool
	}{
		"passed, subtests included": {
			events: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"run","Package":"p","Test":"TestA/b"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/b"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p","Elapsed":1.23}`,
			},
			want: "ok   p 1.2s: 2 passed, 0 failed, 0 skipped\n2 passed, 0 failed, 0 skipped\n",
			ok:   true,
		},
		"a failure shows its output and no other": {
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}`,
				`{"Action":"output","Package":"p","Test":"TestB","Output":"b is wrong\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"fail","Package":"p","Test":"TestB"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: "b is wrong\nFAIL p 0.0s: 1 passed, 1 failed, 0 skipped\n1 passed, 1 failed, 0 skipped\n",
		},
		"a skipped test gives its reason": {
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: needs Gitea\n"}`,
				`{"Action":"skip","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p","Test":"TestB"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			want: "ok   p 0.0s: 1 passed, 0 failed, 1 skipped\nskipped p.TestA: a_test.go:1: needs Gitea\n1 passed, 0 failed, 1 skipped\n",
			ok:   true,
		},
		"a skipped test that must run is a failure": {
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"no ../shared/kalypso\n"}`,
				`{"Action":"skip","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			mustRun: "(?i)Kalypso",
			want:    "--- must not be skipped: p.TestA: no ../shared/kalypso\nFAIL p 0.0s: 0 passed, 1 failed, 0 skipped\n0 passed, 1 failed, 0 skipped\n",
		},
		"a skipped test that another run has may be skipped": {
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestOnGitea","Output":"a_test.go:1: ` + "`make acceptance`" + ` runs it\n"}`,
				`{"Action":"skip","Package":"p","Test":"TestOnGitea"}`,
				`{"Action":"pass","Package":"p","Test":"TestB"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			mustRun: "(?i)gitea",
			want:    "ok   p 0.0s: 1 passed, 0 failed, 1 skipped\nskipped p.TestOnGitea: a_test.go:1: `make acceptance` runs it\n1 passed, 0 failed, 1 skipped\n",
			ok:      true,
		},
		"a package that does not build is a failure": {
			events: []string{
				`{"Action":"build-output","ImportPath":"p [p.test]","Output":"a.go:1: undefined: x\n"}`,
				`{"Action":"build-fail","ImportPath":"p [p.test]"}`,
				`{"Action":"output","Package":"p","Output":"FAIL p [build failed]\n"}`,
				`{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`,
			},
			want: "a.go:1: undefined: x\nFAIL p [build failed]\nFAIL p 0.0s: 0 passed, 1 failed, 0 skipped\n0 passed, 1 failed, 0 skipped\n",
		},
		"a test that never ended is a failure": {
			events: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"half a line\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: "--- did not finish: p.TestA\nhalf a line\nFAIL p 0.0s: 0 passed, 1 failed, 0 skipped\n0 passed, 1 failed, 0 skipped\n",
		},
		"no tests at all is not a success": {
			events: []string{`{"Action":"skip","Package":"p"}`},
			want:   "0 passed, 0 failed, 0 skipped\n",
		},
		"a line that is no event is passed on": {
			events: []string{`go: warning`, `{"Action":"pass","Package":"p","Test":"TestA"}`, `{"Action":"pass","Package":"p"}`},
			want:   "go: warning\nok   p 0.0s: 1 passed, 0 failed, 0 skipped\n1 passed, 0 failed, 0 skipped\n",
			ok:     true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			summary := newSummary(&out)
			if test.mustRun != "" {
				summary.mustRun = regexp.MustCompile(test.mustRun)
			}
			if err := summary.read(strings.NewReader(strings.Join(test.events, "\n") + "\n")); err != nil {
				t.Fatal(err)
			}
			summary.finish()
			if out.String() != test.want {
				t.Errorf("got\n%s\nwant\n%s", &out, test.want)
			}
			if summary.ok() != test.ok {
				t.Errorf("ok is %t, want %t", summary.ok(), test.ok)
			}
		})
	}
}
