package delivery

import (
	"context"
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// moves refuses to move the folders of a host that has another name now where others have something beside them: the folder
// of the host would stay, and agents that follow it would remove what has moved.
func (c *Service) moves(ctx context.Context, desired Desired, o *Plan) error {
	moving := folder.Trees{}
	for former := range desired.Renames {
		if targets := o.there()[former]; len(targets) > 0 {
			moving[former] = targets
		}
	}
	if len(moving) == 0 || o.Identity == Moved {
		return nil
	}
	owner := o.ownerThere(desired)
	view, err := c.view(ctx, owner)
	if err != nil {
		return err
	}
	beside, err := view.FindForeignEntries(ctx, moving)
	if err == nil && len(beside) > 0 {
		o.add("gitops_repo", "Folder of a cluster type cannot move", "%s", besideText(beside))
	}
	return err
}

func besideText(beside []string) string {
	return fmt.Sprintf(
		"Others have something in the folder of a cluster type that has another name now: %s. The folder would stay, and agents that follow it would remove what moves. "+
			"Remove that first. Where it is another assignment's, take its folders over with adopt = true, have it leave the cluster type, rename, and give them back: "+
			"the guide \"Assignments\" has the steps.",
		wording.List(wording.Quoted(beside), wording.Named),
	)
}
