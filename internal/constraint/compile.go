package constraint

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// rule is a compiled constraint.
type rule struct {
	*fleet.Constraint
	over  Over
	needs Needs
	names map[string]bool // the variables in its expressions

	expression *expression
	message    *expression // nil where there is no message_expression

	workload, target, clusterType, cluster fleet.Requirements
	kinds                                  map[string]bool // nil: all
	kindNames                              map[string]bool // the same without their groups
}

// expression is a compiled expression.
type expression struct {
	source  string
	ast     *cel.Ast
	program cel.Program
}

// rule compiles a constraint. Without findings the rule is complete.
func (l *language) rule(constraint *fleet.Constraint, at *fleet.Path) (*rule, fleet.Findings) {
	r := &rule{Constraint: constraint, names: map[string]bool{}}
	var findings fleet.Findings
	r.expression = l.expression(constraint.Expression, cel.BoolType, MaxCost, at.Attribute("expression"), &findings)
	expressions := []*expression{r.expression}
	if constraint.MessageExpression != "" {
		r.message = l.expression(constraint.MessageExpression, cel.StringType, maxMessageCost, at.Attribute("message_expression"), &findings)
		expressions = append(expressions, r.message)
	}
	for _, expression := range expressions {
		if expression != nil {
			l.refer(r, expression)
		}
	}
	r.over = overOf(r.names)
	r.match(at.Attribute("match"), r.expression != nil, &findings)
	return r, findings
}

// overOf says what a rule with these variables is evaluated over.
func overOf(names map[string]bool) Over {
	switch {
	case names["object"]:
		return OverObjects
	case names["assignment"], names["config"], names["host"] && (names["target"] || names["workspace"]):
		return OverAssignments
	case names["host"]:
		return OverHosts
	case names["target"]:
		return OverDeploymentTargets
	case names["workspace"]:
		return OverWorkspaces
	}
	return OverFleet
}

// expression compiles one expression that must have a type. It returns nil where it adds findings.
func (l *language) expression(source string, wanted *cel.Type, most uint64, at *fleet.Path, findings *fleet.Findings) *expression {
	report := func(format string, arguments ...any) {
		*findings = append(*findings, fleet.Finding{Path: at.String(), Message: fmt.Sprintf(format, arguments...)})
	}
	if strings.TrimSpace(source) == "" {
		report("must be an expression, and is empty")
		return nil
	}
	if length := utf8.RuneCountInString(source); length > MaxExpression {
		report("has %d characters, and %d are the most: split it into several constraints", length, MaxExpression)
		return nil
	}
	ast, issues := l.env.Compile(source)
	if issues != nil && len(issues.Errors()) > 0 {
		const most = 10
		for i, problem := range issues.Errors() {
			if i == most {
				report("has %d further errors", len(issues.Errors())-most)
				break
			}
			where := ""
			if problem.Location.Line() > 0 {
				where = fmt.Sprintf("line %d, column %d: ", problem.Location.Line(), problem.Location.Column()+1)
			}
			report("%s%s", where, l.explain(problem.Message))
		}
		return nil
	}
	if made := createdObject(ast); made != "" {
		report("objects of type %s cannot be made in an expression", made)
		return nil
	}
	if got := ast.OutputType(); !got.IsExactType(wanted) {
		remedy := ""
		switch {
		case got.IsExactType(cel.DynType) && wanted == cel.BoolType:
			remedy = ": compare it with something, as in `== true`"
		case wanted == cel.StringType:
			remedy = ": string() makes one of numbers and bools"
		}
		report("must give a %s, and gives a %s%s", wanted, got, remedy)
		return nil
	}
	program, err := l.program(ast, most)
	if err != nil {
		report("%s", wording.OneLine(err.Error()))
		return nil
	}
	return &expression{source: source, ast: ast, program: program}
}

// explain is a message of the compiler in one line, with a suggestion for a misspelt name.
func (l *language) explain(message string) string {
	message = wording.OneLine(message)
	if name, ok := quotedAfter(message, "undefined field "); ok {
		var fields []string
		for _, class := range l.vocabulary.all {
			fields = append(fields, class.names()...)
		}
		slices.Sort(fields)
		return fmt.Sprintf("there is no field %q%s", name, fleet.DidYouMean(name, slices.Compact(fields)))
	}
	if name, ok := quotedAfter(message, "undeclared reference to "); ok {
		var names []string
		for _, variable := range l.vocabulary.variables {
			names = append(names, variable.name)
		}
		return fmt.Sprintf("there is no variable or function %q%s", name, fleet.DidYouMean(name, names))
	}
	return message
}

func quotedAfter(message, start string) (string, bool) {
	rest, ok := strings.CutPrefix(message, start+"'")
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, "'")
	return name, ok
}

// Which fields of match are allowed depends on what a rule is evaluated over.
var (
	withTargets = []Over{OverDeploymentTargets, OverAssignments, OverObjects}
	withHosts   = []Over{OverHosts, OverAssignments, OverObjects}
)

// match compiles the match of a rule. Only where the expression compiles can it check that the match fits what the rule
// is evaluated over.
func (r *rule) match(at *fleet.Path, compiles bool, findings *fleet.Findings) {
	report := func(attribute, format string, arguments ...any) {
		*findings = append(*findings, fleet.Finding{Path: at.Attribute(attribute).String(), Message: fmt.Sprintf(format, arguments...)})
	}
	needs := func(attribute, selects string, overs []Over, variables string) {
		if compiles && !slices.Contains(overs, r.over) {
			report(attribute, "selects %s, and the rule is evaluated over %s: name %s in the expression, or leave this out", selects, r.over.phrase(), variables)
		}
	}
	if r.Match.Workspace != "" {
		needs("workspace", "workspaces", append([]Over{OverWorkspaces}, withTargets...), "workspace, target, assignment, config or object")
	}
	for _, selector := range []struct {
		name     string
		selector *fleet.Selector
		compiled *fleet.Requirements
		ofHosts  bool
	}{
		{"workload_selector", r.Match.WorkloadSelector, &r.workload, false},
		{"deployment_target_selector", r.Match.DeploymentTargetSelector, &r.target, false},
		{"cluster_type_selector", r.Match.ClusterTypeSelector, &r.clusterType, true},
		{"cluster_selector", r.Match.ClusterSelector, &r.cluster, true},
	} {
		if selector.selector == nil {
			continue
		}
		if selector.ofHosts {
			needs(selector.name, "hosts", withHosts, "host, assignment, config or object")
		} else {
			needs(selector.name, "deployment targets", withTargets, "target, assignment, config or object")
		}
		requirements, wrong := selector.selector.Compile()
		*selector.compiled = requirements
		for _, finding := range wrong {
			path := at.Attribute(selector.name).String()
			if finding.Path != "" {
				path += "." + finding.Path
			}
			*findings = append(*findings, fleet.Finding{Path: path, Message: finding.Message})
		}
	}
	if len(r.Match.Kinds) == 0 {
		return
	}
	needs("kinds", "objects", []Over{OverObjects}, "object")
	r.kinds, r.kindNames = make(map[string]bool, len(r.Match.Kinds)), make(map[string]bool, len(r.Match.Kinds))
	for _, kind := range r.Match.Kinds {
		r.kinds[kind], r.kindNames[kind[strings.LastIndex(kind, "/")+1:]] = true, true
	}
}

// phrase is a part of a sentence that says what a rule is evaluated over.
func (o Over) phrase() string {
	switch o {
	case OverFleet:
		return "the fleet as a whole"
	case OverDeploymentTargets:
		return "deployment targets"
	}
	return string(o)
}
