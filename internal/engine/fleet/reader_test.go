package fleet_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

var allTypes = &fleet.Table{Name: "test", Attributes: []fleet.Attribute{
	{Name: "text"}, {Name: "bool", Type: fleet.BoolType, Default: true}, {Name: "int", Type: fleet.WholeType, Default: 7, Least: 1, Most: 10},
	{
		Name: "duration",
		Type: fleet.DurationType,
	}, {Name: "timeout", Type: fleet.DurationType, Default: "5m"}, {Name: "time", Type: fleet.TimeType},
	{Name: "texts", Type: fleet.TextsType}, {Name: "one_of", Default: "a", Allowed: []string{"a", "b"}},
	{
		Name: "list",
		Type: fleet.ObjectsType,
		Of:   &fleet.Table{Name: "element"},
	}, {Name: "selector", Type: fleet.ObjectType, Of: fleet.SelectorTable()},
}}

// readAllTypes reads an object with an attribute of each type.
func readAllTypes(value any) (*fleet.Reader, map[string]any) {
	r := &fleet.Reader{}
	o := r.Object(allTypes, nil, value)
	if o == nil {
		return r, nil
	}
	got := map[string]any{
		"text": o.Text("text"), "bool": o.Bool("bool"), "int": o.Int("int"), "duration": fleet.ReadDuration(o, "duration", time.Hour), "timeout": fleet.ReadTimeout(o, "timeout"),
		"time": fleet.ReadTime(o, "time"), "texts": o.Texts("texts"), "one_of": o.OneOf("one_of"), "list": len(o.List("list")),
		"selector": fleet.ReadSelector(o, "selector") != nil,
	}
	o.Finish()
	return r, got
}

func TestReaderReadsEachType(t *testing.T) {
	t.Parallel()
	r, got := readAllTypes(map[string]any{
		"text": "x", "bool": true, "int": json.Number("3"), "duration": "1m", "time": "2026-01-01T00:00:00Z", "texts": []any{"a"},
		"one_of": "b", "list": []any{map[string]any{}}, "selector": map[string]any{},
	})
	if len(r.Findings) > 0 || r.Unknown {
		t.Fatal(r.Findings)
	}
	if got["text"] != "x" || got["bool"] != true || got["int"] != 3 || got["duration"] != time.Minute || got["one_of"] != "b" ||
		got["list"] != 1 ||
		got["selector"] != true {
		t.Error(got)
	}
	if r, got = readAllTypes(map[string]any{"text": nil}); len(r.Findings) > 0 || got["int"] != 7 || got["one_of"] != "a" || got["bool"] != true ||
		got["timeout"] != 5*time.Minute {
		t.Error(r.Findings, got)
	}
}

func TestReaderReportsAllMistakes(t *testing.T) {
	t.Parallel()
	r, _ := readAllTypes(map[string]any{
		"text": true, "bool": "yes", "int": json.Number("11"), "duration": "2h", "time": "noon", "texts": []any{json.Number("1")},
		"one_of": "c", "list": []any{"x"}, "selector": map[string]any{"match": "x"}, "txt": "x",
	})
	for _, want := range []string{
		"text: must be a string, not a bool", "bool: must be true or false, not a string", "int: must be a whole number from 1 to 10, not 11",
		`duration: "2h" is longer than 1 hours`, `time: "noon" is not a time`, "texts[0]: must be a string, not a number",
		`one_of: must be one of a, b, not "c"`, "list[0]: must be an object, not a string", "selector.match: unknown attribute",
		`txt: unknown attribute; did you mean "text"?`,
	} {
		if !strings.Contains(r.Findings.Error(), want) {
			t.Errorf("%q is not among\n%s", want, r.Findings.Error())
		}
	}
	if r, _ := readAllTypes("x"); len(r.Findings) != 1 {
		t.Error(r.Findings)
	}
}

func TestUnknownValuesAreNoFindings(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"text", "bool", "int", "duration", "time", "texts", "one_of", "list", "selector", "timeout"} {
		r, _ := readAllTypes(map[string]any{name: fleet.Unknown{}})
		if len(r.Findings) > 0 || !r.Unknown {
			t.Errorf("%s: got unknown %v, findings %q", name, r.Unknown, r.Findings)
		}
	}
	r := &fleet.Reader{}
	if o := r.Object(allTypes, nil, fleet.Unknown{}); o != nil || !r.Unknown {
		t.Error("an unknown object is not reported as unknown")
	}
}
