package compliance

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/metrics"
	"github.com/flotilla/terraform-provider-flotilla/internal/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

type model struct {
	Name        types.String  `tfsdk:"name"`
	Fleet       types.Object  `tfsdk:"fleet"`
	GitopsRepo  types.Dynamic `tfsdk:"gitops_repo"`
	Feedback    types.Dynamic `tfsdk:"feedback"`
	Wait        types.Dynamic `tfsdk:"wait"`
	RollingOut  types.Map     `tfsdk:"rolling_out"`
	Timeouts    types.Dynamic `tfsdk:"timeouts"`
	Time        types.String  `tfsdk:"time"`
	Summary     types.Object  `tfsdk:"summary"`
	Clusters    types.Map     `tfsdk:"clusters"`
	Assignments types.Map     `tfsdk:"assignments"`
	Running     types.List    `tfsdk:"running"`
	Drift       types.List    `tfsdk:"drift"`
	Evidence    types.String  `tfsdk:"evidence"`
	Metrics     types.String  `tfsdk:"metrics"`
}

var summary = table.Object[observe.Summary]{
	table.Number("clusters", "How many there are.", func(s observe.Summary) int { return s.Clusters }),
	table.Number("ready", "How many are ready.", func(s observe.Summary) int { return s.ByVerdict[verdict.Ready] }),
	table.Number("progressing", "How many are progressing.", func(s observe.Summary) int { return s.ByVerdict[verdict.Progressing] }),
	table.Number("failed", "How many have failed.", func(s observe.Summary) int { return s.ByVerdict[verdict.Failed] }),
	table.Number("behind", "How many are behind.", func(s observe.Summary) int { return s.ByVerdict[verdict.Behind] }),
	table.Number("unknown", "Of how many nothing is known.", func(s observe.Summary) int { return s.ByVerdict[verdict.Unknown] }),
	table.Number("ready_percent", "Share that is ready, from 0 to 100, rounded down; 100 where there are no clusters.",
		func(s observe.Summary) int { return s.ReadyPercent }),
	table.TextOrNull("behind_since", "Since when the cluster that is behind for the longest time is behind; null where none is.",
		func(s observe.Summary) string { return tfvalue.TimeText(s.BehindSince) }),
}

// The collections have objects and not nested attributes, since mocks in Terraform's tests support only objects. So what the
// documentation says of their attributes is in that of the collection.

type cluster = *observe.ClusterResult

var clusters = table.Object[cluster]{
	table.Text("cluster_type", "", func(c cluster) string { return c.Type }),
	table.Text("verdict", "", func(c cluster) string { return string(c.Verdict) }),
	table.TextOrNull("commit", "", func(c cluster) string { return c.Commit }),
	table.Number("commits_behind", "", func(c cluster) int { return c.Behind }).OrNull(func(c cluster) bool { return c.Behind < 0 }),
	table.TextOrNull("behind_since", "", func(c cluster) string { return tfvalue.TimeText(c.BehindSince) }),
	table.Text("since", "", func(c cluster) string { return tfvalue.TimeText(c.Since) }),
	table.Text("message", "", func(c cluster) string {
		if c.Verdict == verdict.Ready && c.Message == "" {
			return fmt.Sprintf("%s ready", wording.Count(len(c.Assignments), "assignment is", "assignments are"))
		}
		return c.Message
	}),
}

var assignments = table.Object[observe.Trouble]{
	table.Text("verdict", "", func(t observe.Trouble) string { return string(t.Verdict) }),
	table.Text("since", "", func(t observe.Trouble) string { return tfvalue.TimeText(t.Since) }),
	table.Text("message", "", func(t observe.Trouble) string { return t.Message }),
	table.Texts("clusters", "", func(t observe.Trouble) []string { return t.Clusters }),
}

var running = table.Object[*observe.TargetRun]{
	table.Text("deployment_target", "", func(r *observe.TargetRun) string { return r.DeploymentTarget }),
	table.TextOrNull("wanted", "", func(r *observe.TargetRun) string { return r.Wanted }),
	table.TextOrNull("version", "", func(r *observe.TargetRun) string { return r.Version }),
	table.TextOrNull("revision", "", func(r *observe.TargetRun) string { return r.Revision }),
	table.TextOrNull("chart", "", func(r *observe.TargetRun) string { return r.Chart }),
	table.TextOrNull("app_version", "", func(r *observe.TargetRun) string { return r.AppVersion }),
	table.Texts("images", "", func(r *observe.TargetRun) []string { return strings.Fields(r.Images) }),
	table.Number("count", "", func(r *observe.TargetRun) int { return r.Clusters }),
	table.Texts("hosts", "", func(r *observe.TargetRun) []string { return r.Hosts }),
	table.Texts("clusters", "", func(r *observe.TargetRun) []string { return r.Names }),
}

var drift = table.Object[observe.Difference]{
	table.TextOrNull("assignment", "", func(d observe.Difference) string { return d.Assignment }),
	table.Bool("wanted", "", func(d observe.Difference) *bool { return &d.Wanted }),
	table.TextOrNull("git", "", func(d observe.Difference) string { return d.Git }),
	table.TextOrNull("deployed", "", func(d observe.Difference) string { return d.Deployed }),
	table.Texts("clusters", "", func(d observe.Difference) []string { return d.Clusters }),
	table.Texts("objects", "", func(d observe.Difference) []string { return d.Objects }),
	table.Text("reason", "", func(d observe.Difference) string { return d.Reason }),
}

// set sets the computed attributes.
func (m *model) set(answer *compliance.Answer, scheduled *schedule.Result, rollouts []rollout.Progress) {
	result := answer.Result
	m.Fleet = fleetvalue.Hashed(m.Fleet)
	m.Time, m.Evidence = types.StringValue(tfvalue.TimeText(result.Time)), types.StringValue(string(result.Evidence().Marshal()))
	m.Summary, m.Assignments = summary.Value(result.Summary()), assignments.MapOf(result.Troubles())
	byName := make(map[string]cluster, len(result.Clusters))
	for i := range result.Clusters {
		byName[result.Clusters[i].Name] = &result.Clusters[i]
	}
	m.Clusters = clusters.MapOf(byName)
	wanted := make(map[string]bool, len(scheduled.Assignments))
	for _, assignment := range scheduled.Assignments {
		wanted[assignment.Key()] = true
	}
	runs := result.ByTarget()
	rows := make([]*observe.TargetRun, len(runs))
	for i := range runs {
		rows[i] = &runs[i]
	}
	m.Running = running.List(rows)
	m.Drift = drift.List(result.Drift(wanted))
	m.Metrics = types.StringValue(metrics.Text(metrics.Input{
		Result: result, Asked: !asksNoCluster(m.Feedback), Wants: wanted, Rollouts: rollouts,
	}))
}
