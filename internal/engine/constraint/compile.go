package constraint

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

type rule struct {
	*fleet.Constraint
	over          Over
	names         map[string]bool // variables in its expressions
	needsContents bool            // see [Program.NeedsContents]
	ofPods        bool            // only objects with pods

	expression *compiled
	message    *compiled // nil without a message_expression

	workload, target, clusterType, cluster fleet.Requirements
	kinds                                  map[string]bool // nil matches all
	kindNames                              map[string]bool // without groups
}

type compiled struct {
	source  string
	ast     *cel.Ast
	program cel.Program
}

func (l *language) compileRule(constraint *fleet.Constraint, at *fleet.Path) (*rule, fleet.Findings) {
	r := &rule{Constraint: constraint, names: map[string]bool{}}
	var findings fleet.Findings
	r.expression = l.compileExpression(constraint.Expression, cel.BoolType, MaxCost, at.Attribute("expression"), &findings)
	expressions := []*compiled{r.expression}
	if constraint.MessageExpression != "" {
		path := at.Attribute("message_expression")
		r.message = l.compileExpression(constraint.MessageExpression, cel.StringType, maxMessageCost, path, &findings)
		expressions = append(expressions, r.message)
	}
	for _, expression := range expressions {
		if expression != nil {
			l.noteReferences(r, expression)
		}
	}
	r.over, r.ofPods = overOf(r.names), namesPods(r.names)
	r.compileMatch(at.Attribute("match"), r.expression != nil, &findings)
	return r, findings
}

// overOf derives the kind of subject from variables.
func overOf(names map[string]bool) Over {
	switch {
	case names["object"], names["made_by"], namesPods(names):
		return OverObjects
	case names["assignment"], names["config"], names["secrets"], names["host"] && (names["target"] || names["workspace"]):
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

func namesPods(names map[string]bool) bool {
	return names["pods"] || names["containers"] || names["images"]
}

func (l *language) compileExpression(source string, wanted *cel.Type, most uint64, at *fleet.Path, findings *fleet.Findings) *compiled {
	ast, wrong := l.Check(source, wanted)
	for _, sentence := range wrong {
		if utf8.RuneCountInString(source) > MaxExpression {
			sentence += ": split it into several constraints"
		}
		findings.Report(at, "%s", sentence)
	}
	if ast == nil {
		return nil
	}
	program, err := l.newProgram(ast, most)
	if err != nil {
		findings.Report(at, "%s", wording.OneLine(err.Error()))
		return nil
	}
	return &compiled{source: source, ast: ast, program: program}
}

var (
	withTargets = []Over{OverDeploymentTargets, OverAssignments, OverObjects}
	withHosts   = []Over{OverHosts, OverAssignments, OverObjects}
)

// compileMatch compiles the match of a rule, and checks that it suits the subjects if the expression compiles.
func (r *rule) compileMatch(at *fleet.Path, compiles bool, findings *fleet.Findings) {
	needs := func(attribute, selects string, overs []Over, variables string) {
		if compiles && !slices.Contains(overs, r.over) {
			findings.Report(at.Attribute(attribute),
				"selects %s, and the rule is evaluated over %s: name %s in the expression, or leave this out", selects,
				r.over.phrase(), variables)
		}
	}
	if r.Match.Workspace != "" {
		needs("workspace", "workspaces", append([]Over{OverWorkspaces}, withTargets...),
			"workspace, target, assignment, config, secrets or object")
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
			needs(selector.name, "hosts", withHosts, "host, assignment, config, secrets or object")
		} else {
			needs(selector.name, "deployment targets", withTargets, "target, assignment, config, secrets or object")
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

func (o Over) phrase() string {
	if o == OverFleet {
		return "the fleet as a whole"
	}
	return nouns[o][1]
}
