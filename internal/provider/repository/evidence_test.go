package repository_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func text(given string) attr.Value { return types.StringValue(given) }

func tuple(elements ...attr.Value) types.Dynamic {
	kinds := make([]attr.Type, len(elements))
	for i := range elements {
		kinds[i] = elements[i].Type(context.Background())
	}
	return types.DynamicValue(types.TupleValueMust(kinds, elements))
}

func TestEvidenceIsOneTextOrAList(t *testing.T) {
	t.Parallel()
	compliance := text(string((&observe.Evidence{Time: noon, Clusters: map[string]observe.ClusterEvidence{}}).Marshal()))
	facts := text(string((&evidence.Facts{Time: noon, Clusters: map[string]evidence.ClusterFacts{"a": {}}}).Marshal()))
	facts = text(strings.Replace(facts.(types.String).ValueString(), `"verdict":""`, `"verdict":"ready"`, 1))
	for _, c := range []struct {
		name   string
		value  types.Dynamic
		at     string
		known  bool
		errors string
	}{
		{"nothing", types.DynamicNull(), "[]", true, ""},
		{"not known yet", types.DynamicUnknown(), "[]", false, ""},
		{"one", types.DynamicValue(compliance), "[evidence]", true, ""},
		{"a list", types.DynamicValue(types.ListValueMust(types.StringType, []attr.Value{compliance, facts})), "[evidence[0] evidence[1]]", true, ""},
		{"a list with what is null", tuple(compliance, types.StringNull(), facts), "[evidence[0] evidence[2]]", true, ""},
		{"a list without elements", tuple(), "[]", true, ""},
		{"a list of which one is not known yet", tuple(compliance, types.StringUnknown()), "[]", false, ""},
		{"a list with mistakes", tuple(text("{}"), compliance, types.NumberUnknown(), types.BoolValue(true)), "[]", false,
			"evidence[0]: the evidence is not what flotilla_compliance gives\nevidence[3]: the evidence is a text"},
	} {
		var diagnostics diag.Diagnostics
		given := repository.DecodeEvidence(c.value, &diagnostics)
		if fmt.Sprint(given.At) != c.at || given.Known != c.known || len(given.List) != len(given.At) {
			t.Errorf("%s: %v, known %t", c.name, given.At, given.Known)
		}
		var wanted []string
		if c.errors != "" {
			wanted = strings.Split(c.errors, "\n")
		}
		if len(diagnostics) != len(wanted) {
			t.Errorf("%s: %v", c.name, diagnostics)
			continue
		}
		for i, want := range wanted {
			at, _, _ := strings.Cut(want, ":")
			if with, ok := diagnostics[i].(diag.DiagnosticWithPath); !ok || with.Path().String() != at || !strings.Contains(with.Detail(), want) {
				t.Errorf("%s: %v", c.name, diagnostics[i])
			}
		}
	}
}

func TestEvidenceOfAnotherFleetIsRefusedAtItsElement(t *testing.T) {
	t.Parallel()
	of := &fleet.Fleet{Environment: "dev", Clusters: []fleet.Cluster{{Name: "a"}, {Name: "b"}}}
	facts := func(names ...string) evidence.Document {
		f := &evidence.Facts{Time: noon, Clusters: map[string]evidence.ClusterFacts{}}
		for _, name := range names {
			f.Clusters[name] = evidence.ClusterFacts{}
		}
		return evidence.Document{Facts: f}
	}
	compliance := func(names ...string) evidence.Document {
		e := &observe.Evidence{Time: noon, Clusters: map[string]observe.ClusterEvidence{}}
		for _, name := range names {
			e.Clusters[name] = observe.ClusterEvidence{}
		}
		return evidence.Document{Compliance: e}
	}
	for name, c := range map[string]struct {
		list   evidence.List
		errors string
	}{
		"of the fleet":                     {evidence.List{compliance("a"), facts("b")}, "[]"},
		"empty":                            {evidence.List{compliance(), facts()}, "[]"},
		"one of two documents of facts is": {evidence.List{facts("x"), facts("a")}, "[]"},
		"facts of others":                  {evidence.List{compliance("a"), facts(), facts("x")}, "[evidence[2]]"},
		"what clusters report, of others":  {evidence.List{facts("a"), compliance("x")}, "[evidence[1]]"},
		"both of others":                   {evidence.List{facts("x"), compliance("x")}, "[evidence[1] evidence[0]]"},
	} {
		given := repository.GivenEvidence{List: c.list, Known: true}
		for i := range c.list {
			given.At = append(given.At, path.Root("evidence").AtListIndex(i))
		}
		var diagnostics diag.Diagnostics
		given.CheckFleet(of, &diagnostics)
		at := []string{}
		for _, d := range diagnostics {
			at = append(at, d.(diag.DiagnosticWithPath).Path().String())
		}
		if fmt.Sprint(at) != c.errors {
			t.Errorf("%s: %v", name, at)
		}
	}
}
