package observe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// Commit is what is known of a commit that reports name.
type Commit struct {
	// ID is the full id; "" where the branch does not have it, and then Missing says why.
	ID, Missing string
	Time        time.Time
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
	// Namespace is what the workload has on the cluster; "" where that is not known.
	Namespace string
	// Objects are what reconciles it.
	Objects []ObjectName
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
	Status
	// Assignments are in the order of their keys.
	Assignments []AssignmentResult
	// Leftover are objects that the cluster still has and Git does not have any more.
	Leftover []ObjectName
}

// AssignmentResult is what is known of one assignment on one cluster.
type AssignmentResult struct {
	Key    string
	Folder *Folder
	// Commit is the one whose content the verdict is about, and Tree what the folder is there; "" for none.
	Commit, Tree string
	// Known says that it is known what content the cluster has.
	Known bool
	Status
	// Edited are objects that differ from Git although the cluster has applied the wanted commit.
	Edited []ObjectName
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
	for _, host := range Hosts(clusterType, name) {
		applied, known := e.report.applied(host)
		if commit := e.in.Commits[applied.Commit]; known && c.Commit == "" && applied.Commit != "" {
			c.Commit = cmp.Or(commit.ID, applied.Commit)
			if commit.ID != "" {
				c.Behind, c.BehindSince = commit.Behind, commit.Since
			}
		}
		c.Leftover = append(append(c.Leftover, applied.ToPrune...), e.leftover(host, byHost[host])...)
		for _, folder := range byHost[host] {
			c.Assignments = append(c.Assignments, e.assignment(folder, applied, known))
		}
	}
	slices.SortFunc(c.Assignments, func(a, b AssignmentResult) int { return cmp.Compare(a.Key, b.Key) })
	slices.SortFunc(c.Leftover, compareNames)
	c.Leftover = slices.Compact(c.Leftover)
	c.Status = e.overall(&c)
	return c
}

// leftover are the owner's objects that a host has, and that are in none of its folders.
func (e *evaluation) leftover(host string, folders []*Folder) []ObjectName {
	var left []ObjectName
	for _, one := range e.report.labelled {
		if one.host == e.in.HostLabels[host] && slices.Contains(e.in.OwnerLabels, one.owner) &&
			!slices.ContainsFunc(folders, func(f *Folder) bool { return slices.Contains(f.Objects, one.ObjectName) }) {
			left = append(left, one.ObjectName)
		}
	}
	return left
}

// overall is the worst of what is known of a cluster.
func (e *evaluation) overall(c *ClusterResult) Status {
	if len(c.Assignments) == 0 && e.report.Unknown != "" {
		return e.status(Unknown, time.Time{}, e.report.Unknown)
	}
	status := Status{Verdict: Ready}
	for _, a := range c.Assignments {
		status = worst(status, a.Status)
	}
	if len(c.Assignments) == 0 { // only the objects that follow its folders have a status
		for _, host := range slices.Sorted(maps.Keys(e.report.Applied)) {
			if applied := e.report.Applied[host]; !applied.NoFolder || len(e.report.Applied) == 1 {
				status = worst(status, applied.Status)
			}
		}
		status = e.status(status.Verdict, status.Since, status.Message)
	}
	if status.Verdict == Ready {
		status.Message = ""
	}
	if status.Verdict == Ready && len(c.Leftover) > 0 {
		status = e.status(Progressing, status.Since, "still has what was removed: "+nameList(c.Leftover))
	}
	return status
}

// status is a verdict that always has a time.
func (e *evaluation) status(verdict Verdict, since time.Time, message string) Status {
	if since.IsZero() {
		since = e.in.Time
	}
	return Status{verdict, since, message}
}

// nameList names some objects.
func nameList(names []ObjectName) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = name.String()
	}
	return wording.List(texts, 3)
}

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

// assignment derives the verdict of one assignment on the cluster.
func (e *evaluation) assignment(folder *Folder, applied Applied, follows bool) AssignmentResult {
	a := AssignmentResult{Key: folder.Key(), Folder: folder}
	switch {
	case !follows:
		reason := e.report.Unknown
		if reason == "" {
			reason = fmt.Sprintf("nothing on the cluster follows the folder %s", folder.Host)
		}
		a.Status = e.status(Unknown, time.Time{}, reason)
		return a
	case applied.Commit != "" && e.in.Commits[applied.Commit].ID == "":
		reason := cmp.Or(e.in.Commits[applied.Commit].Missing, "the branch does not have commit "+short(applied.Commit))
		a.Status = e.status(Unknown, time.Time{}, "what the cluster has applied cannot be compared: "+reason)
		return a
	}
	for _, commit := range applied.Besides {
		if tree, known := e.treeAt(commit, folder); !known || tree != folder.Tree {
			reason := "the hub itself has applied nothing of the folder yet"
			if commit != "" {
				reason = "the hub itself has commit " + short(commit)
			}
			a.Status = e.status(Behind, folder.Changed, reason)
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
	a.Status = e.status(Behind, folder.Changed, e.whyBehind(applied))
	return a
}

// whyBehind says what a cluster has applied, and why it has not applied more, where that is known.
func (e *evaluation) whyBehind(applied Applied) string {
	text := "has applied nothing yet"
	if applied.Commit != "" {
		text = "has commit " + short(applied.Commit)
	}
	if applied.Verdict != Ready && applied.Message != "" {
		text += "; " + applied.Message
	}
	return text
}

// arriving derives the verdict of an assignment whose wanted content is being applied, or could not be.
func (e *evaluation) arriving(a *AssignmentResult, applied Applied) {
	commit := e.in.Commits[applied.Attempted].ID
	message := fmt.Sprintf("commit %s is being applied: %s", short(commit), applied.Message)
	wanted := func() { a.Commit, a.Tree, a.Known = commit, a.Folder.Tree, true }
	if applied.Verdict == Failed {
		wanted()
		a.Status = e.status(Failed, latest(applied.Since, a.Folder.Changed),
			fmt.Sprintf("commit %s cannot be applied: %s", short(commit), applied.Message))
		return
	}
	// Some objects come before others, and others wait for these.
	said, all := e.objects(a.Folder, applied)
	if !all || len(a.Folder.Objects) == 0 || slices.ContainsFunc(a.Folder.Objects, func(name ObjectName) bool {
		_, arrived := slices.BinarySearchFunc(applied.Arrived, name, compareNames)
		return !arrived
	}) {
		a.Status = e.status(Behind, a.Folder.Changed, message)
		return
	}
	wanted()
	if said.Verdict == Ready {
		said = Status{Progressing, said.Since, message}
	}
	a.Status = e.status(said.Verdict, latest(said.Since, a.Folder.Changed), said.Message)
}

// upToDate derives the verdict of an assignment whose wanted content the cluster has.
func (e *evaluation) upToDate(a *AssignmentResult, applied Applied) {
	said, _ := e.objects(a.Folder, applied)
	if tree, known := e.treeAt(applied.Compared, a.Folder); known && tree == a.Tree {
		a.Edited = edited(a.Folder, applied.OutOfSync)
	}
	if len(a.Edited) > 0 && worse(Progressing, said.Verdict) < 0 {
		said = Status{Progressing, e.in.Time, "differs from Git: " + nameList(a.Edited)}
	}
	since := latest(said.Since, a.Folder.Changed)
	if said.Verdict == Ready {
		since, said.Message = latest(since, e.arrived(a, applied)), ""
	}
	a.Status = e.status(said.Verdict, since, said.Message)
}

// objects is the worst status of the objects that reconcile an assignment; where there are none, the status of
// the root. all is whether every one of them was found.
func (e *evaluation) objects(folder *Folder, applied Applied) (said Status, all bool) {
	if e.report.said == nil || len(folder.Objects) == 0 {
		return applied.Status, true
	}
	said, all = Status{Verdict: Ready}, true
	for _, name := range folder.Objects {
		one, found := e.report.find(name)
		reason, unlisted := e.report.unserved[name.Kind]
		switch {
		case found:
			said = worst(said, one)
		case e.report.isHub && name.Kind != "ApplicationSet": // it is on the cluster itself, and what follows the folder knows of it
			said = worst(said, applied.Status)
		case unlisted:
			said, all = worst(said, Status{Unknown, time.Time{}, fmt.Sprintf("%s cannot be read: %s", name, reason)}), false
		default:
			said, all = worst(said, Status{Progressing, time.Time{}, fmt.Sprintf("%s does not exist", name)}), false
		}
	}
	return said, all
}

// edited are the objects of an assignment among those that are not as Git has them.
func edited(folder *Folder, outOfSync []ObjectName) []ObjectName {
	var own []ObjectName
	for _, name := range outOfSync {
		if slices.Contains(folder.Objects, name) || folder.Namespace != "" &&
			(name.Namespace == folder.Namespace || name.Kind == "Namespace" && name.Name == folder.Namespace) {
			own = append(own, name)
		}
	}
	return own
}

// arrived is when the content of an assignment came to the cluster, where the history shows one commit
// without it and a later one that has it; else zero.
func (e *evaluation) arrived(a *AssignmentResult, applied Applied) time.Time {
	var at time.Time
	for i := 1; i < len(applied.History); i++ {
		before, known := e.treeAt(applied.History[i-1].Commit, a.Folder)
		after, alsoKnown := e.treeAt(applied.History[i].Commit, a.Folder)
		if known && alsoKnown && before != after && after == a.Tree {
			at = latest(at, applied.History[i].Time)
		}
	}
	return at
}

// Evidence returns the result in the form that rollouts use.
func (r *Result) Evidence() *Evidence {
	e := &Evidence{About: r.About, Time: r.Time.UTC().Truncate(time.Second), Tip: r.Tip, Clusters: make(map[string]Cluster, len(r.Clusters)), Trees: r.trees}
	for i := range r.Clusters {
		from := &r.Clusters[i]
		c := Cluster{Type: from.Type, Commit: from.Commit, Status: from.Status}
		if !isID(c.Commit) {
			c.Commit = ""
		}
		for k := range from.Assignments {
			a := &from.Assignments[k]
			same := a.Commit == c.Commit || a.Commit == "" && r.trees[c.Commit] == nil && c.Commit != r.Tip // a commit that the branch does not have
			if !same || a.Status != c.Status {
				if c.Assignments == nil {
					c.Assignments = map[string]AssignmentStatus{}
				}
				c.Assignments[a.Key] = AssignmentStatus{Commit: a.Commit, Status: a.Status}
			}
		}
		e.Clusters[from.Name] = c
	}
	return e
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
