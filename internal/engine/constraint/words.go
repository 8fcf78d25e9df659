package constraint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// How many violations an error lists, and how many names a line of a plan.
const (
	maxTold   = 5
	maxNamed  = 3
	maxPassed = 5 // names of rules in one line
)

// Broken counts the subjects that violate the rule, or for which it could not be evaluated.
func (r *RuleResult) Broken() int { return r.Violated + r.Failed }

// Report is a text of some lines for an error: how many subjects violate the rule, the first violations with their messages,
// and how many more there are.
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

// Undecidable is a clause about the subjects that cannot be decided yet; "" where there are none.
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

// Difference has the names of the rules that differ from those of the last plan, sorted.
type Difference struct {
	New, Changed, Gone []string
	Unknown            []string // rules that are not known yet
}

// Compare compares the digests of rules, see [Digests]. Rules that are not known yet are no difference: unknown has their
// names, and with allUnknown there may be others.
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

// None says that the rules are the same, as far as they are known.
func (d Difference) None() bool { return len(d.New)+len(d.Changed)+len(d.Gone) == 0 }

// Lines are the lines of a plan about the rules. They have only names, never a message, since a message may have values
// in it: rules that are violated by subjects that the plan changes, which touched decides; rules that are new or have
// changed; rules that cannot be decided yet.
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
	lines = appendRules(
		lines,
		slices.DeleteFunc(slices.Clone(held), func(name string) bool { return !isNew(name) }),
		"is new, and holds",
		"are new, and hold",
	)
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

// line is "" where no subject violates the rule, or, unless all is set, none that is touched.
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

// name is the shortest name that is unique among the subjects of a rule.
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

// nouns are the words for subjects, for one and for several.
var nouns = map[Over][2]string{
	OverFleet: {"fleet", "fleets"}, OverWorkspaces: {"workspace", "workspaces"}, OverHosts: {"host", "hosts"},
	OverDeploymentTargets: {"deployment target", "deployment targets"}, OverAssignments: {"assignment", "assignments"},
	OverObjects: {"object", "objects"},
}

func (o Over) count(number int) string { return wording.Count(number, nouns[o][0], nouns[o][1]) }
