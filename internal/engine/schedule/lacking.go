package schedule

import (
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

type lacking struct {
	wording.Groups[requirement, *Assignment]
}

type requirement struct{ workload, required string }

func (l *lacking) findings() fleet.Findings {
	var findings fleet.Findings
	for pair, assignments := range l.All() {
		targets := distinct(assignments, func(one *Assignment) string { return one.Target.Name })
		hosts := distinct(assignments, func(one *Assignment) string { return one.Host.Name })
		are, require := "is", "it requires"
		if len(targets) > 1 {
			are, require = "are", "they require"
		}
		findings.Report(fleet.PathOf("workloads", pair.workload).Attribute("requires"),
			"%s %s assigned to %s, but workload %q, which %s, has no deployment target there",
			named("deployment target", targets), are, named("host", hosts), pair.required, require)
	}
	return findings
}

func distinct(assignments []*Assignment, name func(*Assignment) string) []string {
	names := make([]string, len(assignments))
	for i, one := range assignments {
		names[i] = name(one)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func named(noun string, names []string) string {
	return wording.OneOrMany(len(names), noun, noun+"s") + " " + wording.List(wording.Quoted(names), wording.Named)
}
