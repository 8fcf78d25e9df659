package provider_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
)

func TestGuideToUpgradingNamesTheFormatsOfEvidence(t *testing.T) {
	t.Parallel()
	var formats [3]struct{ Format string }
	for i, document := range [][]byte{(&observe.Evidence{}).Marshal(), (&evidence.Facts{}).Marshal(), (&evidence.Measurements{}).Marshal()} {
		if err := json.Unmarshal(document, &formats[i]); err != nil {
			t.Fatal(err)
		}
	}
	want := fmt.Sprintf(
		"evidence %s of `flotilla_compliance`, %s of `flotilla_cluster_facts`, %s of `flotilla_measurements`.",
		formats[0].Format,
		formats[1].Format,
		formats[2].Format,
	)
	if guide := strings.Join(strings.Fields(guideText(t, "night.md")), " "); !strings.Contains(guide, want) {
		t.Errorf("the guide does not say %q", want)
	}
}
