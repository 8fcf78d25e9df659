package compliance

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/metrics"
)

type complianceModel struct {
	Name        types.String  `tfsdk:"name"`
	Fleet       types.Object  `tfsdk:"fleet"`
	GitopsRepo  types.Dynamic `tfsdk:"gitops_repo"`
	Feedback    types.Dynamic `tfsdk:"feedback"`
	Wait        types.Dynamic `tfsdk:"wait"`
	Progress    types.String  `tfsdk:"progress"`
	Timeouts    types.Dynamic `tfsdk:"timeouts"`
	Time        types.String  `tfsdk:"time"`
	Summary     types.Object  `tfsdk:"summary"`
	Clusters    types.Map     `tfsdk:"clusters"`
	Assignments types.Map     `tfsdk:"assignments"`
	Running     types.List    `tfsdk:"running"`
	Drift       types.List    `tfsdk:"drift"`
	Evidence    types.String  `tfsdk:"evidence"`
	Rollouts    types.Map     `tfsdk:"rollouts"`
	Metrics     types.String  `tfsdk:"metrics"`
}

var summary = table.Definition[observe.Summary]{
	table.Number("clusters", "How many there are.", func(s observe.Summary) int { return s.Clusters }),
	table.Number("ready", "How many are ready.", func(s observe.Summary) int { return s.ByVerdict[verdict.Ready] }),
	table.Number("progressing", "How many are progressing.", func(s observe.Summary) int { return s.ByVerdict[verdict.Progressing] }),
	table.Number("failed", "How many have failed.", func(s observe.Summary) int { return s.ByVerdict[verdict.Failed] }),
	table.Number("behind", "How many are behind.", func(s observe.Summary) int { return s.ByVerdict[verdict.Behind] }),
	table.Number("unknown", "Of how many nothing is known.", func(s observe.Summary) int { return s.ByVerdict[verdict.Unknown] }),
	table.Number("ready_percent", "Share that is ready, from 0 to 100, rounded down; 100 where there are no clusters.",
		func(s observe.Summary) int { return s.ReadyPercent }),
	table.TextOrNull("behind_since", "Since when the cluster that has been behind the longest is behind; null where none is.",
		func(s observe.Summary) string { return tfvalue.TimeText(s.BehindSince) }),
}

type cluster = *observe.ClusterResult

var clusters = table.Definition[cluster]{
	table.Text("cluster_type", "name of its type.", func(c cluster) string { return c.Type }),
	table.Text(
		"verdict",
		"the worst of its assignments: `ready`, `progressing`, `failed`, `behind` (has other content than the branch) or `unknown`.",
		func(c cluster) string { return string(c.Verdict) },
	),
	table.TextOrNull("commit", "commit of the branch that it has applied; null if unknown.",
		func(c cluster) string { return c.Commit }),
	table.Number("commits_behind",
		"how many commits, by any author, the branch is ahead of it; null if that is not known.", func(c cluster) int { return c.Behind }).
		OrNull(func(c cluster) bool { return c.Behind < 0 }),
	table.TextOrNull("behind_since", "the time of the first such commit; null for none.",
		func(c cluster) string { return tfvalue.TimeText(c.BehindSince) }),
	table.Text("since", "since when the cluster has this verdict.", func(c cluster) string { return tfvalue.TimeText(c.Since) }),
	table.Text("message", "the reason; the cluster's own text where there is one.", func(c cluster) string {
		if c.Verdict == verdict.Ready && c.Message == "" {
			return fmt.Sprintf("%s ready", wording.Count(len(c.Assignments), "assignment is", "assignments are"))
		}
		return c.Message
	}),
}

var assignments = table.Definition[observe.UnreadyAssignment]{
	table.Text("verdict", "the worst of all clusters.", func(t observe.UnreadyAssignment) string { return string(t.Verdict) }),
	table.Text("since",
		"since when, on the first of these clusters.", func(t observe.UnreadyAssignment) string { return tfvalue.TimeText(t.Since) }),
	table.Text("message", "why, on that cluster.", func(t observe.UnreadyAssignment) string { return t.Message }),
	table.Texts("clusters",
		"names of the clusters on which it is not ready.", func(t observe.UnreadyAssignment) []string { return t.Clusters }),
}

var running = table.Definition[*observe.TargetRun]{
	table.Text("deployment_target", "its full name.", func(r *observe.TargetRun) string { return r.DeploymentTarget }),
	table.TextOrNull(
		"wanted",
		"version, tag, commit or branch that the branch has for these hosts, in this order; null if they "+
			"name none. It is the last written version: hosts that a rollout has not reached have the former one.",
		func(r *observe.TargetRun) string { return r.Wanted },
	),
	table.TextOrNull(
		"version",
		"version of the Helm chart; of anything else the tag or the branch. Null where the agent does not say it, as of a range of tags.",
		func(r *observe.TargetRun) string { return r.Version },
	),
	table.TextOrNull(
		"revision",
		"commit, or digest as in `sha256:…`. Null if the agent does not report it, for example for a chart in a chart repository. Revisions "+
			"of several "+
			"sources are joined by commas, as their versions are.",
		func(r *observe.TargetRun) string { return r.Revision },
	),
	table.TextOrNull("chart", "name of the chart. Argo CD does not say it of a chart from an OCI registry.",
		func(r *observe.TargetRun) string { return r.Chart }),
	table.TextOrNull("app_version", "version of the application in the chart, which only Flux says.",
		func(r *observe.TargetRun) string { return r.AppVersion }),
	table.Texts("images", "images of the containers that are there, which only Argo CD says; of a long list the first 2 KiB.",
		func(r *observe.TargetRun) []string { return strings.Fields(r.Images) }),
	table.Number("count", "how many clusters run it.", func(r *observe.TargetRun) int { return r.Clusters }),
	table.Texts("hosts", "hosts that have the deployment target, and all of whose clusters run it.",
		func(r *observe.TargetRun) []string { return r.Hosts }),
	table.Texts("clusters", "names of the clusters of other hosts that run it.", func(r *observe.TargetRun) []string { return r.Names }),
}

var drift = table.Definition[observe.Difference]{
	table.TextOrNull("assignment", "key of the assignment; null for objects of none.",
		func(d observe.Difference) string { return d.Assignment }),
	table.Bool("wanted", "whether the fleet has it.", func(d observe.Difference) *bool { return &d.Wanted }),
	table.TextOrNull("git", "tree of its folder on the branch; null for none.", func(d observe.Difference) string { return d.Git }),
	table.TextOrNull("deployed", "tree that the clusters have; null for none.", func(d observe.Difference) string { return d.Deployed }),
	table.Texts("clusters", "names of the clusters; empty where fleet and Git differ.",
		func(d observe.Difference) []string { return d.Clusters }),
	table.Texts("objects", "objects on them that differ from Git.", func(d observe.Difference) []string { return d.Objects }),
	table.Text("reason", "what differs.", func(d observe.Difference) string { return d.Reason }),
}

func (m *complianceModel) set(answer *compliance.Answer, scheduled *schedule.Decisions, rollouts []rollout.Progress) {
	result := answer.Result
	m.Fleet = fleetvalue.Hashed(m.Fleet)
	m.Time, m.Evidence = types.StringValue(tfvalue.TimeText(result.Time)), types.StringValue(string(result.Evidence().Marshal()))
	m.Summary, m.Assignments = summary.Value(result.Summary()), assignments.MapOf(result.UnreadyAssignments())
	byName := make(map[string]cluster, len(result.Clusters))
	for i := range result.Clusters {
		byName[result.Clusters[i].Name] = &result.Clusters[i]
	}
	m.Clusters = clusters.MapOf(byName)
	wanted := make(map[string]bool, len(scheduled.Assignments))
	for _, assignment := range scheduled.Assignments {
		wanted[assignment.Key()] = true
	}
	m.Running = running.List(table.Pointers(result.TargetRuns()))
	m.Drift = drift.List(result.Drift(wanted))
	byTarget := make(map[string]rollout.Progress, len(rollouts))
	for _, progress := range rollouts {
		byTarget[progress.DeploymentTarget] = progress
	}
	m.Rollouts = repository.Rollouts.MapOf(byTarget)
	m.Metrics = types.StringValue(metrics.Text(metrics.Input{
		Result: result, Asked: !asksNoCluster(m.Feedback), Wants: wanted, Rollouts: rollouts,
	}))
}
