package observe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Commit is what is known of a commit that reports name.
type Commit struct {
	// ID is the full id; "" where the branch does not have it, and then Missing says why.
	ID, Missing string
	// Behind is how many commits the tip is ahead, and Since from when on.
	Behind int
	Since  time.Time
	// Trees are the folders at the commit, by host and deployment target.
	Trees map[string]map[string]string
}

// Folder is an assignment as it was written.
type Folder struct {
	Host, DeploymentTarget string
	// Tree is the folder at the tip; "" where there is none.
	Tree string
	// Recorded is the folder as its owner wrote it last; "" where that is not known.
	Recorded string
	// Changed is when that was committed; zero where that is not known.
	Changed time.Time
	// Wanted is the version, tag, commit or branch of the manifests, as its owner wrote it last; "" where they name none.
	Wanted string
	// Namespace is what the workload has on the cluster; "" where that is not known.
	Namespace string
	// Objects are what reconciles it.
	Objects []reconciler.ObjectName
}

// Key is the key of the assignment.
func (f *Folder) Key() string { return f.Host + "/" + f.DeploymentTarget }

// Input is everything that verdicts depend on.
type Input struct {
	Time time.Time
	// About identifies the assignment whose folders they are.
	About About
	// Tip is the commit at which the folders are.
	Tip string
	// Types are the cluster types of the clusters, by name.
	Types map[string]string
	// Folders are what was written, in any order.
	Folders []Folder
	// OwnerLabels and HostLabels, by host, are the labels that the owner's objects have; empty where left-over
	// objects are not looked for.
	OwnerLabels []string
	HostLabels  map[string]string
	// Reports are by cluster. A cluster without one is unknown.
	Reports map[string]Report
	// Commits are by the names that reports have for them.
	Commits map[string]Commit
}

// Result is what is known of all clusters, in the order of their names.
type Result struct {
	About    About
	Time     time.Time
	Tip      string
	Clusters []ClusterResult
	folders  []Folder
	trees    map[string]map[string]string
}

// ClusterResult is what is known of one cluster.
type ClusterResult struct {
	Name, Type string
	// Commit is the one that the cluster has applied; "" where that is not known.
	Commit string
	// Behind is how many commits the tip is ahead of that, and BehindSince from when on; -1 where that is not
	// known.
	Behind      int
	BehindSince time.Time
	// Status is the worst one of its assignments.
	verdict.Status
	// Assignments are in the order of their keys.
	Assignments []AssignmentResult
	// Leftover are objects that the cluster still has and Git does not have any more.
	Leftover []reconciler.ObjectName
}

// AssignmentResult is what is known of one assignment on one cluster.
type AssignmentResult struct {
	Key    string
	Folder *Folder
	// Commit is the one whose content the verdict is about, and Tree what the folder is there; "" for none.
	Commit, Tree string
	// Known says that it is known what content the cluster has.
	Known bool
	verdict.Status
	// Running is what the cluster has of it, as its agent says; zero where that is not known.
	Running reconciler.Running
	// Edited are objects that differ from Git although the cluster has applied the wanted commit.
	Edited []reconciler.ObjectName
}

// Observe derives the verdict of every assignment on every cluster.
func Observe(in Input) *Result {
	byHost := map[string][]*Folder{}
	for i := range in.Folders {
		byHost[in.Folders[i].Host] = append(byHost[in.Folders[i].Host], &in.Folders[i])
	}
	for _, folders := range byHost {
		slices.SortFunc(folders, func(a, b *Folder) int { return cmp.Compare(a.DeploymentTarget, b.DeploymentTarget) })
	}
	names := slices.Sorted(maps.Keys(in.Types))
	result := &Result{About: in.About, Time: in.Time, Tip: in.Tip, folders: in.Folders, Clusters: make([]ClusterResult, len(names))}
	parallel.Each(len(names), func(i int) {
		e := evaluation{in: &in, report: in.Reports[names[i]]}
		if _, ok := in.Reports[names[i]]; !ok {
			e.report.Unknown = "there is no report about this cluster"
		}
		result.Clusters[i] = e.cluster(names[i], in.Types[names[i]], byHost)
	})
	result.trees = in.trees(result, byHost)
	return result
}

// evaluation derives the verdicts of one cluster.
type evaluation struct {
	in     *Input
	report Report
}

func (e *evaluation) cluster(name, clusterType string, byHost map[string][]*Folder) ClusterResult {
	c := ClusterResult{Name: name, Type: clusterType, Behind: -1}
	hosts, count := Hosts(clusterType, name), 0
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
				continue // of several, the one that is furthest behind counts
			}
			c.Commit = cmp.Or(commit.ID, one.Commit)
			if commit.ID != "" {
				c.Behind, c.BehindSince = commit.Behind, commit.Since
			}
		}
		c.Leftover = append(c.Leftover, e.leftover(host, byHost[host])...)
		for _, folder := range byHost[host] {
			if own, is := e.report.own[folder.Key()]; is {
				c.Assignments = append(c.Assignments, e.assignment(folder, own, true))
				continue
			}
			c.Assignments = append(c.Assignments, e.worstOf(folder, applied, known))
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

// leftover are the owner's objects that a host has, and that are in none of its folders.
func (e *evaluation) leftover(host string, folders []*Folder) []reconciler.ObjectName {
	var left []reconciler.ObjectName
	for _, one := range e.report.labelled {
		if one.host == e.in.HostLabels[host] && slices.Contains(e.in.OwnerLabels, one.owner) &&
			!slices.ContainsFunc(folders, func(f *Folder) bool { return slices.Contains(f.Objects, one.ObjectName) }) {
			left = append(left, one.ObjectName)
		}
	}
	return left
}

// overall is the worst of what is known of a cluster.
func (e *evaluation) overall(c *ClusterResult) verdict.Status {
	if len(c.Assignments) == 0 && e.report.Unknown != "" {
		return e.status(verdict.Unknown, time.Time{}, e.report.Unknown)
	}
	status := verdict.Status{Verdict: verdict.Ready}
	for _, a := range c.Assignments {
		status = verdict.Worst(status, a.Status)
	}
	if len(c.Assignments) == 0 { // only the objects that follow its folders have a status
		for _, host := range slices.Sorted(maps.Keys(e.report.Applied)) {
			if applied := e.report.Applied[host]; !applied.NoFolder || len(e.report.Applied) == 1 {
				for _, one := range applied.All() {
					status = verdict.Worst(status, one.Status)
				}
			}
		}
		status = ofRoot(e.status(status.Verdict, status.Since, status.Message))
	}
	if status.Verdict == verdict.Ready {
		status.Message = ""
	}
	if status.Verdict == verdict.Ready && len(c.Leftover) > 0 {
		status = e.status(verdict.Progressing, status.Since, "still has what was removed: "+nameList(c.Leftover))
	}
	return status
}

// status is a verdict that always has a time.
func (e *evaluation) status(is verdict.Verdict, since time.Time, message string) verdict.Status {
	if since.IsZero() {
		since = e.in.Time
	}
	return verdict.Status{Verdict: is, Since: since, Message: message}
}

// nameList names some objects.
func nameList(names []reconciler.ObjectName) string { return wording.List(texts(names), 3) }

// short is the short form of a commit's id.
func short(commit string) string { return commit[:min(7, len(commit))] }

// treeAt is the tree of a folder at a commit that a report names.
func (e *evaluation) treeAt(name string, folder *Folder) (tree string, known bool) {
	commit, ok := e.in.Commits[name]
	if !ok || commit.ID == "" {
		return "", false
	}
	return commit.Trees[folder.Host][folder.DeploymentTarget], true
}

// worstOf derives the verdict of one assignment from all that follows its folder. Where they differ, the worst counts,
// and it is not known whose fault a failure is: any of them may have nothing to do with the assignment.
func (e *evaluation) worstOf(folder *Folder, applied reconciler.Applied, follows bool) AssignmentResult {
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

// assignment derives the verdict of one assignment on the cluster by one object that follows its folder.
func (e *evaluation) assignment(folder *Folder, applied reconciler.Applied, follows bool) AssignmentResult {
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
		reason := cmp.Or(e.in.Commits[applied.Commit].Missing, "the branch does not have commit "+short(applied.Commit))
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
		e.upToDate(&a, applied)
		return a
	}
	if tree, known := e.treeAt(applied.Attempted, folder); known && tree == folder.Tree {
		e.arriving(&a, applied)
		return a
	}
	a.Status = e.status(verdict.Behind, folder.Changed, e.whyBehind(applied))
	return a
}

// lateOnHub is the status of an assignment of which the hub itself does not have the wanted content.
func (e *evaluation) lateOnHub(folder *Folder, onHub *reconciler.Applied) (verdict.Status, bool) {
	if tree, known := e.treeAt(onHub.Commit, folder); known && tree == folder.Tree {
		return verdict.Status{}, false
	}
	if tree, known := e.treeAt(onHub.Attempted, folder); known && tree == folder.Tree && onHub.Verdict == verdict.Failed {
		late := e.status(verdict.Failed, verdict.Latest(onHub.Since, folder.Changed),
			fmt.Sprintf("commit %s cannot be applied to the hub itself: %s", short(onHub.Attempted), onHub.Message))
		late.OfRoot = !blames(onHub, folder)
		return late, true
	}
	reason := "the hub itself has applied nothing of the folder yet"
	if onHub.Commit != "" {
		reason = "the hub itself has commit " + short(onHub.Commit)
	}
	if onHub.Verdict != verdict.Ready && onHub.Message != "" {
		reason += "; " + onHub.Message
	}
	return e.status(verdict.Behind, folder.Changed, reason), true
}

// whyBehind says what a cluster has applied, and why it has not applied more, where that is known.
func (e *evaluation) whyBehind(applied reconciler.Applied) string {
	text := "has applied nothing yet"
	if applied.Commit != "" {
		text = "has commit " + short(applied.Commit)
	}
	if applied.Verdict != verdict.Ready && applied.Message != "" {
		text += "; " + applied.Message
	}
	return text
}

// arriving derives the verdict of an assignment whose wanted content is being applied, or could not be.
func (e *evaluation) arriving(a *AssignmentResult, applied reconciler.Applied) {
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
	// Some objects come before others, and others wait for these.
	said, all := e.objects(a.Folder, applied)
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

// upToDate derives the verdict of an assignment whose wanted content the cluster has.
func (e *evaluation) upToDate(a *AssignmentResult, applied reconciler.Applied) {
	said, _ := e.objects(a.Folder, applied)
	said = verdict.Worst(said, e.rootStatus(a.Folder, &applied))
	for i := range applied.OnHub {
		said = verdict.Worst(said, e.rootStatus(a.Folder, &applied.OnHub[i]))
	}
	if tree, known := e.treeAt(applied.Compared, a.Folder); known && tree == a.Tree {
		a.Edited = belonging(a.Folder, applied.OutOfSync)
	}
	if len(a.Edited) > 0 && verdict.Compare(verdict.Progressing, said.Verdict) < 0 {
		said = verdict.Status{Verdict: verdict.Progressing, Since: e.in.Time, Message: "differs from Git: " + nameList(a.Edited)}
	}
	since := verdict.Latest(said.Since, a.Folder.Changed)
	if said.Verdict == verdict.Ready {
		since, said.Message = verdict.Latest(since, e.arrived(a, applied)), ""
	}
	a.Status = e.status(said.Verdict, since, said.Message)
	a.OfRoot = said.OfRoot
}

// arrived is when the content of an assignment came to the cluster, where the history shows one commit
// without it and a later one that has it; else zero.
func (e *evaluation) arrived(a *AssignmentResult, applied reconciler.Applied) time.Time {
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

// trees are the folders at each commit that the verdicts are about, as far as they are not those of the tip.
func (in *Input) trees(result *Result, byHost map[string][]*Folder) map[string]map[string]string {
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
	byID := map[string]Commit{}
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
