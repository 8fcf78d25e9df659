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

func text(value string) attr.Value { return types.StringValue(value) }

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
		paths  string
		known  bool
		errors string
	}{
		{"nothing", types.DynamicNull(), "[]", true, ""},
		{"not known yet", types.DynamicUnknown(), "[]", false, ""},
		{"one document", types.DynamicValue(compliance), "[evidence]", true, ""},
		{"a list", types.DynamicValue(types.ListValueMust(types.StringType, []attr.Value{compliance, facts})), "[evidence[0] evidence[1]]", true, ""},
		{"a list with a null", tuple(compliance, types.StringNull(), facts), "[evidence[0] evidence[2]]", true, ""},
		{"an empty list", tuple(), "[]", true, ""},
		{"a list with an unknown element", tuple(compliance, types.StringUnknown()), "[]", false, ""},
		{"a list with mistakes", tuple(text("{}"), compliance, types.NumberUnknown(), types.BoolValue(true)), "[]", false,
			"evidence[0]: the evidence is not what flotilla_compliance gives\nevidence[3]: the evidence is a text"},
	} {
		var diagnostics diag.Diagnostics
		got := repository.DecodeEvidence(c.value, &diagnostics)
		if fmt.Sprint(got.At) != c.paths || got.Known != c.known || len(got.List) != len(got.At) {
			t.Errorf("%s: got paths %v, known %t", c.name, got.At, got.Known)
		}
		var wanted []string
		if c.errors != "" {
			wanted = strings.Split(c.errors, "\n")
		}
		if len(diagnostics) != len(wanted) {
			t.Errorf("%s: got %v", c.name, diagnostics)
			continue
		}
		for i, want := range wanted {
			at, _, _ := strings.Cut(want, ":")
			if with, ok := diagnostics[i].(diag.DiagnosticWithPath); !ok || with.Path().String() != at || !strings.Contains(with.Detail(), want) {
				t.Errorf("%s: got %v, want %s", c.name, diagnostics[i], want)
			}
		}
	}
}

func TestEvidenceOfAnotherFleetIsRefusedAtItsElement(t *testing.T) {
	t.Parallel()
	ownFleet := &fleet.Fleet{Environment: "dev", Clusters: []fleet.Cluster{{Name: "a"}, {Name: "b"}}}
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
		"documents of the fleet":             {evidence.List{compliance("a"), facts("b")}, "[]"},
		"empty documents":                    {evidence.List{compliance(), facts()}, "[]"},
		"one of two documents of facts":      {evidence.List{facts("x"), facts("a")}, "[]"},
		"facts of another fleet":             {evidence.List{compliance("a"), facts(), facts("x")}, "[evidence[2]]"},
		"reports of another fleet":           {evidence.List{facts("a"), compliance("x")}, "[evidence[1]]"},
		"facts and reports of another fleet": {evidence.List{facts("x"), compliance("x")}, "[evidence[1] evidence[0]]"},
	} {
		given := repository.GivenEvidence{List: c.list, Known: true}
		for i := range c.list {
			given.At = append(given.At, path.Root("evidence").AtListIndex(i))
		}
		var diagnostics diag.Diagnostics
		given.CheckFleet(ownFleet, &diagnostics)
		at := []string{}
		for _, d := range diagnostics {
			at = append(at, d.(diag.DiagnosticWithPath).Path().String())
		}
		if fmt.Sprint(at) != c.errors {
			t.Errorf("%s: got errors at %v, want %s", name, at, c.errors)
		}
	}
}
