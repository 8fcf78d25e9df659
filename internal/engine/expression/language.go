// Package expression implements the expression language for users: CEL with the functions of Kubernetes. Length, cost
// and memory are bounded.
package expression

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"
)

// Bounds. Costs are Kubernetes' units, about a tenth of a microsecond.
const (
	// MaxExpression is the longest expression, in characters.
	MaxExpression = 16 << 10
	// MaxCost limits one evaluation to a fifth of Kubernetes' limit: counting high costs is slow.
	MaxCost = 200_000
)

// Variable is a variable of expressions.
type Variable struct {
	Name    string
	Type    *cel.Type
	Meaning string // for people; may be empty
}

// Language is the expression language with one set of variables.
type Language struct {
	Env *cel.Env
	// Fields lists known fields of variables, for suggestions.
	Fields []string
	names  []string
}

// New creates a language. The options in more come last.
func New(variables []Variable, more ...cel.EnvOption) (*Language, error) {
	adapter, err := NewAdapter()
	if err != nil {
		return nil, err
	}
	options := []cel.EnvOption{
		cel.CustomTypeAdapter(adapter),
		cel.CustomTypeProvider(adapter),
		cel.ParserExpressionSizeLimit(MaxExpression),
		cel.HomogeneousAggregateLiterals(),
		cel.EagerlyValidateDeclarations(true),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals(),
			cel.ValidateHomogeneousAggregateLiterals()),
		library.URLs(),
		library.Regex(),
		library.Quantity(),
		library.IP(),
		library.CIDR(),
		library.Format(),
		library.SemverLib(library.SemverVersion(1)),
		library.Lists(library.ListsVersion(1)),
		ext.Strings(ext.StringsVersion(2)),
		ext.Sets(),
		ext.TwoVarComprehensions(),
		ext.Lists(ext.ListsVersion(3), ext.ListsMaxRangeSize(maxElements)),
	}
	options = append(options, more...)
	l := &Language{}
	for _, variable := range variables {
		options = append(options, cel.Variable(variable.Name, variable.Type))
		l.names = append(l.names, variable.Name)
	}
	l.Env, err = cel.NewEnv(options...)
	if err == nil {
		options, err = guardFunctions(l.Env)
	}
	if err == nil {
		l.Env, err = l.Env.Extend(options...)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Program builds a program that fails beyond a cost of most.
func (l *Language) Program(compiled *cel.Ast, most uint64) (cel.Program, error) {
	return l.Env.Program(compiled,
		cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost),
		cel.CostLimit(most),
		cel.CostTrackerOptions(interpreter.PresenceTestHasCost(false), interpreter.OverloadCostTracker("list_distinct", costOfDistinct)),
		cel.CostTrackerOptions(costsOfSorting()...),
		cel.CostTracking(&library.CostEstimator{}),
	)
}

// costOfDistinct compares each element with the distinct ones before it. The library counts all pairs, too much for a
// thousand hosts.
func costOfDistinct(args []ref.Val, result ref.Val) *uint64 {
	cost := uint64(sizeOf(args[0]) * (sizeOf(result) + 1))
	return &cost
}

// Adapter converts JSON values to CEL values.
type Adapter struct {
	*types.Registry
}

// NewAdapter creates an adapter.
func NewAdapter() (*Adapter, error) {
	registry, err := types.NewRegistry()
	return &Adapter{registry}, err
}

// NativeToValue converts a JSON value. Whole numbers that fit become ints, other numbers doubles.
func (a *Adapter) NativeToValue(value any) ref.Val {
	switch value := value.(type) {
	case nil:
		return types.NullValue
	case ref.Val:
		return value
	case string:
		return types.String(value)
	case bool:
		return types.Bool(value)
	case json.Number:
		if whole, err := strconv.ParseInt(string(value), 10, 64); err == nil {
			return types.Int(whole)
		}
		number, err := strconv.ParseFloat(string(value), 64)
		if err != nil {
			return types.NewErr("a number is out of range")
		}
		return types.Double(number)
	case map[string]any:
		return types.NewStringInterfaceMap(a, value)
	case []any:
		return types.NewDynamicList(a, value)
	}
	return a.Registry.NativeToValue(value)
}

var sortable = []*cel.Type{
	cel.IntType, cel.UintType, cel.DoubleType, cel.BoolType, cel.DurationType, cel.TimestampType, cel.StringType, cel.BytesType,
}

// costsOfSorting counts like the library, whose own functions panic if the argument is unknown or an error.
func costsOfSorting() []interpreter.CostTrackerOption {
	cost := func(keys int) interpreter.FunctionTracker {
		return func(args []ref.Val, _ ref.Val) *uint64 {
			size := sizeOf(args[keys])
			cost := uint64(2.1*size*size) + 1
			return &cost
		}
	}
	options := make([]interpreter.CostTrackerOption, 0, 2*len(sortable))
	for _, kind := range sortable {
		options = append(options,
			interpreter.OverloadCostTracker(fmt.Sprintf("list_%s_sort", kind.TypeName()), cost(0)),
			interpreter.OverloadCostTracker(fmt.Sprintf("list_%s_sortByAssociatedKeys", kind.TypeName()), cost(1)))
	}
	return options
}

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
