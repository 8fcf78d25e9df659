package fleet_test

import (
	"math/rand"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// TestNamesFollowTheRulesOfKubernetes compares the checks of names with Kubernetes' own library.
func TestNamesFollowTheRulesOfKubernetes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewSource(25))
	valid := 0
	for range 20_000 {
		var b strings.Builder
		for range random.Intn(6) {
			b.WriteString(strings.Repeat(string("az09-.AZ_ /\n"[random.Intn(12)]), 1+random.Intn(2)*random.Intn(70)))
		}
		name := b.String()
		if len(validation.IsDNS1123Label(name)) == 0 {
			valid++
		}
		if (fleet.CheckLabelName(name) == "") != (len(validation.IsDNS1123Label(name)) == 0) {
			t.Errorf("label %q: %s", name, fleet.CheckLabelName(name))
		}
		if (fleet.CheckSubdomainName(name) == "") != (len(validation.IsDNS1123Subdomain(name)) == 0) {
			t.Errorf("subdomain %q: %s", name, fleet.CheckSubdomainName(name))
		}
	}
	if valid < 100 {
		t.Errorf("only %d names were valid", valid)
	}
}
