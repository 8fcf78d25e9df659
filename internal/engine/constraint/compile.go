package constraint

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/expression"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
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

func (l *language) noteReferences(r *rule, e *compiled) {
	for _, expr := range ast.MatchDescendants(ast.NavigateAST(e.ast.NativeRep()), ast.AllMatcher()) {
		switch expr.Kind() {
		case ast.IdentKind:
			name, isGlobal := strings.CutPrefix(expr.AsIdent(), ".")
			if !isGlobal && isLocal(expr) {
				continue
			}
			if slices.ContainsFunc(l.vocabulary.variables, func(v expression.Variable) bool { return v.Name == name }) {
				r.names[name] = true
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
	return isLightIn(compiled, compiled.Expr(), nil)
}

func isLightIn(compiled *ast.AST, expr ast.Expr, local map[string]bool) bool {
	switch expr.Kind() {
	case ast.LiteralKind:
		return true
	case ast.IdentKind:
		return local == nil || local[expr.AsIdent()] || compiled.GetType(expr.ID()).Kind() == types.StringKind
	case ast.SelectKind:
		if local != nil && isPath(expr) && compiled.GetType(expr.ID()).Kind() == types.StringKind {
			return true
		}
		return isLightIn(compiled, expr.AsSelect().Operand(), local)
	case ast.CallKind:
		call := expr.AsCall()
		name := call.FunctionName()
		if !lightOperators[name] && !lightFunctions[name] || name == "matches" && !hasLiteralPattern(call) {
			return false
		}
		if call.IsMemberFunction() && !isLightIn(compiled, call.Target(), local) {
			return false
		}
		return areLight(compiled, call.Args(), local)
	case ast.ListKind:
		return areLight(compiled, expr.AsList().Elements(), local)
	case ast.ComprehensionKind:
		c := expr.AsComprehension()
		if local != nil || !isPath(c.IterRange()) {
			return false
		}
		inner := map[string]bool{c.IterVar(): true, c.AccuVar(): true}
		if c.HasIterVar2() {
			inner[c.IterVar2()] = true
		}
		return areLight(compiled, []ast.Expr{c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}, inner)
	}
	return false
}

func areLight(compiled *ast.AST, exprs []ast.Expr, local map[string]bool) bool {
	return !slices.ContainsFunc(exprs, func(expr ast.Expr) bool { return !isLightIn(compiled, expr, local) })
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

var kubernetesKinds = []string{
	"APIService", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "ControllerRevision", "CronJob",
	"CSIDriver", "CSINode", "CustomResourceDefinition", "DaemonSet", "Deployment", "Endpoints", "EndpointSlice", "Event",
	"FlowSchema", "HorizontalPodAutoscaler", "Ingress", "IngressClass", "Job", "Lease", "LimitRange",
	"MutatingWebhookConfiguration", "Namespace", "NetworkPolicy", "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod",
	"PodDisruptionBudget", "PodTemplate", "PriorityClass", "PriorityLevelConfiguration", "ReplicaSet", "ReplicationController",
	"ResourceQuota", "Role", "RoleBinding", "RuntimeClass", "Secret", "Service", "ServiceAccount", "StatefulSet", "StorageClass",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment",
}

// Warnings reports probable typos: unknown kinds with a similar known one. Anybody can define kinds, hence no errors.
func Warnings(constraints []fleet.Constraint) fleet.Findings {
	known := slices.Clone(kubernetesKinds)
	for _, kind := range reconciler.Kinds() {
		known = append(known, kind.Kind)
	}
	var warnings fleet.Findings
	for _, constraint := range constraints {
		for _, kind := range constraint.Match.Kinds {
			name := kind[strings.LastIndex(kind, "/")+1:]
			if hint := fleet.DidYouMean(name, known); hint != "" && !slices.Contains(known, name) {
				warnings.Report(fleet.PathOf("constraints", constraint.Name).Attribute("match").Attribute("kinds"),
					"%q is no kind that Flotilla knows, so that the rule may hold for nothing%s", kind, hint)
			}
		}
	}
	return warnings
}
