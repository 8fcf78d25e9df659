package observe

import (
	"fmt"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Evidence is what was known of the clusters of a fleet at one moment. A rollout has no other input about time
// and clusters, so the same evidence always leads to the same decisions.
type Evidence struct {
	// About says what was looked at.
	About About
	// Time is the moment at which the clusters were asked, in whole seconds of UTC, as all times are here.
	Time time.Time
	// Tip is the commit that the branch had then; "" when there was none.
	Tip string
	// Clusters are those of the fleet, by name.
	Clusters map[string]Cluster
	// Trees has an entry for each commit that clusters report and the branch has. It holds the folders,
	// by the key of their assignment, whose tree is not the one that they have at Tip; "" where the commit
	// does not have the folder. The tip's own entry may be left out.
	Trees map[string]map[string]string
	// Running is what most clusters run: of an assignment, by its key; of a deployment target, by its name, for those of its
	// assignments that have no entry.
	Running map[string]reconciler.Running
}

// About identifies the assignment that evidence is about. The repository is identified by commits and not by a
// URL: one repository can have several, and a URL may hold credentials.
type About struct {
	// Owner is the name of the flotilla_assignment, and Environment that of its fleet.
	Owner, Environment string
	// Branch and Path are where it writes.
	Branch, Path string
}

func (a About) String() string {
	return fmt.Sprintf("the assignment %q of environment %q, on branch %q at path %q", a.Owner, a.Environment, a.Branch, a.Path)
}

// Cluster is what is known of one cluster.
type Cluster struct {
	// Type is the name of the cluster's type.
	Type string
	// Commit is the commit of the GitOps repository that the cluster has applied; "" when that is not known.
	Commit string
	verdict.Status
	// Assignments are those whose status or commit differs from the cluster's, by key.
	Assignments map[string]AssignmentStatus
	// Running is what runs of the assignments of which that is not what most clusters run, by key; nil where it is not known
	// of any assignment on the cluster.
	Running map[string]reconciler.Running
}

// AssignmentStatus is what is known of one assignment on one cluster.
type AssignmentStatus struct {
	// Commit is the one that the cluster has applied where it applies the folder.
	Commit string
	verdict.Status
}

// Evidence returns the result in the form that rollouts use.
func (r *Result) Evidence() *Evidence {
	e := &Evidence{
		About:    r.About,
		Time:     r.Time.UTC().Truncate(time.Second),
		Tip:      r.Tip,
		Clusters: make(map[string]Cluster, len(r.Clusters)),
		Trees:    r.trees,
	}
	for i := range r.Clusters {
		from := &r.Clusters[i]
		c := Cluster{Type: from.Type, Commit: from.Commit, Status: from.Status}
		if !folder.IsCommit(c.Commit) {
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
	r.addRunning(e)
	return e
}

// Content is what is known of one assignment on one cluster.
type Content struct {
	// Known says that it is known what content the cluster has.
	Known bool
	// AtTip says that the content is that of the evidence's tip, whether or not there is a folder.
	AtTip bool
	// Tree is the tree of the folder that the cluster has, unless AtTip says so; "" is none.
	Tree string
	// Commit is the one that has the content; "" where that is not known.
	Commit string
	verdict.Status
}

// Has reports whether the cluster has a tree; atTip is the one that the folder has at the evidence's tip.
func (c Content) Has(tree, atTip string) bool {
	return c.Known && (c.AtTip && tree == atTip || !c.AtTip && tree == c.Tree)
}

// Assignment looks up what is known of an assignment on a cluster. Of a cluster that the evidence does
// not have, nothing is.
func (e *Evidence) Assignment(cluster, key string) Content {
	of, ok := e.Clusters[cluster]
	if !ok {
		return Content{Status: verdict.Status{Verdict: verdict.Unknown, Since: e.Time, Message: "the evidence does not have this cluster"}}
	}
	commit, status := of.Commit, of.Status
	if own, ok := of.Assignments[key]; ok {
		commit, status = own.Commit, own.Status
	}
	content := Content{Commit: commit, Status: status}
	trees, known := e.Trees[commit]
	content.Known = commit != "" && (known || commit == e.Tip)
	if tree, other := trees[key]; other {
		content.Tree = tree
	} else {
		content.AtTip = content.Known
	}
	return content
}
