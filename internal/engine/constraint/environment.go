package constraint

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/expression"
)

// Bounds of rules. Costs are counted as in Kubernetes, where a unit is about a tenth of a microsecond.
const (
	// MaxExpression is how many characters an expression may have.
	MaxExpression = expression.MaxExpression
	// MaxCost is what one evaluation may cost.
	MaxCost = expression.MaxCost
	// MaxFleetCost is what a rule may cost over the whole fleet.
	MaxFleetCost = 200_000_000
	// maxMessageCost is what a message may cost. There may be thousands of messages.
	maxMessageCost = 10_000
	// MaxMessage is the size, in bytes, of a message that message_expression may give, as in Kubernetes.
	MaxMessage = 5 << 10
)

// language is the language of rules: CEL with our variables, and the functions of Kubernetes 1.37.
type language struct {
	*expression.Language
	vocabulary *vocabulary
	adapter    *adapter
}

func newLanguage() (*language, error) {
	values, err := expression.NewAdapter()
	if err != nil {
		return nil, err
	}
	l := &language{vocabulary: newVocabulary()}
	l.adapter = &adapter{Adapter: values, vocabulary: l.vocabulary}
	l.Language, err = expression.New(l.vocabulary.variables, cel.CustomTypeAdapter(l.adapter), cel.CustomTypeProvider(l.adapter))
	if err != nil {
		return nil, fmt.Errorf("the language of constraints: %w", err)
	}
	for _, class := range l.vocabulary.all {
		l.Fields = append(l.Fields, class.names()...)
	}
	slices.Sort(l.Fields)
	l.Fields = slices.Compact(l.Fields)
	return l, nil
}

// program makes a program of an expression. Its evaluation fails beyond a cost of most.
func (l *language) program(ast *cel.Ast, most uint64) (cel.Program, error) {
	if isLight(ast.NativeRep()) {
		return l.Env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CustomDecoratorV2(keepResults))
	}
	return l.Program(ast, most)
}
