package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
)

// wanted is what the repository is to hold: what the fleet comes to, or what the commit has that the
// assignment is rolled back to. It is nil while that is not known yet, or something is wrong. before is
// what is deployed; tell puts what is wanted into an edit.
func (r *assignmentResource) wanted(
	ctx context.Context, model *assignmentModel, place place, known, creates bool, before gitops.Deployed, diagnostics *diag.Diagnostics,
) (wanted gitops.Deployed, tell func(*gitops.Edit)) {
	if !model.RollbackTo.IsNull() {
		hosts := r.rolledBack(ctx, model, place, known, creates, diagnostics)
		if hosts == nil {
			return nil, nil
		}
		return gitops.Edit{Hosts: hosts}.Wanted(), func(edit *gitops.Edit) { edit.Hosts = hosts }
	}
	outcome := r.outcome(ctx, model, diagnostics)
	if outcome == nil {
		return nil, nil
	}
	addWarnings(diagnostics, outcome.Warnings())
	repo := place.repo(known)
	rendering := renderFleet(outcome, model.Name.ValueString(), repo, before, diagnostics)
	return gitops.Deployed(rendering.Wanted()), func(e *gitops.Edit) { e.Hosts = edit(rendering) }
}

// rolledBack is what the commit of rollback_to has of the assignment. The fleet is not looked at: going
// back must be possible while it is wrong.
func (r *assignmentResource) rolledBack(
	ctx context.Context, model *assignmentModel, place place, known, creates bool, diagnostics *diag.Diagnostics,
) (hosts map[string]gitops.Host) {
	commit := model.RollbackTo.ValueString()
	checkRollback(model.RollbackTo, diagnostics)
	if model.RollbackTo.IsUnknown() || !known || diagnostics.HasError() || r.connection == nil || !r.connection.complete {
		return nil
	}
	diagnostics.AddAttributeWarning(path.Root("rollback_to"), "Assignment is rolled back",
		fmt.Sprintf("The folders of %q are what commit %s has. Changes of the fleet wait until rollback_to is removed.", model.Name.ValueString(), commit))
	err := r.connection.inspect(ctx, r.connection.remote(place), model.owner(place), func(view *gitops.View) (err error) {
		hosts, err = view.AsOf(ctx, commit)
		return err
	})
	if err != nil {
		addRepositoryError(ctx, diagnostics, err, creates)
	}
	return hosts
}

// lookAhead finds at plan what would make the apply fail: a repository that cannot be reached, or a
// folder that is somebody else's. Without a state, what the records list is what would be removed.
func (r *assignmentResource) lookAhead(
	ctx context.Context, plan *assignmentModel, place place, wanted, before gitops.Deployed, creates bool, diagnostics *diag.Diagnostics,
) {
	if r.connection == nil || !r.connection.complete {
		return
	}
	var conflicts []gitops.Conflict
	err := r.connection.inspect(ctx, r.connection.remote(place), plan.owner(place), func(view *gitops.View) (err error) {
		if view.Missing {
			diagnostics.AddAttributeWarning(path.Root("gitops_repo"), "Repository does not exist yet",
				"There is no repository at this path: apply creates a bare one, unless something else does before.")
		}
		if creates {
			owned, err := view.Owned(ctx)
			if err != nil {
				return err
			}
			decodeProtection(plan.Protection, diagnostics).check(owned, wanted, plan, diagnostics)
		}
		conflicts, err = view.Conflicts(ctx, wanted, before, "")
		return err
	})
	if err != nil {
		addRepositoryError(ctx, diagnostics, err, creates)
	}
	plan.judge(conflicts, diagnostics)
}

// judge reports folders that are not the assignment's: what it takes over in one warning, of which
// Terraform would show the first of several alone.
func (m *assignmentModel) judge(conflicts []gitops.Conflict, diagnostics *diag.Diagnostics) {
	var refused, adopted []string
	for _, conflict := range conflicts {
		switch text := sentence(conflict.String()); {
		case !conflict.Adoptable():
			refused = append(refused, text)
		case !m.Adopt.ValueBool():
			refused = append(refused, text+" To take it over, with what is in it, set adopt = true.")
		default:
			adopted = append(adopted, text)
		}
	}
	addLimited(diagnostics, refused, func(text string) {
		diagnostics.AddAttributeError(path.Root("gitops_repo"), "Folder belongs to somebody else", text)
	})
	if len(adopted) > 0 {
		diagnostics.AddAttributeWarning(path.Root("adopt"), "Folders are taken over", describeLines(adopted, maxDiagnostics))
	}
}

// hasMore says whether wanted has a folder that deployed has not.
func hasMore(wanted, deployed gitops.Deployed) bool {
	for _, host := range slices.Sorted(maps.Keys(wanted)) {
		for target := range wanted[host] {
			if _, ok := deployed[host][target]; !ok {
				return true
			}
		}
	}
	return false
}

// checkDelivery finds at plan what no pull request can be opened with; nobody is asked.
func (r *assignmentResource) checkDelivery(model *assignmentModel, place place, known bool, diagnostics *diag.Diagnostics) {
	how := decodeDelivery(model.Delivery, diagnostics)
	if !how.pullRequest || !known || !fleet.IsKnown(plain(model.Delivery)) || r.connection == nil || diagnostics.HasError() {
		return
	}
	_, err := r.connection.host(how, place)
	if err == nil && !model.Name.IsUnknown() {
		err = git.CheckBranch(how.selectorOf(model.owner(place), place.Branch).Head)
	}
	if err != nil {
		diagnostics.AddAttributeError(path.Root("delivery"), "Invalid delivery", sentence(err.Error()))
	}
}
