package evidence_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// FuzzList parses two documents of any kind. Accepted documents have a time and survive Marshal and ParseDocument. A rollout can decide by
// their reports.
func FuzzList(f *testing.F) {
	for _, d := range []evidence.Document{
		{Compliance: &observe.Evidence{Time: noon, Clusters: map[string]observe.ClusterEvidence{"a-1": {Type: "a", Status: verdict.Status{Verdict: verdict.Ready}}}}},
		factsOf(verdict.Ready, "a-1"), factsOf(verdict.Unknown, "b-1"),
		measurementsOf(evidence.OfCluster, "value < 1.0", "value > 5.0", map[string]float64{"a-1": 0.5}), measurementsOf(evidence.OfHost, "value < rest", "", map[string]float64{"a": 1, "b": 2}),
	} {
		f.Add(string(marshal(d)), string(factsOf(verdict.Ready, "a-1").Facts.Marshal()))
	}
	f.Add(`{"kind":"facts"}`, `{"kind":null}`)
	settings, _, findings := rollout.Decode(map[string]any{"stages": []any{map[string]any{"name": "a", "hosts": []any{"a"}}}})
	if len(findings) > 0 {
		f.Fatal(findings)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		var list evidence.List
		for _, text := range []string{first, second} {
			d, err := evidence.ParseDocument([]byte(text))
			if err != nil {
				continue
			}
			list = append(list, d)
			written := marshal(d)
			again, err := evidence.ParseDocument(written)
			if err != nil || string(marshal(again)) != string(written) || d.Time().IsZero() || !again.Time().Equal(d.Time()) {
				t.Fatalf("%q, then %q: %v", written, marshal(again), err)
			}
			if _, err := evidence.ParseCompliance([]byte(text)); (err == nil) != (d.Compliance != nil) {
				t.Errorf("ParseCompliance: %v", err)
			}
		}
		in := newStepInput()
		in.Now = list.Time()
		var lookups []evidence.Lookup
		for _, d := range list {
			if d.Compliance != nil && len(d.Compliance.Clusters) > 0 {
				lookups = append(lookups, func(cluster string, key folder.Key) rollout.Report {
					content := d.Compliance.Assignment(cluster, key.String())
					return rollout.Report{Known: content.Known, Tree: content.Tree, Status: content.Status}
				})
			}
		}
		lookup := list.Reports(in, lookups...)
		if (lookup != nil) != list.Speaks() {
			t.Fatalf("Speaks is %v, want %v", list.Speaks(), lookup != nil)
		}
		if lookup == nil {
			return
		}
		if report := lookup("a-1", onA); verdict.Compare(report.Verdict, verdict.Failed) < 0 || report.Verdict == verdict.Ready && report.Known && report.Tree == "new" &&
			!in.Now.After(in.Records[onA].Changed) && len(lookups) == 0 {
			t.Errorf("%+v", report)
		}
		in.Reports, in.Settings = lookup, settings
		for _, line := range rollout.Advance(in).Lines() {
			if strings.ContainsAny(line, "\n\r\x1b") || len(line) > 1000 {
				t.Errorf("got line %q in the plan", line)
			}
		}
	})
}

func marshal(d evidence.Document) []byte {
	switch {
	case d.Facts != nil:
		return d.Facts.Marshal()
	case d.Measurements != nil:
		return d.Measurements.Marshal()
	}
	return d.Compliance.Marshal()
}
