// Package constraint evaluates the constraints of a fleet: rules in CEL about assignments, and about what is rendered for
// them. It is pure. What a rule may take is bounded, so that no rule can hang a plan.
//
// A rule is evaluated over what the variables in its expressions stand for:
//
//	object                           each rendered document of each assignment
//	assignment, config, host+target  each assignment
//	host                             each host
//	target                           each deployment target
//	workspace                        each workspace
//	environment alone, or nothing    the fleet, once
//
// What the variable of a wider rule belongs to is at hand, too: an object has an assignment, an assignment has a host,
// a deployment target and config, a deployment target has a workspace.
package constraint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
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

// Program are the compiled constraints of a fleet. It is safe for concurrent use.
type Program struct {
	language *language
	rules    []*rule // by name

	maxFleetCost uint64
}

// Compile compiles and type-checks constraints, whose names differ. Its findings are all that is wrong with them, each at
// the attribute that it is about: `constraints["no-latest"].expression`. With any, there is no program.
func Compile(constraints []fleet.Constraint) (*Program, fleet.Findings) {
	var root *fleet.Path
	return compile(constraints, func(constraint *fleet.Constraint) *fleet.Path {
		return root.Attribute("constraints").Key(constraint.Name)
	})
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

// Needs is what a program looks at beyond who goes where.
type Needs struct {
	Config    bool // values of configuration
	Manifests bool // where manifests are
	Objects   bool // what is rendered
}

// Needs says what must be at hand for Check.
func (p *Program) Needs() Needs {
	var needs Needs
	for _, rule := range p.rules {
		needs.Config = needs.Config || rule.needs.Config
		needs.Manifests = needs.Manifests || rule.needs.Manifests
		needs.Objects = needs.Objects || rule.needs.Objects
	}
	return needs
}

// File is a rendered file of an assignment.
type File struct {
	Name    string
	Content []byte
}

// Subjects are what rules are evaluated over.
type Subjects struct {
	Fleet    *fleet.Fleet
	Schedule *schedule.Result
	// Snapshots are by assignment. Where they are nil, or one is not known, what depends on config is pending.
	Snapshots []*hydrate.Snapshot
	// Config has an entry for each config container whose values are known. It serves to name those that are waited for.
	Config map[string]string
	// Files renders an assignment. It is called from many goroutines, only when there are rules about objects, and only
	// for assignments that one of them matches. Where it is nil all objects are pending.
	//
	// waitsFor says what is not known yet where the files are not: the objects of that assignment are pending. An error is one of each rule
	// that matches the assignment.
	Files func(assignment int) (files []File, waitsFor string, err error)
}

// Subject is what a rule was evaluated over once. What does not apply is empty.
type Subject struct {
	Workspace        string
	Host             string // name, as in a folder: "large", "clusters/c1"
	DeploymentTarget string // full name
	Assignment       string // key: "large/web-east"
	File             string // of an object
	Object           string // "<kind> <namespace>/<name>", or "<kind> <name>"
}

// String names the subject in messages: `assignment "large/web-east", Namespace web (namespace.yaml)`.
func (s Subject) String() string {
	switch {
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

// Violation is a subject for which a rule does not hold.
type Violation struct {
	Subject Subject
	Message string // one line; the user's own words, and no value of configuration unless these say so
	// Failed says that the rule could not be evaluated: Message says why. An enforced rule that cannot be evaluated is
	// violated, as in Kubernetes with failurePolicy "Fail".
	Failed bool
}

// Pending is a subject for which a rule cannot be decided yet.
type Pending struct {
	Subject  Subject
	WaitsFor string // `config container "base"`, `the manifests of deployment target "web-east"`
}

// MaxListed is how many violations, and how many pending subjects, a rule's result lists. They are counted beyond it.
const MaxListed = 1000

// Result is what one constraint came to. Looked = Passed + Violated + Failed + Undecided.
type Result struct {
	Name, Mode string
	Over       Over
	Looked     int // subjects that the rule was evaluated over
	Passed     int
	Violated   int
	Failed     int         // subjects for which it could not be evaluated
	Undecided  int         // subjects of which something is not known yet that decides
	Violations []Violation // the first MaxListed, violated and failed, in the order of the subjects
	Pending    []Pending   // the first MaxListed
	// Error says why the rule as a whole could not be evaluated, such as what it may take for the whole fleet; "" otherwise.
	// All its subjects have failed then, and none is listed.
	Error string
}

// Holds says that nothing is known to break the rule.
func (r *Result) Holds() bool { return r.Violated+r.Failed == 0 && r.Error == "" }

// Enforced says that the rule fails the plan where it does not hold.
func (r *Result) Enforced() bool { return r.Mode == fleet.ConstraintModes[0] }

// Results are what all constraints came to, in the order of their names.
type Results struct {
	Rules []Result
}
