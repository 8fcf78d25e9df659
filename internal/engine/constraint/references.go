package constraint

import (
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

func (l *language) noteReferences(r *rule, e *compiled) {
	for _, expr := range ast.MatchDescendants(ast.NavigateAST(e.ast.NativeRep()), ast.AllMatcher()) {
		switch expr.Kind() {
		case ast.IdentKind:
			name, isGlobal := strings.CutPrefix(expr.AsIdent(), ".")
			if !isGlobal && isLocal(expr) {
				continue
			}
			for _, variable := range l.vocabulary.variables {
				if variable.Name == name {
					r.names[name] = true
				}
			}
			r.needsContents = r.needsContents || r.names["config"] || r.names["secrets"] || r.names["object"] || r.names["made_by"] ||
				namesPods(r.names)
		case ast.SelectKind:
			of := e.ast.NativeRep().GetType(expr.AsSelect().Operand().ID())
			field := expr.AsSelect().FieldName()
			r.needsContents = r.needsContents || isOf(of, l.vocabulary.target) && field == "manifests" ||
				isOf(of, l.vocabulary.assignment) && (field == "config_version" || field == "config_containers")
		}
	}
}

func isOf(kind *types.Type, c *class) bool {
	return kind != nil && kind.Kind() == types.StructKind && kind.TypeName() == c.name
}

func isLocal(expr ast.NavigableExpr) bool {
	name := expr.AsIdent()
	for around, inside := expr.Parent(); inside; around, inside = around.Parent() {
		if around.Kind() == ast.ComprehensionKind {
			c := around.AsComprehension()
			switch expr.ID() {
			case c.IterRange().ID(), c.AccuInit().ID():
			case c.Result().ID():
				if name == c.AccuVar() {
					return true
				}
			default:
				if name == c.AccuVar() || name == c.IterVar() || name == c.IterVar2() {
					return true
				}
			}
		}
		expr = around
	}
	return false
}
