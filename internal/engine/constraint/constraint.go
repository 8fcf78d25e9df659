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
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
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
	// Failed marks a rule that could not be evaluated, see Message. If enforced, it counts as violated, as in Kubernetes.
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

const (
	maxTold   = 5
	maxNamed  = 3
	maxPassed = 5 // names of rules in a line
)

// Broken counts violated and failed subjects.
func (r *RuleResult) Broken() int { return r.Violated + r.Failed }

// Report describes violations for an error: count, first messages, and the rest.
func (r *RuleResult) Report() string {
	if r.Error != "" {
		return fmt.Sprintf("constraint %q could not be evaluated: %s", r.Name, r.Error)
	}
	lines := make([]string, 0, maxTold)
	for _, violation := range r.Violations[:min(maxTold, len(r.Violations))] {
		lines = append(lines, wording.OneLine(violation.Subject.String()+": "+violation.Message))
	}
	if r.Over == OverFleet && len(r.Violations) == 1 {
		return fmt.Sprintf("constraint %q is violated by the fleet: %s", r.Name, wording.OneLine(r.Violations[0].Message))
	}
	text := fmt.Sprintf("constraint %q is violated by %d of %s:\n%s", r.Name, r.Broken(), r.Over.count(r.Looked), strings.Join(lines, "\n"))
	if more := r.Broken() - len(lines); more > 0 {
		text += fmt.Sprintf("\n… and %d more", more)
	}
	return text
}

// Undecidable returns a clause about undecided subjects, or "".
func (r *RuleResult) Undecidable() string {
	if r.Undecided == 0 {
		return ""
	}
	var waits []string
	for _, one := range r.WaitsFor {
		if !slices.Contains(waits, one) {
			waits = append(waits, one)
		}
	}
	return fmt.Sprintf("constraint %q cannot be decided yet for %s: it waits for %s",
		r.Name, r.Over.count(r.Undecided), wording.List(waits, maxNamed))
}

// Difference lists rules that changed since the last plan, sorted.
type Difference struct {
	New, Changed, Gone []string
	Unknown            []string // unknown rules
}

// Compare compares digests of rules by name. Unknown rules do not differ.
func Compare(before, now map[string]string, unknown []string, allUnknown bool) Difference {
	d := Difference{Unknown: slices.Sorted(slices.Values(unknown))}
	if allUnknown {
		return d
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		switch digest, was := before[name]; {
		case !was:
			d.New = append(d.New, name)
		case digest != now[name]:
			d.Changed = append(d.Changed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, is := now[name]; !is && !slices.Contains(unknown, name) {
			d.Gone = append(d.Gone, name)
		}
	}
	return d
}

// None reports that no known rule differs.
func (d Difference) None() bool { return len(d.New)+len(d.Changed)+len(d.Gone) == 0 }

// Lines describes rules for a plan by name, because messages may contain values: violations by touched subjects; new, changed and
// undecided rules.
func (d Difference) Lines(results *Results, touched func(Subject) bool) []string {
	if results == nil {
		results = &Results{}
	}
	var broken, undecided, held []string
	for i := range results.Rules {
		rule := &results.Rules[i]
		isTold := slices.Contains(d.New, rule.Name) || slices.Contains(d.Changed, rule.Name)
		if line := rule.line(isTold, touched); line != "" {
			broken = append(broken, line)
		}
		if clause := rule.Undecidable(); clause != "" {
			undecided = append(undecided, clause)
		} else if rule.Holds() && isTold {
			held = append(held, rule.Name)
		}
	}
	lines := slices.Concat(broken, undecided)
	for _, name := range d.Unknown {
		lines = append(lines, fmt.Sprintf("constraint %q is not known yet", name))
	}
	isNew := func(name string) bool { return slices.Contains(d.New, name) }
	lines = appendRules(lines, slices.DeleteFunc(slices.Clone(held), func(name string) bool { return !isNew(name) }),
		"is new, and holds", "are new, and hold")
	lines = appendRules(lines, slices.DeleteFunc(held, isNew), "has changed, and holds", "have changed, and hold")
	return appendRules(lines, d.Gone, "is no more", "are no more")
}

func appendRules(lines, names []string, one, many string) []string {
	if len(names) == 0 {
		return lines
	}
	return append(lines, fmt.Sprintf("%s %s %s", wording.OneOrMany(len(names), "constraint", "constraints"),
		wording.List(wording.Quoted(names), maxPassed), wording.OneOrMany(len(names), one, many)))
}

func (r *RuleResult) line(all bool, touched func(Subject) bool) string {
	if r.Error != "" {
		return fmt.Sprintf("constraint %q could not be evaluated", r.Name)
	}
	var names []string
	for _, violation := range r.Violations {
		if all || r.Over == OverFleet || touched(violation.Subject) {
			names = append(names, violation.Subject.name())
		}
	}
	count := len(names)
	if all {
		count = r.Broken()
	}
	switch {
	case count == 0:
		return ""
	case r.Over == OverFleet:
		return fmt.Sprintf("constraint %q is violated by the fleet", r.Name)
	}
	atLeast := ""
	if !all && r.Broken() > len(r.Violations) {
		atLeast = "at least "
	}
	list := wording.List(names[:min(len(names), maxNamed)], maxNamed)
	if count > maxNamed {
		list += fmt.Sprintf(" and %d more", count-maxNamed)
	}
	return fmt.Sprintf("constraint %q is violated by %s%s: %s", r.Name, atLeast, r.Over.count(count), list)
}

func (s Subject) name() string {
	if s.Object != "" {
		return s.Assignment + " (" + s.Object + ")"
	}
	return cmp.Or(s.Assignment, s.DeploymentTarget, s.Host, s.Workspace)
}

var nouns = map[Over][2]string{
	OverFleet: {"fleet", "fleets"}, OverWorkspaces: {"workspace", "workspaces"}, OverHosts: {"host", "hosts"},
	OverDeploymentTargets: {"deployment target", "deployment targets"}, OverAssignments: {"assignment", "assignments"},
	OverObjects: {"object", "objects"},
}

func (o Over) count(number int) string { return wording.Count(number, nouns[o][0], nouns[o][1]) }
