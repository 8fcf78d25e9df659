// Package constraint evaluates constraints: CEL rules about assignments and rendered objects. It is pure. Limits on
// time and memory keep a rule from blocking a plan.
//
// The variables of its expressions determine the subjects of a rule:
//
//	pods, containers, images                  rendered objects with pods
//	object                                    rendered objects
//	assignment, config, secrets, host+target  assignments
//	host                                      hosts
//	target                                    deployment targets
//	workspace                                 workspaces
//	environment alone, or nothing             the fleet
//
// Other variables follow: an object has an assignment; an assignment has a host, target, config and secrets; a target
// has a workspace.
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

// Over is the kind of subject of a rule.
type Over string

// Kinds of subjects.
const (
	OverFleet             Over = "fleet"
	OverWorkspaces        Over = "workspaces"
	OverHosts             Over = "hosts"
	OverDeploymentTargets Over = "deployment_targets"
	OverAssignments       Over = "assignments"
	OverObjects           Over = "objects"
)

// Program contains compiled constraints. It is safe for concurrent use.
type Program struct {
	language *language
	rules    []*rule // by name

	maxFleetCost uint64
}

// Compile compiles constraints with distinct names. Paths of findings begin with `constraints["no-latest"]`.
func Compile(constraints []fleet.Constraint) (*Program, fleet.Findings) {
	return compile(constraints, func(constraint *fleet.Constraint) *fleet.Path { return fleet.PathOf("constraints", constraint.Name) })
}

// CheckConstraint compiles one constraint. Paths of findings are relative to it.
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
	parallel.Each(len(constraints), func(i int) {
		p.rules[i], findings[i] = language.compileRule(&constraints[i], at(&constraints[i]))
	})
	if all := slices.Concat(findings...); len(all) > 0 {
		return nil, all
	}
	slices.SortFunc(p.rules, func(a, b *rule) int { return cmp.Compare(a.Name, b.Name) })
	return p, nil
}

// NeedsContents reports whether Check needs more than the schedule.
func (p *Program) NeedsContents() bool {
	return slices.ContainsFunc(p.rules, func(r *rule) bool { return r.needsContents })
}

// Subjects provides the fleet to evaluate.
type Subjects struct {
	Fleet    *fleet.Fleet
	Schedule *schedule.Decisions
	// Snapshots are by assignment. Rules about missing or unknown ones are pending.
	Snapshots []*hydrate.Snapshot
	// Config has the known config containers. WaitsFor names the others.
	Config fleet.Config
	// Files renders an assignment that a rule about objects matches. It is called concurrently; nil makes all objects
	// pending. waitsFor names unknown inputs, which do the same. An error fails each rule that matches.
	Files func(assignment int) (files []render.AssignmentFile, waitsFor string, err error)
	// Final returns final objects like Files. It may be nil.
	Final func(assignment int) (final []objects.FinalObject, waitsFor string, err error)
}

// Subject identifies a part of a fleet. Inapplicable fields are empty.
type Subject struct {
	Workspace        string
	Host             string // folder name: "large", "clusters/c1"
	DeploymentTarget string // full name
	Assignment       string // key: "large/web-east"
	File             string // "" for final objects
	MadeBy           string // of an object: [objects.Origin]
	Object           string // "<kind> <namespace>/<name>", or "<kind> <name>"
}

// String names the subject: `assignment "large/web-east", Namespace web (namespace.yaml)`.
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
	Message string // one line; contains configuration values only if the rule's message does
	// Failed marks a rule that could not be evaluated, for the reason in Message. If enforced, it counts as violated,
	// as in Kubernetes.
	Failed bool
}

// MaxListed bounds the listed violations and pending subjects of a rule.
const MaxListed = 1000

// RuleResult is the result of one constraint. Looked = Passed + Violated + Failed + Undecided.
type RuleResult struct {
	Name, Mode string
	Over       Over
	Looked     int // evaluated subjects
	Passed     int
	Violated   int
	Failed     int             // could not be evaluated
	Undecided  int             // depend on unknown values
	Violations []RuleViolation // the first MaxListed, violated and failed, in order of subjects
	// WaitsFor has the unknown input of each of the first MaxListed undecided: `config container "base"`.
	WaitsFor []string
	// Error is the reason why no subject could be evaluated, such as the cost, or "".
	Error string
}

// Holds reports whether no violation is known.
func (r *RuleResult) Holds() bool { return r.Violated+r.Failed == 0 && r.Error == "" }

// Enforced reports whether violations fail the plan.
func (r *RuleResult) Enforced() bool { return r.Mode == fleet.Enforce }

// Results has the results of all constraints, by name.
type Results struct {
	Rules []RuleResult
}
