package gitops

import "github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

// Wanted is the edit's folders by tree id. Folders that are kept are there with the tree that the edit says, if it says one.
func (e Edit) Wanted() folder.Trees {
	wanted := e.Hosts.Trees()
	for host, h := range e.Hosts {
		for target, one := range h {
			if one.Action == Keep && one.Tree != "" {
				folder.Put(wanted, folder.Key{Host: host, DeploymentTarget: target}, one.Tree)
			}
		}
	}
	return wanted
}
