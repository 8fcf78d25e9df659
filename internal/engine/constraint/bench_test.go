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

// fiftyRules are of all kinds, as a company may have them: ten over hosts, ten over deployment targets, twenty over
// assignments, half of these about config, and ten over objects, five of which say of what kind.
func fiftyRules() (rules, ofObjects []fleet.Constraint) {
	add := func(expression string, kinds ...string) {
		rule := fleet.Constraint{
			Name:       fmt.Sprintf("rule-%02d", len(rules)+len(ofObjects)),
			Expression: expression,
			Mode:       fleet.Inform,
			Match:      fleet.ConstraintMatch{Kinds: kinds},
		}
		if len(rules) == 40 {
			ofObjects = append(ofObjects, rule)
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
	return rules, ofObjects
}

// BenchmarkFiftyRules evaluates fifty rules over the reference fleet, without those about objects and with them. What
// renders the objects is counted. The rules are compiled before.
func BenchmarkFiftyRules(b *testing.B) {
	decoded, findings := fleet.Decode(fleettest.Input(fleettest.Reference(fleettest.ReferenceAssignments, 1)))
	if len(findings) > 0 {
		b.Fatal(findings)
	}
	value, err := decoded.Value()
	if err != nil {
		b.Fatal(err)
	}
	result := resultOf(b, value)
	subjects := subjectsOf(result)
	rules, ofObjects := fiftyRules()
	for _, test := range []struct {
		name  string
		rules []fleet.Constraint
	}{
		{"forty-without-objects", rules},
		{"fifty", append(rules, ofObjects...)},
		{"five-of-config-maps", []fleet.Constraint{ofObjects[1], ofObjects[3], ofObjects[5], ofObjects[7], ofObjects[9]}},
	} {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			program, findings := constraint.Compile(test.rules)
			if len(findings) > 0 {
				b.Fatal(findings)
			}
			runtime.GC()
			looked, rounds, began := 0, 0, fleettest.ProcessorTime()
			for b.Loop() {
				rounds++
				results, err := program.Check(context.Background(), subjects)
				if err != nil {
					b.Fatal(err)
				}
				looked = 0
				for _, rule := range results.Rules {
					if rule.Error != "" {
						b.Fatal(rule.Name, rule.Error)
					}
					looked += rule.Looked
				}
			}
			b.ReportMetric(float64(looked), "evaluations")
			b.ReportMetric(float64((fleettest.ProcessorTime()-began).Milliseconds())/float64(rounds), "cpu-ms/op")
		})
	}
	b.Run("compile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, findings := constraint.Compile(append(rules, ofObjects...)); len(findings) > 0 {
				b.Fatal(findings)
			}
		}
	})
}
