package evidence_test

import (
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func TestDocumentsAreParsedByKind(t *testing.T) {
	t.Parallel()
	for name, text := range map[string][]byte{
		"compliance": (&observe.Evidence{Time: noon, Clusters: map[string]observe.ClusterEvidence{}}).Marshal(),
		"compliance with a cluster named kind": (&observe.Evidence{Time: noon, Clusters: map[string]observe.ClusterEvidence{
			"kind": {Type: "small"},
		}}).Marshal(),
		"facts": (&evidence.Facts{Time: noon, Clusters: map[string]evidence.ClusterFacts{}}).Marshal(),
	} {
		kind, _, _ := strings.Cut(name, " ")
		d, err := evidence.ParseDocument(text)
		if name != kind { // its cluster has no verdict
			if err == nil || !strings.Contains(err.Error(), `"kind"`) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || (d.Compliance != nil) != (kind == "compliance") || (d.Facts != nil) != (kind == "facts") {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		if _, err := evidence.ParseCompliance(text); (err == nil) != (kind == "compliance") {
			t.Errorf("ParseCompliance of %s: %v", name, err)
		}
	}
	for text, want := range map[string]string{
		`{"kind": "figures"}`:                `the evidence has the kind "figures"`,
		`{"kind": 1}`:                        "its kind is not a text",
		`{"kind": "facts"`:                   "it is not JSON",
		`{"format":"1","k\u0069nd":"facts"}`: "it has the format",
		``:                                   "not what flotilla_compliance gives",
		`{"kind": "facts", "a": 1}`:          "not what flotilla_cluster_facts gives",
	} {
		if _, err := evidence.ParseDocument([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestTheTimeOfAListIsTheTimeOfItsOldestDocument(t *testing.T) {
	t.Parallel()
	list := evidence.List{
		{
			Compliance: &observe.Evidence{Time: noon},
		}, {Facts: &evidence.Facts{Time: noon.Add(-time.Minute)}}, {Compliance: &observe.Evidence{Time: noon.Add(time.Hour)}},
	}
	if got := list.Time(); !got.Equal(noon.Add(-time.Minute)) {
		t.Error(got)
	}
	if got := (evidence.List{}).Time(); !got.IsZero() {
		t.Error(got)
	}
}
