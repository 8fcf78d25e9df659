package delivery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// mostListed is how many folders a warning lists, one on a line.
const mostListed = 50

// Desired is what an owner wants.
type Desired struct {
	Owner    Owner
	State    *OwnerState // nil where there is no state
	Settings Settings
	// Renames are hosts that had other names before; the state may have these.
	Renames folder.Renames
	// Former are the names that hosts and the owner had before.
	Former folder.Former
	// After are the folders that it has then; a tree that is not known yet is "".
	After      folder.Trees
	Protection rollout.Protection
	// Unprotected is a plan in which Protection is not known yet: the apply checks it.
	Unprotected bool
	// Adopt takes over folders of other owners, folders without an owner, and folders of the same name that
	// the state does not know.
	Adopt bool
	// Replaces reports that this owner takes the place of another object of the same configuration.
	Replaces bool
	// Leave lets the folders at a former location stay, as a destroy with on_destroy = "keep" does.
	Leave bool
	// Clusters names the clusters of hosts; nil where they are not known.
	Clusters func(hosts []string) []string
	// Fleet tells protection which folders the fleet has given up, and which a rollout has added.
	Fleet rollout.Fleet
	// Causes returns lines that say why these folders would be removed; nil where that is not known.
	Causes func(removed []folder.Key) []string
}

// PlanProblem is a diagnostic: an error, or a warning.
type PlanProblem struct {
	Attribute string // of flotilla_assignment, "gitops_repo" for one
	Summary   string // a short sentence without a full stop
	Detail    string
	Warning   bool
}

// Plan is what applying what an owner wants would do.
type Plan struct {
	Identity Identity
	// Before is what the owner has at the location, by the state alone: nothing where it is new there. Hosts are under the
	// names that they had then.
	Before folder.Trees
	// Remove are those of Before that go, and do not only move to another name of their host.
	Remove folder.Trees
	// Found are the folders of the owner's name that a look has found there, and that the state does not know.
	// A look at another time may find others, so that nothing but problems may follow from them in a plan.
	Found folder.Trees
	// Cleared is what goes at the former location, with Identity Moved.
	Cleared folder.Trees
	// LetGo says that the folders at the former location stay there, without an owner.
	LetGo bool
	// formerGone says that the former location, with Identity Moved, does not exist any more.
	formerGone bool
	// Problems are in the order in which they are reported. With one that is not a warning, nothing can be
	// applied.
	Problems []PlanProblem
}

// HasError reports whether any problem is an error.
func (o *Plan) HasError() bool {
	return slices.ContainsFunc(o.Problems, func(p PlanProblem) bool { return !p.Warning })
}

func (o *Plan) add(attribute, summary, format string, arguments ...any) {
	o.Problems = append(o.Problems, PlanProblem{Attribute: attribute, Summary: summary, Detail: fmt.Sprintf(format, arguments...)})
}

func (o *Plan) warn(attribute, summary, format string, arguments ...any) {
	o.Problems = append(o.Problems, PlanProblem{Attribute: attribute, Summary: summary, Detail: fmt.Sprintf(format, arguments...), Warning: true})
}

// Plan finds out what applying what an owner wants would do. It writes nothing. A location that is as the state knows
// it, to which no folder is added, and from which none is removed, is not read. What a look finds elsewhere is among the problems and in Found;
// everything else follows from that, and from whether two locations are the same.
//
// The error is one of a look at the repository. What is wrong with it is among the problems.
func (c *Service) Plan(ctx context.Context, desired Desired) (*Plan, error) {
	if err := c.checkDuplicate(ctx, desired.Owner, false); err != nil {
		return nil, err
	}
	former, err := c.identify(ctx, desired.State, desired.Owner)
	if err != nil {
		return nil, err
	}
	o := &Plan{Identity: former.identity, Before: folder.Trees{}, Found: folder.Trees{}}
	if err := o.checkBase(desired, func() (string, error) { return c.tip(ctx, desired.Owner.Location) }); err != nil || o.HasError() {
		return o, err
	}
	if isNew := o.Identity == Created || o.Identity == Moved; isNew || desired.State.Drift.Cause == BranchGone {
		conflict, err := c.FindBranchConflict(ctx, desired.Owner.Location)
		if err != nil {
			return nil, err
		}
		if conflict != "" {
			o.add("gitops_repo", "Branch cannot be created", "%s", conflict)
			return o, nil
		}
	}
	wanted := desired
	desired.After = desired.Renames.WithFormerNames(desired.After)
	switch o.Identity {
	case Same:
		o.checkHolder(desired, desired.State.Drift.OtherHolder)
		err = c.knows(ctx, desired, o)
	case Renamed:
		if err = c.checkNewName(ctx, desired, o); err != nil {
			return nil, err
		}
		if err = c.knows(ctx, desired, o); err != nil {
			return nil, err
		}
		if err = c.arrive(ctx, desired, o.ownerThere(desired), o); err == nil {
			err = c.arrive(ctx, desired, desired.Owner, o)
		}
	case Created, Moved:
		if err = c.arrive(ctx, desired, desired.Owner, o); err == nil {
			err = c.warnOfFound(ctx, desired, o)
		}
	}
	if err != nil {
		return nil, err
	}
	o.Remove = o.Before.Without(desired.After)
	if err := c.yield(ctx, desired, o); err != nil {
		return nil, err
	}
	c.leave(desired, former, o)
	if err := c.moves(ctx, desired, o); err != nil {
		return nil, err
	}
	o.protect(desired)
	if o.Identity != Same || len(wanted.After.Without(o.Before)) > 0 {
		err = c.conflicts(ctx, wanted, o)
	}
	return o, err
}

// checkHolder reports a state that has taken the records over by a commit; "" for none.
func (o *Plan) checkHolder(desired Desired, by string) {
	switch {
	case by == "":
	case desired.Adopt:
		o.warn("adopt", "Assignment is taken over from another state", "Another Terraform state wrote the assignment %q on branch %q by %s. "+
			"This apply makes it this state's: the next plan of the other one fails. Then remove adopt.", desired.Owner.Name, desired.Owner.Location.Branch, by)
	default:
		o.add("name", "Another state has this assignment", "Another Terraform state has taken over the assignment %q on branch %q, by %s. "+
			"Each of the two would undo what the other one writes.\n\nIf the other one shall have it, take it out of this one, "+
			"with removed { from = <address>, lifecycle { destroy = false } } or \"terraform state rm\". If they are two assignments, give this one another name. "+
			"If this one shall have it, set adopt = true for one apply: the next plan of the other one fails then.",
			desired.Owner.Name, desired.Owner.Location.Branch, by)
	}
}

// checkNewName reports states that have the records under the former name of an owner, or under its new one.
func (c *Service) checkNewName(ctx context.Context, desired Desired, o *Plan) error {
	o.checkHolder(desired, desired.State.Drift.OtherHolder)
	view, err := c.view(ctx, desired.Owner)
	if err != nil {
		return err
	}
	if writer, found, err := view.FindOtherHolder(ctx, desired.State.Holder, desired.State.Records); err != nil {
		return err
	} else if found {
		o.checkHolder(desired, writer.String())
	}
	return nil
}

// knows takes what the state knows, with what the refresh has found in records that were touched.
func (c *Service) knows(ctx context.Context, desired Desired, o *Plan) error {
	o.Before = desired.State.Current()
	found := desired.State.Drift.Found
	if len(found) == 0 {
		return nil
	}
	view, err := c.view(ctx, o.ownerThere(desired))
	if err != nil {
		return err
	}
	own, err := withoutListed(ctx, view, found, desired.State.seenAt())
	if err != nil {
		return err
	}
	o.Before = union(union(o.Before, own), found.Without(desired.After))
	return o.refuseUnwanted(ctx, view, desired, desired.Owner, own.Without(desired.After))
}

// refuseUnwanted reports folders of the owner's name that no apply of this state has written, and that would go. What
// only a record lists that no allowed key has signed never goes.
func (o *Plan) refuseUnwanted(ctx context.Context, view *gitops.OwnerView, desired Desired, owner Owner, unwanted folder.Trees) error {
	if len(unwanted) == 0 {
		return nil
	}
	asked := map[string]string{}
	for host := range unwanted {
		asked[host] = ""
	}
	unsigned, err := view.FindUnsigned(ctx, asked)
	if err != nil {
		return err
	}
	if len(unsigned) > 0 {
		o.add("gitops_repo", "Record is not signed by a known key",
			"These folders would be removed, and only records that are not believed list them: %s. Nothing was written: %s.\n\n"+
				"Revert that commit, or take what it added out of the record. If the record is right, add the key that signed it to allowed_signers.",
			wording.List(folder.KeyTexts(unwanted.Keys()), wording.Named), wording.List(slices.Sorted(maps.Values(unsigned)), wording.Named))
		return nil
	}
	if desired.Adopt {
		return nil
	}
	o.add("name", "Another assignment has this name",
		"The repository has %s of an assignment called %q at this location that this state does not know and this fleet does not want: %s.\n\n"+
			"If another configuration writes there, give this assignment another name. If the folders are from an earlier apply of this "+
			"assignment, set adopt = true: they are then removed, within what protection allows.",
		wording.Count(unwanted.Count(), "folder", "folders"), owner.Name, wording.List(folder.KeyTexts(unwanted.Keys()), wording.Named))
	return nil
}

// warnOfFound says what is at a location that is new to the state, who wrote it, and what becomes of it.
func (c *Service) warnOfFound(ctx context.Context, desired Desired, o *Plan) error {
	if o.Found.Count() == 0 || o.HasError() {
		return nil
	}
	writer, held := "", false
	if !desired.Replaces && !c.isReplaced(desired.Owner) {
		view, err := c.view(ctx, desired.Owner)
		if err != nil {
			return err
		}
		by, found, err := view.FindOtherHolder(ctx, "", nil)
		if err != nil {
			return err
		}
		if held = found; held {
			writer = fmt.Sprintf(
				" It was written last by %s. If another state still has this assignment, take it out of one of the two: the next plan of the other one fails.",
				by,
			)
		}
	}
	same := 0
	var other []string
	for _, key := range o.Found.Keys() {
		wanted, ok := desired.After[key.Host][key.DeploymentTarget]
		switch {
		case ok && wanted == o.Found[key.Host][key.DeploymentTarget]:
			same++
		case ok:
			other = append(other, "~ "+key.String())
		default:
			other = append(other, "- "+key.String())
		}
	}
	there := fmt.Sprintf("Branch %q has %s of an assignment called %q that this state does not know.%s",
		desired.Owner.Location.Branch, wording.Count(o.Found.Count(), "folder", "folders"), desired.Owner.Name, writer)
	switch {
	case len(other) > 0:
		o.warn(
			"gitops_repo",
			"Folders are there already",
			"%s %d of them %s as this fleet wants, the apply changes (~) or removes (-) the others:\n%s",
			there,
			same,
			wording.OneOrMany(same, "is", "are"),
			wording.Lines(other, mostListed),
		)
	case held:
		o.warn("gitops_repo", "Folders are there already", "%s All of them are as this fleet wants.", there)
	}
	return nil
}

// arrive finds folders of the owner at the location that the state does not know.
func (c *Service) arrive(ctx context.Context, desired Desired, owner Owner, o *Plan) error {
	view, err := c.view(ctx, owner)
	if err != nil {
		return err
	}
	if view.Missing() {
		o.warn("gitops_repo", "Repository does not exist yet",
			"There is no repository at this path. The apply creates a bare one, unless it exists by then.")
	}
	records, err := view.ReadRecords(ctx, "")
	if err != nil {
		return err
	}
	found := records.Trees.Without(o.Before)
	own, err := withoutListed(ctx, view, found, "")
	if err != nil {
		return err
	}
	// A wanted folder of another owner is a conflict, and an unwanted one is nothing to remove: see yield.
	o.Found = union(o.Found, union(own, found.Without(desired.After)))
	return o.refuseUnwanted(ctx, view, desired, owner, own.Without(desired.After))
}

// withoutListed are the folders that the records of no other owner list at a commit; at the tip, with "".
func withoutListed(ctx context.Context, view *gitops.OwnerView, trees folder.Trees, commit string) (folder.Trees, error) {
	listed, err := view.FindListedByOthers(ctx, trees, commit)
	if err != nil || len(listed) == 0 {
		return trees, err
	}
	own := trees.Clone()
	for _, conflict := range listed {
		drop(own, conflict)
	}
	return own, nil
}

// drop takes the folder of a conflict out.
func drop(trees folder.Trees, conflict gitops.Conflict) {
	delete(trees[conflict.Host], conflict.DeploymentTarget)
	if len(trees[conflict.Host]) == 0 {
		delete(trees, conflict.Host)
	}
}

// ownerThere is the owner as the repository knows it until the plan is applied.
func (o *Plan) ownerThere(desired Desired) Owner {
	owner := desired.Owner
	if o.Identity == Renamed {
		owner.Name = desired.State.Owner.Name
	}
	return owner
}

// yield removes nothing that the records of other owners list. Where the owner's own record lists such a folder, too,
// somebody has changed one of the two: the plan names the record, unless adopt has it written again.
func (c *Service) yield(ctx context.Context, desired Desired, o *Plan) error {
	goes := union(o.Remove, o.Found.Without(desired.After))
	if goes.Count() == 0 {
		return nil
	}
	owner := o.ownerThere(desired)
	view, err := c.view(ctx, owner)
	if err != nil {
		return err
	}
	commit := ""
	if o.Identity == Same || o.Identity == Renamed {
		commit = desired.State.seenAt()
	}
	listed, err := view.FindListedByOthers(ctx, goes, commit)
	if err != nil || len(listed) == 0 {
		return err
	}
	records, err := view.ReadRecords(ctx, "")
	if err != nil {
		return err
	}
	var disputed []string
	o.Before, o.Found, o.Remove = o.Before.Clone(), o.Found.Clone(), o.Remove.Clone()
	for _, conflict := range listed {
		for _, trees := range []folder.Trees{o.Before, o.Found, o.Remove} {
			drop(trees, conflict)
		}
		if records.Trees.Has(conflict.Host, conflict.DeploymentTarget) && !desired.Adopt {
			conflict.Record = owner.gitops().RecordPath(conflict.Host)
			disputed = append(disputed, conflict.String()+".")
		}
	}
	if len(disputed) > 0 {
		o.add("gitops_repo", "Record lists a folder of another assignment", "%s", wording.Lines(disputed, wording.Named))
	}
	return nil
}

// leave plans what happens to a former location.
func (c *Service) leave(desired Desired, former former, o *Plan) {
	if former.apart {
		was, is := desired.State.Owner.Location, desired.Owner.Location
		o.warn(
			"gitops_repo",
			"Former location stays as it is",
			"Branch %q at %s has what this assignment wrote to branch %q at %s, by the same commit, so that it goes on there. Nothing is removed at the former location.",
			is.Branch,
			is.URL,
			was.Branch,
			was.URL,
		)
	}
	if o.Identity != Moved {
		return
	}
	at := desired.State.Owner.Location
	switch {
	case errors.Is(former.gone, git.ErrNoBranch):
		o.formerGone = true
		o.warn("gitops_repo", "Former branch is gone", "There is no branch %q at %s any more, and nothing to clear.", at.Branch, at.URL)
	case former.gone != nil && isGone(former.gone):
		o.formerGone = true
		o.warn("gitops_repo", "Former repository is gone", "There is nothing to clear at %s: %s.", at.URL, former.gone)
	case former.gone != nil:
		o.warn(
			"gitops_repo",
			"Former repository cannot be read",
			"The folders on branch %q at %s stay there: %s. Remove them by hand if they are not needed.",
			at.Branch,
			at.URL,
			former.gone,
		)
	case desired.Leave:
		o.LetGo = true
		o.warn(
			"on_destroy",
			"Folders stay",
			"The folders on branch %q at path %q of the former location stay there, and no assignment manages them.",
			at.Branch,
			at.Path,
		)
	default:
		o.Cleared = desired.State.Current()
	}
}

// there is all that the owner has at the location, as far as the state or a look knows.
func (o *Plan) there() folder.Trees { return union(o.Before, o.Found) }

// PlanUnread is the plan of an owner while the repository cannot be read yet.
func PlanUnread(desired Desired) *Plan {
	o := &Plan{Identity: Created, Before: folder.Trees{}}
	if desired.State != nil {
		o.Identity, o.Before = Same, desired.State.Current()
	}
	desired.After = desired.Renames.WithFormerNames(desired.After)
	o.Remove = o.Before.Without(desired.After)
	o.protect(desired)
	return o
}

// union returns the folders of both, with the trees of the first.
func union(one, other folder.Trees) folder.Trees {
	if len(other) == 0 {
		return one
	}
	both := one.Clone()
	for host, targets := range other.Clone() {
		maps.Copy(targets, one[host])
		both[host] = targets
	}
	return both
}
