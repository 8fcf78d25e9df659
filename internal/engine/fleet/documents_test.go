package fleet_test

import (
	"reflect"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

func TestTextsAreReadAsByTheirAgent(t *testing.T) {
	t.Parallel()
	for apiVersion, want := range map[string]any{
		"helm.toolkit.fluxcd.io/v2": map[string]any{"country": "NO", "y": "yes", "since": "2024-01-01"},
		"argoproj.io/v1alpha1":      map[string]any{"country": false, "true": true, "since": "2024-01-01"},
	} {
		texts, known, findings := fleet.ReadTexts([]any{"apiVersion: " + apiVersion + "\nvalues: {country: NO, y: yes, since: 2024-01-01}\n"})
		if !known || len(findings) > 0 || len(texts) != 1 || len(texts[0].Documents) != 1 {
			t.Fatalf("%s: %v %v", apiVersion, texts, findings)
		}
		if got := texts[0].Documents[0].Value.(map[string]any)["values"]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", apiVersion, got, want)
		}
	}
}
