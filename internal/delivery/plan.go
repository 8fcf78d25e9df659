package delivery

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
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
func (p *Plan) HasError() bool {
	return slices.ContainsFunc(p.Problems, func(p PlanProblem) bool { return !p.Warning })
}

func (p *Plan) addError(attribute, summary, format string, arguments ...any) {
	p.Problems = append(p.Problems, PlanProblem{Attribute: attribute, Summary: summary, Detail: fmt.Sprintf(format, arguments...)})
}

func (p *Plan) addWarning(attribute, summary, format string, arguments ...any) {
	p.Problems = append(p.Problems, PlanProblem{Attribute: attribute, Summary: summary, Detail: fmt.Sprintf(format, arguments...), Warning: true})
}

// checkHolder reports a state that has taken the records over by a commit; "" for none.
func (p *Plan) checkHolder(desired Desired, by string) {
	switch {
	case by == "":
	case desired.Adopt:
		p.addWarning("adopt", "Assignment is taken over from another state", "Another Terraform state wrote the assignment %q on branch %q by %s. "+
			"This apply makes it this state's: the next plan of the other one fails. Then remove adopt.", desired.Owner.Name, desired.Owner.Location.Branch, by)
	default:
		p.addError("name", "Another state has this assignment", "Another Terraform state has taken over the assignment %q on branch %q, by %s. "+
			"Each of the two would undo what the other one writes.\n\nIf the other one shall have it, take it out of this one, "+
			"with removed { from = <address>, lifecycle { destroy = false } } or \"terraform state rm\". If they are two assignments, give this one another name. "+
			"If this one shall have it, set adopt = true for one apply: the next plan of the other one fails then.",
			desired.Owner.Name, desired.Owner.Location.Branch, by)
	}
}

// refuseUnwanted reports folders of the owner's name that no apply of this state has written, and that would go. What
// only a record lists that no allowed key has signed never goes.
func (p *Plan) refuseUnwanted(ctx context.Context, view *gitops.OwnerView, desired Desired, owner Owner, unwanted folder.Trees) error {
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
		p.addError("gitops_repo", "Record is not signed by a known key",
			"These folders would be removed, and only records that are not believed list them: %s. Nothing was written: %s.\n\n"+
				"Revert that commit, or take what it added out of the record. If the record is right, add the key that signed it to allowed_signers.",
			wording.List(folder.KeyTexts(unwanted.Keys()), wording.Named), wording.List(slices.Sorted(maps.Values(unsigned)), wording.Named))
		return nil
	}
	if desired.Adopt {
		return nil
	}
	p.addError("name", "Another assignment has this name",
		"The repository has %s of an assignment called %q at this location that this state does not know and this fleet does not want: %s.\n\n"+
			"If another configuration writes there, give this assignment another name. If the folders are from an earlier apply of this "+
			"assignment, set adopt = true: they are then removed, within what protection allows.",
		wording.Count(unwanted.Count(), "folder", "folders"), owner.Name, wording.List(folder.KeyTexts(unwanted.Keys()), wording.Named))
	return nil
}

// ownerThere is the owner as the repository knows it until the plan is applied.
func (p *Plan) ownerThere(desired Desired) Owner {
	owner := desired.Owner
	if p.Identity == Renamed {
		owner.Name = desired.State.Owner.Name
	}
	return owner
}

// there is all that the owner has at the location, as far as the state or a look knows.
func (p *Plan) folders() folder.Trees { return mergeTrees(p.Before, p.Found) }

// PlanUnread is the plan of an owner while the repository cannot be read yet.
func PlanUnread(desired Desired) *Plan {
	plan := &Plan{Identity: Created, Before: folder.Trees{}}
	if desired.State != nil {
		plan.Identity, plan.Before = Same, desired.State.Current()
	}
	desired.After = desired.Renames.WithFormerNames(desired.After)
	plan.Remove = plan.Before.Without(desired.After)
	plan.checkProtection(desired)
	return plan
}

// union returns the folders of both, with the trees of the first.
func mergeTrees(one, other folder.Trees) folder.Trees {
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
