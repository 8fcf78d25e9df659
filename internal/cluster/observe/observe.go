// Package observe decides whether clusters run the written content: from the clusters' reports and the trees of commits
// it derives verdicts and evidence. It makes no request and reads no clock. In its types, "" and zero times mean none
// or unknown.
//
// A root is the object on a cluster that follows the cluster's folder in the GitOps repository, such as a Flux
// Kustomization.
package observe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// WrittenFolder is an assignment as it was written.
type WrittenFolder struct {
	Host, DeploymentTarget string
	Tree                   string    // at the tip
	Recorded               string    // as its owner wrote it last
	Changed                time.Time // time of that commit
	// Wanted is the recorded version, tag, commit or branch of the manifests.
	Wanted    string
	Namespace string                  // of the workload
	Objects   []reconciler.ObjectName // its reconciling objects
}

// Key returns the key of the assignment.
func (f *WrittenFolder) Key() string { return f.Host + "/" + f.DeploymentTarget }

// FleetReports is the complete input of [Observe].
type FleetReports struct {
	Time    time.Time
	About   About
	Tip     string            // commit of Folders
	Types   map[string]string // by cluster
	Folders []WrittenFolder
	// OwnerLabels and HostLabels, by host, label the owner's objects; empty to skip the search for left-over objects.
	OwnerLabels []string
	HostLabels  map[string]string
	Reports     map[string]ClusterReport         // by cluster; clusters without one are unknown
	Commits     map[string]gitops.ReportedCommit // by their names in reports
}

// Observation is the state of all clusters, sorted by name.
type Observation struct {
	About    About
	Time     time.Time
	Tip      string
	Clusters []ClusterResult
	folders  []WrittenFolder
	trees    map[string]map[string]string
}

// ClusterResult is the state of one cluster.
type ClusterResult struct {
	Name, Type string
	Commit     string // applied
	// Behind counts the commits from Commit to the tip, -1 if unknown; BehindSince is the time of the first.
	Behind         int
	BehindSince    time.Time
	verdict.Status                         // the worst of its assignments
	Assignments    []AssignmentResult      // sorted by key
	Leftover       []reconciler.ObjectName // objects that Git no longer has
}

// AssignmentResult is the state of one assignment on one cluster.
type AssignmentResult struct {
	Key          string
	Folder       *WrittenFolder
	Commit, Tree string // of the verdict, with its folder
	Known        bool   // whether the content is known
	verdict.Status
	Running reconciler.Running // according to the agent
	// Edited differ from Git although the cluster has applied the wanted commit.
	Edited []reconciler.ObjectName
}

// Observe derives the verdict of every assignment on every cluster.
func Observe(in FleetReports) *Observation {
	byHost := map[string][]*WrittenFolder{}
	for i := range in.Folders {
		byHost[in.Folders[i].Host] = append(byHost[in.Folders[i].Host], &in.Folders[i])
	}
	for _, folders := range byHost {
		slices.SortFunc(folders, func(a, b *WrittenFolder) int { return cmp.Compare(a.DeploymentTarget, b.DeploymentTarget) })
	}
	names := slices.Sorted(maps.Keys(in.Types))
	result := &Observation{About: in.About, Time: in.Time, Tip: in.Tip, folders: in.Folders, Clusters: make([]ClusterResult, len(names))}
	parallel.Each(len(names), func(i int) {
		e := evaluation{in: &in, report: in.Reports[names[i]]}
		if _, ok := in.Reports[names[i]]; !ok {
			e.report.Unknown = "there is no report about this cluster"
		}
		result.Clusters[i] = e.cluster(names[i], in.Types[names[i]], byHost)
	})
	result.trees = in.differingTrees(result, byHost)
	return result
}

type evaluation struct {
	in     *FleetReports
	report ClusterReport
}

func (e *evaluation) cluster(name, clusterType string, byHost map[string][]*WrittenFolder) ClusterResult {
	c := ClusterResult{Name: name, Type: clusterType, Behind: -1}
	hosts, count := FollowedHosts(clusterType, name), 0
	for _, host := range hosts {
		count += len(byHost[host])
	}
	c.Assignments = make([]AssignmentResult, 0, count)
	for _, host := range hosts {
		applied, known := e.report.applied(host)
		isFirst := c.Commit == ""
		for _, one := range applied.All() {
			c.Leftover = append(c.Leftover, one.ToPrune...)
			commit := e.in.Commits[one.Commit]
			if !known || !isFirst || one.Commit == "" || c.Commit != "" && commit.Behind <= c.Behind {
				continue // of several roots, the one that is furthest behind counts
			}
			c.Commit = cmp.Or(commit.ID, one.Commit)
			if commit.ID != "" {
				c.Behind, c.BehindSince = commit.Behind, commit.Since.UTC()
			}
		}
		c.Leftover = append(c.Leftover, e.leftover(host, byHost[host])...)
		for _, folder := range byHost[host] {
			if own, is := e.report.own[folder.Key()]; is {
				c.Assignments = append(c.Assignments, e.assignment(folder, own, true))
				continue
			}
			c.Assignments = append(c.Assignments, e.worstAssignment(folder, applied, known))
		}
	}
	for i := range c.Assignments {
		c.Assignments[i].Running = e.running(c.Assignments[i].Folder)
	}
	slices.SortFunc(c.Assignments, func(a, b AssignmentResult) int { return cmp.Compare(a.Key, b.Key) })
	slices.SortFunc(c.Leftover, reconciler.CompareNames)
	c.Leftover = slices.Compact(c.Leftover)
	c.Status = e.overall(&c)
	return c
}

func (e *evaluation) leftover(host string, folders []*WrittenFolder) []reconciler.ObjectName {
	var left []reconciler.ObjectName
	for _, one := range e.report.labelled {
		if one.host == e.in.HostLabels[host] && slices.Contains(e.in.OwnerLabels, one.owner) &&
			!slices.ContainsFunc(folders, func(f *WrittenFolder) bool { return slices.Contains(f.Objects, one.ObjectName) }) {
			left = append(left, one.ObjectName)
		}
	}
	return left
}

func (e *evaluation) overall(c *ClusterResult) verdict.Status {
	if len(c.Assignments) == 0 && e.report.Unknown != "" {
		return e.status(verdict.Unknown, time.Time{}, e.report.Unknown)
	}
	status := verdict.Status{Verdict: verdict.Ready}
	for _, a := range c.Assignments {
		status = verdict.Worst(status, a.Status)
	}
	if len(c.Assignments) == 0 { // only the roots have a status
		for _, host := range slices.Sorted(maps.Keys(e.report.Applied)) {
			if applied := e.report.Applied[host]; !applied.NoFolder || len(e.report.Applied) == 1 {
				for _, one := range applied.All() {
					status = verdict.Worst(status, one.Status)
				}
			}
		}
		status = markAsRoot(e.status(status.Verdict, status.Since, status.Message))
	}
	if status.Verdict == verdict.Ready {
		status.Message = ""
	}
	if status.Verdict == verdict.Ready && len(c.Leftover) > 0 {
		status = e.status(verdict.Progressing, status.Since, "still has what was removed: "+nameList(c.Leftover))
	}
	return status
}

func (e *evaluation) status(is verdict.Verdict, since time.Time, message string) verdict.Status {
	if since.IsZero() {
		since = e.in.Time
	}
	return verdict.Status{Verdict: is, Since: since, Message: message}
}

func nameList(names []reconciler.ObjectName) string { return wording.List(texts(names), 3) }

func short(commit string) string { return commit[:min(7, len(commit))] }

func (e *evaluation) treeAt(name string, folder *WrittenFolder) (tree string, known bool) {
	commit, ok := e.in.Commits[name]
	if !ok || commit.ID == "" {
		return "", false
	}
	return commit.Trees[folder.Host][folder.DeploymentTarget], true
}

// worstAssignment derives the verdict from all roots of the folder. If they differ, the worst counts, but its failure
// is attributed to no assignment, because it may come from an unrelated root.
func (e *evaluation) worstAssignment(folder *WrittenFolder, applied reconciler.Applied, follows bool) AssignmentResult {
	roots := applied.All()
	results := make([]AssignmentResult, len(roots))
	for i := range roots {
		results[i] = e.assignment(folder, roots[i], follows)
	}
	at, since, agree, isOfRoot := 0, time.Time{}, true, false
	for i := range results {
		agree = agree && results[i].Verdict == results[0].Verdict
		since, isOfRoot = verdict.Latest(since, results[i].Since), isOfRoot || results[i].OfRoot
		if verdict.Compare(results[i].Verdict, results[at].Verdict) < 0 {
			at = i
		}
	}
	of := results[at]
	if agree {
		of.Since, of.OfRoot = since, isOfRoot
		return of
	}
	of.OfRoot = true
	of.Message = fmt.Sprintf("%d objects follow the folder; by %s: %s", len(roots), wording.OneLine(roots[at].Root.String()), of.Message)
	return of
}

func (e *evaluation) assignment(folder *WrittenFolder, applied reconciler.Applied, follows bool) AssignmentResult {
	a := AssignmentResult{Key: folder.Key(), Folder: folder}
	switch {
	case !follows:
		reason := e.report.Unknown
		if reason == "" && len(e.report.own) > 0 {
			reason = "there is no report about this assignment"
		}
		if reason == "" {
			reason = fmt.Sprintf("nothing on the cluster follows the folder %s", folder.Host)
		}
		a.Status = e.status(verdict.Unknown, time.Time{}, reason)
		return a
	case applied.Commit != "" && e.in.Commits[applied.Commit].ID == "":
		reason := cmp.Or(e.in.Commits[applied.Commit].Reason, "the branch does not have commit "+short(applied.Commit))
		a.Status = e.status(verdict.Unknown, time.Time{}, "what the cluster has applied cannot be compared: "+reason)
		return a
	}
	for i := range applied.OnHub {
		if late, is := e.lateOnHub(folder, &applied.OnHub[i]); is {
			a.Status = late
			return a
		}
	}
	a.Tree, a.Known = e.treeAt(applied.Commit, folder)
	a.Commit = e.in.Commits[applied.Commit].ID
	if a.Known && a.Tree == folder.Tree {
		e.evaluateUpToDate(&a, applied)
		return a
	}
	if tree, known := e.treeAt(applied.Attempted, folder); known && tree == folder.Tree {
		e.evaluateArriving(&a, applied)
		return a
	}
	a.Status = e.status(verdict.Behind, folder.Changed, whyBehind(&applied, "has ", "applied nothing yet"))
	return a
}

func (e *evaluation) lateOnHub(folder *WrittenFolder, onHub *reconciler.Applied) (verdict.Status, bool) {
	if tree, known := e.treeAt(onHub.Commit, folder); known && tree == folder.Tree {
		return verdict.Status{}, false
	}
	if tree, known := e.treeAt(onHub.Attempted, folder); known && tree == folder.Tree && onHub.Verdict == verdict.Failed {
		late := e.status(verdict.Failed, verdict.Latest(onHub.Since, folder.Changed),
			fmt.Sprintf("commit %s cannot be applied to the hub itself: %s", short(onHub.Attempted), onHub.Message))
		late.OfRoot = !blames(onHub, folder)
		return late, true
	}
	reason := whyBehind(onHub, "the hub itself has ", "applied nothing of the folder yet")
	return e.status(verdict.Behind, folder.Changed, reason), true
}

func whyBehind(applied *reconciler.Applied, has, nothing string) string {
	text := has + nothing
	if applied.Commit != "" {
		text = has + "commit " + short(applied.Commit)
	}
	if applied.Verdict != verdict.Ready && applied.Message != "" {
		text += "; " + applied.Message
	}
	return text
}

func (e *evaluation) evaluateArriving(a *AssignmentResult, applied reconciler.Applied) {
	commit := e.in.Commits[applied.Attempted].ID
	message := fmt.Sprintf("commit %s is being applied: %s", short(commit), applied.Message)
	wanted := func() { a.Commit, a.Tree, a.Known = commit, a.Folder.Tree, true }
	if applied.Verdict == verdict.Failed {
		wanted()
		a.Status = e.status(verdict.Failed, verdict.Latest(applied.Since, a.Folder.Changed),
			fmt.Sprintf("commit %s cannot be applied: %s", short(commit), applied.Message))
		a.OfRoot = !blames(&applied, a.Folder)
		return
	}
	// Some objects are applied before others, and others wait for them.
	said, all := e.objectsStatus(a.Folder, applied)
	if !all || len(a.Folder.Objects) == 0 || slices.ContainsFunc(a.Folder.Objects, func(name reconciler.ObjectName) bool {
		_, arrived := slices.BinarySearchFunc(applied.Arrived, name, reconciler.CompareNames)
		return !arrived
	}) {
		a.Status = e.status(verdict.Behind, a.Folder.Changed, message)
		return
	}
	wanted()
	if said.Verdict == verdict.Ready {
		said = verdict.Status{Verdict: verdict.Progressing, Since: said.Since, Message: message}
	}
	a.Status = e.status(said.Verdict, verdict.Latest(said.Since, a.Folder.Changed), said.Message)
	a.OfRoot = said.OfRoot
}

func (e *evaluation) evaluateUpToDate(a *AssignmentResult, applied reconciler.Applied) {
	said, _ := e.objectsStatus(a.Folder, applied)
	said = verdict.Worst(said, e.rootStatus(a.Folder, &applied))
	for i := range applied.OnHub {
		said = verdict.Worst(said, e.rootStatus(a.Folder, &applied.OnHub[i]))
	}
	if tree, known := e.treeAt(applied.Compared, a.Folder); known && tree == a.Tree {
		a.Edited = objectsOf(a.Folder, applied.OutOfSync)
	}
	if len(a.Edited) > 0 && verdict.Compare(verdict.Progressing, said.Verdict) < 0 {
		said = verdict.Status{Verdict: verdict.Progressing, Since: e.in.Time, Message: "differs from Git: " + nameList(a.Edited)}
	}
	since := verdict.Latest(said.Since, a.Folder.Changed)
	if said.Verdict == verdict.Ready {
		since, said.Message = verdict.Latest(since, e.arrivalTime(a, applied)), ""
	}
	a.Status = e.status(said.Verdict, since, said.Message)
	a.OfRoot = said.OfRoot
}

// arrivalTime returns when the content of an assignment reached the cluster, according to the history.
func (e *evaluation) arrivalTime(a *AssignmentResult, applied reconciler.Applied) time.Time {
	var at time.Time
	for i := 1; i < len(applied.History); i++ {
		before, known := e.treeAt(applied.History[i-1].Commit, a.Folder)
		after, alsoKnown := e.treeAt(applied.History[i].Commit, a.Folder)
		if known && alsoKnown && before != after && after == a.Tree {
			at = verdict.Latest(at, applied.History[i].Time)
		}
	}
	return at
}

func (in *FleetReports) differingTrees(result *Observation, byHost map[string][]*WrittenFolder) map[string]map[string]string {
	hosts := map[string]map[string]bool{} // by commit
	for i := range result.Clusters {
		c := &result.Clusters[i]
		for k := range c.Assignments {
			if commit := c.Assignments[k].Commit; commit != "" {
				if hosts[commit] == nil {
					hosts[commit] = map[string]bool{}
				}
				hosts[commit][c.Assignments[k].Folder.Host] = true
			}
		}
	}
	byID := map[string]gitops.ReportedCommit{}
	for _, commit := range in.Commits {
		byID[commit.ID] = commit
	}
	trees := map[string]map[string]string{}
	for commit, hosts := range hosts {
		trees[commit] = map[string]string{}
		for host := range hosts {
			for _, folder := range byHost[host] {
				if tree := byID[commit].Trees[host][folder.DeploymentTarget]; tree != folder.Tree {
					trees[commit][folder.Key()] = tree
				}
			}
		}
	}
	return trees
}
