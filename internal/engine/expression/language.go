// Package expression implements the expression language for users: CEL with the functions of Kubernetes. Length, cost
// and memory are bounded.
package expression

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
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
