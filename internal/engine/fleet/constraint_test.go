package fleet_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

func TestMistakesInConstraintsAreFindings(t *testing.T) {
	for name, test := range map[string]struct {
		constraints string
		want        []string
	}{
		"nothing":       {"[{}]", []string{"constraints[0].name: is required", "constraints[0].expression: is required"}},
		"an empty rule": {"[{name: a, expression: ''}]", []string{`constraints["a"].expression: is required`}},
		"a bool as rule": {"[{name: a, expression: true}]", []string{
			`constraints["a"].expression: must be a string, not a bool`,
		}},
		"an unknown mode": {"[{name: a, expression: x, mode: enforced}]", []string{
			`constraints["a"].mode: must be one of enforce, inform, not "enforced"; did you mean "enforce"?`,
		}},
		"an invalid name": {"[{name: 'A b', expression: x}]", []string{`constraints["A b"].name: "A b" is not a DNS subdomain`}},
		"duplicate names": {"[{name: a, expression: x}, {name: a, expression: z}]", []string{
			`constraints[1].name: "a" is also the name of constraints[0]`,
		}},
		"an attribute of another kind": {"[{name: a, expression: x, match: {workload_selector: {match_label: {a: b}}}}]", []string{
			`constraints["a"].match.workload_selector.match_label: unknown attribute; did you mean "match_labels"?`,
		}},
		"an invalid selector": {"[{name: a, expression: x, match: {cluster_selector: {expression: 'a in'}}}]", []string{
			`constraints["a"].match.cluster_selector.expression: at character 1`,
		}},
		"an unknown workspace": {"[{name: a, expression: x, match: {workspace: taem}}]", []string{
			`constraints["a"].match.workspace: no workspace of environment "dev" is called "taem"; did you mean "team"?`,
		}},
		"an unknown environment": {"[{name: a, expression: x, environment: pord}]", []string{
			`constraints["a"].environment: no environment is called "pord"; did you mean "prod"?`,
		}},
		"an invalid kind": {"[{name: a, expression: x, match: {kinds: [Namespace, apps/Deployment, apps/v1]}}]", []string{
			`constraints["a"].match.kinds[2]: "apps/v1" is not the kind of a Kubernetes object`,
		}},
		"a long invalid kind": {"[{name: a, expression: x, match: {kinds: [" + strings.Repeat("k", 1000) + "]}}]", []string{
			`constraints["a"].match.kinds[0]: "` + strings.Repeat("k", 80) + `" is not the kind of a Kubernetes object`,
		}},
		"a message above the limit": {"[{name: a, expression: x, message: " + strings.Repeat("m", 1025) + "}]", []string{
			`constraints["a"].message: has 1025 characters, and 1024 are the most`,
		}},
		"one object":                          {"{name: a, expression: x}", []string{"constraints: must be a list or map of objects: this is one object, write [...] around it"}},
		"a text":                              {"a", []string{"constraints: must be a list, tuple, set or map of objects, not a string"}},
		"a constraint of another environment": {"[{name: a, environment: prod, expression: x}, {name: a, expression: z}]", nil},
		"a map":                               {"{b: {name: a, expression: x}}", nil},
		"null":                                {"null", nil},
		"an absent element":                   {"[null]", []string{"constraints[0]: must be an object, not null"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := fleet.Decode(
				input(t, "environment: dev\nenvironments: [dev, prod]\nworkspaces: [{name: team}]\nconstraints: "+test.constraints),
			)
			wantFindings(t, findings, test.want...)
		})
	}
}

func TestConstraintsDoNotChangeTheModel(t *testing.T) {
	whole := input(t, everything).(map[string]any)
	with, findings := fleet.Decode(whole)
	wantFindings(t, findings)
	delete(whole, "constraints")
	without, findings := fleet.Decode(whole)
	wantFindings(t, findings)
	if model(t, with.Fleet) != model(t, without.Fleet) {
		t.Error("the model differs")
	}
	value, err := with.Value()
	if err != nil {
		t.Fatal(err)
	}
	constraints, err := value.ParseConstraints()
	if err != nil || len(constraints) != 1 {
		t.Fatalf("got %d constraints, %v", len(constraints), err)
	}
	got := constraints[0]
	if got.Name != "no-latest" || got.Mode != fleet.Inform || got.Match.Workspace != "team" || got.Match.ClusterSelector == nil ||
		!slices.Equal(got.Match.Kinds, []string{"GitRepository", "Kustomization"}) || got.MessageExpression == "" || got.Message != "tags stay" {
		t.Errorf("got %+v", got)
	}
	if value, err := without.Value(); err != nil || value.Constraints == nil || len(value.Constraints) != 0 {
		t.Errorf("without constraints: got %v, %v", value.Constraints, err)
	}
}

func TestUnknownPartsOfAConstraintAffectOnlyItsEntry(t *testing.T) {
	for name, test := range map[string]struct {
		constraints string
		known       bool
		names       []string // of the entries
		pending     []string
	}{
		"nothing":                       {"[{name: a, expression: x}]", true, []string{"a"}, nil},
		"an expression":                 {"[{name: a, expression: (known after apply)}, {name: b, expression: x}]", true, []string{"b"}, []string{"a"}},
		"a message":                     {"[{name: a, expression: x, message: (known after apply)}]", true, nil, []string{"a"}},
		"a mode":                        {"[{name: a, expression: x, mode: (known after apply)}]", true, nil, []string{"a"}},
		"a label":                       {"[{name: a, expression: x, match: {cluster_selector: {match_labels: {a: (known after apply)}}}}]", true, nil, []string{"a"}},
		"the match":                     {"[{name: a, expression: x, match: (known after apply)}]", true, nil, []string{"a"}},
		"a name":                        {"[{name: (known after apply), expression: x}, {name: b, expression: x}]", false, nil, nil},
		"an environment":                {"[{name: a, environment: (known after apply), expression: x}]", false, nil, nil},
		"a rule":                        {"[(known after apply)]", false, nil, nil},
		"all rules":                     {"(known after apply)", false, nil, nil},
		"a rule of another environment": {"[{name: a, environment: prod, expression: (known after apply)}]", true, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			decoded, findings := fleet.Decode(input(t, "environment: dev\nconstraints: "+test.constraints))
			wantFindings(t, findings)
			value, err := decoded.Value()
			if err != nil {
				t.Fatal(err)
			}
			if !decoded.Known || !decoded.ContainersKnown || !decoded.TargetsKnown || decoded.ConstraintsKnown != test.known {
				t.Errorf("known = %t, containers = %t, targets = %t, constraints = %t",
					decoded.Known, decoded.ContainersKnown, decoded.TargetsKnown, decoded.ConstraintsKnown)
			}
			if names := slices.Sorted(maps.Keys(value.Constraints)); !slices.Equal(names, test.names) {
				t.Errorf("entries of %q, want %q", names, test.names)
			}
			if test.known && !slices.Equal(decoded.PendingConstraints, test.pending) {
				t.Errorf("pending %q, want %q", decoded.PendingConstraints, test.pending)
			}
		})
	}
}

func TestConstraintsOfABase(t *testing.T) {
	base := baseOf(t, "environment: dev\nconstraints: [{name: b, expression: x}, {name: c, expression: (known after apply)}]")
	value := input(t, "environment: dev\nconstraints: [{name: a, expression: z}]").(map[string]any)
	value["base"] = base
	decoded, findings := fleet.Decode(value)
	wantFindings(t, findings)
	if len(decoded.Constraints) != 2 || decoded.Constraints[0].Name != "a" || decoded.Constraints[1].Expression != "x" ||
		!slices.Equal(decoded.PendingConstraints, []string{"c"}) {
		t.Errorf("constraints %v, pending %q", decoded.Constraints, decoded.PendingConstraints)
	}
	value["constraints"] = input(t, "[{name: b, expression: z}]")
	_, findings = fleet.Decode(value)
	wantFindings(t, findings, `constraints["b"].name: "b" is also the name of the base fleet`)

	delete(value, "constraints")
	delete(base, "constraints") // as from a version without constraints
	_, findings = fleet.Decode(value)
	wantFindings(t, findings)
	for entry, want := range map[string]string{
		`["b"]`: "must be the JSON of a constraint",
		`{"name":"c","expression":"x","mode":"inform"}`:   "must be the JSON of a constraint",
		`{"name":"b","expression":"x","severity":"high"}`: "must be the JSON of a constraint",
	} {
		base["constraints"] = map[string]any{"known": `{"b":` + entry + "}"}
		_, findings = fleet.Decode(value)
		wantFindings(t, findings, `base.constraints["b"]: `+want)
	}
	base["constraints"] = fleet.Unknown{}
	if decoded, findings = fleet.Decode(value); len(findings) > 0 || decoded.ConstraintsKnown || !decoded.Known {
		t.Errorf("constraints known = %t, model = %t, %v", decoded.ConstraintsKnown, decoded.Known, findings)
	}
}
