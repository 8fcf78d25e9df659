package constraint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

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

// Lines describes rules for a plan by name, because messages may contain values: violations by touched subjects; new,
// changed and undecided rules.
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
	return fmt.Sprintf("constraint %q is violated by %s%s: %s", r.Name, atLeast, r.Over.count(count),
		wording.List(names[:min(len(names), maxNamed)], maxNamed)+more(count-maxNamed))
}

func more(count int) string {
	if count <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", count)
}

func (s Subject) name() string {
	switch {
	case s.Object != "":
		return s.Assignment + " (" + s.Object + ")"
	case s.Assignment != "":
		return s.Assignment
	case s.DeploymentTarget != "":
		return s.DeploymentTarget
	case s.Host != "":
		return s.Host
	}
	return s.Workspace
}

var nouns = map[Over][2]string{
	OverFleet: {"fleet", "fleets"}, OverWorkspaces: {"workspace", "workspaces"}, OverHosts: {"host", "hosts"},
	OverDeploymentTargets: {"deployment target", "deployment targets"}, OverAssignments: {"assignment", "assignments"},
	OverObjects: {"object", "objects"},
}

func (o Over) count(number int) string { return wording.Count(number, nouns[o][0], nouns[o][1]) }
