package fleet_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// baseOf decodes a fleet and returns the result of provider::flotilla::fleet.
func baseOf(t *testing.T, text string) map[string]any {
	t.Helper()
	decoded, findings := fleet.Decode(input(t, text))
	wantFindings(t, findings)
	return valueOf(decoded)
}

// valueOf returns a decoded fleet as users of the function see it.
func valueOf(decoded *fleet.Decoded) map[string]any {
	value, err := decoded.Value()
	if err != nil {
		panic(err)
	}
	entries := func(known map[string]string, pending []string) map[string]any {
		text, err := fleet.EncodeEntries(known)
		if err != nil {
			panic(err)
		}
		unknown := map[string]any{}
		for _, name := range pending {
			unknown[name] = fleet.Unknown{}
		}
		return map[string]any{"known": text, "pending": unknown}
	}
	return map[string]any{
		"format": value.Format, "environment": value.Environment, "model": value.Model,
		"config":      entries(value.Config, decoded.Pending),
		"manifests":   entries(value.Manifests, decoded.PendingManifests),
		"constraints": entries(value.Constraints, decoded.PendingConstraints),
	}
}

func TestAFleetAddsToItsBase(t *testing.T) {
	const base, more = `
environment: dev
workspaces: [{name: team}]
cluster_types: [{name: drone}]
workloads: [{name: hello, workspace: team, deployment_targets: {live: {environment: dev, manifests: {repo: 'https://x'}}}}]
config_containers: [{name: b, data: {x: 1}}]
hydration: {lists: merge}
`, `
environment: dev
cluster_types: [{name: large, reconciler: ours}]
clusters: [{name: drone-1, cluster_type: drone}]
workloads: [{name: more, workspace: team, requires: [hello], deployment_targets: {live: {environment: dev, manifests: {repo: 'https://x'}}}}]
config_containers: [{name: a, data: {x: 2}}]
templates: [{name: ours, type: reconciler, manifests: [x]}]
`
	value := input(t, more).(map[string]any)
	value["base"] = baseOf(t, base)
	decoded, findings := fleet.Decode(value)
	wantFindings(t, findings)

	both := input(t, strings.ReplaceAll(base, "\nenvironment: dev", "")).(map[string]any)
	for key, added := range input(t, more).(map[string]any) {
		list, isList := both[key].([]any)
		if isList {
			both[key] = append(list, added.([]any)...)
		} else {
			both[key] = added
		}
	}
	want, findings := fleet.Decode(both)
	wantFindings(t, findings)
	if got := model(t, decoded.Fleet); got != model(t, want.Fleet) {
		t.Errorf("model\n%s, want\n%s", got, model(t, want.Fleet))
	}
	if got, want := manifestsOf(t, decoded), manifestsOf(t, want); !maps.Equal(got, want) || len(got) != 2 {
		t.Errorf("manifests %v, want %v", got, want)
	}
	if len(decoded.Config) != 2 || decoded.Config["b"] != `{"x":1}` {
		t.Errorf("got config %v, want entries of both fleets", decoded.Config)
	}
}

func TestMistakesInABaseAreFindings(t *testing.T) {
	const base = "environment: dev\nworkspaces: [{name: team}]\ncluster_types: [{name: drone}]\nconfig_containers: [{name: a, data: {}}]\n" +
		"workloads: [{name: a-b, workspace: team, deployment_targets: {c: {environment: dev, manifests: {repo: 'https://x'}}}}]\n"
	for name, test := range map[string]struct {
		base   string
		change func(base map[string]any)
		input  string
		want   []string
	}{
		"duplicate names": {base, nil, "cluster_types: [{name: drone}]\nconfig_containers: [{name: a, data: {}}]", []string{
			`cluster_types["drone"].name: "drone" is also the name of the base fleet`, `config_containers["a"].name: "a" is also the name of the base fleet`,
		}},
		"colliding full names": {base, nil, "workloads: [{name: a, workspace: team, deployment_targets: {b-c: {environment: dev, manifests: {repo: 'https://x'}}}}]", []string{
			`workloads["a"].deployment_targets["b-c"]: a deployment target of workload "a-b" has the same full name "a-b-c"`,
		}},
		"an assignment twice": {base + "assignments: [{cluster_type: drone, deployment_target: a-b-c}]", nil, "assignments: [{cluster_type: drone, deployment_target: a-b-c}]", []string{
			`assignments[0]: "drone/a-b-c" is also the name of the base fleet`,
		}},
		"policies beside its assignments": {base + "assignments: []", nil, "target_policies: []", []string{"target_policies: the base fleet has assignments of its own"}},
		"another environment":             {"environment: prod", nil, "", []string{`base.environment: the base fleet is of environment "prod", this one of "dev"`}},
		"another environment's model":     {"environment: prod", func(b map[string]any) { b["environment"] = "dev" }, "", []string{`base.model: is of environment "prod", this fleet of "dev"`}},
		"no model":                        {base, func(b map[string]any) { delete(b, "model") }, "", []string{"base.model: is required"}},
		"an invalid model":                {base, func(b map[string]any) { b["model"] = "{}x" }, "", []string{"base.model: does not come from provider::flotilla::fleet"}},
		"no format":                       {base, func(b map[string]any) { delete(b, "format"); delete(b, "manifests") }, "clusters: [{name: a, cluster_type: drone}]", []string{`base.format: its format is "", this version takes "1"): make it again`}},
		"another format":                  {base, func(b map[string]any) { b["format"] = "3" }, "", []string{`base.format: was made by another version of the provider (its format is "3"`}},
		"no manifests":                    {base, func(b map[string]any) { delete(b, "manifests") }, "", []string{"base.manifests: is required"}},
		"a text as manifests":             {base, func(b map[string]any) { b["manifests"] = "x" }, "", []string{"base.manifests: must be an object, not a string"}},
		"no entry for manifests":          {base, func(b map[string]any) { b["manifests"] = map[string]any{"known": "{}"} }, "", []string{`base.manifests: deployment target "a-b-c" has no entry`}},
		"invalid manifests":               {base, func(b map[string]any) { b["manifests"] = map[string]any{"known": `{"a-b-c":{"repos":"x"}}`} }, "", []string{`base.manifests["a-b-c"]: must be the JSON of manifests`}},
		"no config":                       {base, func(b map[string]any) { delete(b, "config") }, "", []string{"base.config: is required"}},
		"no entry":                        {base, func(b map[string]any) { b["config"] = map[string]any{"known": "{}"} }, "", []string{`base.config: config container "a" has no entry`}},
		"an invalid entry":                {base, func(b map[string]any) { b["config"] = map[string]any{"known": `{"a":[1]}`} }, "", []string{`base.config["a"]: must be the JSON of an object`}},
		"invalid entries":                 {base, func(b map[string]any) { b["config"] = map[string]any{"known": "[]"} }, "", []string{"base.config.known: must be the JSON that provider::flotilla::fleet returned"}},
		"no entries":                      {base, func(b map[string]any) { b["config"] = map[string]any{} }, "", []string{"base.config.known: is required"}},
		"a misspelt key":                  {base, func(b map[string]any) { b["modell"] = "" }, "", []string{`base.modell: did you mean "model"?`}},
	} {
		t.Run(name, func(t *testing.T) {
			value := input(t, "environment: dev\n"+test.input).(map[string]any)
			baseValue := baseOf(t, test.base)
			if test.change != nil {
				test.change(baseValue)
			}
			value["base"] = baseValue
			_, findings := fleet.Decode(value)
			wantFindings(t, findings, test.want...)
		})
	}
}
