// Package rollout decides what a commit does with each folder of an owner: write what is wanted, keep
// what is at the tip, or roll back to a tree that was there before. It also decides what may be removed.
// It is pure: it knows no clock, no Terraform and no Git.
//
// A stage is a set of hosts that get a change together. A change is proven on a stage when enough of its
// clusters have been ready for the soak time. A hold keeps folders as they are, a window is a time in which
// changes may be written, and an approval names the content that it is for.
package rollout

import "github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

// Action is what a commit does with a folder.
type Action string

// The actions.
const (
	Write    Action = "write"     // it gets what is wanted
	Keep     Action = "keep"      // it stays what it is at the tip
	RollBack Action = "roll back" // it gets a tree that it had before
)

// Decision is what happens to one folder.
type Decision struct {
	Action Action
	// Tree is what the folder holds afterwards; empty where that is not known yet, and with Keep.
	Tree string
	// From is the commit that has the tree, where a rollout rolls back to it.
	From string
}

// Decisions are the decisions for all folders that an owner has afterwards, by host and deployment
// target. Folders that are in none of them, and that the owner has, are removed.
type Decisions map[string]map[string]Decision

// Decide decides without a rollout: every folder gets its tree by the action.
func Decide(trees folder.Trees, action Action) Decisions {
	decisions := make(Decisions, len(trees))
	for host, targets := range trees {
		decisions[host] = make(map[string]Decision, len(targets))
		for target, tree := range targets {
			decisions[host][target] = Decision{Action: action, Tree: tree}
		}
	}
	return decisions
}

// Trees returns what the owner has afterwards. deployed is what it has now: a folder that is kept has
// the tree of that, and one that somebody has removed stays away.
func (d Decisions) Trees(deployed folder.Trees) folder.Trees {
	trees := make(folder.Trees, len(d))
	for host, targets := range d {
		trees[host] = make(map[string]string, len(targets))
		for target, decision := range targets {
			switch {
			case decision.Action != Keep:
				trees[host][target] = decision.Tree
			case deployed.Has(host, target):
				trees[host][target] = deployed[host][target]
			}
		}
	}
	return trees
}
