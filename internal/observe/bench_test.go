package observe_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/verdict"
)

// BenchmarkObserve judges the reference fleet: 3,000 clusters of 500 types with 40 assignments each, at forty
// commits, and makes the evidence.
func BenchmarkObserve(b *testing.B) {
	in := observe.Input{
		Time: time.Unix(1_800_000_000, 0), Tip: commitNumber(0), Types: map[string]string{},
		Reports: map[string]observe.Report{}, Commits: map[string]observe.Commit{},
	}
	for c := range 40 {
		in.Commits[commitNumber(c)] = observe.Commit{ID: commitNumber(c), Behind: c, Trees: map[string]map[string]string{}}
	}
	for i := range 500 {
		host := fmt.Sprintf("type-%03d", i)
		for c := range 40 {
			in.Commits[commitNumber(c)].Trees[host] = map[string]string{}
		}
		for j := range 40 {
			target := fmt.Sprintf("workload-%02d-main", j)
			in.Folders = append(in.Folders, observe.Folder{Host: host, DeploymentTarget: target, Tree: treeA})
			for c := range 40 {
				in.Commits[commitNumber(c)].Trees[host][target] = treeA
			}
			in.Commits[commitNumber(39-j)].Trees[host][target] = treeB
		}
		for k := range 6 {
			name := fmt.Sprintf("%s-%d", host, k)
			in.Types[name] = host
			in.Reports[name] = observe.Given(observe.Said{Commit: commitNumber((i + k) % 40), Verdict: verdict.Ready, Since: in.Time})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		evidence := observe.Observe(in).Evidence().Marshal()
		if _, err := observe.Parse(evidence); err != nil {
			b.Fatal(err)
		}
	}
}

func commitNumber(c int) string { return fmt.Sprintf("%040x", c) }
