package assignment

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/privatestate"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// planDestroy checks a destroy against the protection in the state.
func planDestroy(ctx context.Context, c *frame.Call[assignmentModel]) {
	state, private := c.Model, loadAssignment(ctx, c.Private, c.Diagnostics)
	takeCreation(ctx, c.Private, c.Diagnostics) // of a replacement that came to nothing
	known, ok := decodeState(c, state, private)
	if !ok {
		return
	}
	if c.Connection.Delivery.IsWriting() {
		c.Diagnostics.Append(c.Private.SetKey(ctx, deposedKey, []byte("true"))...)
		return
	}
	if known.Trees == nil && c.Connection.CanAsk() {
		if err := c.Connection.Delivery.Refresh(ctx, known); err != nil {
			repository.AddError(ctx, c.Diagnostics, err, false)
			return
		}
	}
	var before *fleet.Fleet
	if private != nil {
		before = private.fleet()
	}
	clusters := func(hosts []string) []string { return pipeline.ClustersOf(before, hosts) }
	outlook := c.Connection.Delivery.PlanDestroy(ctx, known, decodeProtection(state.Protection, c.Diagnostics), state.keeps(), clusters)
	for i := range outlook.Problems {
		if problem := &outlook.Problems[i]; !problem.Warning {
			problem.Detail += "\n\nAn object that an interrupted replacement has left deposed is in no configuration: \"terraform state rm\" " +
				"removes it from the state, and \"terraform import\" imports the assignment again."
		}
	}
	repository.AddProblems(c.Diagnostics, outlook.Problems)
	repository.AddProblems(c.Diagnostics, c.Connection.Delivery.RegisterDestroy(ctx, known, outlook))
	if known.Settings.PullRequest && len(known.Trees) > 0 && !state.keeps() && !c.Diagnostics.HasError() {
		tfvalue.AddWarningf(c.Diagnostics, path.Root("delivery"), "Folders stay until the request is merged",
			"A destroy of the assignment %q proposes the removal of its folders in a pull request, and removes the assignment from the state. "+
				"Until the request is merged, the folders stay on branch %q, and clusters run their content. "+
				"If the request is closed, they stay for good.", known.Owner.Name, known.Owner.Location.Branch)
	}
}

func remove(ctx context.Context, c *frame.Call[assignmentModel]) {
	state := c.Model
	known, ok := decodeState(c, state, loadAssignment(ctx, c.Private, c.Diagnostics))
	if c.Diagnostics.HasError() || !ok {
		return
	}
	protection, leave := decodeProtection(state.Protection, c.Diagnostics), state.keeps()
	created := takeCreation(ctx, c.Private, c.Diagnostics)
	if created != nil {
		if c.Connection.Delivery.IsSameLocation(ctx, created.Location, known.Owner.Location) {
			c.Connection.Delivery.MarkReplaced(known.Owner)
			return // the creating half of the replacement follows, and takes over the folders as they are
		}
		protection, leave = created.Protection, created.Leave
	}
	if known.Trees == nil {
		if err := c.Connection.Delivery.Refresh(ctx, known); err != nil {
			repository.AddError(ctx, c.Diagnostics, err, false)
			return
		}
	}
	deposed, diags := c.Private.GetKey(ctx, deposedKey)
	c.Diagnostics.Append(diags...)
	c.Connection.Delivery.MarkWriting()
	err := c.Connection.Delivery.Destroy(ctx, known, protection, leave, state.CommitMessage.ValueString())
	switch {
	case errors.As(err, new(*delivery.HeldError)) && deposed != nil:
		// A deposed object could never be destroyed: it is in no configuration, so its protection cannot be changed.
		c.Diagnostics.AddAttributeWarning(path.Root("protection"), "Folders stay", fmt.Sprintf(
			"The assignment %q was replaced, and its folders at the former location, branch %q at path %q, stay there: %s",
			known.Owner.Name, known.Owner.Location.Branch, known.Owner.Location.Path, tfvalue.Sentence(err.Error())))
	case err != nil:
		repository.AddError(ctx, c.Diagnostics, err, false)
	}
}

// creation is a note in the private state of a plan that creates. Terraform destroys a replaced object with the private
// state of the plan for its successor, so a destroy with the note is one half of a replacement.
type creation struct {
	Location   folder.Location    `json:"location"`
	Protection rollout.Protection `json:"protection"`
	Leave      bool               `json:"leave,omitempty"`
}

const (
	creationKey = "creates"
	// deposedKey marks the planned destroy of an object that was replaced with create_before_destroy: Terraform plans no
	// other destroy in a process that has written.
	deposedKey = "deposed"
)

// takeCreation removes and returns the note; nil outside of a replacement. An object keeps its private state after a
// refused destroy, and its next destroy is no replacement.
func takeCreation(ctx context.Context, private privatestate.State, diagnostics *diag.Diagnostics) *creation {
	c := &creation{}
	if !privatestate.Take(ctx, creationKey, c, private, diagnostics) {
		return nil
	}
	return c
}

// ProtectionTable describes the attribute protection.
var ProtectionTable = &fleet.Table{
	Name: "protection",
	Meaning: "The attribute `protection` of `flotilla_assignment`: limits on removals, by an update, a move to another location, a " +
		"replacement, a destroy or a lost state. With neither `max_removed` nor `max_removed_percent`, up to half of all assignments may " +
		"be removed, and always ten; and up to half of the workloads of a host, and of the hosts of a workload, that has five or more.",
	Attributes: []fleet.Attribute{
		{Name: "max_removed", Type: fleet.WholeType, Most: math.MaxInt32, Meaning: "The number of assignments that may be removed."},
		{Name: "max_removed_percent", Type: fleet.WholeType, Most: 100, Meaning: "The share that may be removed: of all " +
			"assignments, of the workloads of each host in the fleet, and of the hosts of each workload in the fleet. Unless it " +
			"is 0, one of several may always be removed. Below 100, a host or a workload in the fleet does not lose all."},
		{Name: "allow_empty", Type: fleet.BoolType, Default: false, Meaning: "Whether a fleet may remove all assignments."},
		{Name: "emptied_hosts", Type: fleet.TextsType, EmptyElements: true, Meaning: "Hosts in the fleet that may lose all their " +
			"assignments. Without limits, it matters for hosts with five or more assignments."},
	},
}

func decodeProtection(value types.Dynamic, diagnostics *diag.Diagnostics) (limits rollout.Protection) {
	tfvalue.ReadStrictly("protection", ProtectionTable, value, diagnostics, func(o *fleet.ObjectReader) {
		limits = rollout.Protection{
			MaxRemoved:        limit(o, "max_removed"),
			MaxRemovedPercent: limit(o, "max_removed_percent"),
			AllowEmpty:        o.Bool("allow_empty"),
			EmptiedHosts:      o.Texts("emptied_hosts"),
		}
	})
	return limits
}

func limit(o *fleet.ObjectReader, name string) *int64 {
	if !o.Known(name) {
		return nil
	}
	number := int64(o.Int(name))
	return &number
}
