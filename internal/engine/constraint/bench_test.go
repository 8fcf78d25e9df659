package constraint_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// fiftyRules returns ten rules about hosts, ten about deployment targets, twenty about assignments (half of them read config),
// and ten about objects, five of them limited to a kind.
func fiftyRules() (rules, objectRules []fleet.Constraint) {
	add := func(expression string, kinds ...string) {
		rule := fleet.Constraint{
			Name:       fmt.Sprintf("rule-%02d", len(rules)+len(objectRules)),
			Expression: expression,
			Mode:       fleet.Inform,
			Match:      fleet.ConstraintMatch{Kinds: kinds},
		}
		if len(rules) == 40 {
			objectRules = append(objectRules, rule)
			return
		}
		rules = append(rules, rule)
	}
	for i := range 5 {
		add(fmt.Sprintf(`host.labels[?"region"].orValue("") != "region-%d"`, i))
		add(fmt.Sprintf(`host.cluster != "" || size(host.clusters) <= 1000 - %d`, i))
		add(fmt.Sprintf(`target.manifests.storage != "git" || target.manifests.repo.startsWith("https://git%d.example.com/")`, i))
		add(fmt.Sprintf(`target.hosts.map(h, h.labels[?"region"].orValue("")).distinct().size() > %d`, i))
		add(fmt.Sprintf(`assignment.namespace.size() < 60 - %d && !format.dns1123Label().validate(assignment.namespace).hasValue()`, i))
		add(fmt.Sprintf(`host.reconciler == "flux" || target.manifests.storage == "git" || size(workspace.contributor_groups) > %d`, i))
		add(fmt.Sprintf(`config.all(key, !key.lowerAscii().matches("password%d|secret|token"))`, i))
		add(fmt.Sprintf(`!("LOG_LEVEL" in config) || config.LOG_LEVEL != "trace%d"`, i))
	}
	for i := range 5 {
		add(fmt.Sprintf(`object.kind != "Service" || object.spec.type != "LoadBalancer%d"`, i))
		add(fmt.Sprintf(`object.data.all(k, k != "password%d")`, i), "ConfigMap")
	}
	return rules, objectRules
}

// BenchmarkFiftyRules evaluates the rules over the reference fleet, with and without those about objects. It includes the
// rendering of the objects, but not the compilation of the rules.
func BenchmarkFiftyRules(b *testing.B) {
	decoded, findings := fleet.Decode(fleettest.Input(fleettest.Reference(fleettest.ReferenceAssignments, 1)))
	if len(findings) > 0 {
		b.Fatal(findings)
	}
	value, err := decoded.Value()
	if err != nil {
		b.Fatal(err)
	}
	result := compute(b, value)
	subjects := subjectsOf(result)
	rules, objectRules := fiftyRules()
	for _, test := range []struct {
		name  string
		rules []fleet.Constraint
	}{
		{"forty-without-objects", rules},
		{"fifty", append(rules, objectRules...)},
		{"five-of-config-maps", []fleet.Constraint{objectRules[1], objectRules[3], objectRules[5], objectRules[7], objectRules[9]}},
	} {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			program, findings := constraint.Compile(test.rules)
			if len(findings) > 0 {
				b.Fatal(findings)
			}
			runtime.GC()
			evaluations, rounds, began := 0, 0, fleettest.ProcessorTime()
			for b.Loop() {
				rounds++
				results, err := program.Check(context.Background(), subjects)
				if err != nil {
					b.Fatal(err)
				}
				evaluations = 0
				for _, rule := range results.Rules {
					if rule.Error != "" {
						b.Fatal(rule.Name, rule.Error)
					}
					evaluations += rule.Looked
				}
			}
			b.ReportMetric(float64(evaluations), "evaluations")
			b.ReportMetric(float64((fleettest.ProcessorTime()-began).Milliseconds())/float64(rounds), "cpu-ms/op")
		})
	}
	b.Run("compile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, findings := constraint.Compile(append(rules, objectRules...)); len(findings) > 0 {
				b.Fatal(findings)
			}
		}
	})
}
