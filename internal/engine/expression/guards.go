package expression

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// CEL counts the cost of a function after the call. Guards protect against tenants: with texts and lists in their
// objects, one call could take all memory, or hours. Functions of linear cost need no guard.
const (
	maxText     = 1 << 20   // bytes of a text that a function makes
	maxElements = 100_000   // of a list that a function makes
	maxPairs    = 1_000_000 // of elements that a function compares
	maxQuantity = 64        // bytes of the text of a quantity
)

type guard func(args []ref.Val) ref.Val

var guards = map[string]guard{
	"replace": func(args []ref.Val) ref.Val {
		text, old, replacement := textOf(args[0]), textOf(args[1]), textOf(args[2])
		return limit(float64(len(text))+float64(strings.Count(text, old))*float64(len(replacement)), maxText)
	},
	"join": func(args []ref.Val) ref.Val {
		size, separator := 0.0, 0
		if len(args) > 1 {
			separator = len(textOf(args[1]))
		}
		if list, ok := args[0].(traits.Lister); ok {
			for it := list.Iterator(); it.HasNext() == types.True && size <= maxText; {
				size += float64(len(textOf(it.Next())) + separator)
			}
		}
		return limit(size, maxText)
	},
	"distinct": func(args []ref.Val) ref.Val {
		return limit(sizeOf(args[0])*sizeOf(args[0])/100, maxPairs)
	},
	"sets.contains":   ofPairs,
	"sets.equivalent": ofPairs,
	"sets.intersects": ofPairs,
	"quantity": func(args []ref.Val) ref.Val {
		if !isPlainQuantity(textOf(args[0])) {
			return types.NewErr("too large: a quantity")
		}
		return nil
	},
	"isQuantity": func(args []ref.Val) ref.Val {
		if !isPlainQuantity(textOf(args[0])) {
			return types.False
		}
		return nil
	},
}

func ofPairs(args []ref.Val) ref.Val { return limit(sizeOf(args[0])*sizeOf(args[1]), maxPairs) }

// isPlainQuantity refuses large exponents: comparing such quantities takes hours.
func isPlainQuantity(text string) bool {
	at := strings.LastIndexAny(text, "eE")
	return len(text) <= maxQuantity && (at < 0 || len(strings.TrimLeft(text[at+1:], "+-0")) <= 2)
}

func limit(size, most float64) ref.Val {
	if size > most {
		return types.NewErr("too large: the result of a function")
	}
	return nil
}

func textOf(value ref.Val) string {
	text, _ := value.(types.String)
	return string(text)
}

func sizeOf(value ref.Val) float64 {
	if list, ok := value.(traits.Sizer); ok {
		if size, ok := list.Size().(types.Int); ok {
			return float64(size)
		}
	}
	return 0
}

func guardFunctions(env *cel.Env) ([]cel.EnvOption, error) {
	var options []cel.EnvOption
	for name, guard := range guards {
		declared, ok := env.Functions()[name]
		if !ok {
			return nil, fmt.Errorf("there is no function %s", name)
		}
		bindings, err := declared.Bindings()
		if err != nil {
			return nil, err
		}
		var overloads []cel.FunctionOpt
		for _, overload := range declared.OverloadDecls() {
			for _, binding := range bindings {
				if binding.Operator == overload.ID() {
					overloads = append(overloads, redefineOverload(overload, binding, guard))
				}
			}
		}
		options = append(options, cel.Function(name, overloads...))
	}
	return options, nil
}

func redefineOverload(overload *decls.OverloadDecl, binding *functions.Overload, guard guard) cel.FunctionOpt {
	declare := cel.Overload
	if overload.IsMemberFunction() {
		declare = cel.MemberOverload
	}
	var bound cel.OverloadOpt
	switch {
	case binding.Unary != nil:
		bound = cel.UnaryBinding(func(arg ref.Val) ref.Val {
			if instead := guard([]ref.Val{arg}); instead != nil {
				return instead
			}
			return binding.Unary(arg)
		})
	case binding.Binary != nil:
		bound = cel.BinaryBinding(func(first, second ref.Val) ref.Val {
			if instead := guard([]ref.Val{first, second}); instead != nil {
				return instead
			}
			return binding.Binary(first, second)
		})
	default:
		bound = cel.FunctionBinding(func(args ...ref.Val) ref.Val {
			if instead := guard(args); instead != nil {
				return instead
			}
			return binding.Function(args...)
		})
	}
	return declare(overload.ID(), overload.ArgTypes(), overload.ResultType(), bound)
}
