// Package compliance determines whether clusters run the content that an owner wrote: it collects reports, looks up
// reported commits, and derives verdicts with package observe. It has no clock. In its types, nil configures no query.
package compliance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// GitOpsReader reads a GitOps repository and its Git host, as *delivery.Service does.
type GitOpsReader interface {
	ReadOwner(ctx context.Context, owner delivery.Owner, wanted folder.Trees) (gitops.OwnerSnapshot, error)
	FindCommits(ctx context.Context, owner delivery.Owner, ids []string, want folder.Trees) (map[string]gitops.ReportedCommit, error)
	ReadStatuses(
		ctx context.Context, query delivery.StatusQuery, enough func([]delivery.CommitStatuses) bool,
	) ([]delivery.CommitStatuses, error)
}

// Question describes the query.
type Question struct {
	Owner    delivery.Owner // the flotilla_assignment that owns the folders
	Time     time.Time
	Schedule *schedule.Decisions     // assignments of the fleet
	Clusters map[string]FleetCluster // by name
	// Feedback has the sources of reports; earlier fields take precedence.
	Feedback Feedback
	Offline  string // why the repository cannot be read yet
}

// FleetCluster is a cluster of the fleet. FirstType is its type's original name, a label of objects.
type FleetCluster struct{ Type, FirstType, Reconciler string }

// Feedback configures the sources of reports.
type Feedback struct {
	Clusters *Clusters
	Hub      *Hub                     // one for all clusters
	Reports  []observe.ExternalReport // from the caller
	Statuses *Statuses                // of the Git host
}

// Clusters configures queries of clusters.
type Clusters struct {
	Reach map[string]kube.Cluster // connections, by cluster
	// Waiting are clusters whose connection is not known yet; Unknown means all.
	Waiting map[string]bool
	Unknown bool
	Options kube.QueryOptions
}

// Hub is a cluster whose Argo CD deploys to other clusters.
type Hub struct {
	Name    string
	Reach   kube.Cluster
	Known   bool // Reach is usable
	Options kube.QueryOptions
}

// Statuses configures queries of the Git host.
type Statuses struct {
	Contexts observe.Contexts
	Limit    int // of commits back
	Settings delivery.Settings
	Creators Creators
}

// Answer is the result of a query.
type Answer struct {
	Result   *observe.Observation
	Written  gitops.OwnerSnapshot // content of the branch
	NotAsked []string             // clusters that the provider does not know, sorted
	// Repository and Statuses are errors of reading them, which the verdicts contain, too.
	Repository, Statuses error
}

// Evaluate collects reports and derives verdicts. A cluster or server that does not answer makes verdicts unknown; only
// an ended context is an error.
func Evaluate(ctx context.Context, repository GitOpsReader, q Question) (*Answer, error) {
	answer := &Answer{}
	if q.Offline == "" {
		written, err := repository.ReadOwner(ctx, q.Owner, wantedTrees(q.Schedule))
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			answer.Repository = err
			q.Offline = offlineReason(err)
		}
		answer.Written = written
		if q.Offline == "" && written.Tip == "" {
			q.Offline = "the branch does not exist yet"
		}
	}
	reports, err := collectReports(ctx, repository, &q, answer)
	if err != nil {
		return nil, err
	}
	in := observe.FleetReports{
		About: observe.About{
			Owner: q.Owner.Name, Environment: q.Owner.Environment, Branch: q.Owner.Location.Branch, Path: q.Owner.Location.Path,
		},
		Time: q.Time, Tip: answer.Written.Tip, Types: map[string]string{},
		Folders: writtenFolders(&q, answer.Written), Reports: reports, Commits: map[string]gitops.ReportedCommit{},
		OwnerLabels: ownerLabels(q.Owner.Name, answer.Written), HostLabels: map[string]string{},
	}
	for name, cluster := range q.Clusters {
		in.Types[name] = cluster.Type
		for _, host := range observe.FollowedHosts(cluster.Type, name) {
			in.HostLabels[host] = render.LabelValue(host)
		}
		if cluster.FirstType != "" {
			in.HostLabels[cluster.Type] = render.LabelValue(cluster.FirstType)
		}
	}
	if q.Offline == "" {
		if in.Commits, err = findCommits(ctx, repository, &q, answer, in); err != nil {
			return nil, err
		}
	}
	answer.Result = observe.Observe(in)
	return answer, nil
}

func offlineReason(err error) string {
	switch {
	case errors.Is(err, git.ErrNotFound):
		return "the GitOps repository does not exist"
	case errors.Is(err, git.ErrUnauthorized):
		return "the GitOps repository refuses the credentials"
	}
	return "the GitOps repository cannot be read"
}

func wantedTrees(scheduled *schedule.Decisions) folder.Trees {
	trees := folder.Trees{}
	for _, assignment := range scheduled.Assignments {
		folder.Put(trees, folder.Key{Host: assignment.Host.Name, DeploymentTarget: assignment.Target.Name}, "")
	}
	return trees
}

func writtenFolders(q *Question, written gitops.OwnerSnapshot) []observe.WrittenFolder {
	namespaces := map[folder.Key]string{}
	for _, assignment := range q.Schedule.Assignments {
		namespaces[folder.Key{Host: assignment.Host.Name, DeploymentTarget: assignment.Target.Name}] = assignment.Namespace
	}
	var all []observe.WrittenFolder
	for key, record := range written.Records {
		folder := observe.WrittenFolder{
			Host: key.Host, DeploymentTarget: key.DeploymentTarget, Namespace: namespaces[key], Wanted: record.Manifests.Revision(),
			Tree: written.Trees[key.Host][key.DeploymentTarget], Recorded: record.Tree,
		}
		if record.Tree == folder.Tree {
			folder.Changed = record.Changed.UTC()
		}
		for _, object := range record.Objects {
			folder.Objects = append(folder.Objects, reconciler.ObjectName(object))
		}
		all = append(all, folder)
	}
	slices.SortFunc(all, func(a, b observe.WrittenFolder) int { return cmp.Compare(a.Key(), b.Key()) })
	return all
}

func ownerLabels(name string, written gitops.OwnerSnapshot) []string {
	labels := []string{render.LabelValue(name)}
	for _, record := range written.Records {
		if label := render.LabelValue(record.OwnerLabel); record.OwnerLabel != "" && !slices.Contains(labels, label) {
			labels = append(labels, label)
		}
	}
	return labels
}

func findCommits(
	ctx context.Context, repository GitOpsReader, q *Question, answer *Answer, in observe.FleetReports,
) (map[string]gitops.ReportedCommit, error) {
	ids := map[string]bool{}
	for name := range q.Clusters {
		report := in.Reports[name]
		for _, id := range report.Commits(in.Folders) {
			ids[id] = true
		}
	}
	if len(ids) == 0 || answer.Written.Tip == "" {
		return nil, nil
	}
	want := folder.Trees{}
	for i := range in.Folders {
		folder.Put(want, folder.Key{Host: in.Folders[i].Host, DeploymentTarget: in.Folders[i].DeploymentTarget}, "")
	}
	found, err := repository.FindCommits(ctx, q.Owner, slices.Sorted(maps.Keys(ids)), want)
	if err != nil && ctx.Err() != nil {
		return nil, err
	}
	if err != nil {
		answer.Repository = err
		found = map[string]gitops.ReportedCommit{}
		for id := range ids {
			found[id] = gitops.ReportedCommit{Reason: "its trees cannot be read from the GitOps repository"}
		}
	}
	return found, nil
}

func collectReports(ctx context.Context, repository GitOpsReader, q *Question, answer *Answer) (map[string]observe.ClusterReport, error) {
	reports := make(map[string]observe.ClusterReport, len(q.Clusters))
	take := func(found map[string]observe.ClusterReport) {
		for name, report := range found {
			before, heard := reports[name]
			if _, ours := q.Clusters[name]; ours && (!heard || before.Unknown != "" && report.Unknown == "") {
				reports[name] = report
			}
		}
	}
	location := q.Owner.Location
	if from := q.Feedback.Clusters; from != nil {
		take(queryClusters(ctx, from, location, q, answer))
	}
	if from := q.Feedback.Hub; from != nil && q.Offline == "" {
		take(queryHub(ctx, from, location, q.Clusters))
	}
	take(readReports(q.Feedback.Reports))
	if from := q.Feedback.Statuses; from != nil && q.Offline == "" {
		found, err := readStatuses(ctx, repository, from, q, answer)
		if err != nil {
			return nil, err
		}
		take(found)
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	for name := range q.Clusters {
		report, heard := reports[name]
		switch {
		case q.Offline != "":
			report.Unknown, report.Applied = q.Offline, nil
		case !heard && q.Feedback.IsEmpty():
			report.Unknown = "no report is collected: `feedback` is empty"
		case !heard:
			report.Unknown = "there is no report about this cluster"
		}
		reports[name] = report
	}
	return reports, nil
}

// IsEmpty reports whether there is no source of reports.
func (f *Feedback) IsEmpty() bool {
	return f.Clusters == nil && f.Hub == nil && f.Statuses == nil && len(f.Reports) == 0
}

// readReports keeps the latest report about a cluster or assignment.
func readReports(reports []observe.ExternalReport) map[string]observe.ClusterReport {
	sorted := slices.Clone(reports)
	slices.SortStableFunc(sorted, func(a, b observe.ExternalReport) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Assignment, b.Assignment), a.Since.Compare(b.Since))
	})
	byCluster := map[string][]observe.ExternalReport{}
	for i, one := range sorted {
		if i+1 < len(sorted) && sorted[i+1].Cluster == one.Cluster && sorted[i+1].Assignment == one.Assignment {
			continue // a later one follows
		}
		byCluster[one.Cluster] = append(byCluster[one.Cluster], one)
	}
	found := map[string]observe.ClusterReport{}
	for cluster, all := range byCluster {
		found[cluster] = observe.ReadExternal(all...)
	}
	return found
}

func verdictOf(state forge.StatusState) verdict.Verdict {
	switch state {
	case forge.Success:
		return verdict.Ready
	case forge.Failure, forge.Error:
		return verdict.Failed
	}
	return verdict.Progressing
}

// Clock is the clock for Wait.
type Clock interface {
	Now() time.Time
	// Sleep returns after d or when the context ends.
	Sleep(ctx context.Context, d time.Duration)
}

// Goal is the condition that [Wait] waits for.
type Goal struct {
	ReadyPercent int
	Timeout      time.Duration
}

const (
	firstPause = 2 * time.Second
	longPause  = 30 * time.Second
)

// Wait repeats query with growing pauses until enough clusters are ready. On timeout, it returns the last answer with
// an error. report gets each summary.
func Wait(
	ctx context.Context,
	clock Clock,
	goal Goal,
	query func(ctx context.Context, now time.Time) (*Answer, error),
	report func(observe.Summary),
) (*Answer, error) {
	until := clock.Now().Add(goal.Timeout)
	for pause := firstPause; ; pause = min(longPause, pause*3/2) {
		now := clock.Now()
		answer, err := query(ctx, now)
		if err != nil {
			return nil, err
		}
		summary := answer.Result.Summary()
		report(summary)
		left := until.Sub(clock.Now())
		switch {
		case summary.ReadyPercent >= goal.ReadyPercent:
			return answer, nil
		case left <= 0:
			return answer, unreadyError(answer.Result, summary, goal)
		}
		clock.Sleep(ctx, min(pause, left))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

func unreadyError(result *observe.Observation, summary observe.Summary, goal Goal) error {
	var lines []string
	for i := range result.Clusters {
		if c := &result.Clusters[i]; c.Verdict != verdict.Ready {
			lines = append(lines, fmt.Sprintf("%s: %s: %s", c.Name, c.Verdict, c.Message))
		}
	}
	return fmt.Errorf(
		"after %s, %d of %s ready (%d %%), but ready_percent is %d %%:\n%s",
		goal.Timeout,
		summary.ByVerdict[verdict.Ready],
		wording.Count(summary.Clusters, "cluster is", "clusters are"),
		summary.ReadyPercent,
		goal.ReadyPercent,
		wording.Lines(lines, wording.Named),
	)
}
