package expression_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/expression"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

func newLanguage(t testing.TB) *expression.Language {
	t.Helper()
	l, err := expression.New([]expression.Variable{
		{Name: "value", Type: cel.DoubleType}, {Name: "rest", Type: cel.NullableType(cel.DoubleType)}, {Name: "facts", Type: cel.DynType},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestCompileProblemsNamePlaceAndCause(t *testing.T) {
	t.Parallel()
	l := newLanguage(t)
	for source, want := range map[string]string{
		"":                          `must be an expression, and is empty`,
		"value >":                   `line 1, column 8: Syntax error: mismatched input '<EOF>'`,
		"\n valeu > 1.0":            `line 2, column 2: there is no variable or function "valeu"; did you mean "value"?`,
		"value":                     `must give a bool, not double`,
		"facts.ready":               "must give a bool, not dyn: compare it with something, as in `== true`",
		"value > 2 * rest":          `line 1, column 11: found no matching overload for '_*_' applied to '(int, wrapper(double))': a double needs a double, so write a whole number as in 2.0`,
		"value == 1":                `line 1, column 7: found no matching overload for '_==_' applied to '(double, int)': a double needs a double, so write a whole number as in 2.0`,
		"value + 1 > 2.0":           `line 1, column 7: found no matching overload for '_+_' applied to '(double, int)': a double needs a double, so write a whole number as in 2.0`,
		strings.Repeat("1", 20_000): `has 20000 characters, and 16384 are the most`,
	} {
		compiled, problems := l.Compile(source, cel.BoolType)
		if compiled != nil || len(problems) == 0 || !strings.HasPrefix(problems[0], want) {
			t.Errorf("%.80q: problems %q, want %q", source, problems, want)
		}
	}
}

func TestBoolReturnsAValueOrACause(t *testing.T) {
	t.Parallel()
	l := newLanguage(t)
	facts := map[string]any{
		"version": "1.34.2",
		"nodes":   3.0,
		"secret":  "hunter2",
		"zones":   []any{"a", "b"},
		"many":    slices.Repeat([]any{"a"}, 1000),
	}
	for source, want := range map[string]string{
		`value < 0.5 && (rest == null || value <= rest * 2.0)`: "true",
		`value < 1`: "true",
		`facts.version.startsWith("1.34") && facts.nodes == 3`:                "true",
		`semver(facts.version).isLessThan(semver("1.34.0"))`:                  "false",
		`facts.zones.all(zone, zone < "b")`:                                   "false",
		`facts.many.all(a, facts.many.all(b, a == b))`:                        "takes too long: it costs more than 200000, the most",
		`facts.missing == 1`:                                                  "cannot be evaluated at line 1, column 6: there is no key \"missing\"",
		`int(facts.secret) == 1`:                                              "cannot be evaluated at line 1, column 4: a value cannot be converted",
		`lists.range(1000).all(a, lists.range(1000).all(b, a > b || b >= a))`: "takes too long: it costs more than 200000, the most",
	} {
		compiled, problems := l.Compile(source, cel.BoolType)
		if len(problems) > 0 {
			t.Errorf("%s: %q", source, problems)
			continue
		}
		got, err := compiled.Bool(map[string]any{"value": 0.2, "rest": 0.1, "facts": facts})
		if err != nil {
			if strings.Contains(err.Error(), "hunter2") || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: error %v, want %s", source, err, want)
			}
		} else if (want == "true") != got || want != "true" && want != "false" {
			t.Errorf("%s: got %t, want %s", source, got, want)
		}
	}
	compiled, problems := l.Compile(`rest == null && value < 0.4`, cel.BoolType)
	if !compiled.Uses("rest") || !compiled.Uses("value") || compiled.Uses("facts") {
		t.Error("Uses must be true for rest and value only")
	}
	if got, err := compiled.Bool(map[string]any{"value": 0.2, "rest": nil}); err != nil || !got {
		t.Errorf("%t, %v, %q", got, err, problems)
	}
}

func TestNumberReturnsAValueOrACause(t *testing.T) {
	t.Parallel()
	l := newLanguage(t)
	numbers := []*cel.Type{cel.DoubleType, cel.IntType, cel.UintType, cel.BoolType, cel.DynType}
	facts := map[string]any{"nodes": json.Number("3"), "ready": true, "name": "a"}
	for source, want := range map[string]string{
		`value * 2.0`: "0.4", `size(facts)`: "3", `2u`: "2", `value < 1.0`: "1", `value > 1.0`: "0", `facts.nodes`: "3", `facts.ready`: "1",
		`facts.name`:    "cannot be evaluated: it gives a string, and no number or bool",
		`facts.missing`: "cannot be evaluated at line 1, column 6: there is no key \"missing\"; test with has() or `in`, or use `[?…].orValue(…)`",
		`string(value)`: "must give a double or int or uint or bool, not string",
	} {
		compiled, problems := l.Compile(source, numbers...)
		got := strings.Join(problems, "\n")
		if compiled != nil {
			number, err := compiled.Number(map[string]any{"value": 0.2, "rest": 0.1, "facts": facts})
			if got = fmt.Sprint(number); err != nil {
				got = err.Error()
			}
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", source, got, want)
		}
	}
}

// FuzzExpression compiles and evaluates any text, with limits for time and memory.
func FuzzExpression(f *testing.F) {
	for _, source := range []string{
		`value < 0.5 && (rest == null || value <= rest * 2.0)`, `facts.zones.all(zone, zone.matches("^a+$"))`, `semver(facts.version).isLessThan(semver("1.34.0"))`,
		`lists.range(1000).all(a, lists.range(1000).all(b, a > b || b >= a))`, `"a".replace("a", "b" + facts.version).size() > int(value)`,
	} {
		f.Add(source)
	}
	l := newLanguage(f)
	f.Fuzz(func(t *testing.T, source string) {
		fleettest.Bounded(t, source, func() {
			compiled, problems := l.Compile(source, cel.BoolType)
			if (compiled == nil) != (len(problems) > 0) {
				t.Fatalf("%q: %q", source, problems)
			}
			if compiled != nil {
				_, _ = compiled.Bool(map[string]any{"value": 0.2, "rest": nil, "facts": map[string]any{"version": "1.34.2", "zones": []any{"a", "b"}}})
			}
		})
	})
}
