package compliance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// feedback is the attribute feedback of flotilla_compliance.
type feedback struct {
	clusters bool
	options  kube.Options
	hub      string
	reports  []observe.Said
	statuses *statusFeedback
}

// statusFeedback is its attribute commit_statuses.
type statusFeedback struct {
	context  string
	commits  int
	settings delivery.Settings
}

func (f *feedback) isEmpty() bool {
	return !f.clusters && f.hub == "" && f.statuses == nil && len(f.reports) == 0
}

// How many commits back commit statuses are read: the default, and the maximum.
const (
	defaultStatusCommits = 10
	maxStatusCommits     = 1000
)

// decodeFeedback reads the attribute feedback, strictly.
func decodeFeedback(value types.Dynamic, diagnostics *diag.Diagnostics) (f feedback) {
	tfvalue.ReadStrictly("feedback", FeedbackTable, value, diagnostics, func(o *fleet.Object) {
		if asking := o.BoolOrObject("clusters", &f.clusters); asking != nil {
			f.clusters = true
			f.options = connection.Asking(asking)
			asking.Finish()
		}
		f.hub = o.Text("hub")
		if given, _ := o.Value("hub"); given == "" {
			o.Report("hub", "must be the name of one of the provider's clusters")
		}
		var all bool
		if statuses := o.BoolOrObject("commit_statuses", &all); statuses != nil {
			f.statuses = decodeStatuses(statuses)
		} else if all {
			f.statuses = &statusFeedback{commits: defaultStatusCommits}
		}
		for _, report := range o.List("reports") {
			f.reports = append(f.reports, decodeReport(report))
		}
	})
	return f
}

func decodeStatuses(o *fleet.Object) *statusFeedback {
	f := &statusFeedback{
		context:  o.Text("context"),
		commits:  o.Int("commits"),
		settings: delivery.Settings{Forge: forge.Forge(o.Text("forge")), APIURL: o.Text("api_url")},
	}
	if given, _ := o.Value("context"); given == f.context {
		if _, err := observe.ParseContext(f.context); err != nil {
			o.Report("context", "%s", err)
		}
	}
	o.Finish()
	return f
}

func decodeReport(o *fleet.Object) observe.Said {
	report := observe.Said{
		Cluster: o.Required("cluster"), Assignment: o.Text("assignment"), Commit: o.Text("commit"), Message: wording.OneLine(o.Text("message")), Verdict: verdict.Verdict(o.Text("verdict")),
		Since: o.Time("since").UTC().Truncate(time.Second),
	}
	if given, _ := o.Value("verdict"); o.Known("verdict") && given == string(report.Verdict) && !slices.Contains(reportVerdicts, given.(string)) {
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
	o.Finish()
	return report
}

// contexts returns the contexts of commit statuses that are read.
func (f *statusFeedback) contexts(environment string) observe.Contexts {
	if f.context == "" {
		return observe.DefaultContexts(environment)
	}
	contexts, _ := observe.ParseContext(f.context) // checked when it was decoded
	return contexts
}

// checkReports finds reports about clusters that the fleet does not have, and about assignments that are not on the
// cluster: with a misspelt name, there would be no report.
func checkReports(reports []observe.Said, clusters map[string]compliance.Cluster, scheduled *schedule.Result, diagnostics *diag.Diagnostics) {
	names := slices.Sorted(maps.Keys(clusters))
	seen := map[string]bool{}
	var keys []string
	if slices.ContainsFunc(reports, func(one observe.Said) bool { return one.Assignment != "" }) {
		for _, assignment := range scheduled.Assignments {
			keys = append(keys, assignment.Key())
		}
	}
	for i, report := range reports {
		if _, ok := clusters[report.Cluster]; !ok && !seen[report.Cluster] {
			seen[report.Cluster] = true
			diagnostics.AddAttributeError(path.Root("feedback"), "Invalid feedback", tfvalue.Sentence(fmt.Sprintf(
				"reports[%d]: no cluster of this fleet is called %q%s", i, report.Cluster, fleet.DidYouMean(report.Cluster, names))))
		}
		of, known := clusters[report.Cluster]
		if report.Assignment == "" || !known {
			continue
		}
		there := slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
			return !slices.ContainsFunc(observe.Hosts(of.Type, report.Cluster), func(host string) bool { return strings.HasPrefix(key, host+"/") })
		})
		if !slices.Contains(there, report.Assignment) {
			diagnostics.AddAttributeError(path.Root("feedback"), "Invalid feedback", tfvalue.Sentence(fmt.Sprintf(
				"reports[%d].assignment: cluster %q has no assignment with the key %q%s; a key is <host>/<deployment target>",
				i, report.Cluster, report.Assignment, fleet.DidYouMean(report.Assignment, there))))
		}
	}
}

// decodeWait reads the attribute wait, strictly; nil where it is not given.
func decodeWait(value types.Dynamic, diagnostics *diag.Diagnostics) (goal *compliance.Goal) {
	tfvalue.ReadStrictly("wait", WaitTable, value, diagnostics, func(o *fleet.Object) {
		goal = &compliance.Goal{ReadyPercent: o.Int("ready_percent"), Timeout: o.Timeout("timeout")}
	})
	return goal
}
