package compliance

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// The number of commits whose statuses are read.
const (
	defaultStatusCommits = 10
	maxStatusCommits     = 1000
)

// decodeFeedback reads feedback without the connections to clusters.
func decodeFeedback(value types.Dynamic, environment string, diagnostics *diag.Diagnostics) (f compliance.Feedback) {
	tfvalue.ReadStrictly("feedback", FeedbackTable, value, diagnostics, func(o *fleet.ObjectReader) {
		var options kube.QueryOptions
		var all bool
		asking := fleet.ReadBoolOrObject(o, "clusters", &all)
		if asking != nil {
			options = connection.Asking(asking)
			asking.Finish()
		}
		if asking != nil || all {
			f.Clusters = &compliance.Clusters{Options: options}
		}
		if hub := o.Text("hub"); hub != "" {
			f.Hub = &compliance.Hub{Name: hub, Options: options}
		}
		if given, _ := o.Value("hub"); given == "" {
			o.Report("hub", "must be the name of one of the provider's clusters")
		}
		all = false
		if statuses := fleet.ReadBoolOrObject(o, "commit_statuses", &all); statuses != nil || all {
			f.Statuses = &compliance.Statuses{Contexts: observe.DefaultContexts(environment), Limit: defaultStatusCommits}
			if statuses != nil {
				decodeStatuses(statuses, f.Statuses)
			}
		}
		f.Reports = fleet.ReadList(o, "reports", decodeReport)
	})
	return f
}

func decodeStatuses(o *fleet.ObjectReader, into *compliance.Statuses) {
	into.Limit, into.Settings = o.Int("commits"), delivery.Settings{Forge: forge.Forge(o.Text("forge")), APIURL: o.Text("api_url")}
	into.Creators.All, into.Creators.ByCluster = fleet.ReadTextOrTextMap(o, "creators")
	switch given, _ := o.Value("creators"); given := given.(type) {
	case string:
		if given == "" {
			o.Report("creators", "must be the name of an account of the Git host, or a map of such names by cluster")
		}
	case map[string]any:
		if into.Creators.ByCluster == nil && o.Known("creators") {
			o.Report("creators", "has no account, so that no status would count: leave it out, or name the account of each cluster")
		}
		for _, cluster := range slices.Sorted(maps.Keys(given)) {
			if given[cluster] == "" {
				o.Report("creators", "the account of cluster %q is empty", cluster)
			}
		}
	}
	context := o.Text("context")
	if given, _ := o.Value("context"); given == context {
		var err error
		if into.Contexts, err = observe.ParseContext(context); err != nil {
			o.Report("context", "%s", err)
		}
	}
	o.Finish()
}

func decodeReport(o *fleet.ObjectReader) observe.ExternalReport {
	report := observe.ExternalReport{
		Cluster: o.Required("cluster"), Assignment: o.Text("assignment"), Commit: o.Text("commit"),
		Message: wording.OneLine(o.Text("message")), Verdict: verdict.Verdict(o.Text("verdict")),
		Since: fleet.ReadTime(o, "since").UTC().Truncate(time.Second),
	}
	if given, _ := o.Value("verdict"); o.Known("verdict") && given == string(report.Verdict) &&
		!slices.Contains(reportVerdicts, given.(string)) {
		o.Report("verdict", "must be ready, progressing, failed or unknown: whether a cluster is behind follows from its commit")
	}
	if o.Known("ready") {
		if report.Verdict != "" {
			o.Report("ready", "cannot be set together with verdict, which says more")
		}
		report.Verdict = verdict.Progressing
		if o.Bool("ready") {
			report.Verdict = verdict.Ready
		}
	}
	return report
}

// checkReports finds clusters that the fleet lacks and assignments that the cluster lacks: names may be misspelt.
func checkReports(
	reports []observe.ExternalReport,
	clusters map[string]compliance.FleetCluster,
	scheduled *schedule.Decisions,
	diagnostics *diag.Diagnostics,
) {
	names := slices.Sorted(maps.Keys(clusters))
	seen := map[string]bool{}
	var keys []string
	if slices.ContainsFunc(reports, func(one observe.ExternalReport) bool { return one.Assignment != "" }) {
		for _, assignment := range scheduled.Assignments {
			keys = append(keys, assignment.Key())
		}
	}
	for i, report := range reports {
		if _, ok := clusters[report.Cluster]; !ok && !seen[report.Cluster] {
			seen[report.Cluster] = true
			tfvalue.AddErrorf(diagnostics, path.Root("feedback"), "Invalid feedback",
				"reports[%d]: no cluster of this fleet is called %q%s", i, report.Cluster, fleet.DidYouMean(report.Cluster, names))
		}
		of, known := clusters[report.Cluster]
		if report.Assignment == "" || !known {
			continue
		}
		there := slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
			return !slices.ContainsFunc(observe.FollowedHosts(of.Type, report.Cluster), func(host string) bool {
				return strings.HasPrefix(key, host+"/")
			})
		})
		if !slices.Contains(there, report.Assignment) {
			tfvalue.AddErrorf(diagnostics, path.Root("feedback"), "Invalid feedback",
				"reports[%d].assignment: cluster %q has no assignment with the key %q%s; a key is <host>/<deployment target>",
				i, report.Cluster, report.Assignment, fleet.DidYouMean(report.Assignment, there))
		}
	}
}

// checkCreators finds accounts for clusters that the fleet lacks: their names may be misspelt.
func checkCreators(creators compliance.Creators, clusters map[string]compliance.FleetCluster, diagnostics *diag.Diagnostics) {
	names := slices.Sorted(maps.Keys(clusters))
	for _, cluster := range slices.Sorted(maps.Keys(creators.ByCluster)) {
		if _, ok := clusters[cluster]; !ok {
			tfvalue.AddErrorf(diagnostics, path.Root("feedback"), "Invalid feedback",
				"commit_statuses.creators: no cluster of this fleet is called %q%s", cluster, fleet.DidYouMean(cluster, names))
		}
	}
}

func decodeWait(value types.Dynamic, diagnostics *diag.Diagnostics) (goal *compliance.Goal) {
	tfvalue.ReadStrictly("wait", WaitTable, value, diagnostics, func(o *fleet.ObjectReader) {
		goal = &compliance.Goal{ReadyPercent: o.Int("ready_percent"), Timeout: fleet.ReadTimeout(o, "timeout")}
	})
	return goal
}

// FeedbackTable describes the attribute feedback.
var FeedbackTable = &fleet.Table{
	Name: "feedback",
	Meaning: "The attribute `feedback` of `flotilla_compliance`: where reports of clusters come from. Where several have a report " +
		"about a cluster, the first one in this order wins. Empty: no report is collected, everything is `unknown`, and `evidence` still " +
		"has its time.",
	Attributes: []fleet.Attribute{
		{Name: "clusters", Type: fleet.BoolOrObjectType, Of: askingTable, Default: false,
			Meaning: "Whether to ask each cluster of the fleet that the provider's `clusters` has, and how."},
		{Name: "hub", Meaning: "The name of one of the provider's `clusters`, whose Argo CD deploys to the others. An Application belongs " +
			"to a cluster whose `destination.name` is its name."},
		{Name: "reports", Type: fleet.ObjectsType, Of: reportTable, Meaning: "Reports from any other source."},
		{Name: "commit_statuses", Type: fleet.BoolOrObjectType, Of: statusesTable, Default: false,
			Meaning: "Whether to read the commit statuses that agents reported to the Git host, and which. A success counts as ready, so an " +
				"agent has to report it only after its health checks."},
	},
}

var askingTable = &fleet.Table{
	Name:       "asking of clusters",
	Meaning:    "How the clusters of a fleet are asked.",
	Attributes: connection.AskingAttributes(),
}

var reportVerdicts = []string{string(verdict.Ready), string(verdict.Progressing), string(verdict.Failed), string(verdict.Unknown)}

var reportTable = &fleet.Table{
	Name: "report",
	Meaning: "A report about a cluster, or about one assignment on it. A failure of a cluster as a whole halts rollouts there, and rolls " +
		"nothing back: it does not say which assignment has failed.",
	Attributes: []fleet.Attribute{
		{Name: "cluster", Required: true, Meaning: "Name of the cluster."},
		{Name: "assignment", Meaning: "Key of the assignment, `<host>/<deployment target>`. Unset: the report is about all of the cluster."},
		{Name: "commit", Meaning: "The commit that the cluster has applied. Default for a report about an assignment: the commit of the " +
			"report about its cluster."},
		{Name: "ready", Type: fleet.BoolType, Meaning: "Whether it is ready, in place of `verdict`."},
		{Name: "verdict", Allowed: reportVerdicts, Meaning: "The verdict. Whether a cluster is behind follows from its commit."},
		{Name: "since", Type: fleet.TimeType, Meaning: "The time since when it is so."},
		{Name: "message", Meaning: "The reason, for people."},
	},
}

var statusesTable = &fleet.Table{
	Name:    "commit statuses",
	Meaning: "The commit statuses that are read.",
	Attributes: []fleet.Attribute{
		{Name: "context", Meaning: "The context of a status, such as `\"fleet/{cluster}\"`: `{cluster}` is its cluster, and `{host}`, if " +
			"any, its folder, `cluster-type` or `cluster`. Unset: `\"flotilla/{cluster}/{host}\"`, or the default contexts of Flux and Argo " +
			"CD, if they have the name of the cluster."},
		{Name: "creators", Type: fleet.TextOrTextMapType,
			Meaning: "The account of the Git host whose statuses count, as text for all clusters, or a map by cluster; without regard to " +
				"case. The cluster is `unknown` while its newest status is by a different account. Unset: statuses of all accounts count. " +
				forge.CreatorsText()},
		{Name: "commits", Type: fleet.WholeType, Default: defaultStatusCommits, Least: 1, Most: maxStatusCommits,
			Meaning: "How many commits are read, from the newest back, until every cluster has a status."},
		{Name: "forge", Meaning: "The kind of the Git host: " + forge.Listed("`") + ". Unset: by the Git host's name."},
		{Name: "api_url", Meaning: "The Git host's API, where that does not follow from the URL of the repository."},
	},
}

// WaitTable describes the attribute wait.
var WaitTable = &fleet.Table{
	Name: "wait",
	Meaning: "The attribute `wait` of `flotilla_compliance`: reports are read again until enough clusters are ready. Running out of time is " +
		"an error that names the assignments that are not ready.",
	Attributes: []fleet.Attribute{
		{Name: "ready_percent", Type: fleet.WholeType, Default: 100, Least: 1, Most: 100,
			Meaning: "The share of the clusters that has to be ready."},
		{Name: "timeout", Type: fleet.DurationType, Default: "15m", Meaning: "How long to wait at most."},
	},
}
