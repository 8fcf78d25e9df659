package fleet_test

import (
	"os"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// TestTheGuideHasTheSettingsOfHydration compares the table in the guide with the attributes of hydration.
func TestTheGuideHasTheSettingsOfHydration(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../templates/guides/how-it-works.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range fleet.RootTable().Attributes {
		if kind.Name != "hydration" {
			continue
		}
		for _, attribute := range kind.Of.Attributes {
			standard, _ := attribute.Default.(string)
			_, row, _ := strings.Cut(string(guide), "\n| `"+attribute.Name+"` | ")
			row, _, _ = strings.Cut(row, "\n")
			for _, value := range append(attribute.Allowed, standard) {
				if !strings.Contains(row, "`"+value+"`") {
					t.Errorf("the row of %s does not name %s", attribute.Name, value)
				}
			}
			if !strings.Contains(row, "`"+standard+"` (default)") && !strings.Contains(row, "default `"+standard+"`") {
				t.Errorf("the guide does not say that %s is %s by default", attribute.Name, standard)
			}
		}
		return
	}
	t.Error("the root table has no hydration")
}
