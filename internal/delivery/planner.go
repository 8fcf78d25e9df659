package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
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
func (p *Planner) Plan(ctx context.Context, desired Desired) (*Plan, error) {
	if err := p.registry.checkDuplicate(ctx, desired.Owner, false); err != nil {
		return nil, err
	}
	former, err := p.identify(ctx, desired.State, desired.Owner)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Identity: former.identity, Before: folder.Trees{}, Found: folder.Trees{}}
	if plan.Problems, err = p.checkBranches(ctx, desired, plan.Identity); err != nil || plan.HasError() {
		return plan, err
	}
	after := desired.Renames.WithFormerNames(desired.After)
	if err := p.readPresent(ctx, desired, plan, after); err != nil {
		return nil, err
	}
	plan.Remove = plan.Before.Without(after)
	goes := mergeTrees(plan.Remove, plan.Found.Without(after))
	listed, disputed, err := p.findListed(ctx, desired, plan.Identity, goes)
	if err != nil {
		return nil, err
	}
	plan.Before, plan.Found = dropConflicts(plan.Before, listed), dropConflicts(plan.Found, listed)
	plan.Remove = dropConflicts(plan.Remove, listed)
	left := plan.leaveFormerLocation(desired, former)
	moves, err := p.checkMoves(ctx, desired, *plan)
	if err != nil {
		return nil, err
	}
	plan.Problems = slices.Concat(plan.Problems, disputed, left, moves, checkProtection(desired, after, *plan))
	if plan.Identity != Same || len(desired.After.Without(plan.Before)) > 0 {
		conflicts, err := p.checkConflicts(ctx, desired, *plan)
		plan.Problems = append(plan.Problems, conflicts...)
		return plan, err
	}
	return plan, nil
}

func (p *Planner) checkBranches(ctx context.Context, desired Desired, identity Identity) (problems []PlanProblem, err error) {
	isNew := identity == Created || identity == Moved
	if desired.Settings.PullRequest {
		tip := ""
		if isNew {
			if tip, err = p.reader.tip(ctx, desired.Owner.Location); err != nil {
				return nil, err
			}
		}
		problems = checkBaseBranch(desired, isNew, tip)
	}
	if hasError(problems) {
		return problems, nil
	}
	if isNew || desired.State.Drift.Cause == BranchGone {
		conflict, err := p.reader.FindBranchConflict(ctx, desired.Owner.Location)
		if err != nil {
			return nil, err
		}
		if conflict != "" {
			return append(problems, newError("gitops_repo", "Branch cannot be created", "%s", conflict)), nil
		}
	}
	conflict, err := p.reader.findHeadConflict(ctx, desired)
	if conflict != "" {
		problems = append(problems, newError("delivery", "Branch cannot be created", "%s", conflict))
	}
	return problems, err
}

// readPresent adds the owner's folders to a plan without errors. after has the wanted ones under the hosts' names of then.
func (p *Planner) readPresent(ctx context.Context, desired Desired, plan *Plan, after folder.Trees) error {
	untracked := []Owner{desired.Owner}
	if plan.Identity == Same || plan.Identity == Renamed {
		holders, err := p.checkHolders(ctx, desired, plan.Identity)
		if err != nil {
			return err
		}
		owner := desired.presentOwner(plan.Identity)
		before, unwanted, err := p.readKnown(ctx, desired, owner, after)
		if err != nil {
			return err
		}
		plan.Before, plan.Problems = before, slices.Concat(plan.Problems, holders, unwanted)
		untracked = nil
		if plan.Identity == Renamed {
			untracked = []Owner{owner, desired.Owner}
		}
	}
	for _, owner := range untracked {
		found, problems, err := p.readUntracked(ctx, owner, plan.Before, after, desired.Adopt)
		if err != nil {
			return err
		}
		plan.Found, plan.Problems = mergeTrees(plan.Found, found), append(plan.Problems, problems...)
	}
	if isNew := plan.Identity == Created || plan.Identity == Moved; !isNew || plan.Found.Count() == 0 || plan.HasError() {
		return nil
	}
	warnings, err := p.warnOfFound(ctx, desired, plan.Found, after)
	plan.Problems = append(plan.Problems, warnings...)
	return err
}

func (p *Planner) checkHolders(ctx context.Context, desired Desired, identity Identity) ([]PlanProblem, error) {
	problems := checkHolder(desired.Owner, desired.Adopt, desired.State.Drift.OtherHolder)
	if identity == Same {
		return problems, nil
	}
	view, err := p.reader.view(ctx, desired.Owner)
	if err != nil {
		return nil, err
	}
	writer, err := view.FindOtherHolder(ctx, desired.State.Holder, desired.State.Records)
	if writer != nil {
		problems = append(problems, checkHolder(desired.Owner, desired.Adopt, writer.String())...)
	}
	return problems, err
}

func (p *Planner) readKnown(ctx context.Context, desired Desired, owner Owner, after folder.Trees) (folder.Trees, []PlanProblem, error) {
	before, found := desired.State.Current(), desired.State.Drift.Found
	if len(found) == 0 {
		return before, nil, nil
	}
	view, err := p.reader.view(ctx, owner)
	if err != nil {
		return nil, nil, err
	}
	own, problems, err := pickOwn(ctx, view, desired.Owner.Name, found, after, desired.State.seenCommit(), desired.Adopt)
	return mergeTrees(before, own), problems, err
}

// pickOwn returns the folders that no other owner's record lists, and all unwanted ones: for those, see findListed. A wanted
// folder of another owner is a conflict.
func pickOwn(
	ctx context.Context, view *gitops.OwnerView, name string, found, after folder.Trees, commit string, adopt bool,
) (folder.Trees, []PlanProblem, error) {
	listed, err := view.FindListedByOthers(ctx, found, commit)
	if err != nil {
		return nil, nil, err
	}
	own := dropConflicts(found, listed)
	problems, err := refuseUnwanted(ctx, view, name, own.Without(after), adopt)
	return mergeTrees(own, found.Without(after)), problems, err
}

func (p *Planner) warnOfFound(ctx context.Context, desired Desired, found, after folder.Trees) ([]PlanProblem, error) {
	writer, isHeld := "", false
	if !desired.Replaces && !p.registry.isReplaced(desired.Owner) {
		view, err := p.reader.view(ctx, desired.Owner)
		if err != nil {
			return nil, err
		}
		by, err := view.FindOtherHolder(ctx, "", nil)
		if err != nil {
			return nil, err
		}
		if isHeld = by != nil; isHeld {
			writer = fmt.Sprintf(" It was written last by %s. If another state still has this assignment, take it out of one of the two: the "+
				"next plan of the other one fails.", by)
		}
	}
	same := 0
	var other []string
	for _, key := range found.Keys() {
		wanted, ok := after[key.Host][key.DeploymentTarget]
		switch {
		case ok && wanted == found[key.Host][key.DeploymentTarget]:
			same++
		case ok:
			other = append(other, "~ "+key.String())
		default:
			other = append(other, "- "+key.String())
		}
	}
	there := fmt.Sprintf("Branch %q has %s of an assignment called %q that this state does not know.%s",
		desired.Owner.Location.Branch, wording.Count(found.Count(), "folder", "folders"), desired.Owner.Name, writer)
	switch {
	case len(other) > 0:
		return []PlanProblem{newWarning("gitops_repo", "Folders are there already",
			"%s %d of them %s as this fleet wants, the apply changes (~) or removes (-) the others:\n%s",
			there, same, wording.OneOrMany(same, "is", "are"), wording.Lines(other, mostListed))}, nil
	case isHeld:
		return []PlanProblem{newWarning("gitops_repo", "Folders are there already", "%s All of them are as this fleet wants.", there)}, nil
	}
	return nil, nil
}

// readUntracked returns the owner's folders at the location that are missing from before.
func (p *Planner) readUntracked(
	ctx context.Context, owner Owner, before, after folder.Trees, adopt bool,
) (found folder.Trees, problems []PlanProblem, err error) {
	view, err := p.reader.view(ctx, owner)
	if err != nil {
		return nil, nil, err
	}
	if view.IsMissing() {
		problems = append(problems, newWarning("gitops_repo", "Repository does not exist yet",
			"There is no repository at this path. The apply creates a bare one, unless it exists by then."))
	}
	records, err := view.ReadRecords(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	own, unwanted, err := pickOwn(ctx, view, owner.Name, records.Trees.Without(before), after, "", adopt)
	return own, append(problems, unwanted...), err
}

// leaveFormerLocation decides about the content of a former location, and returns warnings.
func (p *Plan) leaveFormerLocation(desired Desired, former formerLocation) (warnings []PlanProblem) {
	warn := func(attribute, summary, format string, arguments ...any) {
		warnings = append(warnings, newWarning(attribute, summary, format, arguments...))
	}
	if former.isSeparate {
		was, is := desired.State.Owner.Location, desired.Owner.Location
		warn("gitops_repo", "Former location stays",
			"Branch %q at %s already has the commit that this assignment wrote to branch %q at %s. The assignment continues there, "+
				"and nothing is removed at the former location.", is.Branch, is.URL, was.Branch, was.URL)
	}
	if former.identity != Moved {
		return warnings
	}
	at := desired.State.Owner.Location
	switch {
	case errors.Is(former.unreadable, git.ErrNoBranch):
		p.formerGone = true
		warn("gitops_repo", "Former branch is gone", "Branch %q at %s does not exist, so nothing is removed there.", at.Branch, at.URL)
	case former.unreadable != nil && isGone(former.unreadable):
		p.formerGone = true
		warn("gitops_repo", "Former repository is gone", "Nothing is removed at %s: %s.", at.URL, former.unreadable)
	case former.unreadable != nil:
		warn("gitops_repo", "Former repository cannot be read",
			"The folders on branch %q at %s stay there: %s. Remove them by hand if they are not needed.", at.Branch, at.URL, former.unreadable)
	case desired.Leave:
		p.letGo = true
		warn("on_destroy", "Folders stay",
			"The folders on branch %q at path %q of the former location stay there, and no assignment manages them.", at.Branch, at.Path)
	default:
		p.Cleared = desired.State.Current()
	}
	return warnings
}

// Identity is the relation of an owner to its state.
type Identity string

// Identities of an owner.
const (
	Created Identity = "created" // no state
	Same    Identity = "same"    // same location and name, perhaps another spelling of the URL
	Renamed Identity = "renamed" // records are handed over
	Moved   Identity = "moved"   // another location, whose content is then removed from the former one
)

// formerLocation compares an owner's location with its state.
type formerLocation struct {
	identity   Identity
	unreadable error // error of reading the former location
	isSeparate bool  // same by history, but with another tip or unreadable
}

// identify compares the owner's location with the state. Two locations are the same, or mirrors, if they have the same tip,
// or if the new one has the commit of the state in its history: others may push to one of them.
func (p *Planner) identify(ctx context.Context, known *OwnerState, owner Owner) (formerLocation, error) {
	if known == nil {
		return formerLocation{identity: Created}, nil
	}
	was, is := known.Owner.Location, owner.Location
	here := Same
	if known.Owner.Name != owner.Name {
		here = Renamed
	}
	if was == is {
		return formerLocation{identity: here}, nil
	}
	then, gone := p.reader.tip(ctx, was)
	if ctx.Err() != nil {
		return formerLocation{}, gone
	}
	if gone == nil && then == "" {
		gone = fmt.Errorf("branch %q %w", was.Branch, git.ErrNoBranch)
	}
	if was.Path != is.Path {
		return formerLocation{identity: Moved, unreadable: gone}, nil
	}
	now, err := p.reader.tip(ctx, is)
	if err != nil {
		return formerLocation{}, err
	}
	if now != "" && gone == nil && now == then {
		return formerLocation{identity: here}, nil
	}
	if contains, err := p.reader.hasCommit(ctx, owner, now, known.Tip); contains || err != nil {
		return formerLocation{identity: here, isSeparate: !errors.Is(gone, git.ErrNoBranch)}, err
	}
	return formerLocation{identity: Moved, unreadable: gone}, nil // the plan warns, and clears nothing there
}

// FindRelocated returns the state at another branch or URL if that was renamed: nothing is at the former location, and the
// new one has records of this state, or is the base of the open pull request. Otherwise it returns nil.
func (r *Refresher) FindRelocated(ctx context.Context, known *OwnerState, at folder.Location) *OwnerState {
	was := known.Owner.Location
	if was == at || was.Path != at.Path || known.Holder == "" || !known.Proposed && known.Current().Count() > 0 {
		return nil
	}
	if tip, err := r.reader.tip(ctx, was); tip != "" || err != nil && !isGone(err) {
		return nil
	}
	relocated := *known
	relocated.Owner.Location, relocated.Drift = at, Drift{}
	view, err := r.reader.view(ctx, relocated.Owner)
	if err != nil || view.Tip() == "" {
		return nil
	}
	records, err := view.ReadRecords(ctx, "")
	isSame := records.Holder == known.Holder || was.URL == at.URL && at.Branch == known.Drift.Into
	if err != nil || !isSame {
		return nil
	}
	if len(known.Replaced) > 0 { // the branch still has the folders to be removed, and other records
		relocated.Trees, relocated.Records = known.Trees.Clone(), nil
		for key, tree := range known.Replaced {
			if !known.Trees.Has(key.Host, key.DeploymentTarget) {
				folder.Put(relocated.Trees, key, tree)
			}
		}
	}
	if err := relocated.compare(ctx, view); err != nil {
		return nil
	}
	if relocated.Tip, relocated.Proposed = view.Tip(), false; len(relocated.Drift.Trees) > 0 && known.Settings.PullRequest {
		relocated.Drift.Cause = RequestOpen
	}
	return &relocated
}

func isGone(err error) bool { return errors.Is(err, git.ErrNotFound) }

// Identify compares an owner's location and name with the state.
func (p *Planner) Identify(ctx context.Context, known *OwnerState, owner Owner) (Identity, error) {
	former, err := p.identify(ctx, known, owner)
	return former.identity, err
}
