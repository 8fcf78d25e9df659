package fleet_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

func TestMistakesInSelectorsAreFindingsWithTheirPosition(t *testing.T) {
	for selector, want := range map[string][]string{
		"{}": nil,
		"{match_labels: {region: east}, match_expressions: [{key: a, operator: Exists}], expression: '!b, c in (d)'}": nil,
		"{match_labels: {region: null}}":                             {`.match_labels["region"]: must be a string, not null`},
		"{match_labels: {'a b': c}}":                                 {`.match_labels["a b"]: `},
		"{match_labels: {a: 'b c'}}":                                 {`.match_labels["a"]: `},
		"{match_expressions: [{key: a, operator: Is, values: [b]}]}": {`.match_expressions[0].operator: "Is" is not one of In, NotIn, Exists, DoesNotExist`},
		"{match_expressions: [{key: a b, operator: In, values: [b, c d, e f]}]}": {`.match_expressions[0].key: "a b" is not the key of a label`,
			`.match_expressions[0].values: "c d" is not the value of a label`, `.match_expressions[0].values: "e f" is not the value of a label`},
		"{match_expressions: [{key: a, operator: In}]}":                  {`.match_expressions[0]: `},
		"{match_expressions: [{key: a, operator: Exists, values: [b]}]}": {`.match_expressions[0]: `},
		"{match_expressions: [{key: a, operator: In, values: [null]}]}":  {`.match_expressions[0].values[0]: neither null`, `.match_expressions[0]: `},
		"{match_expressions: [{key: a, operator: In, values: ['']}]}":    nil,
		"{match_expressions: [{operator: Exists}]}":                      {".match_expressions[0].key: is required"},
		"{match_label: {a: b}}":                                          {`.match_label: did you mean "match_labels"?`},
		"{match_expressions: [{key: a, operater: In, values: [b]}]}":     {`.match_expressions[0].operator: is required`, `.match_expressions[0].operater: did you mean "operator"?`},
		"{expression: 'region in (us-west, jp), restricted ='}":          nil,
		"{expression: 'region in (us-west, jp), restricted in'}":         {`.expression: at character 26, "restricted in"`},
		"{expression: 'region in (us-west, jp),, !restricted'}":          {`.expression: at character 25: a requirement is missing`},
		"{expression: 'region in us-west'}":                              {`.expression: at character 1, "region in us-west"`},
		"{expression: 'a, b in (c'}":                                     {`.expression: at character 4, "b in (c"`},
		"{expression: 'größe=1'}":                                        {`.expression: at character 1, "größe=1"`},
		"{expression: 'ä, größe in'}":                                    {`.expression: at character 1`},
		"{expression: 7}":                                                {`.expression: must be a string, not a number: put it in quotes`},
	} {
		t.Run(selector, func(t *testing.T) {
			_, findings := fleet.Decode(input(t, smallInput+"target_policies: [{name: p, cluster_type_selector: "+selector+"}]"))
			for i := range want {
				want[i] = `target_policies["p"].cluster_type_selector` + want[i]
			}
			wantFindings(t, findings, want...)
		})
	}
}

func TestSelectorReturnsFailedRequirements(t *testing.T) {
	selector := fleet.Selector{
		MatchLabels:      map[string]string{"region": "east", "size": "small"},
		MatchExpressions: []fleet.Expression{{Key: "tier", Operator: "NotIn", Values: []string{"a", "b"}}},
		Expression:       "!closed, zone in (1, 2)",
	}
	requirements, findings := selector.Compile()
	wantFindings(t, findings)
	set := fleet.Labels{"region": "west", "size": "small", "tier": "b", "zone": "3"}
	want := []string{"region=east", "tier notin (a,b)", "zone in (1,2)"}
	if got := requirements.Failed(set); !slices.Equal(got, want) {
		t.Errorf("got failed requirements %q, want %q", got, want)
	}
	if got := requirements.CountFailed(set, 10); got != 3 {
		t.Errorf("got %d failed requirements, want 3", got)
	}
	if got := requirements.CountFailed(set, 2); got != 2 {
		t.Errorf("got %d failed requirements, want the limit of 2", got)
	}
	if requirements.Matches(set) || !requirements.Matches(fleet.Labels{"region": "east", "size": "small", "zone": "1"}) {
		t.Error("got a wrong match")
	}
}

// FuzzSelectorExpression parses expressions by requirement and as a whole. Kubernetes' parser must agree.
func FuzzSelectorExpression(f *testing.F) {
	for _, text := range []string{"region in (us-west, jp), !restricted", "a,b=c,d==e,f!=g,h notin (i),j>1,k<2", "a in (,b)", "a in ((b)", ") , (", "in in (in)", " ", "a,", "notin", "a\x00,b", "\f"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		selector := fleet.Selector{Expression: text}
		ours, findings := selector.Compile()
		if strings.Contains(text, "\x00") {
			if len(findings) == 0 {
				t.Fatalf("%q: no finding, though Kubernetes reads only the first part", text)
			}
			return
		}
		whole, err := labels.ParseToRequirements(text)
		if (len(findings) == 0) != (err == nil) {
			t.Fatalf("%q: findings %v, but as a whole %v", text, findings, err)
		}
		if err != nil {
			return
		}
		if got, want := ours.String(), labels.NewSelector().Add(whole...).String(); !sameRequirements(got, want) {
			t.Fatalf("%q: got %s, but as a whole %s", text, got, want)
		}
	})
}

// sameRequirements compares requirements in any order.
func sameRequirements(a, b string) bool {
	left, right := []byte(a), []byte(b)
	slices.Sort(left)
	slices.Sort(right)
	return slices.Equal(left, right)
}

func FuzzNames(f *testing.F) {
	f.Add("drone")
	f.Add("A.b-")
	f.Fuzz(func(t *testing.T, text string) {
		if fleet.CheckLabelName(text) == "" {
			if problem := fleet.CheckSubdomainName(text); problem != "" {
				t.Errorf("label %q %s", text, problem)
			}
			if problem := fleet.CheckLabelValue(text); problem != "" {
				t.Error(problem)
			}
			if problem := fleet.CheckLabelKey(text); problem != "" {
				t.Error(problem)
			}
		}
		_, findings := fleet.Decode(map[string]any{"environment": text})
		if (len(findings) == 0) != (fleet.CheckLabelName(text) == "") {
			t.Errorf("environment %q: got findings %v", text, findings)
		}
	})
}

// FuzzPlainNames compares the fast checks with the checks of Kubernetes.
func FuzzPlainNames(f *testing.F) {
	for _, text := range []string{"a", "a-b", "-a", "a.b", "A_b", "a/b", "example.com/a", "", "ä", "a\n", "9", "a_", strings.Repeat("a", 63), strings.Repeat("a", 64)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, check := range map[string]struct {
			ours   func(string) string
			theirs func(string) []string
		}{
			"a DNS label":          {fleet.CheckLabelName, validation.IsDNS1123Label},
			"a DNS subdomain":      {fleet.CheckSubdomainName, validation.IsDNS1123Subdomain},
			"the key of a label":   {fleet.CheckLabelKey, validation.IsQualifiedName},
			"the value of a label": {fleet.CheckLabelValue, validation.IsValidLabelValue},
		} {
			if ours, theirs := check.ours(text), check.theirs(text); (ours == "") != (len(theirs) == 0) {
				t.Errorf("%q as %s: got %q, Kubernetes has %q", text, name, ours, theirs)
			}
		}
		for _, selector := range []fleet.Selector{
			{MatchLabels: map[string]string{text: "a"}}, {MatchLabels: map[string]string{"a": text}},
			{MatchExpressions: []fleet.Expression{{Key: text, Operator: "In", Values: []string{"a"}}}},
			{MatchExpressions: []fleet.Expression{{Key: "a", Operator: "NotIn", Values: []string{"b", text}}}},
			{MatchExpressions: []fleet.Expression{{Key: "a", Operator: text}}},
		} {
			object := map[string]any{}
			for key, value := range selector.MatchLabels {
				object["match_labels"] = map[string]any{key: value}
			}
			for _, e := range selector.MatchExpressions {
				values := []any{}
				for _, value := range e.Values {
					values = append(values, value)
				}
				object["match_expressions"] = []any{map[string]any{"key": e.Key, "operator": e.Operator, "values": values}}
			}
			_, want := selector.Compile()
			_, _, got := fleet.DecodeSelector(object)
			if (len(got) == 0) != (len(want) == 0) && text != "" && !strings.Contains(text, "\x00") {
				t.Errorf("%v: got findings %v, want %v as of Compile", object, got, want)
			}
		}
	})
}

func FuzzParseJSON(f *testing.F) {
	f.Add(`{"environment":"dev","cluster_types":[{"name":"a","labels":{"b":"c"}}],"config_containers":[{"name":"a","data":{}}]}`)
	f.Add(everything)
	f.Fuzz(func(t *testing.T, text string) {
		value, err := fleet.ParseJSON(text)
		if err != nil {
			return
		}
		decoded, findings := fleet.Decode(value)
		if len(findings) > 0 {
			return
		}
		if _, err := fleet.ParseModel(model(t, decoded.Fleet)); err != nil {
			t.Fatal(err)
		}
	})
}
