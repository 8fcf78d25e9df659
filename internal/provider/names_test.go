package provider_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// Without a warning, an empty result looks like good news.
func TestUnknownNamesAreWarnings(t *testing.T) {
	t.Parallel()
	m := newMatrixWithAssignments(t)
	for _, c := range []struct {
		dataSource string
		arguments  map[string]any
		want       string
	}{
		{"flotilla_history", nil, ""},
		{"flotilla_history", map[string]any{"name": "dev", "host": "drone", "deployment_target": "app-core"}, ""},
		{"flotilla_history", map[string]any{"name": "dve"}, `Branch "dev" has no assignment "dve"; did you mean "dev"?`},
		{"flotilla_history", map[string]any{"host": "dron"}, `has no host "dron"; did you mean "drone"?`},
		{"flotilla_history", map[string]any{"deployment_target": "app-coer"}, `has no deployment target "app-coer"; did you mean "app-core"?`},
		{"flotilla_diff", map[string]any{"name": "dve"}, `Branch "dev" has no assignment "dve"`},
		{"flotilla_overview", map[string]any{"region_label": "edge"}, ""},
		{"flotilla_overview", map[string]any{"region_label": "sise"}, `has a label "sise"; did you mean "size"?`},
		{"flotilla_comparison", map[string]any{"pairs": map[string]any{"hosts": map[string]any{"drone": "drone"}}}, ""},
		{"flotilla_comparison", map[string]any{"pairs": map[string]any{"hosts": map[string]any{"dron": "drone"}}},
			`hosts: the left side has no "dron"; did you mean "drone"?`},
		{"flotilla_comparison", map[string]any{"pairs": map[string]any{"deployment_targets": map[string]any{"app-core": "app-x"}}},
			`the right side has no "app-x"`},
	} {
		_, diags := m.readData(c.dataSource, c.arguments)
		if diags.Err() != nil || (c.want == "") != (len(diags) == 0) || !strings.Contains(diags.String(), c.want) {
			t.Errorf("%s %v: got %s, want %q", c.dataSource, c.arguments, diags, c.want)
		}
	}
}

func TestUnquotedVersionsAndMisspeltKeysAreErrors(t *testing.T) {
	t.Parallel()
	by := func(key string, value any) map[string]any {
		return map[string]any{key: map[string]any{"canary": value, "prod-1": value, "prod-2": value}}
	}
	for _, c := range []struct {
		wanted any
		want   string
	}{
		{1.40, "Wanted is the number 1.4: put it in quotes, since 1.40 would become 1.4"},
		{by("by_cluster", 1.40), `By_cluster["canary"] is the number 1.4`},
		{by("by_clusters", "1.40"), `By_clusters would be a value for all clusters; did you mean "by_cluster"?`},
		{map[string]any{"by_cluster": map[string]any{}, "other": "x"}, "By_cluster must be the only key"},
		{3, ""}, {"1.40", ""}, {map[string]any{"cpu": 0.5}, ""},
	} {
		v := newVersions(t)
		v.overrides = map[string]any{}
		_, diags := v.w.Plan(t.Context(), v.configuration(c.wanted))
		if (c.want == "") != (diags.Err() == nil) || !strings.Contains(strings.ToLower(diags.String()), strings.ToLower(c.want)) {
			t.Errorf("%v: got %s, want %q", c.wanted, diags, c.want)
		}
	}
	for _, name := range []string{"candidate", "pin"} {
		_, diags := providertest.New(startProvider).Plan(t.Context(), providertest.Configuration{Resources: map[string]providertest.Resource{
			"flotilla_promotion.x": {Attributes: map[string]any{name: 1.40}},
		}})
		if diags.Err() == nil || !strings.Contains(diags.String(), "put it in quotes") {
			t.Errorf("%s: got %s", name, diags)
		}
	}
}

func TestAMisspeltFactIsAnErrorOfTheProof(t *testing.T) {
	t.Parallel()
	for proof, want := range map[string]string{
		"facts.kubernets_version.startsWith(value)":        `asks for facts.kubernets_version, and there is no such fact; did you mean "kubernetes_version"?`,
		`facts["kubernets_version"].startsWith(value)`:     `facts.kubernets_version`,
		"has(facts.node_version) && facts.nodes_ready > 0": `facts.node_version`,
		"facts.labels.ring == 'canary'":                    "",
	} {
		v := newVersions(t)
		v.overrides["proof"], v.overrides["released"] = proof, "1.30"
		v.reportVersion("1.30", v.clusters...)
		_, diags := v.w.Plan(t.Context(), v.configuration("1.31"))
		if want != "" && (!diags.Has("Invalid proof") || diags.Has("Clusters have another value")) || !strings.Contains(diags.String(), want) ||
			want == "" && diags.Has("Invalid proof") {
			t.Errorf("%s: got %s, want %q", proof, diags, want)
		}
	}
}

func TestApprovalWithoutACandidateIsAWarning(t *testing.T) {
	t.Parallel()
	_, diags := providertest.New(startProvider).Plan(t.Context(), providertest.Configuration{Resources: map[string]providertest.Resource{
		"flotilla_promotion.x": {Attributes: map[string]any{"candidate": "1.2.3", "approval": true, "approvals": []any{"1.2.3"}}},
	}})
	if !diags.Has("Approval is for no candidate") {
		t.Errorf("got %s", diags)
	}
}

// A rollout would wait forever for such checks.
func TestUndecidableChecksAreWarningsOfThePlan(t *testing.T) {
	t.Parallel()
	answer := ""
	server := newPrometheusStandIn(t, func(string) string { return answer })
	const one = `"cluster":"drone-1"`
	for name, c := range map[string]struct {
		answer  string
		further map[string]any
		want    string
	}{
		"right":                  {vectorResult(one, "0.1"), nil, ""},
		"no series":              {vectorResult(), nil, ""},
		"a query that is wrong":  {`{"status":"error","errorType":"bad_data","error":"1:4: parse error: unexpected end of input"}`, nil, "does not take the query: 1:4: parse error: unexpected end of input"},
		"series without a label": {vectorResult(`"job":"x"`, "0.1"), nil, "the query gives 1 series without the label cluster"},
		"one without a label":    {vectorResult(one, "0.1", `"job":"x"`, "0.1"), nil, "1 series without the label cluster"},
		"two series of each":     {vectorResult(one+`,"job":"x"`, "0.1", one+`,"job":"y"`, "0.1"), nil, "aggregate them"},
		"a rest":                 {vectorResult(one, "0.1"), map[string]any{"pass": "value <= rest * 1.5"}, "pass fails where there is no rest"},
		"a rest in fail":         {vectorResult(one, "0.1"), map[string]any{"fail": "value > 1.0 && value > rest"}, "fail fails where there is no rest"},
		"a rest that is tested":  {vectorResult(one, "0.1"), map[string]any{"pass": "rest == null ? value < 1.0 : value <= rest * 1.5"}, ""},
	} {
		answer = c.answer
		_, diags := readMeasurements(t, nil, newCheck(server.URL, c.further))
		if diags.Err() != nil || (c.want == "") != (len(diags) == 0) || !strings.Contains(diags.String(), c.want) {
			t.Errorf("%s: got %s, want %q", name, diags, c.want)
		}
	}
}
