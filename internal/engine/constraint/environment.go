package constraint

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/expression"
)

// Limits of rules. A unit of cost is about a tenth of a microsecond.
const (
	// MaxExpression limits the characters of an expression.
	MaxExpression = expression.MaxExpression
	// MaxCost limits one evaluation.
	MaxCost = expression.MaxCost
	// MaxFleetCost limits a rule over the whole fleet.
	MaxFleetCost = 200_000_000
	// maxMessageCost limits one of possibly thousands of messages.
	maxMessageCost = 10_000
	// MaxMessage limits the bytes from message_expression, as in Kubernetes.
	MaxMessage = 5 << 10
)

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

func (l *language) newProgram(ast *cel.Ast, most uint64) (cel.Program, error) {
	if isLight(ast.NativeRep()) {
		return l.Env.Program(ast, cel.EvalOptions(cel.OptOptimize))
	}
	return l.Program(ast, most)
}
