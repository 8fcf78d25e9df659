package delivery

import (
	"context"
	"errors"
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Planner computes plans. It writes nothing.
type Planner struct {
	reader   *Reader
	registry *Registry
}

// Plan computes the effect of applying a Desired. It does not read a location that matches the state if no folder is added
// or removed. Content found in the repository affects only Problems and Found. The rest follows from the state, and from
// whether locations are the same.
//
// Errors in the content of the repository are problems.
func (p *Planner) Plan(ctx context.Context, desired Desired) (*Plan, error) {
	if err := p.registry.checkDuplicate(ctx, desired.Owner, false); err != nil {
		return nil, err
	}
	former, err := p.identify(ctx, desired.State, desired.Owner)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Identity: former.identity, Before: folder.Trees{}, Found: folder.Trees{}}
	tip := func() (string, error) { return p.reader.tip(ctx, desired.Owner.Location) }
	if err := plan.checkBaseBranch(desired, tip); err != nil || plan.HasError() {
		return plan, err
	}
	if isNew := plan.Identity == Created || plan.Identity == Moved; isNew || desired.State.Drift.Cause == BranchGone {
		conflict, err := p.reader.FindBranchConflict(ctx, desired.Owner.Location)
		if err != nil {
			return nil, err
		}
		if conflict != "" {
			plan.addError("gitops_repo", "Branch cannot be created", "%s", conflict)
			return plan, nil
		}
	}
	if conflict, err := p.reader.FindHeadConflict(ctx, desired); err != nil {
		return nil, err
	} else if conflict != "" {
		plan.addError("delivery", "Branch cannot be created", "%s", conflict)
		return plan, nil
	}
	wanted := desired
	desired.After = desired.Renames.WithFormerNames(desired.After)
	switch plan.Identity {
	case Same:
		plan.checkHolder(desired, desired.State.Drift.OtherHolder)
		err = p.addKnown(ctx, desired, plan)
	case Renamed:
		if err = p.checkNewName(ctx, desired, plan); err != nil {
			return nil, err
		}
		if err = p.addKnown(ctx, desired, plan); err != nil {
			return nil, err
		}
		if err = p.addUntracked(ctx, desired, plan.ownerThere(desired), plan); err == nil {
			err = p.addUntracked(ctx, desired, desired.Owner, plan)
		}
	case Created, Moved:
		if err = p.addUntracked(ctx, desired, desired.Owner, plan); err == nil {
			err = p.warnOfFound(ctx, desired, plan)
		}
	}
	if err != nil {
		return nil, err
	}
	plan.Remove = plan.Before.Without(desired.After)
	if err := p.spareListed(ctx, desired, plan); err != nil {
		return nil, err
	}
	p.planFormerLocation(desired, former, plan)
	if err := p.checkMoves(ctx, desired, plan); err != nil {
		return nil, err
	}
	plan.checkProtection(desired)
	if plan.Identity != Same || len(wanted.After.Without(plan.Before)) > 0 {
		err = p.checkConflicts(ctx, wanted, plan)
	}
	return plan, err
}

func (p *Planner) checkNewName(ctx context.Context, desired Desired, plan *Plan) error {
	plan.checkHolder(desired, desired.State.Drift.OtherHolder)
	view, err := p.reader.view(ctx, desired.Owner)
	if err != nil {
		return err
	}
	if writer, found, err := view.FindOtherHolder(ctx, desired.State.Holder, desired.State.Records); err != nil {
		return err
	} else if found {
		plan.checkHolder(desired, writer.String())
	}
	return nil
}

// addKnown adds the folders in the state and in touched records.
func (p *Planner) addKnown(ctx context.Context, desired Desired, plan *Plan) error {
	plan.Before = desired.State.Current()
	found := desired.State.Drift.Found
	if len(found) == 0 {
		return nil
	}
	view, err := p.reader.view(ctx, plan.ownerThere(desired))
	if err != nil {
		return err
	}
	own, err := dropListed(ctx, view, found, desired.State.seenCommit())
	if err != nil {
		return err
	}
	plan.Before = mergeTrees(mergeTrees(plan.Before, own), found.Without(desired.After))
	return plan.refuseUnwanted(ctx, view, desired, desired.Owner, own.Without(desired.After))
}

func (p *Planner) warnOfFound(ctx context.Context, desired Desired, plan *Plan) error {
	if plan.Found.Count() == 0 || plan.HasError() {
		return nil
	}
	writer, held := "", false
	if !desired.Replaces && !p.registry.isReplaced(desired.Owner) {
		view, err := p.reader.view(ctx, desired.Owner)
		if err != nil {
			return err
		}
		by, found, err := view.FindOtherHolder(ctx, "", nil)
		if err != nil {
			return err
		}
		if held = found; held {
			writer = fmt.Sprintf(
				" It was written last by %s. If another state still has this assignment, take it out of one of the two: the next "+
					"plan of the other one fails.",
				by,
			)
		}
	}
	same := 0
	var other []string
	for _, key := range plan.Found.Keys() {
		wanted, ok := desired.After[key.Host][key.DeploymentTarget]
		switch {
		case ok && wanted == plan.Found[key.Host][key.DeploymentTarget]:
			same++
		case ok:
			other = append(other, "~ "+key.String())
		default:
			other = append(other, "- "+key.String())
		}
	}
	there := fmt.Sprintf("Branch %q has %s of an assignment called %q that this state does not know.%s",
		desired.Owner.Location.Branch, wording.Count(plan.Found.Count(), "folder", "folders"), desired.Owner.Name, writer)
	switch {
	case len(other) > 0:
		plan.addWarning("gitops_repo", "Folders are there already",
			"%s %d of them %s as this fleet wants, the apply changes (~) or removes (-) the others:\n%s", there, same,
			wording.OneOrMany(same, "is", "are"), wording.Lines(other, mostListed))
	case held:
		plan.addWarning("gitops_repo", "Folders are there already", "%s All of them are as this fleet wants.", there)
	}
	return nil
}

func (p *Planner) addUntracked(ctx context.Context, desired Desired, owner Owner, plan *Plan) error {
	view, err := p.reader.view(ctx, owner)
	if err != nil {
		return err
	}
	if view.IsMissing() {
		plan.addWarning("gitops_repo", "Repository does not exist yet",
			"There is no repository at this path. The apply creates a bare one, unless it exists by then.")
	}
	records, err := view.ReadRecords(ctx, "")
	if err != nil {
		return err
	}
	found := records.Trees.Without(plan.Before)
	own, err := dropListed(ctx, view, found, "")
	if err != nil {
		return err
	}
	// A wanted folder of another owner is a conflict. For unwanted ones, see spareListed.
	plan.Found = mergeTrees(plan.Found, mergeTrees(own, found.Without(desired.After)))
	return plan.refuseUnwanted(ctx, view, desired, owner, own.Without(desired.After))
}

func (p *Planner) planFormerLocation(desired Desired, former formerLocation, plan *Plan) {
	if former.isSeparate {
		was, is := desired.State.Owner.Location, desired.Owner.Location
		plan.addWarning("gitops_repo", "Former location stays",
			"Branch %q at %s already has the commit that this assignment wrote to branch %q at %s. The assignment continues there, "+
				"and nothing is removed at the former location.", is.Branch, is.URL, was.Branch, was.URL)
	}
	if plan.Identity != Moved {
		return
	}
	at := desired.State.Owner.Location
	switch {
	case errors.Is(former.unreadable, git.ErrNoBranch):
		plan.formerGone = true
		plan.addWarning("gitops_repo", "Former branch is gone", "Branch %q at %s does not exist, so nothing is removed there.",
			at.Branch, at.URL)
	case former.unreadable != nil && isGone(former.unreadable):
		plan.formerGone = true
		plan.addWarning("gitops_repo", "Former repository is gone", "Nothing is removed at %s: %s.", at.URL, former.unreadable)
	case former.unreadable != nil:
		plan.addWarning("gitops_repo", "Former repository cannot be read",
			"The folders on branch %q at %s stay there: %s. Remove them by hand if they are not needed.", at.Branch, at.URL,
			former.unreadable)
	case desired.Leave:
		plan.LetGo = true
		plan.addWarning("on_destroy", "Folders stay",
			"The folders on branch %q at path %q of the former location stay there, and no assignment manages them.", at.Branch,
			at.Path)
	default:
		plan.Cleared = desired.State.Current()
	}
}
