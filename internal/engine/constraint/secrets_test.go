package constraint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// shopWithSecrets returns the shop with secret references for the hosts of region "east".
func shopWithSecrets(version string) string {
	return strings.NewReplacer(
		"{name: small, labels: {region: east, size: small}}",
		"{name: small, labels: {region: east, size: small}, secret_service: external-secrets, secret_stores: {vault: {}}}",
		`EAST: "yes"}}`,
		`EAST: "yes"}, secrets: {TOKEN: {store: vault, key: shop/token}, PASSWORD: {store: vault, key: shop/db, property: password, version: `+version+`}}}`,
	).Replace(shop)
}

// Rules read the references, never the secrets. A misspelt field does not compile.
func TestRulesReadSecretReferences(t *testing.T) {
	t.Parallel()
	subjects := subjectsOf(computeFleet(t, shopWithSecrets("'3'")))
	for expression, want := range map[string][]string{
		`secrets.all(key, secrets[key].version != "")`:                                    {"small/site-all"},
		`secrets.all(key, secrets[key].store == "vault")`:                                 nil,
		`host.name != "small" || secrets.PASSWORD.key == "shop/db"`:                       nil,
		`host.name != "small" || secrets.PASSWORD.property == "password"`:                 nil,
		`host.name != "small" || has(secrets.PASSWORD.version)`:                           nil,
		`host.name != "small" || !has(secrets.TOKEN.version)`:                             nil,
		`!("PASSWORD" in secrets)`:                                                        {"small/site-all"},
		`!("PASSWORD" in config)`:                                                         nil,
		`!secrets.exists(key, key in config)`:                                             nil,
		`object.kind != "ExternalSecret" || size(secrets) == object.spec.data.size() + 1`: {"small/site-all"},
	} {
		result := checkRule(t, subjects, fleet.Constraint{Name: "rule", Expression: expression})
		var got []string
		for _, violation := range result.Violations {
			got = append(got, violation.Subject.Assignment)
		}
		if slices.Sort(got); !slices.Equal(slices.Compact(got), want) {
			t.Errorf("%s: violated by %q, want %q", expression, got, want)
		}
	}
	findings := constraint.CheckConstraint(fleet.Constraint{Name: "rule", Expression: `secrets.all(key, secrets[key].versions != "")`})
	if len(findings) != 1 || !strings.Contains(findings.Error(), "version") {
		t.Errorf("misspelt field: %s", findings.Error())
	}
}

func TestRuleWaitsForUnknownSecretReferences(t *testing.T) {
	t.Parallel()
	subjects := subjectsOf(computeFleet(t, shopWithSecrets("UNKNOWN")))
	result := checkRule(
		t,
		subjects,
		fleet.Constraint{Name: "rule", Expression: `host.name == "large" || secrets.all(key, secrets[key].version != "")`},
	)
	if len(result.WaitsFor) != 1 || result.WaitsFor[0] != `config container "east"` {
		t.Errorf("the rule waits for %v", result.WaitsFor)
	}
}
