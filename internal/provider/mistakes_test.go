package provider_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// mistake is one wrong value in an otherwise valid configuration.
type mistake struct {
	place string // "flotilla_assignment.rollout.stages.max_failed"
	kind  string
	value tftypes.Value
	// names are alternatives: the error or its attribute must have one.
	names []string
	// planWithout plans without the mistake. It is nil for a required attribute.
	plan, planWithout func() (providertest.Diagnostics, error)
}

func (m mistake) String() string { return fmt.Sprintf("%s, %s: %s", m.place, m.kind, m.value) }

// isCaught reports whether the plan names the mistake, and returns the diagnostics if not.
func (m mistake) isCaught(t *testing.T) (bool, string) {
	t.Helper()
	diags, err := m.plan()
	if err != nil {
		t.Fatalf("%s: %s", m, err)
	}
	without := ""
	if m.planWithout != nil {
		baseline, err := m.planWithout()
		if err != nil {
			t.Fatalf("%s: %s", m, err)
		}
		without = baseline.String()
	}
	if text := diags.String(); strings.Contains(text, "?.") || strings.Contains(text, "): [") {
		t.Errorf("%s: the error is no sentence about an attribute: %s", m, text)
	}
	for _, diagnostic := range diags {
		for line := range strings.SplitSeq(diagnostic.Detail, "\n") {
			names := func(name string) bool { return strings.Contains(diagnostic.At+" "+line, name) }
			if (without == "" || !strings.Contains(without, line)) && slices.ContainsFunc(m.names, names) {
				return true, ""
			}
		}
	}
	return false, diags.String()
}

// acceptedMistakes maps mistakes that no plan catches to the reason. Keys are the end of the place, and the kind.
var acceptedMistakes = map[string]string{
	"flotilla_agent.cluster_type: a wrong cluster_type":    "an agent knows no fleet: its cluster type may be of any",
	"flotilla_agent.cluster_type: a wrong type":            "likewise",
	"flotilla_cluster.cluster_type: a wrong cluster_type":  "the fleet that has the cluster finds it",
	"flotilla_cluster.cluster_type: a wrong type":          "likewise",
	"flotilla_cluster_type.config_type: a wrong type":      "a template of the fleet may have the name; the fleet finds it",
	"flotilla_cluster_type.reconciler: a wrong reconciler": "likewise",
	"flotilla_config_container.priority: below zero":       "it is any whole number",
	"flotilla_agent.credentials_wo_version: below zero":    "likewise",
	"match_expressions.key: another form":                  "it is checked once the expression has its operator",
}

func textValue(text string) tftypes.Value { return tftypes.NewValue(tftypes.String, text) }
func wholeValue(number int) tftypes.Value { return tftypes.NewValue(tftypes.Number, number) }
func nullValue(typ tftypes.Type) tftypes.Value {
	return tftypes.NewValue(typ, nil)
}

func wrongTypes(typ fleet.Type) map[string]tftypes.Value {
	list := tupleOf([]tftypes.Value{textValue("x")})
	switch typ {
	case fleet.TextType:
		return map[string]tftypes.Value{"a number": wholeValue(7), "a list": list}
	case fleet.BoolType:
		return map[string]tftypes.Value{"a text": textValue("yes"), "a number": wholeValue(7)}
	case fleet.WholeType, fleet.NumberType:
		return map[string]tftypes.Value{"a text": textValue("seven"), "a list": list}
	case fleet.TextsType:
		return map[string]tftypes.Value{"a number": wholeValue(7), "a list of numbers": tupleOf([]tftypes.Value{wholeValue(7)})}
	case fleet.TextMapType, fleet.QuantitiesType:
		return map[string]tftypes.Value{"a text": textValue("x"), "a list in it": objectOf(map[string]tftypes.Value{"x": list})}
	case fleet.DurationType:
		return map[string]tftypes.Value{"words": textValue("five minutes"), "a number": wholeValue(5), "below zero": textValue("-5m")}
	case fleet.TimeType:
		return map[string]tftypes.Value{"words": textValue("yesterday"), "a date": textValue("2026-01-31")}
	case fleet.SchemaType:
		return map[string]tftypes.Value{"no JSON": textValue("{"), "a number": wholeValue(7)}
	case fleet.AnyObjectType, fleet.ObjectType, fleet.ObjectMapType:
		return map[string]tftypes.Value{"a text": textValue("x"), "a list": list}
	case fleet.ObjectsType, fleet.CollectionType:
		return map[string]tftypes.Value{"a text": textValue("x"), "a list of texts": list}
	case fleet.TextOrObjectType, fleet.TextOrTextMapType, fleet.BoolOrObjectType:
		return map[string]tftypes.Value{"a number": wholeValue(7), "a list": list}
	case fleet.NamesOrObjectsType, fleet.TextsInAnyFormType:
		return map[string]tftypes.Value{
			"a number":               wholeValue(7),
			"an object in an object": objectOf(map[string]tftypes.Value{"x": wholeValue(7)}),
		}
	}
	return nil
}

func mistakesOfKey(where string, at keyOfObject, validate func(tftypes.Value) (providertest.Diagnostics, error)) []mistake {
	key, attribute := at.keys[len(at.keys)-1], at.attribute
	var all []mistake
	add := func(kind, name string, value tftypes.Value, names ...string) {
		members := map[string]tftypes.Value{name: value}
		one := mistake{where + "." + at.String(), kind, value, append(names, name), func() (providertest.Diagnostics, error) {
			return validate(at.wrap(members))
		}, nil}
		if !attribute.Required {
			one.planWithout = func() (providertest.Diagnostics, error) { return validate(at.wrap(nil)) }
		}
		all = append(all, one)
	}
	for _, kind := range slices.Sorted(maps.Keys(wrongTypes(attribute.Type))) {
		add(kind, key, wrongTypes(attribute.Type)[kind])
	}
	if len(attribute.Allowed) > 0 {
		if attribute.Type == fleet.TextType {
			add("an unknown choice", key, textValue(attribute.Allowed[0]+"x"))
		}
	}
	if attribute.Type == fleet.WholeType && attribute.Most > 0 {
		add("too many", key, wholeValue(attribute.Most+1))
	}
	if attribute.Type == fleet.WholeType && attribute.Least > 0 {
		add("too few", key, wholeValue(attribute.Least-1))
	}
	if attribute.Form != nil && attribute.Type == fleet.TextType {
		add("another form", key, textValue("!! x"))
	}
	if len(key) > 2 {
		add("a typo", key[:1]+key[2:], textValue("x"))
	}
	if attribute.Required {
		add("null", key, nullValue(tftypes.DynamicPseudoType))
		add("a null text", key, nullValue(tftypes.String))
		add("a null object", key, nullValue(tftypes.Object{AttributeTypes: map[string]tftypes.Type{"x": tftypes.String}}))
	}
	if attribute.NullElements {
		return all
	}
	switch attribute.Type {
	case fleet.TextsType:
		add("null in a list", key, tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, []tftypes.Value{nullValue(tftypes.String)}))
	case fleet.ObjectsType:
		add("null in a list", key, tupleOf([]tftypes.Value{nullValue(tftypes.DynamicPseudoType)}))
	case fleet.TextMapType, fleet.ObjectMapType:
		add("null in a map", key, objectOf(map[string]tftypes.Value{"x": nullValue(tftypes.String)}))
	}
	return all
}

// mistakesOfScalars returns mistakes in arguments with a fixed type.
func mistakesOfScalars(block string, schema *tfprotov6.Schema, try func(argument string, value any) providertest.Diagnostics) []mistake {
	var all []mistake
	for _, argument := range configurableArguments(schema) {
		add := func(kind string, value tftypes.Value) {
			all = append(all, mistake{block + "." + argument.Name, kind, value, []string{argument.Name}, func() (providertest.Diagnostics, error) {
				return try(argument.Name, value), nil
			}, nil})
		}
		list := tupleOf([]tftypes.Value{textValue("x")})
		typ := argument.ValueType()
		switch {
		case argument.NestedType != nil || isDynamic(argument):
			continue
		case typ.Is(tftypes.String):
			add("a list", list)
			for suffix, wrong := range wrongTexts {
				if argument.Name == suffix || strings.HasSuffix(argument.Name, "_"+suffix) {
					add("a wrong "+suffix, textValue(wrong))
				}
			}
		case typ.Is(tftypes.Number):
			add("a text", textValue("seven"))
			add("below zero", wholeValue(-7))
		case typ.Is(tftypes.Bool):
			add("a text", textValue("yes"))
		default:
			add("a number", wholeValue(7))
		}
		if argument.Required {
			add("null", nullValue(typ))
		}
	}
	return all
}

// wrongTexts are invalid texts and missing names, by the last word of an argument.
var wrongTexts = map[string]string{
	"name": "No_Name", "environment": "No_Name", "cluster": "nowhere", "cluster_type": "nowhere", "deployment_target": "nothing-live",
	"host": "nowhere", "key": "NO_KEY", "hub": "nowhere", "since": "yesterday", "interval": "often", "timeout": "long", "soak": "long", "duration": "long",
	"failed_for": "long", "progress_deadline": "long", "on_failure": "panic", "on_destroy": "panic", "on_unreachable": "panic", "unknown": "panic",
	"reconciler": "fluxx", "rollback_to": "yesterday", "commit": "yesterday", "now": "soon", "url": "ftp://x", "type": "nothing", "proof": "facts.",
	"expression": "1 +", "mode": "panic", "state": "panic", "forge": "gitub", "evidence": "{", "ref": "a..b", "workload": "nothing", "owner": "nobody",
}

// withMembers adds members to an object without overriding any.
func withMembers(object tftypes.Value, further map[string]tftypes.Value) tftypes.Value {
	members := map[string]tftypes.Value{}
	if object.As(&members) != nil {
		return object
	}
	all := maps.Clone(further)
	maps.Copy(all, members)
	return objectOf(all)
}

func listMistakes(t *testing.T) []mistake {
	t.Helper()
	m := newMatrixWithAssignments(t)
	schemas, tables := providerSchemas(t), settingsTables()
	var all []mistake
	ofResource := func(name string) func(argument string, value any) providertest.Diagnostics {
		return func(argument string, value any) providertest.Diagnostics {
			_, diags := providertest.New(m.world.(*memoryWorld).start).Plan(t.Context(), m.singleResource(name, map[string]any{argument: value}))
			return diags
		}
	}
	ofDataSource := func(name string) func(argument string, value any) providertest.Diagnostics {
		return func(argument string, value any) providertest.Diagnostics {
			_, diags := m.readData(name, map[string]any{argument: value})
			return diags
		}
	}
	for _, name := range slices.Sorted(maps.Keys(schemas.ResourceSchemas)) {
		all = append(all, mistakesOfScalars(name, schemas.ResourceSchemas[name], ofResource(name))...)
	}
	for _, name := range slices.Sorted(maps.Keys(schemas.DataSourceSchemas)) {
		all = append(all, mistakesOfScalars(name, schemas.DataSourceSchemas[name], ofDataSource(name))...)
	}
	for _, dynamic := range dynamicAttributes(t) {
		block, argument, _ := strings.Cut(dynamic.name, ".")
		validate := func(value tftypes.Value) (providertest.Diagnostics, error) {
			switch {
			case rows[block].attributes != nil:
				return ofResource(block)(argument, value), nil
			case dataSourceArguments[block] != nil:
				return ofDataSource(block)(argument, value), nil
			}
			if dynamic.name == "agent_manifests.settings" {
				value = withMembers(value, map[string]tftypes.Value{
					"cluster": textValue("edge-1"), "cluster_type": textValue("edge"),
					"gitops_repo": objectOf(map[string]tftypes.Value{"url": textValue("https://git.example.com/gitops"), "branch": textValue("dev")}),
				})
			}
			diags, err := dynamic.validate(value)
			var diagnostics providertest.Diagnostics
			for _, one := range diags {
				diagnostics = append(diagnostics, providertest.Diagnostic{Summary: one.Summary, Detail: one.Detail})
			}
			return diagnostics, err
		}
		for _, at := range keysOfArgument(dynamic, tables) {
			all = append(all, mistakesOfKey(dynamic.name, at, validate)...)
		}
	}
	slices.SortFunc(all, func(a, b mistake) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// A plan may miss one mistake in fifty, all of them in acceptedMistakes.
func TestMistakesAreCaughtAtPlan(t *testing.T) {
	t.Parallel()
	all := listMistakes(t)
	if len(all) < 1000 {
		t.Errorf("there are only %d mistakes", len(all))
	}
	random := rand.New(rand.NewPCG(40, 400)) //nolint:gosec // the same mistakes in each run
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:acceptancetest.Count(400, len(all))]
	missed := 0
	for _, one := range all {
		isCaught, diags := one.isCaught(t)
		if isCaught {
			continue
		}
		missed++
		if !slices.ContainsFunc(
			slices.Collect(maps.Keys(acceptedMistakes)),
			func(suffix string) bool { return strings.HasSuffix(one.place+": "+one.kind, suffix) },
		) {
			t.Errorf("%s is not caught: got %q", one, diags)
		}
	}
	t.Logf("%d of %d mistakes are not caught", missed, len(all))
	if missed*50 > len(all) {
		t.Errorf("%d of %d mistakes are not caught", missed, len(all))
	}
}
