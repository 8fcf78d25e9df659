package observe

import (
	"fmt"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Evidence is the state of a fleet's clusters at one moment, in whole seconds of UTC. It is a rollout's only input
// about time and clusters, so the same evidence always leads to the same decisions.
type Evidence struct {
	About    About
	Time     time.Time                  // of the query
	Tip      string                     // commit of the branch at that time
	Clusters map[string]ClusterEvidence // by name
	// Trees maps each reported commit on the branch to its folders that differ from Tip, by key of the assignment; ""
	// if the commit lacks the folder. Tip itself is optional.
	Trees map[string]map[string]string
	// Running is the content that most clusters run, by key of an assignment, or by the name of a deployment target for
	// all its assignments without an entry.
	Running map[string]reconciler.Running
}

// About identifies the assignment that evidence is about. Commits identify its repository: a repository can have
// several URLs, and a URL may contain credentials.
type About struct {
	Owner, Environment string // names of the flotilla_assignment and of its fleet's environment
	Branch, Path       string // its location
}

func (a About) String() string {
	return fmt.Sprintf("the assignment %q of environment %q, on branch %q at path %q", a.Owner, a.Environment, a.Branch, a.Path)
}

// ClusterEvidence is the state of one cluster.
type ClusterEvidence struct {
	Type   string
	Commit string // applied commit of the GitOps repository
	verdict.Status
	// Assignments have a status or commit that differs from the cluster's, by key.
	Assignments map[string]AssignmentStatus
	// Running differs from the content that most clusters run, by key; nil if unknown for all assignments.
	Running map[string]reconciler.Running
}

// AssignmentStatus is the status of one assignment on one cluster.
type AssignmentStatus struct {
	Commit string // applied for the folder
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
			same := a.Commit == c.Commit || a.Commit == "" && r.trees[c.Commit] == nil && c.Commit != r.Tip
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
	Known bool
	// AtTip marks the content of the tip, even without a folder. Tree is unset then.
	AtTip  bool
	Tree   string
	Commit string
	verdict.Status
}

// Has reports whether the cluster has a tree. atTip is the folder's tree at the tip.
func (c Content) Has(tree, atTip string) bool {
	return c.Known && (c.AtTip && tree == atTip || !c.AtTip && tree == c.Tree)
}

// Assignment returns the content of an assignment on a cluster.
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
