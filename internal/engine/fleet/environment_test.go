package fleet_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

func TestUnknownEnvironmentsAreFindings(t *testing.T) {
	const wrong = `no environment is called "stag"; did you mean "stage"?`
	for text, want := range map[string]string{
		"cluster_types: [{name: a, environment: stag}]":                                                                                `cluster_types["a"].environment: ` + wrong,
		"workspaces: [{name: a, environments: [stag]}]":                                                                                `workspaces["a"].environments[0]: ` + wrong,
		"config_containers: [{name: a, labels: {environment: stag}, data: {}}]":                                                        `config_containers["a"].labels["environment"]: ` + wrong,
		"config_schemas: [{name: a, labels: {environment: stag}, schema: '{}'}]":                                                       `config_schemas["a"].labels["environment"]: ` + wrong,
		"target_policies: [{name: a, cluster_type_selector: {match_labels: {environment: stag}}}]":                                     `target_policies["a"].cluster_type_selector.match_labels["environment"]: ` + wrong,
		"target_policies: [{name: a, cluster_selector: {match_expressions: [{key: environment, operator: In, values: [dev, stag]}]}}]": `target_policies["a"].cluster_selector.match_expressions[0]: ` + wrong,
		"target_policies: [{name: a, cluster_selector: {match_expressions: [{key: environment, operator: Exists}]}}]":                  "",
		"target_policies: [{name: a, cluster_selector: {match_labels: {environment: (known after apply)}}}]":                           "",
		"config_containers: [{name: a, labels: {environment: stage}, data: {}}]":                                                       "",
	} {
		t.Run(text, func(t *testing.T) {
			_, findings := fleet.Decode(input(t, "environment: dev\nenvironments: [dev, stage]\n"+text))
			if want == "" {
				wantFindings(t, findings)
			} else {
				wantFindings(t, findings, want)
			}
		})
	}
}

func TestEnvironmentsOfABaseAreChecked(t *testing.T) {
	value := input(t, "environment: dev\nenvironments: [dev, stage]").(map[string]any)
	value["base"] = baseOf(t, "environment: dev\nworkspaces: [{name: team, environments: [dev, stag]}]")
	_, findings := fleet.Decode(value)
	wantFindings(t, findings, `base.model: workspace "team": no environment is called "stag"; did you mean "stage"?`)

	value["base"] = baseOf(t, "environment: stag")
	_, findings = fleet.Decode(value)
	wantFindings(t, findings,
		`base.environment: no environment is called "stag"`,
		`base.environment: the base fleet is of environment "stag", this one of "dev"`)
}
