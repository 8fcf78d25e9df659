package constraint

import (
	"sync"
	"sync/atomic"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// Rules go over the keys of many configurations, as in config.all(key, !key.matches("secret")), and a fleet has few
// different keys. So a slow call that depends on one variable alone keeps its results by the value of the variable.
// All functions of the language are pure. In BenchmarkFiftyRules this takes half of the processor's time from the forty
// rules without objects.

const (
	// maxResults is how many results one call keeps.
	maxResults = 4096
	// maxResultKey is the size, in bytes, of the largest value that a result is kept for.
	maxResultKey = 128
)

// slowFunctions take longer than it takes to find a kept result.
var slowFunctions = map[string]bool{"matches": true, "lowerAscii": true, "upperAscii": true, "trim": true, "contains": true}

// keepResults decorates the program of an expression whose cost is not counted: a call whose result is known is not made.
// What it decorates are calls of slow functions with literals and one variable, or one such call.
func keepResults(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := node.(interpreter.InterpretableCall)
	if !ok || !slowFunctions[call.Function()] {
		return node, nil
	}
	keeper := &resultKeeper{InterpretableV2: call}
	for _, arg := range call.Args() {
		if _, isLiteral := arg.(interpreter.InterpretableConst); isLiteral {
			continue
		}
		variable := arg
		if inner, isKept := arg.(*resultKeeper); isKept {
			variable = inner.variable
		} else if !isVariable(arg) {
			return node, nil
		}
		if keeper.variable != nil {
			return node, nil
		}
		keeper.variable = variable
	}
	if keeper.variable == nil {
		return node, nil
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

// isVariable says whether a value is that of a variable, without a field or an index.
func isVariable(value interpreter.InterpretableV2) bool {
	attribute, ok := value.(interpreter.InterpretableAttribute)
	if !ok {
		return false
	}
	of, ok := attribute.Attr().(interpreter.NamespacedAttribute)
	return ok && len(of.Qualifiers()) == 0
}

// resultKeeper is a call that depends on one variable alone.
type resultKeeper struct {
	interpreter.InterpretableV2
	variable interpreter.InterpretableV2
	results  sync.Map // of ref.Val, by the variable's value
	count    atomic.Int32
}

// Exec returns the result of the call.
func (k *resultKeeper) Exec(frame *interpreter.ExecutionFrame) ref.Val {
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
