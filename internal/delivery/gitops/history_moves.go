package gitops

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// folderChange is a change with the facts that identify a move to another host.
type folderChange struct {
	folder.Change
	oldTree, newTree git.Hash
	treeBefore       string
	isOneSided       bool
}

// pairMoves combines a folder that vanishes with its host and the same folder on a new host: the host was renamed.
func pairMoves(changes []folderChange) []folder.Change {
	type identity struct{ deploymentTarget, tree string }
	gone := map[identity]*folderChange{}
	for i := range changes {
		if c := &changes[i]; c.Action == folder.Removed && c.isOneSided {
			gone[identity{c.DeploymentTarget, c.oldTree.String()}] = c
		}
	}
	moved := map[folder.Key]bool{}
	for i := range changes {
		c := &changes[i]
		if c.Action != folder.Added || !c.isOneSided {
			continue
		}
		action := folder.Moved
		from := gone[identity{c.DeploymentTarget, c.newTree.String()}]
		if from == nil {
			action, from = folder.Changed, gone[identity{c.DeploymentTarget, c.treeBefore}]
		}
		if from != nil {
			c.Action, c.From, c.Before = action, from.Host, from.Before
			moved[from.Key] = true
			delete(gone, identity{c.DeploymentTarget, from.oldTree.String()})
		}
	}
	var paired []folder.Change
	for _, c := range changes {
		if !moved[c.Key] || c.Action != folder.Removed {
			paired = append(paired, c.Change)
		}
	}
	return paired
}
