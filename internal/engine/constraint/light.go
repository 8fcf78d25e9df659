package constraint

import (
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Light expressions skip counting costs, which doubles the time of BenchmarkFiftyRules. Their functions take linear
// time, and macros iterate only over the subject.

var lightOperators = map[string]bool{
	operators.LogicalAnd: true, operators.LogicalOr: true, operators.LogicalNot: true, operators.Conditional: true,
	operators.Equals: true, operators.NotEquals: true, operators.Less: true, operators.LessEquals: true,
	operators.Greater: true, operators.GreaterEquals: true,
	operators.Negate: true, operators.Subtract: true, operators.Multiply: true, operators.Divide: true, operators.Modulo: true,
	operators.Index: true, operators.OptIndex: true, operators.OptSelect: true, operators.In: true,
	operators.NotStrictlyFalse: true, operators.Add: true,
}

var lightFunctions = map[string]bool{
	"size": true, "startsWith": true, "endsWith": true, "contains": true, "matches": true,
	"lowerAscii": true, "upperAscii": true, "trim": true,
	"hasValue": true, "value": true, "orValue": true, "optional.none": true, "dyn": true, "isSemver": true,
	"format.dns1123Label": true, "format.dns1123Subdomain": true, "format.dns1035Label": true, "format.labelValue": true, "validate": true,
}

func isLight(compiled *ast.AST) bool {
	l := lightness{compiled: compiled}
	return l.isLightIn(compiled.Expr(), nil)
}

type lightness struct{ compiled *ast.AST }

func (l *lightness) isLightIn(expr ast.Expr, local map[string]bool) bool {
	switch expr.Kind() {
	case ast.LiteralKind:
		return true
	case ast.IdentKind:
		return local == nil || local[expr.AsIdent()] || l.compiled.GetType(expr.ID()).Kind() == types.StringKind
	case ast.SelectKind:
		if local != nil && l.isShort(expr) {
			return true
		}
		return l.isLightIn(expr.AsSelect().Operand(), local)
	case ast.CallKind:
		call := expr.AsCall()
		name := call.FunctionName()
		if !lightOperators[name] && !lightFunctions[name] || name == "matches" && !hasLiteralPattern(call) {
			return false
		}
		if call.IsMemberFunction() && !l.isLightIn(call.Target(), local) {
			return false
		}
		return l.areLight(call.Args(), local)
	case ast.ListKind:
		return l.areLight(expr.AsList().Elements(), local)
	case ast.ComprehensionKind:
		c := expr.AsComprehension()
		if local != nil || !isPath(c.IterRange()) {
			return false
		}
		inner := map[string]bool{c.IterVar(): true, c.AccuVar(): true}
		if c.HasIterVar2() {
			inner[c.IterVar2()] = true
		}
		return l.areLight([]ast.Expr{c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}, inner)
	}
	return false
}

func (l *lightness) areLight(exprs []ast.Expr, local map[string]bool) bool {
	for _, expr := range exprs {
		if !l.isLightIn(expr, local) {
			return false
		}
	}
	return true
}

func (l *lightness) isShort(expr ast.Expr) bool {
	return isPath(expr) && l.compiled.GetType(expr.ID()).Kind() == types.StringKind
}

func isPath(expr ast.Expr) bool {
	for expr.Kind() == ast.SelectKind {
		expr = expr.AsSelect().Operand()
	}
	return expr.Kind() == ast.IdentKind && !strings.HasPrefix(expr.AsIdent(), "@")
}

func hasLiteralPattern(call ast.CallExpr) bool {
	args := call.Args()
	return len(args) > 0 && args[len(args)-1].Kind() == ast.LiteralKind
}
