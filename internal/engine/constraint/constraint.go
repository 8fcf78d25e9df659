// Package constraint evaluates the constraints of a fleet: rules in CEL about assignments and rendered objects. It is
// pure. Time and memory of a rule are bounded, so that no rule can block a plan.
//
// The variables in its expressions decide what a rule is evaluated over:
//
//	pods, containers, images                  each rendered document that has pods, of each assignment
//	object                                    each rendered document of each assignment
//	assignment, config, secrets, host+target  each assignment
//	host                                      each host
//	target                                    each deployment target
//	workspace                                 each workspace
//	environment alone, or nothing             the fleet, once
//
// Other variables follow from these: with object there is its assignment, with assignment its host, deployment target,
// config and secrets, with target its workspace.
package constraint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
)

// Over is what a rule is evaluated over.
type Over string

// What rules are evaluated over.
const (
	OverFleet             Over = "fleet"
	OverWorkspaces        Over = "workspaces"
	OverHosts             Over = "hosts"
	OverDeploymentTargets Over = "deployment_targets"
	OverAssignments       Over = "assignments"
	OverObjects           Over = "objects"
)

// Program is the compiled constraints of a fleet. It is safe for concurrent use.
type Program struct {
	language *language
	rules    []*rule // by name

	maxFleetCost uint64
}

// Compile compiles and type-checks constraints, whose names must differ. It returns all findings, each at its attribute:
// `constraints["no-latest"].expression`. With any, the program is nil.
func Compile(constraints []fleet.Constraint) (*Program, fleet.Findings) {
	return compile(constraints, func(constraint *fleet.Constraint) *fleet.Path { return fleet.PathOf("constraints", constraint.Name) })
}

// CheckConstraint is [Compile] for one constraint by itself. The paths of the findings are relative to it: `expression`.
func CheckConstraint(constraint fleet.Constraint) fleet.Findings {
	_, findings := compile([]fleet.Constraint{constraint}, func(*fleet.Constraint) *fleet.Path { return nil })
	return findings
}

func compile(constraints []fleet.Constraint, at func(*fleet.Constraint) *fleet.Path) (*Program, fleet.Findings) {
	if len(constraints) == 0 {
		return &Program{}, nil
	}
	language, err := newLanguage()
	if err != nil {
		return nil, fleet.Findings{{Message: err.Error()}}
	}
	p := &Program{language: language, rules: make([]*rule, len(constraints)), maxFleetCost: MaxFleetCost}
	findings := make([]fleet.Findings, len(constraints))
	parallel.EachPart(len(constraints), func(i int) {
		p.rules[i], findings[i] = language.rule(&constraints[i], at(&constraints[i]))
	})
	if all := slices.Concat(findings...); len(all) > 0 {
		return nil, all
	}
	slices.SortFunc(p.rules, func(a, b *rule) int { return cmp.Compare(a.Name, b.Name) })
	return p, nil
}

// NeedsContents says whether Check needs more than the schedule: values of configuration, the manifests of deployment targets,
// or rendered objects.
func (p *Program) NeedsContents() bool {
	return slices.ContainsFunc(p.rules, func(r *rule) bool { return r.needsContents })
}

// Subjects are what rules are evaluated over.
type Subjects struct {
	Fleet    *fleet.Fleet
	Schedule *schedule.Decisions
	// Snapshots are by assignment. Where they are nil, or one is not known, rules about config are pending.
	Snapshots []*hydrate.Snapshot
	// Config has an entry for each config container whose values are known, to name the others in WaitsFor.
	Config fleet.Config
	// Files renders an assignment. It is called from many goroutines, only when there are rules about objects, and only
	// for assignments that one of them matches. Where it is nil all objects are pending.
	//
	// waitsFor says what is not known yet where the files are not: then the objects of the assignment are pending. An
	// error counts as a failure of each rule that matches the assignment.
	Files func(assignment int) (files []render.AssignmentFile, waitsFor string, err error)
	// Final are the final objects that the manifests of an assignment come to, beside those in its files. It is called as Files
	// is; nil: none are known.
	Final func(assignment int) (final []objects.Object, waitsFor string, err error)
}

// Subject is one object or assignment, or another thing, that a rule was evaluated on. Fields that do not apply are empty.
type Subject struct {
	Workspace        string
	Host             string // name, as in a folder: "large", "clusters/c1"
	DeploymentTarget string // full name
	Assignment       string // key: "large/web-east"
	File             string // of an object; "" for final objects, which are in none
	MadeBy           string // of an object: [objects.Origin]
	Object           string // "<kind> <namespace>/<name>", or "<kind> <name>"
}

// String names the subject in messages: `assignment "large/web-east", Namespace web (namespace.yaml)`.
func (s Subject) String() string {
	switch {
	case s.Assignment != "" && s.Object != "" && s.File == "":
		return fmt.Sprintf("assignment %q, %s (by its %s)", s.Assignment, s.Object, s.MadeBy)
	case s.Assignment != "" && s.Object != "":
		return fmt.Sprintf("assignment %q, %s (%s)", s.Assignment, s.Object, s.File)
	case s.Assignment != "" && s.File != "":
		return fmt.Sprintf("assignment %q, %s", s.Assignment, s.File)
	case s.Assignment != "":
		return fmt.Sprintf("assignment %q", s.Assignment)
	case s.DeploymentTarget != "":
		return fmt.Sprintf("deployment target %q", s.DeploymentTarget)
	case s.Host != "":
		if cluster, ok := strings.CutPrefix(s.Host, "clusters/"); ok {
			return fmt.Sprintf("cluster %q", cluster)
		}
		return fmt.Sprintf("cluster type %q", s.Host)
	case s.Workspace != "":
		return fmt.Sprintf("workspace %q", s.Workspace)
	}
	return "the fleet"
}

// RuleViolation is a subject that violates a rule.
type RuleViolation struct {
	Subject Subject
	Message string // one line, in the user's words; it has a value of the configuration only where these do
	// Failed says that the rule could not be evaluated, and Message why. An enforced rule that cannot be evaluated counts
	// as violated, as in Kubernetes with failurePolicy "Fail".
	Failed bool
}

// MaxListed is how many violations, and how many pending subjects, a rule's result lists. Further ones are only counted.
const MaxListed = 1000

// RuleResult is the result of one constraint. Looked = Passed + Violated + Failed + Undecided.
type RuleResult struct {
	Name, Mode string
	Over       Over
	Looked     int // subjects that the rule was evaluated over
	Passed     int
	Violated   int
	Failed     int             // subjects for which it could not be evaluated
	Undecided  int             // subjects for which a value that is not known yet decides
	Violations []RuleViolation // the first MaxListed, violated and failed, in the order of the subjects
	// WaitsFor says of the first MaxListed undecided what each waits for: `config container "base"`, `the manifests of deployment
	// target "web-east"`.
	WaitsFor []string
	// Error says why the rule as a whole could not be evaluated, as where it costs too much for the whole fleet; "" otherwise.
	// With an error, all subjects count as failed, and none is listed.
	Error string
}

// Holds says that no violation of the rule is known.
func (r *RuleResult) Holds() bool { return r.Violated+r.Failed == 0 && r.Error == "" }

// Enforced says that the rule fails the plan where it does not hold.
func (r *RuleResult) Enforced() bool { return r.Mode == fleet.ConstraintModes[0] }

// Results are the results of all constraints, sorted by name.
type Results struct {
	Rules []RuleResult
}
