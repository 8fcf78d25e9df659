package constraint

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// refer notes which variables an expression uses, and which data it needs of them.
func (l *language) refer(r *rule, e *expression) {
	walker := &walker{found: func(expr ast.Expr, local map[string]bool) {
		switch expr.Kind() {
		case ast.IdentKind:
			name := strings.TrimPrefix(expr.AsIdent(), ".")
			if local[name] && name == expr.AsIdent() {
				return
			}
			for _, variable := range l.vocabulary.variables {
				if variable.name == name {
					r.names[name] = true
				}
			}
		case ast.SelectKind:
			of := e.ast.NativeRep().GetType(expr.AsSelect().Operand().ID())
			switch field := expr.AsSelect().FieldName(); {
			case isOf(of, l.vocabulary.target) && field == "manifests":
				r.needs.Manifests = true
			case isOf(of, l.vocabulary.assignment) && (field == "config_version" || field == "config_containers"):
				r.needs.Config = true
			}
		}
	}}
	walker.walk(e.ast.NativeRep().Expr(), nil)
	r.needs.Config = r.needs.Config || r.names["config"]
	r.needs.Objects = r.needs.Objects || r.names["object"]
}

func isOf(kind *types.Type, c *class) bool {
	return kind != nil && kind.Kind() == types.StructKind && kind.TypeName() == c.name
}

// createdObject is the name of a type of which the expression creates an object; "" where it creates none.
func (l *language) createdObject(compiled *cel.Ast) string {
	made := ""
	walker := &walker{found: func(expr ast.Expr, _ map[string]bool) {
		if expr.Kind() == ast.StructKind && made == "" {
			made = expr.AsStruct().TypeName()
		}
	}}
	walker.walk(compiled.NativeRep().Expr(), nil)
	return made
}

// walker goes through an expression, and knows which names are variables of a comprehension.
type walker struct {
	found func(expr ast.Expr, local map[string]bool)
}

func (w *walker) walk(expr ast.Expr, local map[string]bool) {
	w.found(expr, local)
	switch expr.Kind() {
	case ast.CallKind:
		call := expr.AsCall()
		if call.IsMemberFunction() {
			w.walk(call.Target(), local)
		}
		for _, argument := range call.Args() {
			w.walk(argument, local)
		}
	case ast.SelectKind:
		w.walk(expr.AsSelect().Operand(), local)
	case ast.ListKind:
		for _, element := range expr.AsList().Elements() {
			w.walk(element, local)
		}
	case ast.MapKind:
		for _, entry := range expr.AsMap().Entries() {
			w.walk(entry.AsMapEntry().Key(), local)
			w.walk(entry.AsMapEntry().Value(), local)
		}
	case ast.StructKind:
		for _, entry := range expr.AsStruct().Fields() {
			w.walk(entry.AsStructField().Value(), local)
		}
	case ast.ComprehensionKind:
		c := expr.AsComprehension()
		w.walk(c.IterRange(), local)
		w.walk(c.AccuInit(), local)
		inner := map[string]bool{c.AccuVar(): true, c.IterVar(): true}
		if c.HasIterVar2() {
			inner[c.IterVar2()] = true
		}
		result := map[string]bool{c.AccuVar(): true}
		for name := range local {
			inner[name], result[name] = true, true
		}
		w.walk(c.LoopCondition(), inner)
		w.walk(c.LoopStep(), inner)
		w.walk(c.Result(), result)
	}
}
