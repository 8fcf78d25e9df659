package overview

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/audit"
)

// Audit returns the auditors' report about the page. It omits configuration values, except in messages of rules.
func (r *Result) Audit(in *Input) *audit.Report {
	c := r.Counts
	shown := &audit.Report{
		Assignment: r.Page.Title, Environment: r.Page.Environment, Repository: audit.AuditedRepository(r.Page.Repository),
		Commit: wording.OrNil(r.Page.Commit),
		Fleet:  c.Fleet, Deployed: c.Deployed,
		Verdicts: audit.Verdicts{
			Ready: c.Verdicts[verdict.Ready], Progressing: c.Verdicts[verdict.Progressing], Behind: c.Verdicts[verdict.Behind],
			Failed: c.Verdicts[verdict.Failed], Unknown: c.Verdicts[verdict.Unknown], NotAsked: c.NotAsked,
		},
		Health: audit.Health{Good: in.Bounds.Good, Poor: in.Bounds.Poor},
	}
	if !r.Page.Time.IsZero() {
		shown.Time = new(r.Page.Time.UTC())
	}
	if score := r.Page.Health; score != nil {
		shown.Health.Score, shown.Health.Grade = &score.Value, new(string(in.Bounds.Grade(score.Value)))
	}
	for i := range in.Rules {
		shown.Rules = append(shown.Rules, auditRule(&in.Rules[i], in.Expressions))
	}
	shown.Summarize()
	return shown
}

func auditRule(from *constraint.RuleResult, expressions map[string]string) audit.Rule {
	rule := audit.Rule{
		Name: from.Name, Mode: from.Mode, Expression: expressions[from.Name], Over: string(from.Over), Holds: from.Holds(),
		Looked: from.Looked, Passed: from.Passed, Violated: from.Violated, Failed: from.Failed, Undecided: from.Undecided,
		Error: wording.OrNil(from.Error), Omitted: from.Violated + from.Failed - len(from.Violations),
	}
	for _, violation := range from.Violations {
		s := violation.Subject
		rule.Violations = append(rule.Violations, audit.Violation{
			Subject: s.String(), Workspace: wording.OrNil(s.Workspace), Host: wording.OrNil(s.Host),
			DeploymentTarget: wording.OrNil(s.DeploymentTarget),
			Assignment:       wording.OrNil(s.Assignment), File: wording.OrNil(s.File), Object: wording.OrNil(s.Object),
			Message: violation.Message, Failed: violation.Failed,
		})
	}
	return rule
}
