package assignment

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

func (c *comparison) warnOfRepublished(ctx context.Context, folders []changes.FolderChange, before folder.Trees) {
	if c.goal == nil || c.before.isNew {
		return
	}
	changed := map[int]*changes.FolderChange{} // by assignment
	for i := range folders {
		one := &folders[i]
		if one.Before == nil || one.Removed {
			continue
		}
		at, ok := c.goal.result.AssignmentIndex(one.Host, one.DeploymentTarget)
		if ok && artifact.IsMovable(c.goal.result.Schedule.Assignments[at].Target.Target.Manifests.Manifests) {
			changed[at] = one
		}
	}
	if len(changed) == 0 {
		return
	}
	former, _ := c.formerOf(ctx, changed, before)
	targets := map[string]map[string]bool{}
	for at, was := range former {
		if was.Manifests == nil {
			continue
		}
		target := c.goal.result.Schedule.Assignments[at].Target
		if text := artifact.DescribeRepublished(*was.Manifests, target.Target.Manifests.Manifests); text != "" {
			if targets[text] == nil {
				targets[text] = map[string]bool{}
			}
			targets[text][target.Name] = true
		}
	}
	for _, text := range slices.Sorted(maps.Keys(targets)) {
		c.diagnostics.AddAttributeWarning(
			path.Root("fleet"),
			"Version was published again",
			tfvalue.Sentence(text)+" This plan deploys the new content. "+
				"If you do not expect that, ask the publisher. To keep the content that is deployed, leave the deployment targets out of update "+
				"of flotilla_artifacts."+
				"\n\nDeployment targets: "+wording.List(wording.Quoted(slices.Sorted(maps.Keys(targets[text]))), wording.Named)+".",
		)
	}
}
