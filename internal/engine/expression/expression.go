package expression

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Expression is a compiled expression. It is safe for concurrent use.
type Expression struct {
	source  string
	ast     *cel.Ast
	program cel.Program
}

// Compile compiles an expression with a result of a wanted type and a cost of at most [MaxCost]. Errors are sentences
// without a subject: `line 1, column 7: there is no …`.
func (l *Language) Compile(source string, wanted ...*cel.Type) (*Expression, []string) {
	compiled, wrong := l.Check(source, wanted...)
	if len(wrong) > 0 {
		return nil, wrong
	}
	program, err := l.Program(compiled, MaxCost)
	if err != nil {
		return nil, []string{wording.OneLine(err.Error())}
	}
	return &Expression{source: source, ast: compiled, program: program}, nil
}

// Check type-checks an expression without building a program.
func (l *Language) Check(source string, wanted ...*cel.Type) (*cel.Ast, []string) {
	if strings.TrimSpace(source) == "" {
		return nil, []string{"must be an expression, and is empty"}
	}
	if length := utf8.RuneCountInString(source); length > MaxExpression {
		return nil, []string{fmt.Sprintf("has %d characters, and %d are the most", length, MaxExpression)}
	}
	compiled, issues := l.Env.Compile(source)
	if issues != nil && len(issues.Errors()) > 0 {
		var wrong []string
		const most = 10
		for i, problem := range issues.Errors() {
			if i == most {
				return nil, append(wrong, fmt.Sprintf("has %d further errors", len(issues.Errors())-most))
			}
			where := ""
			if problem.Location.Line() > 0 {
				where = fmt.Sprintf("line %d, column %d: ", problem.Location.Line(), problem.Location.Column()+1)
			}
			wrong = append(wrong, where+l.explain(problem.Message))
		}
		return nil, wrong
	}
	if made := ast.MatchDescendants(ast.NavigateAST(compiled.NativeRep()), ast.KindMatcher(ast.StructKind)); len(made) > 0 {
		return nil, []string{fmt.Sprintf("objects of type %s cannot be made in an expression", made[0].AsStruct().TypeName())}
	}
	if got := compiled.OutputType(); !slices.ContainsFunc(wanted, got.IsExactType) {
		remedy := ""
		switch {
		case got.IsExactType(cel.DynType) && wanted[0] == cel.BoolType:
			remedy = ": compare it with something, as in `== true`"
		case wanted[0] == cel.StringType:
			remedy = ": string() converts numbers and bools"
		}
		var names []string
		for _, one := range wanted {
			if !one.IsExactType(cel.DynType) {
				names = append(names, one.String())
			}
		}
		return nil, []string{fmt.Sprintf("must give a %s, not %s%s", strings.Join(names, " or "), got, remedy)}
	}
	return compiled, nil
}

func (l *Language) explain(message string) string {
	message = wording.OneLine(message)
	if name, ok := quotedAfter(message, "undefined field "); ok {
		return fmt.Sprintf("there is no field %q%s", name, wording.DidYouMean(name, l.Fields))
	}
	if name, ok := quotedAfter(message, "undeclared reference to "); ok {
		return fmt.Sprintf("there is no variable or function %q%s", name, wording.DidYouMean(name, l.names))
	}
	if mixed.MatchString(message) {
		return message + ": a double needs a double, so write a whole number as in 2.0"
	}
	return message
}

// mixed matches errors about operators between double and int, which CEL lacks.
var mixed = regexp.MustCompile(`'_(?:[-+*/%]|==|!=)_' applied to '\((int, [^,]*double.*|[^,]*double.*, int)\)'`)

func quotedAfter(message, start string) (string, bool) {
	rest, ok := strings.CutPrefix(message, start+"'")
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, "'")
	return name, ok
}

// Uses reports whether an expression uses a variable.
func (e *Expression) Uses(variable string) bool {
	for _, reference := range e.ast.NativeRep().ReferenceMap() {
		if reference.Name == variable {
			return true
		}
	}
	return false
}

// Fields returns the fields of a variable that an expression selects, sorted.
func (e *Expression) Fields(variable string) []string {
	isOf := func(expr ast.Expr) bool { return expr.Kind() == ast.IdentKind && expr.AsIdent() == variable }
	var fields []string
	for _, expr := range ast.MatchDescendants(ast.NavigateAST(e.ast.NativeRep()), ast.AllMatcher()) {
		switch expr.Kind() {
		case ast.SelectKind:
			if of := expr.AsSelect(); isOf(of.Operand()) {
				fields = append(fields, of.FieldName())
			}
		case ast.CallKind:
			call := expr.AsCall()
			if call.FunctionName() != operators.Index || !isOf(call.Args()[0]) || call.Args()[1].Kind() != ast.LiteralKind {
				continue
			}
			if name, ok := call.Args()[1].AsLiteral().(types.String); ok {
				fields = append(fields, string(name))
			}
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// Bool evaluates an expression to a bool. Variables are JSON values. Errors contain no value.
func (e *Expression) Bool(variables map[string]any) (bool, error) {
	value, err := e.value(variables)
	if err != nil {
		return false, err
	}
	if answer, ok := value.(types.Bool); ok {
		return bool(answer), nil
	}
	return false, errors.New("cannot be evaluated: it gives no bool")
}

// Number evaluates an expression to a number; true is 1 and false 0.
func (e *Expression) Number(variables map[string]any) (float64, error) {
	value, err := e.value(variables)
	if err != nil {
		return 0, err
	}
	switch value := value.(type) {
	case types.Double:
		return float64(value), nil
	case types.Int:
		return float64(value), nil
	case types.Uint:
		return float64(value), nil
	case types.Bool:
		if value {
			return 1, nil
		}
		return 0, nil
	}
	return 0, fmt.Errorf("cannot be evaluated: it gives a %s, and no number or bool", value.Type().TypeName())
}

func (e *Expression) value(variables map[string]any) (ref.Val, error) {
	value, _, err := e.program.Eval(variables)
	var cancelled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cancelled):
		return nil, fmt.Errorf("takes too long: it costs more than %d, the most", MaxCost)
	case err != nil:
		return nil, errors.New(Failure(e.ast, e.source, err))
	}
	return value, nil
}

// Failure explains an evaluation error with its position. Interpreter messages contain values, which may be secrets,
// so it shows only the kind, and a key only if the expression contains it.
func Failure(compiled *cel.Ast, source string, err error) string {
	where := ""
	var failed *types.Err
	if errors.As(err, &failed) && failed.NodeID() != 0 {
		position := compiled.NativeRep().SourceInfo().GetStartLocation(failed.NodeID())
		if position.Line() > 0 {
			where = fmt.Sprintf(" at line %d, column %d", position.Line(), position.Column()+1)
		}
	}
	return fmt.Sprintf("cannot be evaluated%s: %s", where, kindOf(source, err.Error()))
}

var failures = []struct{ start, said string }{
	{"too large: ", "its result would be too large"},
	{"lists.range: ", "the result is too large, or negative"},
	{"no such key", "there is no such key; test with has() or `in`, or use `[?…].orValue(…)`"},
	{"no such field", "there is no such field"},
	{"no such overload", "a function or operator does not take values of these types"},
	{"index out of bounds", "an index is out of bounds"},
	{"index '", "an index is out of bounds"},
	{"division by zero", "division by zero"},
	{"modulus by zero", "division by zero"},
	{"type conversion error", "a value cannot be converted"},
	{"unsupported index", "a value cannot be an index"},
	{"optional.none() dereference", "an optional value that is absent is used"},
}

func kindOf(source, message string) string {
	if key, ok := strings.CutPrefix(message, "no such key: "); ok && hasKey(source, key) {
		return fmt.Sprintf("there is no key %q; test with has() or `in`, or use `[?…].orValue(…)`", key)
	}
	for _, kind := range failures {
		if strings.HasPrefix(message, kind.start) {
			return kind.said
		}
	}
	if strings.Contains(message, "overflow") || strings.Contains(message, "out of range") {
		return "a number or an index is out of range"
	}
	return "a function does not take this value"
}

func hasKey(source, key string) bool {
	return key != "" && (strings.Contains(source, "."+key) || strings.Contains(source, "'"+key+"'") || strings.Contains(source, `"`+key+`"`))
}
