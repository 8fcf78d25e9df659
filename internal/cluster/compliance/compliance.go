// Package compliance finds out whether clusters run what an owner wrote: it collects the reports of clusters,
// looks up the commits that they name, and has package observe derive the verdicts. It knows neither Terraform
// nor any clock.
package compliance

import (
	"cmp"
	"context"
	"errors"
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
)

// Repository is what is asked of a GitOps repository and its Git host: a *delivery.Service.
type Repository interface {
	ReadOwner(ctx context.Context, owner delivery.Owner, wanted folder.Trees) (gitops.OwnerSnapshot, error)
	FindCommits(ctx context.Context, owner delivery.Owner, ids []string, want folder.Trees) (map[string]gitops.ReportedCommit, error)
	ReadStatuses(ctx context.Context, query delivery.StatusQuery, enough func([]delivery.CommitStatuses) bool) ([]delivery.CommitStatuses, error)
}

// Question is what is to be found out.
type Question struct {
	// Owner is the flotilla_assignment whose folders are looked at.
	Owner delivery.Owner
	// Time is when it is asked.
	Time time.Time
	// Schedule has the assignments. Its clusters are those of the fleet.
	Schedule *schedule.Decisions
	// Clusters are the fleet's clusters, by name, with their types.
	Clusters map[string]Cluster
	// Feedback is where reports come from. A source that is an earlier field wins.
	Feedback Feedback
	// Offline says why the repository cannot be read yet; "" where it can.
	Offline string
}

// Cluster is a cluster of the fleet. FirstType is the name after which the objects of its type are labelled.
type Cluster struct{ Type, FirstType, Reconciler string }

// Feedback is where reports come from.
type Feedback struct {
	// Clusters are read directly; nil where that is not wanted.
	Clusters *Clusters
	// Hub is read for all clusters; nil where there is none.
	Hub *Hub
	// Reports are given by the caller.
	Reports []observe.ExternalReport
	// Statuses are commit statuses on the Git host; nil where they are not wanted.
	Statuses *Statuses
}

// Clusters says how clusters are asked.
type Clusters struct {
	// Reach has the connections of those that can be reached, by name.
	Reach map[string]kube.Cluster
	// Waiting are those whose connection is not fully known yet; with Unknown, all are.
	Waiting map[string]bool
	Unknown bool
	Options kube.QueryOptions
}

// Hub is a cluster whose Argo CD deploys to the others.
type Hub struct {
	Name    string
	Reach   kube.Cluster
	Known   bool // Reach can be used
	Options kube.QueryOptions
}

// Statuses says how the Git host is asked.
type Statuses struct {
	Contexts observe.Contexts
	Limit    int // how many commits back
	Settings delivery.Settings
	Creators Creators
}

// Answer is what was found out.
type Answer struct {
	Result *observe.Observation
	// Written is what the branch has.
	Written gitops.OwnerSnapshot
	// NotAsked are the clusters of the fleet that the provider does not know, in order.
	NotAsked []string
	// Repository says why the repository could not be read, and Statuses why the Git host's commit statuses
	// could not; nil where they could. It is in the verdicts, too.
	Repository, Statuses error
}

// Ask collects reports, looks up their commits and derives the verdicts. A cluster or server that does not
// answer makes verdicts unknown; the only error is that of a context that has ended.
func Ask(ctx context.Context, repository Repository, q Question) (*Answer, error) {
	answer := &Answer{}
	if q.Offline == "" {
		written, err := repository.ReadOwner(ctx, q.Owner, wanted(q.Schedule))
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
	reports, err := collect(ctx, repository, &q, answer)
	if err != nil {
		return nil, err
	}
	in := observe.FleetReports{
		About: observe.About{
			Owner: q.Owner.Name, Environment: q.Owner.Environment, Branch: q.Owner.Location.Branch, Path: q.Owner.Location.Path,
		},
		Time: q.Time, Tip: answer.Written.Tip, Types: map[string]string{},
		Folders: folders(&q, answer.Written), Reports: reports, Commits: map[string]observe.ReportedCommit{},
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
		if in.Commits, err = commits(ctx, repository, &q, answer, in); err != nil {
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

// wanted are the folders that the fleet wants, whose trees are not known here.
func wanted(scheduled *schedule.Decisions) folder.Trees {
	trees := folder.Trees{}
	for _, assignment := range scheduled.Assignments {
		folder.Put(trees, folder.Key{Host: assignment.Host.Name, DeploymentTarget: assignment.Target.Name}, "")
	}
	return trees
}

// folders are what was written: those that the owner's records list.
func folders(q *Question, written gitops.OwnerSnapshot) []observe.WrittenFolder {
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

// ownerLabels are the owner's name in labels, and those under which it was written before.
func ownerLabels(name string, written gitops.OwnerSnapshot) []string {
	labels := []string{render.LabelValue(name)}
	for _, record := range written.Records {
		if label := render.LabelValue(record.OwnerLabel); record.OwnerLabel != "" && !slices.Contains(labels, label) {
			labels = append(labels, label)
		}
	}
	return labels
}

// commits looks up what reports name.
func commits(ctx context.Context, repository Repository, q *Question, answer *Answer, in observe.FleetReports) (map[string]observe.ReportedCommit, error) {
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
		missing := map[string]observe.ReportedCommit{}
		for id := range ids {
			missing[id] = observe.ReportedCommit{Missing: "its trees cannot be read from the GitOps repository"}
		}
		return missing, nil
	}
	known := make(map[string]observe.ReportedCommit, len(found))
	for id, commit := range found {
		known[id] = observe.ReportedCommit{
			ID: commit.ID, Missing: commit.Reason, Behind: commit.Behind, Since: commit.Since.UTC(), Trees: commit.Trees,
		}
	}
	return known, nil
}

// collect gathers a report of every cluster.
func collect(ctx context.Context, repository Repository, q *Question, answer *Answer) (map[string]observe.ClusterReport, error) {
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
		take(askClusters(ctx, from, location, q, answer))
	}
	if from := q.Feedback.Hub; from != nil && q.Offline == "" {
		take(askHub(ctx, from, location, q.Clusters))
	}
	take(said(q.Feedback.Reports))
	if from := q.Feedback.Statuses; from != nil && q.Offline == "" {
		found, err := askStatuses(ctx, repository, from, q, answer)
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
		case !heard:
			report.Unknown = q.Feedback.silent()
		}
		reports[name] = report
	}
	return reports, nil
}

// IsEmpty says that no report is collected.
func (f *Feedback) IsEmpty() bool {
	return f.Clusters == nil && f.Hub == nil && f.Statuses == nil && len(f.Reports) == 0
}

// silent is why nothing is known of a cluster without a report.
func (f *Feedback) silent() string {
	if f.IsEmpty() {
		return "no report is collected: `feedback` is empty"
	}
	return "there is no report about this cluster"
}

// said are the reports of other sources; of several about one cluster or assignment, the latest.
func said(reports []observe.ExternalReport) map[string]observe.ClusterReport {
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
