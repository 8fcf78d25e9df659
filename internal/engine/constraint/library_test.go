package constraint_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// compliantFleet satisfies all rules of the library, and each of them applies to some part of it.
const compliantFleet = `
environment: prod
workspaces:
- {name: shop, contributor_groups: [shop-developers], resource_quota: {limits.cpu: "16"}, network_policy: isolated}
cluster_types:
- {name: core, labels: {region: east}, namespace_service: own}
- {name: edge, labels: {region: west, edge: "true"}, namespace_service: own}
workloads:
- name: till
  workspace: shop
  labels: {tier: critical}
  deployment_targets:
    live: {environment: prod, manifests: {repo: "https://git.example.com/till", tag: v1.4.0}}
- name: store
  workspace: shop
  deployment_targets:
    all: {environment: prod, manifests: {storage: helm, repo: "https://charts.example.com/stable", chart: db, version: 4.2.1}}
target_policies: [{name: everywhere, cluster_type_selector: {}}]
config_containers: [{name: all, data: {LOG_LEVEL: info, REPLICAS: 3, ENDPOINT: api.example.com, deep: {a: b}}}]
templates:
- name: own
  type: namespace
  manifests:
  - |
    apiVersion: v1
    kind: Namespace
    metadata: {name: "{{ .Namespace }}", labels: {team: "{{ .Workspace }}"}}
    ---
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: app, namespace: "{{ .Namespace }}"}
    spec:
      replicas: 2
      template:
        spec:
          containers:
          - {name: app, resources: {limits: {memory: 1Gi}}, securityContext: {privileged: false}}
    ---
    apiVersion: v1
    kind: Service
    metadata: {name: app, namespace: "{{ .Namespace }}"}
    spec: {type: ClusterIP}
`

// breaches maps each rule of the library to a change that makes compliantFleet violate it, and to the start of the message.
var breaches = map[string]struct{ from, to, message string }{
	"no-mutable-refs":        {"tag: v1.4.0", "branch: main", "A branch, or a tag such as latest"},
	"charts-have-versions":   {"version: 4.2.1", `version: ">=4.2"`, "the chart db has no exact version"},
	"allowed-repositories":   {"https://git.example.com/till", "https://git.example.org/till", "Manifests come from"},
	"names":                  {"name: till", "name: till-prod", "A workload has a name"},
	"two-regions":            {"region: west, edge", "region: east, edge", "till-live is on core, edge alone"},
	"hosts-have-regions":     {"{region: east}", "{size: large}", "A host says in which region"},
	"not-too-many-on-a-host": {},
	"quotas":                 {`resource_quota: {limits.cpu: "16"}, `, "", "A workspace with contributors has a quota"},
	"quotas-are-bounded":     {`limits.cpu: "16"`, `limits.cpu: "65"`, "More than 64 processors"},
	"isolated":               {"network_policy: isolated", "network_policy: none", "Workspaces do not reach"},
	"no-secrets":             {"REPLICAS: 3", "DB_PASSWORD: x", "a key smells of a secret: DB_PASSWORD"},
	"log-levels":             {"LOG_LEVEL: info", "LOG_LEVEL: trace", "LOG_LEVEL is info, warn or error"},
	"no-hosts-of-dev":        {"api.example.com", "api.dev.example.com", "Values of prod name no hosts of dev."},
	"unhurried": {
		"{name: core, labels: {region: east},",
		"{name: core, labels: {region: east}, parameters: {kustomization: {interval: 5s}},",
		"Reconciling more often",
	},
	"namespaces-tell-their-workspace": {`team: "{{ .Workspace }}"`, "team: nobody", "failed expression: has(object.metadata.labels)"},
	"limits":                          {"limits: {memory: 1Gi}", "requests: {memory: 1Gi}", "no limit of memory: app"},
	"pod-security":                    {"privileged: false", "privileged: true", "privileged (container "},
	"replicas":                        {"replicas: 2", "replicas: 1", "One replica alone"},
	"no-load-balancers-on-edge":       {"type: ClusterIP", "type: LoadBalancer", "There is nobody on the edge"},
}

func TestEachLibraryRuleAcceptsAndRejects(t *testing.T) {
	t.Parallel()
	rules := readConstraints(t, "library")
	if len(rules) != len(breaches) {
		t.Errorf("the library has %d rules, and %d of them are tested", len(rules), len(breaches))
	}
	good := checkRules(t, subjectsOf(computeFleet(t, compliantFleet)), rules...)
	for _, result := range good.Rules {
		if !result.Holds() || result.Looked == 0 || result.Passed != result.Looked {
			t.Errorf("compliant fleet, rule %s: %+v", result.Name, result)
		}
	}
	for _, rule := range rules {
		change, ok := breaches[rule.Name]
		if !ok {
			t.Errorf("rule %s is not tested", rule.Name)
		}
		if change.from == "" {
			continue // a breach needs hundreds of deployment targets on one host
		}
		result := checkRule(t, subjectsOf(computeFleet(t, replace(t, compliantFleet, change.from, change.to))), rule)
		if result.Violated == 0 || result.Failed > 0 {
			t.Errorf("breach of rule %s: %+v", rule.Name, result)
			continue
		}
		if got := result.Violations[0].Message; len(got) < len(change.message) || got[:len(change.message)] != change.message {
			t.Errorf("message of rule %s: %q, want %q", rule.Name, got, change.message)
		}
	}
}

// readConstraints reads the constraints of an example.
func readConstraints(t *testing.T, example string) []fleet.Constraint {
	t.Helper()
	file, diagnostics := hclparse.NewParser().ParseHCLFile(filepath.Join("..", "..", "..", "examples", "constraints", example, "main.tf"))
	if diagnostics.HasErrors() {
		t.Fatal(diagnostics)
	}
	locals := hclsyntax.Attributes{}
	for _, block := range file.Body.(*hclsyntax.Body).Blocks {
		if block.Type == "locals" {
			maps.Copy(locals, block.Body.Attributes)
		}
	}
	known := map[string]cty.Value{}
	scope := &hcl.EvalContext{Functions: map[string]function.Function{"jsonencode": stdlib.JSONEncodeFunc}}
	for name, attribute := range locals {
		if value, diagnostics := attribute.Expr.Value(scope); !diagnostics.HasErrors() {
			known[name] = value
		}
	}
	scope.Variables = map[string]cty.Value{"local": cty.ObjectVal(known)}
	value, diagnostics := locals["constraints"].Expr.Value(scope)
	if diagnostics.HasErrors() {
		t.Fatal(diagnostics)
	}
	var rules []fleet.Constraint
	for _, element := range value.AsValueSlice() {
		text, err := ctyjson.Marshal(element, element.Type())
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		rule, known := fleet.DecodeConstraint(fields)
		if !known {
			t.Fatalf("%s: %v", text, fleet.CheckObject("constraints", fields))
		}
		rules = append(rules, rule)
	}
	return rules
}
