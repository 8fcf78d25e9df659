package delivery

import (
	"context"

	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// Written is what a branch has of an owner.
type Written struct {
	// Tip is the branch's commit; "" when there is no branch, or no repository.
	Tip string
	// Records are what the owner's records say of each folder.
	Records map[rollout.Key]gitops.FolderRecord
	// Trees are the folders as they are, those of the records and of others that were asked for.
	Trees rollout.Trees
}

// Written reads what the location's branch has of an owner: the folders that its records list, and the wanted
// ones.
//
// Errors: as of a look.
func (c *Client) Written(ctx context.Context, owner Owner, wanted rollout.Trees) (Written, error) {
	view, err := c.view(ctx, owner, owner.Location.Branch)
	if err != nil {
		return Written{}, err
	}
	records, err := view.Records(ctx)
	if err != nil {
		return Written{}, err
	}
	written := Written{Tip: view.Commit, Records: map[rollout.Key]gitops.FolderRecord{}}
	asked := gitops.Deployed(wanted.Clone())
	for host, folders := range records {
		if asked[host] == nil {
			asked[host] = map[string]string{}
		}
		for target, folder := range folders {
			asked[host][target] = ""
			written.Records[rollout.Key{Host: host, DeploymentTarget: target}] = folder
		}
	}
	trees, err := view.Deployed(ctx, asked)
	written.Trees = rollout.Trees(trees)
	return written, err
}

// Tip returns the present commit of a location's branch; "" when there is no branch, or no repository.
//
// Errors: as of a look.
func (c *Client) Tip(ctx context.Context, at Location) (string, error) {
	c.looks.forget(c.remote(at))
	return c.tip(ctx, at)
}
