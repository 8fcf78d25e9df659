package constraint

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"
)

// Bounds of rules. Costs are counted as in Kubernetes, where a unit is about a tenth of a microsecond.
const (
	// MaxExpression is how many characters an expression may have.
	MaxExpression = 16 << 10
	// MaxCost is what one evaluation may cost: a fifth of what Kubernetes allows, since counting itself becomes slow for
	// high costs.
	MaxCost = 200_000
	// MaxFleetCost is what a rule may cost over the whole fleet.
	MaxFleetCost = 200_000_000
	// maxMessageCost is what a message may cost. There may be thousands of messages.
	maxMessageCost = 10_000
	// MaxMessage is the size, in bytes, of a message that message_expression may give, as in Kubernetes.
	MaxMessage = 5 << 10
)

// language is the language of rules: CEL with our variables, and the functions of Kubernetes 1.37.
type language struct {
	vocabulary *vocabulary
	adapter    *adapter
	env        *cel.Env
}

func newLanguage() (*language, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	l := &language{vocabulary: newVocabulary()}
	l.adapter = &adapter{Registry: registry, vocabulary: l.vocabulary}
	options := []cel.EnvOption{
		cel.CustomTypeAdapter(l.adapter),
		cel.CustomTypeProvider(l.adapter),
		cel.ParserExpressionSizeLimit(MaxExpression),
		cel.HomogeneousAggregateLiterals(),
		cel.EagerlyValidateDeclarations(true),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(),
		cel.CostEstimatorOptions(checker.PresenceTestHasCost(false)),
		cel.ASTValidators(
			cel.ValidateDurationLiterals(),
			cel.ValidateTimestampLiterals(),
			cel.ValidateRegexLiterals(),
			cel.ValidateHomogeneousAggregateLiterals(),
		),
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
	for _, variable := range l.vocabulary.variables {
		options = append(options, cel.Variable(variable.name, variable.kind))
	}
	l.env, err = cel.NewEnv(options...)
	if err == nil {
		options, err = guarded(l.env)
	}
	if err == nil {
		l.env, err = l.env.Extend(options...)
	}
	if err != nil {
		return nil, fmt.Errorf("the language of constraints: %w", err)
	}
	return l, nil
}

// program makes a program of an expression. Its evaluation fails beyond a cost of most.
func (l *language) program(ast *cel.Ast, most uint64) (cel.Program, error) {
	if isLight(ast.NativeRep()) {
		return l.env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CustomDecoratorV2(keepResults))
	}
	return l.env.Program(ast,
		cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost),
		cel.CostLimit(most),
		cel.CostTrackerOptions(interpreter.PresenceTestHasCost(false), interpreter.OverloadCostTracker("list_distinct", costOfDistinct)),
		cel.CostTrackerOptions(costsOfSorting()...),
		cel.CostTracking(&library.CostEstimator{}),
	)
}

// costOfDistinct is the cost of distinct(): each element is compared with all different ones before it. The library counts
// each element with each, which would be too much for the labels of a thousand hosts.
func costOfDistinct(args []ref.Val, result ref.Val) *uint64 {
	cost := uint64(sizeOf(args[0]) * (sizeOf(result) + 1))
	return &cost
}
