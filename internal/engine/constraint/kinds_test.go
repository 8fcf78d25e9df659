package constraint_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

func TestMisspeltKindIsAWarning(t *testing.T) {
	for kind, want := range map[string]string{
		"Deploymnt":              `constraints["rule"].match.kinds: "Deploymnt" is no kind that Flotilla knows, so that the rule may hold for nothing; did you mean "Deployment"?`,
		"apps/Deploymnet":        `did you mean "Deployment"?`,
		"Kustomisation":          `did you mean "Kustomization"?`,
		"Deployment":             "",
		"apps/v1/Deployment":     "",
		"HelmRelease":            "",
		"Certificate":            "",
		"ExternalSecret":         "",
		"PrometheusRule":         "",
		"cert-manager.io/Issuer": "",
	} {
		found := constraint.Warnings([]fleet.Constraint{{Name: "rule", Match: fleet.ConstraintMatch{Kinds: []string{kind}}}})
		if want == "" && found != nil || want != "" && !strings.Contains(found.Error(), want) {
			t.Errorf("%s: %v, want %q", kind, found, want)
		}
	}
}
