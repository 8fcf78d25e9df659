package schedule

import (
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// lacking are the hosts to which a workload is assigned without one that it requires.
type lacking struct {
	pairs []requirement // in the order in which they are found
	at    map[requirement]*lackingAt
}

type requirement struct{ workload, required string }

type lackingAt struct{ targets, hosts []string }

// add adds an assignment of a workload that requires another, which its host does not have.
func (l *lacking) add(assignment *Assignment, required string) {
	pair := requirement{assignment.Target.Workload.Name, required}
	at := l.at[pair]
	if at == nil {
		if l.at == nil {
			l.at = map[requirement]*lackingAt{}
		}
		at = &lackingAt{}
		l.pairs, l.at[pair] = append(l.pairs, pair), at
	}
	at.targets, at.hosts = append(at.targets, assignment.Target.Name), append(at.hosts, assignment.Host.Name)
}

// findings are one for each workload and one that it requires.
func (l *lacking) findings() fleet.Findings {
	var findings fleet.Findings
	for _, pair := range l.pairs {
		targets, hosts := distinct(l.at[pair].targets), distinct(l.at[pair].hosts)
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

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// named is `host "a"`, or `hosts "a", "b"`.
func named(noun string, names []string) string {
	return wording.OneOrMany(len(names), noun, noun+"s") + " " + wording.List(wording.Quoted(names), wording.Named)
}
