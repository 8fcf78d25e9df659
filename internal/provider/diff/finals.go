package diff

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// finals returns the final objects of changed and added folders, each list as one file, and lines about unknown former
// objects.
func finals(
	ctx context.Context, c *connection.Connection, owner delivery.Owner, rendering *pipeline.Rendering, folders []changes.FolderChange,
) (shown []changes.FolderChange, unknown string, err error) {
	result := rendering.Computation
	former, added := map[int]render.FormerFolder{}, map[int]bool{}
	for i := range folders {
		one := &folders[i]
		at, ok := result.AssignmentIndex(one.Host, one.DeploymentTarget)
		if !ok || one.After == nil || !render.IsRendered(result.Schedule.Assignments[at]) {
			continue
		}
		former[at], added[at] = render.FormerFolder{Files: one.Before}, one.Added
	}
	if len(former) == 0 {
		return nil, "", nil
	}
	records, err := c.Delivery.ReadOwner(ctx, owner, nil)
	if err != nil {
		return nil, "", err
	}
	for at, of := range former {
		assignment := result.Schedule.Assignments[at]
		key := folder.Key{Host: assignment.Host.Name, DeploymentTarget: assignment.Target.Name}
		if record, has := records.Records[key]; has && record.Tree == records.Trees[key.Host][key.DeploymentTarget] {
			of.Manifests = record.Manifests
			former[at] = of
		}
	}
	var mutex sync.Mutex
	var lines []string
	result.FinalChanges(ctx, rendering.Destination, former, func(i int, change *pipeline.FinalChange) {
		assignment := result.Schedule.Assignments[i]
		before, unreadable := file(change.Before, nil)
		after, otherErr := file(change.After, change.Before)
		key := folder.Key{Host: assignment.Host.Name, DeploymentTarget: assignment.Target.Name}
		one := changes.FolderChange{Key: key, Before: before, After: after}
		mutex.Lock()
		defer mutex.Unlock()
		switch err = errors.Join(err, unreadable, otherErr); {
		case added[i]:
			one.Before = nil
		case change.Unknown != "":
			lines = append(lines, fmt.Sprintf("# %s: the former final objects are not known: %s.\n", assignment.Key(), change.Unknown))
			return
		}
		shown = append(shown, one)
	})
	slices.Sort(lines)
	return shown, strings.Join(lines, ""), err
}

// file writes objects as they may be shown beside former ones.
func file(all, former []objects.FinalObject) ([]folder.File, error) {
	type occasional struct {
		objects.Identity
		on objects.Occasion
	}
	old := map[occasional]*objects.FinalObject{}
	for i := range former {
		old[occasional{former[i].Identity(), former[i].On}] = &former[i]
	}
	var text strings.Builder
	for i := range all {
		one, before := &all[i], old[occasional{all[i].Identity(), all[i].On}]
		if before == nil {
			before = one
		}
		shown, err := one.ShownAfter(before)
		if err != nil {
			return nil, err
		}
		text.WriteString("---\n")
		if one.On != "" {
			text.WriteString("# on " + string(one.On) + "\n")
		}
		text.WriteString(shown)
	}
	return []folder.File{{Name: folder.ObjectsFile, Content: []byte(text.String())}}, nil
}
