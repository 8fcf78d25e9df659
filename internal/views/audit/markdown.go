package audit

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

// maxListed limits the violations of a rule in Markdown.
const maxListed = 50

// Markdown returns the report for people.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Audit of %s\n\n", report.Code(r.Assignment))
	r.writeFacts(&b)
	b.WriteString("\n## Rules\n\n")
	if len(r.Rules) == 0 {
		b.WriteString("The fleet has no constraints.\n")
		return b.String()
	}
	s := r.Summary
	fmt.Fprintf(&b, "%s: %d hold, %d are broken, %d of them enforced. Looked at %s, of which %d passed.\n\n",
		wording.Count(s.Rules, "rule", "rules"), s.Holding, s.Broken, s.BrokenEnforced, wording.Count(s.Looked, "subject", "subjects"), s.Passed)
	b.WriteString(
		"| rule | mode | holds | looked at | passed | violated | could not be evaluated | not known yet |\n|---|---|---|--:|--:|--:|--:|--:|\n",
	)
	for i := range r.Rules {
		rule := &r.Rules[i]
		holds := "yes"
		if !rule.Holds {
			holds = "**no**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d %s | %d | %d | %d | %d |\n", report.Code(rule.Name), report.Code(rule.Mode), holds,
			rule.Looked, report.Code(strings.ReplaceAll(rule.Over, "_", " ")), rule.Passed, rule.Violated, rule.Failed, rule.Undecided)
	}
	for i := range r.Rules {
		r.Rules[i].write(&b)
	}
	return b.String()
}

func (r *Report) writeFacts(b *strings.Builder) {
	fact := func(name, text string) { fmt.Fprintf(b, "| %s | %s |\n", name, text) }
	b.WriteString("| | |\n|---|---|\n")
	fact("Environment", report.Code(r.Environment))
	fact("Repository", report.Code(r.Repository.URL))
	fact("Branch", report.Code(r.Repository.Branch))
	fact("Path", report.Code(cmp.Or(r.Repository.Path, "/")))
	commit, at, health := "none", "no cluster was asked", "no cluster was asked"
	if r.Commit != nil {
		commit = report.Code(*r.Commit)
	}
	if r.Time != nil {
		at = r.Time.UTC().Format(time.RFC3339)
		health = "no score: nothing is deployed"
	}
	if r.Health.Score != nil {
		health = fmt.Sprintf("%d of 100", *r.Health.Score)
	}
	if r.Health.Grade != nil {
		health += ", " + report.Code(*r.Health.Grade)
	}
	fact("Commit", commit)
	fact("Clusters asked", at)
	fact("Health", health)
	f, d, v := r.Fleet, r.Deployed, r.Verdicts
	fact("Fleet", fmt.Sprintf("%s, %s, %s, %s, %s", wording.Count(f.ClusterTypes, "cluster type", "cluster types"),
		wording.Count(f.Clusters, "cluster", "clusters"), wording.Count(f.Workspaces, "workspace", "workspaces"),
		wording.Count(f.Workloads, "workload", "workloads"), wording.Count(f.DeploymentTargets, "deployment target", "deployment targets")))
	fact("Decided by", fmt.Sprintf("%s, %s", wording.Count(f.TargetPolicies, "target policy", "target policies"),
		wording.Count(f.ConfigContainers, "config container", "config containers")))
	fact("Assignments",
		fmt.Sprintf("%d; %s without a host", f.Assignments, wording.Count(f.Unscheduled, "deployment target", "deployment targets")))
	fact(
		"Deployed",
		wording.AllCounts([]int{d.UpToDate, d.New, d.Changed, d.Removed, d.Unknown}, "as wanted", "new", "changed", "to be removed", "not known"),
	)
	fact("Reported", fmt.Sprintf("%d ready, %d progressing, %d behind, %d failed, %d unknown, %d not asked",
		v.Ready, v.Progressing, v.Behind, v.Failed, v.Unknown, v.NotAsked))
}

func (r *Rule) write(b *strings.Builder) {
	if r.Holds {
		return
	}
	fmt.Fprintf(b, "\n### %s\n\n", report.Code(r.Name))
	if r.Expression != "" {
		fmt.Fprintf(b, "Expression: %s\n\n", report.Code(r.Expression))
	}
	if r.Error != nil {
		fmt.Fprintf(b, "It could not be evaluated: %s\n", report.Code(*r.Error))
	}
	listed := r.Violations[:min(maxListed, len(r.Violations))]
	for i := range listed {
		why := ""
		if listed[i].Failed {
			why = "could not be evaluated: "
		}
		fmt.Fprintf(b, "- %s: %s%s\n", report.Code(listed[i].Subject), why, report.Code(listed[i].Message))
	}
	if more := len(r.Violations) - len(listed) + r.Omitted; more > 0 && r.Error == nil {
		fmt.Fprintf(b, "- … and %d more\n", more)
	}
}
