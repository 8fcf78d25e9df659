// Package rollout decides whether a commit writes each folder of an owner, keeps it, or rolls it back, and which removals it
// allows. It is pure: no clock, no Terraform, no Git.
//
// A stage is a set of hosts that receive a change together. text.go has the English of all values.
package rollout

import "github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

// Action is the effect of a commit on a folder.
type Action string

// The actions.
const (
	Write    Action = "write"     // write the wanted tree
	Keep     Action = "keep"      // leave the tree at the tip
	RollBack Action = "roll back" // restore a former tree
)

// Decision is the decision about one folder.
type Decision struct {
	Action Action
	// Tree is the tree after the commit; "" while unknown, and with Keep.
	Tree string
	// From is the commit with the tree, with RollBack.
	From string
}

// Decisions maps hosts and deployment targets to decisions. Missing folders of the owner are removed.
type Decisions map[string]map[string]Decision

// Decide applies one action to all folders, without a rollout.
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

// Trees returns the trees after the decisions. Kept folders retain their deployed tree.
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
