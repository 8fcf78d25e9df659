package constraint

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/interpreter"
)

// A call whose results are kept gives what it would give without, for every value, and again.
func TestKeptResultsAreThoseOfTheCalls(t *testing.T) {
	t.Parallel()
	l, err := newLanguage()
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", maxResultKey+1)
	objects := []map[string]any{
		{"keys": []any{"a", "b", "secret", "SECRET", "", "ä", long, "a", "b"}, "other": []any{"a", "c"}},
		{"keys": []any{"b", "token-1", "a"}, "other": []any{"b"}, "nested": []any{[]any{"a", "b"}, []any{"b"}}},
		{"keys": []any{1, "1", true, nil, 1.5, []any{"1"}}, "other": []any{1, 2}},
		{"keys": map[string]any{"a": 1, "b": map[string]any{"c": "a"}}, "other": []any{"b", "a"}},
		{"keys": []any{map[string]any{"name": "a", "of": "b"}, map[string]any{"name": "b", "of": "b"}}, "other": []any{}},
	}
	for _, source := range []string{
		`object.keys.all(k, !k.matches("secret|token"))`,
		`object.keys.all(k, !k.lowerAscii().matches("secret|token"))`,
		`object.keys.exists(k, k.lowerAscii() == "secret" || k.startsWith("token"))`,
		`object.keys.filter(k, k + "b" == "ab" && k != "b")`,
		`object.keys.map(k, k.contains(k + "b") || (k + "b").contains(k))`,
		`object.keys.map(k, k.contains("a") == k.startsWith("a"))`,
		`object.keys.map(k, k.trim() == k + "" && k.size() < 9 == k.contains("e"))`,
		`object.keys.map(k, k + k.trim())`,
		`object.keys.map(k, k.upperAscii() + object.other.map(k, k.upperAscii() + "x")[0])`,
		`object.keys.map(k, object.other.map(o, k.upperAscii() + o.upperAscii()))`,
		`object.keys.map(k, (k == "a" ? "b" : "c").upperAscii() + k.upperAscii())`,
		`object.keys.map(k, k.name.upperAscii() + k.of.upperAscii())`,
		`object.keys.map(k, size(k) > 1)`,
		`object.keys.all(k, object.other.exists(o, o == k))`,
		`object.keys.all(k, object.other.exists(o, o + "1" == k + "1"))`,
		`object.keys.map(k, object.other.map(k, k + "x"))`,
		`object.keys.map(k, k + object.other.map(k, k + "x")[0])`,
		`object.keys.map(k, (k == "a" ? "b" : "c") + k)`,
		`object.keys.map(k, ["z", "y"][size(k)] + k)`,
		`object.keys.map(k, {"a": k}.a + k)`,
		`object.keys.map(k, k.name + k.of)`,
		`object.keys.map(k, k["name"] == k["of"])`,
		`object.keys.map(k, k.of)`,
		`object.keys.transformList(i, k, k == "a" || i == 1)`,
		`object.keys.exists(k, k == "a") && object.other.exists(k, k == "a")`,
		`object.other.map(k, k + "1") + object.keys.map(k, k + "1")`,
		`object.keys.all(k, k < "c")`,
		`object.keys.exists(k, k.contains(k))`,
		`object.nested.map(list, list.map(k, list.all(k, k == "b") || k == "a"))`,
	} {
		ast, issues := l.Env.Compile(source)
		if issues.Err() != nil {
			t.Errorf("%s: %v", source, issues.Err())
			continue
		}
		plain, err := l.Env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := l.Env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CustomDecoratorV2(keepResults))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			for i, object := range objects {
				want, got := result(plain, object), result(kept, object)
				if got != want {
					t.Errorf("%s, object %d: %s, want %s", source, i, got, want)
				}
			}
		}
	}
}

func result(program cel.Program, object map[string]any) string {
	value, _, err := program.Eval(map[string]any{"object": object})
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), ":") // cel-go names the function where it has not compiled a pattern before
		return text
	}
	if list, err := value.ConvertToNative(reflect.TypeFor[[]any]()); err == nil {
		var elements []string
		for _, element := range list.([]any) {
			elements = append(elements, fmt.Sprintf("%q", element))
		}
		slices.Sort(elements) // the keys of a map come in any order
		return strings.Join(elements, " ")
	}
	return fmt.Sprint(value.Value())
}

func TestACallKeepsSoManyResultsAndNoMore(t *testing.T) {
	t.Parallel()
	l, err := newLanguage()
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := l.Env.Compile(`object.keys.filter(k, k.contains("7")).size()`)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	var keepers []*resultKeeper
	program, err := l.Env.Program(
		ast,
		cel.CustomDecoratorV2(keepResults),
		cel.CustomDecoratorV2(func(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
			if keeper, ok := node.(*resultKeeper); ok {
				keepers = append(keepers, keeper)
			}
			return node, nil
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	keys, want := make([]any, 10*maxResults), 0
	for i := range keys {
		keys[i] = fmt.Sprint(i)
		if strings.Contains(fmt.Sprint(i), "7") {
			want++
		}
	}
	for range 2 {
		value, _, err := program.Eval(map[string]any{"object": map[string]any{"keys": keys}})
		if err != nil || fmt.Sprint(value.Value()) != fmt.Sprint(want) {
			t.Errorf("%v, %v", value, err)
		}
	}
	if len(keepers) != 1 || keepers[0].count.Load() != maxResults {
		t.Errorf("%d calls keep results", len(keepers))
	}
}
