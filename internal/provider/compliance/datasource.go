// Package compliance implements flotilla_compliance, the reports of clusters about the written content.
package compliance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/once"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/metrics"
)

// New returns the data source.
func New() datasource.DataSource {
	return frame.DataSource[complianceModel]{
		Name: "compliance", Validate: validate, Longer: longer, Read: read,
		Description: "Reads the reports of clusters about an assignment: whether they have it and are ready, and why others are " +
			"not. A cluster that does not answer is no error: it is `unknown`, with a reason. This data source changes nothing.\n\nAn " +
			"assignment is up to date on a cluster when the tree of its folder, at the commit that the cluster has applied, equals the tree that " +
			"the branch has, however many commits others have made since. Whether it is ready is read from the agent's own conditions, by " +
			"the rules of kstatus.",
		Attributes: map[string]schema.Attribute{
			"name":        schemas.RequiredText("Name of the assignment."),
			"fleet":       fleetvalue.ModelAttribute(" The state keeps its hash."),
			"gitops_repo": schemas.RequiredDynamic(schemas.Location("The location, as the assignment has it.")),
			"feedback": schemas.OptionalDynamic(schemas.Setting("Where reports of clusters come from, one or several. Empty: no report is "+
				"collected, everything is `unknown`, and `evidence` still has its time.", fleet.ObjectType, FeedbackTable)),
			"wait": schemas.OptionalDynamic(schemas.Setting(
				"Repeats the reading until a share of the clusters is ready. It is for pipelines that have to wait; rollouts do not need it.",
				fleet.ObjectType,
				WaitTable,
			)),
			"progress": schemas.OptionalText("`progress` of the assignment, for `rollouts`, and for the rollouts in `metrics`. An attribute " +
				"of a resource defers the reading to the apply. An assignment whose `evidence` comes from here cannot give it: that would be a " +
				"cycle, so let another `flotilla_compliance` have it."),
			"timeouts": timeouts.ReadAttribute(),
			"time":     schemas.ComputedText("When the clusters were asked, RFC 3339."),
			"summary":  summary.Attribute("All clusters of the fleet in numbers."),
			"clusters": clusters.PlainMap("The report of each cluster of the fleet, by its name:"),
			"assignments": assignments.PlainMap("Assignments that are not ready, by their keys `<host>/<deployment target>`, on clusters " +
				"about which something is known:"),
			"running": running.PlainList("The versions that run of each deployment target, as the agents on clusters say, or on the hub: an " +
				"element for each version of it, most clusters first. It changes when a cluster has applied something else, and not before: an " +
				"upgrade that has failed leaves the former version. If a Flux Kustomization waits for health, its last applied version is the " +
				"last one that became healthy. A cluster that reports no version is in no element; `reports` and `commit_statuses` do not say it."),
			"drift": drift.PlainList("Differences between the fleet, Git and the clusters. The changes that an apply would make in a folder " +
				"are in `changes` of the assignment, and in `flotilla_diff`."),
			"rollouts": repository.Rollouts.PlainMap(
				"The progress of each deployment target whose change is under way, by its full name; empty without `progress`:",
			),
			"evidence": schemas.ComputedText("All of it as JSON, for rollouts."),
			"metrics": schemas.ComputedText("All of it as OpenMetrics text, for Prometheus: clusters by verdict, assignments by host, " +
				"deployment target and version, how far behind they are, rollouts by stage, the health score, and the time of it. See the [table " +
				"of the metrics](../guides/reference-observing.md#metrics), and the [dashboard and alert " +
				"rules](../guides/observe.md#metrics-and-alerts)."),
		},
	}.New()
}

func validate(m *complianceModel, diagnostics *diag.Diagnostics) {
	repository.CheckOwnerName(m.Name, diagnostics)
	repository.DecodeProgress(m.Progress, diagnostics)
	from := decodeFeedback(m.Feedback, "", diagnostics)
	if goal := decodeWait(m.Wait, diagnostics); goal != nil && from.IsEmpty() && fleet.IsKnown(tfvalue.Plain(m.Feedback)) {
		diagnostics.AddAttributeError(path.Root("wait"), "Invalid wait",
			"`feedback` is empty, so no cluster would ever be ready: set feedback, or remove wait.")
	}
}

func longer(m *complianceModel) time.Duration {
	var ignored diag.Diagnostics
	if goal := decodeWait(m.Wait, &ignored); goal != nil {
		return goal.Timeout
	}
	return 0
}

func read(ctx context.Context, c *connection.Connection, m *complianceModel, diagnostics *diag.Diagnostics) {
	question, goal := m.question(c, diagnostics)
	rollouts := repository.DecodeProgress(m.Progress, diagnostics)
	if diagnostics.HasError() {
		return
	}
	answer, err := readUntilReady(ctx, c, question, goal)
	if answer == nil {
		if err != nil {
			repository.AddError(ctx, diagnostics, err, false)
		}
		return
	}
	warn(answer, diagnostics)
	if err != nil {
		diagnostics.AddAttributeError(path.Root("wait"), "Clusters are not ready", tfvalue.Sentence(err.Error()))
		return
	}
	m.set(answer, question.Schedule, rollouts)
	if asksNoCluster(m.Feedback) { // such evidence has no clusters, and a rollout then counts only time
		evidence := answer.Result.Evidence()
		evidence.Clusters, evidence.Trees, evidence.Running = nil, nil, nil
		m.Evidence = types.StringValue(string(evidence.Marshal()))
	}
}

// asksNoCluster reports whether the feedback is absent or {}.
func asksNoCluster(feedback types.Dynamic) bool {
	object, ok := tfvalue.Plain(feedback).(map[string]any)
	for _, value := range object {
		ok = ok && value == nil
	}
	return ok
}

func (m *complianceModel) question(c *connection.Connection, diagnostics *diag.Diagnostics) (q compliance.Question, goal *compliance.Goal) {
	repository.CheckOwnerName(m.Name, diagnostics)
	location, _ := repository.DecodeLocation(m.GitopsRepo, diagnostics)
	value := fleetvalue.DecodeObject(m.Fleet, diagnostics)
	q.Owner = delivery.Owner{Name: m.Name.ValueString(), Environment: value.Environment, Location: location}
	q.Feedback = decodeFeedback(m.Feedback, value.Environment, diagnostics)
	goal = decodeWait(m.Wait, diagnostics)
	result, _, found := pipeline.Schedule(value)
	fleetvalue.AddErrors(diagnostics, found)
	if diagnostics.HasError() {
		return q, goal
	}
	q.Schedule, q.Clusters = result, clustersOf(result)
	checkReports(q.Feedback.Reports, q.Clusters, result, diagnostics)
	if from := q.Feedback.Statuses; from != nil {
		checkCreators(from.Creators, q.Clusters, diagnostics)
	}
	if !c.CanAsk() {
		q.Offline = "the credentials of the GitOps repository are not known yet"
		q.Feedback = compliance.Feedback{Reports: q.Feedback.Reports}
		return q, nil
	}
	reach(&q, c, diagnostics)
	if from := q.Feedback.Clusters; goal != nil && from != nil && (from.Unknown || len(from.Waiting) > 0) {
		goal = nil // nothing is deployed yet, so there is nothing to wait for
	}
	return q, goal
}

func clustersOf(scheduled *schedule.Decisions) map[string]compliance.FleetCluster {
	clusters := map[string]compliance.FleetCluster{}
	for _, host := range scheduled.Hosts {
		if host.Cluster != nil {
			clusters[host.Cluster.Name] = compliance.FleetCluster{
				Type:       host.ClusterType.Name,
				FirstType:  host.ClusterType.FirstName(),
				Reconciler: host.ClusterType.Reconciler,
			}
		}
	}
	return clusters
}

func reach(q *compliance.Question, c *connection.Connection, diagnostics *diag.Diagnostics) {
	known := c.Clusters
	if from := q.Feedback.Clusters; from != nil {
		from.Reach, from.Waiting, from.Unknown = known.Known, known.Waiting, known.Unknown
		from.Options.UserAgent = connection.UserAgent(c.Release)
	}
	if hub := q.Feedback.Hub; hub != nil {
		hub.Options.UserAgent = connection.UserAgent(c.Release)
		if hub.Reach, hub.Known = known.Known[hub.Name]; !hub.Known && !known.Unknown && !known.Waiting[hub.Name] {
			tfvalue.AddErrorf(diagnostics, path.Root("feedback"), "Invalid feedback",
				"hub: the provider's clusters have no entry %q%s",
				hub.Name, fleet.DidYouMean(hub.Name, slices.Sorted(maps.Keys(known.Known))))
		}
	}
	if from := q.Feedback.Statuses; from != nil {
		if err := c.Delivery.CheckStatuses(from.Settings, q.Owner.Location, from.Creators.IsSet()); err != nil {
			diagnostics.AddAttributeError(path.Root("feedback"), "Invalid feedback", tfvalue.Sentence("commit_statuses: "+err.Error()))
		}
	}
}

// readUntilReady returns the last result and an error after a timeout.
func readUntilReady(
	ctx context.Context, c *connection.Connection, q compliance.Question, goal *compliance.Goal,
) (*compliance.Answer, error) {
	once := func(ctx context.Context, now time.Time) (*compliance.Answer, error) {
		q.Time = now.UTC().Truncate(time.Second)
		return compliance.Evaluate(ctx, c.Delivery, q)
	}
	if goal == nil {
		return once(ctx, c.Clock.Now())
	}
	return compliance.Wait(ctx, c.Clock, *goal, once, func(s observe.Summary) {
		tflog.Info(ctx, "waiting for clusters", map[string]any{
			"ready": s.ByVerdict[verdict.Ready], "progressing": s.ByVerdict[verdict.Progressing], "failed": s.ByVerdict[verdict.Failed],
			"behind": s.ByVerdict[verdict.Behind], "unknown": s.ByVerdict[verdict.Unknown],
		})
	})
}

// warn adds problems that the verdicts do not show.
func warn(answer *compliance.Answer, diagnostics *diag.Diagnostics) {
	if names := answer.NotAsked; len(names) > 0 {
		once.Warning(diagnostics, path.Root("feedback"), "Clusters cannot be asked", fmt.Sprintf(
			"The provider's clusters have no entry for %s of the fleet, which stay unknown: %s.",
			wording.Count(len(names), "cluster", "clusters"), wording.List(names, wording.Named)))
	}
	if answer.Repository != nil {
		once.Warning(diagnostics, path.Root("gitops_repo"), "Repository cannot be read",
			tfvalue.Sentence(answer.Repository.Error())+" Values that depend on it are unknown.")
	}
	if answer.Statuses != nil {
		once.Warning(diagnostics, path.Root("feedback"), "Commit statuses cannot be read",
			tfvalue.Sentence(answer.Statuses.Error())+" Values that depend on them are unknown.")
	}
}

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
	table.Text("verdict",
		"the worst of its assignments: `ready`, `progressing`, `failed`, `behind` (has other content than the branch) or `unknown`.",
		func(c cluster) string { return string(c.Verdict) }),
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
	table.TextOrNull("wanted",
		"version, tag, commit or branch that the branch has for these hosts, in this order; null if they name none. It is the last written "+
			"version: hosts that a rollout has not reached have the former one.", func(r *observe.TargetRun) string { return r.Wanted }),
	table.TextOrNull("version",
		"version of the Helm chart; of anything else the tag or the branch. Null where the agent does not say it, as of a range of tags.",
		func(r *observe.TargetRun) string { return r.Version }),
	table.TextOrNull("revision",
		"commit, or digest as in `sha256:…`. Null if the agent does not report it, for example for a chart in a chart repository. "+
			"Revisions of several sources are joined by commas, as their versions are.", func(r *observe.TargetRun) string { return r.Revision }),
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
