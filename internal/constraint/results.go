package constraint

import (
	"cmp"
	"sync"
	"sync/atomic"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// Rules go over the keys of many configurations, as in config.all(key, !key.matches("secret")), and a fleet has few
// different keys. So a call that depends on the variable of a macro alone keeps its results by the value of the variable.
// All functions of the language are pure. In BenchmarkFiftyRules this takes half of the processor's time from the forty
// rules without objects, and a quarter from all fifty.

const (
	// maxResults is how many results one call keeps.
	maxResults = 4096
	// maxResultKey is the size, in bytes, of the largest value that a result is kept for.
	maxResultKey = 128
)

// keepResults is a decorator for the program of an expression. It is for expressions whose cost is not counted: a call
// whose result is known is not made.
func keepResults(compiled *ast.AST) interpreter.InterpretableDecoratorV2 {
	finder := resultFinder{calls: map[int64]bool{}}
	finder.look(compiled.Expr(), nil)
	return func(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		call, ok := node.(interpreter.InterpretableCall)
		if !ok {
			return node, nil
		}
		isSlow, ok := finder.calls[call.ID()]
		if !ok {
			return node, nil
		}
		keeper := &resultKeeper{InterpretableV2: call, keeps: isSlow}
		for _, arg := range call.Args() {
			switch arg := arg.(type) {
			case interpreter.InterpretableConst:
			case *resultKeeper:
				keeper.variable = arg.variable
			default:
				keeper.variable = arg
			}
		}
		// The planner compiles constant patterns after this, and only in what it sees to be a call.
		patterns := interpreter.MatchesRegexOptimization
		if call.Function() == patterns.Function && len(call.Args()) > patterns.RegexIndex {
			if pattern, ok := call.Args()[patterns.RegexIndex].(interpreter.InterpretableConst); ok {
				if text, ok := pattern.Value().(types.String); ok {
					compiled, err := patterns.Factory(call, string(text))
					if err != nil {
						return nil, err
					}
					keeper.InterpretableV2 = compiled
				}
			}
		}
		return keeper, nil
	}
}

// slowFunctions take longer than it takes to find a kept result.
var slowFunctions = map[string]bool{"matches": true, "lowerAscii": true, "upperAscii": true, "trim": true, "contains": true}

// quickFunctions are kept with a slow one in them. Of these, too, the interpreter always evaluates all arguments.
var quickFunctions = map[string]bool{
	operators.LogicalNot: true, operators.Equals: true, operators.NotEquals: true, operators.Add: true,
	"size": true, "startsWith": true, "endsWith": true,
}

// resultFinder finds the calls that depend on one variable of a macro and on literals alone. The value says whether the call
// takes long.
type resultFinder struct{ calls map[int64]bool }

// dependence is what the value of an expression depends on.
type dependence struct {
	variable string // of a macro; empty for a literal
	other    bool   // on something else, too
	slow     bool   // it takes long to find it
}

// look finds the dependence of an expression. local are the variables of the macros around it.
func (f *resultFinder) look(expr ast.Expr, local map[string]bool) dependence {
	switch expr.Kind() {
	case ast.LiteralKind:
		return dependence{}
	case ast.IdentKind:
		return dependence{variable: expr.AsIdent(), other: !local[expr.AsIdent()]}
	case ast.SelectKind:
		f.look(expr.AsSelect().Operand(), local)
	case ast.CallKind:
		call := expr.AsCall()
		args := call.Args()
		if call.IsMemberFunction() {
			args = append([]ast.Expr{call.Target()}, args...)
		}
		d := f.all(args, local)
		isSlow := slowFunctions[call.FunctionName()]
		if d.other || d.variable == "" || !isSlow && !quickFunctions[call.FunctionName()] {
			break
		}
		d.slow = d.slow || isSlow
		f.calls[expr.ID()] = d.slow
		return d
	case ast.ListKind:
		f.all(expr.AsList().Elements(), local)
	case ast.MapKind:
		for _, entry := range expr.AsMap().Entries() {
			f.all([]ast.Expr{entry.AsMapEntry().Key(), entry.AsMapEntry().Value()}, local)
		}
	case ast.ComprehensionKind:
		c := expr.AsComprehension()
		f.all([]ast.Expr{c.IterRange(), c.AccuInit()}, local)
		inner := map[string]bool{c.IterVar(): true}
		for outer := range local {
			inner[outer] = inner[outer] || local[outer] && outer != c.IterVar2() && outer != c.AccuVar()
		}
		f.all([]ast.Expr{c.LoopCondition(), c.LoopStep()}, inner)
		f.look(c.Result(), local)
	}
	return dependence{other: true}
}

// all looks at several expressions as one.
func (f *resultFinder) all(exprs []ast.Expr, local map[string]bool) dependence {
	var all dependence
	for _, expr := range exprs {
		d := f.look(expr, local)
		all.other = all.other || d.other || all.variable != "" && d.variable != "" && all.variable != d.variable
		all.slow = all.slow || d.slow
		all.variable = cmp.Or(all.variable, d.variable)
	}
	return all
}

// resultKeeper is a call that depends on one variable alone.
type resultKeeper struct {
	interpreter.InterpretableV2
	variable interpreter.InterpretableV2
	keeps    bool     // whether it keeps its results; otherwise it is only known what it depends on
	results  sync.Map // of ref.Val, by the variable's value
	count    atomic.Int32
}

// Exec returns the result of the call.
func (k *resultKeeper) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	if !k.keeps {
		return k.InterpretableV2.Exec(frame)
	}
	value := k.variable.Exec(frame)
	if text, ok := value.(types.String); !ok || len(text) > maxResultKey {
		return k.InterpretableV2.Exec(frame)
	}
	if result, ok := k.results.Load(value); ok {
		return result.(ref.Val)
	}
	result := k.InterpretableV2.Exec(frame)
	if !types.IsUnknownOrError(result) && k.count.Load() < maxResults {
		if _, present := k.results.LoadOrStore(value, result); !present {
			k.count.Add(1)
		}
	}
	return result
}

// Eval is [resultKeeper.Exec] for callers without a frame.
func (k *resultKeeper) Eval(variables interpreter.Activation) ref.Val {
	return k.Exec(interpreter.AsFrame(variables))
}
