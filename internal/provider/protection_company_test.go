package provider_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// companyLocals evaluates the locals of examples/company, after replacing the text old.
func companyLocals(t *testing.T, old, replacement string) map[string]any {
	t.Helper()
	unevaluated := map[string]hclsyntax.Expression{}
	replaced := old == ""
	for _, name := range []string{"hosts.tf", "policies.tf", "teams.tf"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "examples", "company", name))
		if err != nil {
			t.Fatal(err)
		}
		replaced = replaced || strings.Contains(string(text), old)
		file, problems := hclsyntax.ParseConfig([]byte(strings.Replace(string(text), old, replacement, 1)), name, hcl.InitialPos)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		for _, block := range file.Body.(*hclsyntax.Body).Blocks {
			for name, attribute := range block.Body.Attributes {
				unevaluated[name] = attribute.Expr
			}
		}
	}
	if !replaced {
		t.Fatalf("the example has no %q", old)
	}
	functions := map[string]function.Function{
		"concat": stdlib.ConcatFunc, "flatten": stdlib.FlattenFunc, "jsonencode": stdlib.JSONEncodeFunc,
	}
	evaluated, values := map[string]cty.Value{}, map[string]any{}
	for progress := true; len(unevaluated) > 0 && progress; { // a local may refer to others
		progress = false
		for name, expression := range maps.Clone(unevaluated) {
			value, problems := expression.Value(
				&hcl.EvalContext{Functions: functions, Variables: map[string]cty.Value{"local": cty.ObjectVal(evaluated)}},
			)
			if problems.HasErrors() {
				continue
			}
			text, err := ctyjson.Marshal(value, value.Type())
			var plain any
			if err == nil {
				err = json.Unmarshal(text, &plain)
			}
			if err != nil {
				t.Fatal(err)
			}
			delete(unevaluated, name)
			evaluated[name], values[name], progress = value, plain, true
		}
	}
	if len(unevaluated) > 0 {
		t.Fatalf("locals that cannot be evaluated: %v", unevaluated)
	}
	return values
}

// companyProdConfig returns prod of examples/company, without a rollout.
func companyProdConfig(t *testing.T, url, old, replacement string) providertest.Configuration {
	t.Helper()
	locals := companyLocals(t, old, replacement)
	fleet := map[string]any{"environment": "prod", "environments": []any{"dev", "stage", "prod"}, "workloads": []any{}}
	for _, key := range []string{"workspaces", "cluster_types", "clusters", "target_policies", "config_containers", "config_schemas", "constraints"} {
		fleet[key] = locals[key]
	}
	for team, members := range locals["teams"].(map[string]any) {
		for name, place := range members.(map[string]any)["workloads"].(map[string]any) {
			fleet["workloads"] = append(fleet["workloads"].([]any), map[string]any{
				"name": name, "workspace": team, "labels": map[string]any{"place": place},
				"deployment_targets": map[string]any{"prod": map[string]any{
					"environment": "prod", "manifests": map[string]any{"repo": "https://git.example.com/" + team + "/" + name, "tag": "v1"},
				}},
			})
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "company", "environment", "main.tf"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "  # A wrong label must not empty a region.\n  protection = { max_removed_percent = 10 }\n") {
		t.Fatal("the example has another protection")
	}
	return assigned(
		url,
		providertest.Call{Function: "fleet", Arguments: []any{fleet}},
		map[string]any{"protection": map[string]any{"max_removed_percent": 10}},
	)
}

func TestAWrongLabelEmptiesNoRegionOfACompany(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	apply(t, w, companyProdConfig(t, url, "", ""))
	for _, wrong := range []struct{ old, label, want string }{
		{`{ kind = "edge", region = region }`, `{ kind = region == "us" ? "egde" : "edge", region = region }`, `"stores-us" loses all 4`},
		{`{ kind = "edge", region = region }`, `{ kind = region == "eu" ? "egde" : "edge", region = region }`, `"stores-eu" loses all 4`},
		{`{ kind = "cloud", region = region }`, `{ kind = region == "asia" ? "clout" : "cloud", region = region }`, `"cloud-asia" loses all 8`},
		{`{ kind = "edge", ring = "canary", region = "eu" }`, `{ ring = "canary", region = "eu" }`, `"canary" loses all 4`},
		{`[{ key = "edge", value = "true" }] # only`, `region == "asia" ? [{ key = "store" }] : [{ key = "edge" }] # only`, `"stores-asia" loses all 4`},
		{`till = "edge"`, `till = "egde"`, `"till" leaves 4 of 4`},
		{`ledger = "cloud"`, `ledger = "clout"`, `"ledger" leaves 3 of 3`},
		{`"place in (edge, everywhere)"`, `"place in (egde, everywhere)"`, "Mass deletion"},
	} {
		_, diags := w.Plan(t.Context(), companyProdConfig(t, url, wrong.old, wrong.label))
		if diags.Err() == nil || !strings.Contains(diags.String(), wrong.want) || !strings.Contains(diags.String(), "The cause:\n- ") {
			t.Errorf("%s: got %s, want an error with %s", wrong.label, diags, wrong.want)
		}
	}
	// Small, intended changes are allowed.
	for _, change := range []struct{ old, now string }{
		{`tokyo`, `osaka`},
		{`match_labels = { city = "lisbon" }`, `match_labels = { city = "warsaw" }`},
		{`loyalty       = { cpu = "2", workloads = { points = "cloud" } }`, `loyalty       = { cpu = "2", workloads = {} }`},
	} {
		if _, diags := w.Plan(t.Context(), companyProdConfig(t, url, change.old, change.now)); diags.Err() != nil {
			t.Errorf("%s: %s", change.now, diags)
		}
	}
}
