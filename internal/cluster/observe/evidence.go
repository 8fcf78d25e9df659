package observe

import (
	"fmt"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Evidence is the state of a fleet's clusters at one moment. It is a rollout's only input about time and clusters, so
// the same evidence always leads to the same decisions.
type Evidence struct {
	About About
	// Time is the time of the query. All times of evidence are whole seconds in UTC.
	Time time.Time
	// Tip is the commit of the branch at that time; "" if there was none.
	Tip string
	// Clusters are the clusters of the fleet, by name.
	Clusters map[string]ClusterEvidence
	// Trees has an entry for each reported commit that is on the branch. The entry maps keys of assignments to
	// folders that differ from Tip; "" means that the commit does not have the folder. The entry of the tip itself is
	// optional.
	Trees map[string]map[string]string
	// Running is the content that most clusters run, by the key of an assignment. The name of a deployment target
	// stands for its assignments without an entry.
	Running map[string]reconciler.Running
}

// About identifies the assignment that evidence is about. The repository is identified by its commits: one repository
// can have several URLs, and a URL may contain credentials.
type About struct {
	// Owner is the name of the flotilla_assignment, and Environment that of its fleet.
	Owner, Environment string
	// Branch and Path are its location.
	Branch, Path string
}

func (a About) String() string {
	return fmt.Sprintf("the assignment %q of environment %q, on branch %q at path %q", a.Owner, a.Environment, a.Branch, a.Path)
}

// ClusterEvidence is the state of one cluster.
type ClusterEvidence struct {
	Type string
	// Commit is the applied commit of the GitOps repository; "" if unknown.
	Commit string
	verdict.Status
	// Assignments are the assignments whose status or commit differs from the cluster's, by key.
	Assignments map[string]AssignmentStatus
	// Running has the assignments that differ from what most clusters run, by key; nil if nothing is known for any
	// assignment of the cluster.
	Running map[string]reconciler.Running
}

// AssignmentStatus is the status of one assignment on one cluster.
type AssignmentStatus struct {
	// Commit is the commit that the cluster has applied for the folder.
	Commit string
	verdict.Status
}

// Evidence converts the observation for rollouts.
func (r *Observation) Evidence() *Evidence {
	e := &Evidence{
		About:    r.About,
		Time:     r.Time.UTC().Truncate(time.Second),
		Tip:      r.Tip,
		Clusters: make(map[string]ClusterEvidence, len(r.Clusters)),
		Trees:    r.trees,
	}
	for i := range r.Clusters {
		from := &r.Clusters[i]
		c := ClusterEvidence{Type: from.Type, Commit: from.Commit, Status: from.Status}
		if !folder.IsCommit(c.Commit) {
			c.Commit = ""
		}
		for k := range from.Assignments {
			a := &from.Assignments[k]
			same := a.Commit == c.Commit || a.Commit == "" && r.trees[c.Commit] == nil && c.Commit != r.Tip // the branch does not have the commit
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

// Content is the content of one assignment on one cluster.
type Content struct {
	// Known reports whether the content is known.
	Known bool
	// AtTip reports that the content is that of the evidence's tip, whether or not there is a folder.
	AtTip bool
	// Tree is the tree of the cluster's folder unless AtTip is set; "" for none.
	Tree string
	// Commit is the commit with the content; "" if unknown.
	Commit string
	verdict.Status
}

// Has reports whether the cluster has a tree. atTip is the folder's tree at the evidence's tip.
func (c Content) Has(tree, atTip string) bool {
	return c.Known && (c.AtTip && tree == atTip || !c.AtTip && tree == c.Tree)
}

// Assignment returns the content of an assignment on a cluster. It is unknown for clusters without evidence.
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
