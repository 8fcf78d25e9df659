// Package diff implements flotilla_diff: the changes of an apply as text.
package diff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/once"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// New returns the data source.
func New() datasource.DataSource {
	return frame.DataSource[diffModel]{
		Name: "diff", Read: read,
		Description: "Shows the changes that an apply of a `flotilla_assignment` would make to files on the branch, as text, values " +
			"included: for readers who may see them. Values of sensitive variables are shown, too: wrap the text in `sensitive()` where it " +
			"has some. The assignment's `changes` says the same in a few lines without any value. The text is in the state: narrow it down " +
			"where the fleet is large. It ignores `delivery`: the content of an open pull request is part of the difference.",
		Attributes: fleetvalue.Narrowed(map[string]schema.Attribute{
			"name":        schemas.RequiredText("Name of the assignment."),
			"fleet":       fleetvalue.RenderedAttribute(),
			"gitops_repo": schemas.RequiredDynamic(schemas.Location("The location, as the assignment has it.")),
			"limit": schemas.OptionalWhole(
				fmt.Sprintf("How many bytes of text at most; the last line says how many files are left out. Default %d, at most %d.",
					defaultDiff, maxDiff),
			),
			"timeouts": timeouts.ReadAttribute(),
			"diff": schemas.ComputedText("Unified diff, as `git diff` writes it and `git apply` takes it; empty where nothing changes. Of a " +
				"file with characters that steer a terminal or are invisible, it says only that it differs, as of a binary one."),
			"objects": schemas.ComputedText("Unified diff of the final objects of the folders that change and are in the fleet, if `render` " +
				"is set: the objects of each as a file `objects.yaml`, which is not on the branch. A Secret in any form has `(hidden)` in place " +
				"of values and annotations, or `(hidden, changed)`. It has at most as many bytes as `diff`."),
		}),
	}.New()
}

// Lengths of the text in bytes.
const (
	defaultDiff = 256 << 10
	maxDiff     = 16 << 20
)

type diffModel struct {
	fleetvalue.Narrowing
	Name       types.String  `tfsdk:"name"`
	Fleet      types.Object  `tfsdk:"fleet"`
	GitopsRepo types.Dynamic `tfsdk:"gitops_repo"`
	Limit      types.Int64   `tfsdk:"limit"`
	Timeouts   types.Dynamic `tfsdk:"timeouts"`
	Diff       types.String  `tfsdk:"diff"`
	Objects    types.String  `tfsdk:"objects"`
}

func read(ctx context.Context, c *connection.Connection, m *diffModel, diagnostics *diag.Diagnostics) {
	repository.CheckOwnerName(m.Name, diagnostics)
	value := fleetvalue.DecodeObject(m.Fleet, diagnostics)
	owner := delivery.Owner{Name: m.Name.ValueString(), Environment: value.Environment}
	owner.Location, _ = repository.DecodeLocation(m.GitopsRepo, diagnostics)
	limit := tfvalue.WholeWithin("limit", m.Limit, defaultDiff, 1, maxDiff, diagnostics)
	result := c.Compute(value, diagnostics)
	if result == nil || diagnostics.HasError() {
		return
	}
	if m.Check(result.Schedule, diagnostics); diagnostics.HasError() {
		return
	}
	folders, rendering := folders(ctx, c, owner, result, m.Narrowing, diagnostics)
	if diagnostics.HasError() {
		return
	}
	m.Diff = types.StringValue(changes.Unified(folders, owner.Location.Path, limit))
	finals, unknown, err := finals(ctx, c, owner, rendering, folders)
	if err != nil {
		repository.AddError(ctx, diagnostics, err, false)
		return
	}
	m.Objects = types.StringValue(changes.Unified(finals, owner.Location.Path, limit) + unknown)
}

// folders returns the folders that differ from the branch.
func folders(
	ctx context.Context,
	c *connection.Connection,
	owner delivery.Owner,
	result *pipeline.Computation,
	narrowed fleetvalue.Narrowing,
	diagnostics *diag.Diagnostics,
) ([]changes.FolderChange, *pipeline.Rendering) {
	written, err := c.Delivery.ReadOwner(ctx, owner, nil)
	if err != nil {
		repository.AddError(ctx, diagnostics, err, false)
		return nil, nil
	}
	intent := delivery.Desired{Owner: owner, Adopt: true, Renames: result.Fleet.Renames()}
	rendering := result.Render(ctx,
		pipeline.Destination{Repo: repository.ForTemplates(owner.Location, true), Owner: cmp.Or(written.Label(), owner.Name)}, nil)
	fleetvalue.AddErrors(diagnostics, rendering.Findings)
	intent.After = rendering.Wanted()
	outlook, err := c.Delivery.Plan(ctx, intent)
	if err != nil {
		repository.AddError(ctx, diagnostics, err, false)
	}
	if diagnostics.HasError() {
		return nil, nil
	}

	if len(outlook.Found) == 0 {
		repository.WarnOfNames(ctx, c.Delivery, owner.Location, repository.Names{Assignment: owner.Name}, diagnostics)
	}
	outlook.Found = intent.Renames.RenameTrees(outlook.Found)
	var folders []changes.FolderChange
	wanted := map[folder.Key][]git.File{}
	for i, assignment := range result.Schedule.Assignments {
		key := folder.Key{Host: assignment.Host.Name, DeploymentTarget: assignment.Target.Name}
		tree, was := outlook.Found[key.Host][key.DeploymentTarget]
		if !narrowed.Includes(assignment) || was && tree == rendering.Trees[i] {
			continue
		}
		folder := changes.FolderChange{Key: key, Added: !was, WaitsFor: rendering.WaitsFor(i)}
		if folder.WaitsFor == "" {
			files, err := rendering.Files(ctx, i)
			if err != nil {
				once.Error(diagnostics, fleetvalue.Path, "Invalid rendering", tfvalue.Sentence(err.Error()))
				return nil, nil
			}
			folder.After = files
			wanted[key] = files
		}
		folders = append(folders, folder)
	}
	for _, key := range outlook.Found.Keys() {
		if !intent.After.Has(key.Host, key.DeploymentTarget) && narrowed.IncludesGone(key, result.Fleet) {
			folders = append(folders, changes.FolderChange{Key: key, Removed: true})
			wanted[key] = nil
		}
	}
	there := folder.Trees{}
	for key := range wanted {
		if tree, ok := outlook.Found[key.Host][key.DeploymentTarget]; ok {
			folder.Put(there, key, tree)
		}
	}
	present, err := c.Delivery.ReadFiles(ctx, owner, there, wanted)
	if err != nil {
		repository.AddError(ctx, diagnostics, err, false)
		return nil, nil
	}
	for i := range folders {
		folders[i].Before = present[folders[i].Key]
	}
	return folders, rendering
}

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
