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
