package audit

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

// New returns the report about a page, without configuration values, except in messages of rules.
func New(p *report.Page) *Report {
	counts := p.Count()
	r := &Report{
		Assignment: p.Title, Environment: p.Environment, Repository: Place(p.Repository), Commit: wording.OrNil(p.Commit),
		Fleet: p.Fleet, Deployed: counts.StateCounts,
		Verdicts: Verdicts{
			Ready: counts.Wanted(verdict.Ready), Progressing: counts.Wanted(verdict.Progressing), Behind: counts.Wanted(verdict.Behind),
			Failed: counts.Wanted(verdict.Failed), Unknown: counts.Wanted(verdict.Unknown), NotAsked: counts.Wanted(""),
		},
		Health: Health{Good: p.Bounds.Good, Poor: p.Bounds.Poor},
	}
	if !p.Time.IsZero() {
		r.Time = new(p.Time.UTC())
	}
	if score := p.Health; score != nil {
		r.Health.Score, r.Health.Grade = &score.Value, new(string(p.Grade(score)))
	}
	for i := range p.Rules {
		r.Rules = append(r.Rules, newRule(&p.Rules[i], p.Expressions))
	}
	r.Summarize()
	return r
}

func newRule(from *constraint.RuleResult, expressions map[string]string) Rule {
	rule := Rule{
		Name: from.Name, Mode: from.Mode, Expression: expressions[from.Name], Over: string(from.Over), Holds: from.Holds(),
		Looked: from.Looked, Passed: from.Passed, Violated: from.Violated, Failed: from.Failed, Undecided: from.Undecided,
		Error: wording.OrNil(from.Error), Omitted: from.Violated + from.Failed - len(from.Violations),
	}
	for _, violation := range from.Violations {
		s := &violation.Subject
		rule.Violations = append(rule.Violations, Violation{
			Subject: s.String(), Workspace: wording.OrNil(s.Workspace), Host: wording.OrNil(s.Host),
			DeploymentTarget: wording.OrNil(s.DeploymentTarget),
			Assignment:       wording.OrNil(s.Assignment), File: wording.OrNil(s.File), Object: wording.OrNil(s.Object),
			Message: violation.Message, Failed: violation.Failed,
		})
	}
	return rule
}
