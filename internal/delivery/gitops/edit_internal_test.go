package gitops

import "github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

// Wanted returns the trees of the edit's folders, including kept folders with a tree.
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
