package delivery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

const mostListed = 50

// Desired is the target state of one owner.
type Desired struct {
	Owner    Owner
	State    *OwnerState // nil without a state
	Settings Settings
	// Renames maps former names of hosts to present ones.
	Renames folder.Renames
	Former  folder.Former
	// After are the wanted folders; "" for unknown trees.
	After      folder.Trees
	Protection rollout.Protection
	// Unprotected reports that Protection is unknown until the apply.
	Unprotected bool
	// Adopt takes over folders of other owners or of none, and folders of the same name that the state lacks.
	Adopt bool
	// Replaces reports that this owner replaces another object of the configuration.
	Replaces bool
	// Leave keeps the folders at a former location, like on_destroy = "keep".
	Leave    bool
	Clusters func(hosts []string) []string
	// Fleet has the folders that the fleet gave up or a rollout added, for protection.
	Fleet rollout.Fleet
	// Causes explains why folders would be removed.
	Causes func(removed []folder.Key) []string
}

// PlanProblem is an error or a warning.
type PlanProblem struct {
	Attribute string // such as "gitops_repo"
	Summary   string // a short sentence without a full stop
	Detail    string
	Warning   bool
}

// Plan is the effect of applying a Desired.
type Plan struct {
	Identity Identity
	// Before are the owner's folders in the state, under the hosts' names of then.
	Before folder.Trees
	// Remove are folders of Before, except on renamed hosts.
	Remove folder.Trees
	// Found are folders of the owner's name that the state lacks. Plans may derive only problems from them, because the
	// repository may differ at another time.
	Found folder.Trees
	// Cleared are the folders to be removed at a former location.
	Cleared folder.Trees
	// letGo reports that the folders there stay without an owner, and formerGone that the former location does not exist.
	letGo, formerGone bool
	// Problems are in reporting order. One error prevents an apply.
	Problems []PlanProblem
}

// HasError reports whether any problem is an error.
func (p *Plan) HasError() bool { return hasError(p.Problems) }

func hasError(problems []PlanProblem) bool {
	return slices.ContainsFunc(problems, func(p PlanProblem) bool { return !p.Warning })
}

func newError(attribute, summary, format string, arguments ...any) PlanProblem {
	return PlanProblem{attribute, summary, fmt.Sprintf(format, arguments...), false}
}

func newWarning(attribute, summary, format string, arguments ...any) PlanProblem {
	return PlanProblem{attribute, summary, fmt.Sprintf(format, arguments...), true}
}

// checkHolder reports a commit of another state that took the records over.
func checkHolder(owner Owner, adopt bool, by string) []PlanProblem {
	switch {
	case by == "":
		return nil
	case adopt:
		return []PlanProblem{newWarning("adopt", "Assignment is taken over from another state",
			"Another Terraform state wrote the assignment %q on branch %q by %s. This apply takes it over: the next plan of the other "+
				"state fails. Then remove adopt.", owner.Name, owner.Location.Branch, by)}
	}
	return []PlanProblem{newError("name", "Another state has this assignment",
		"Another Terraform state has taken over the assignment %q on branch %q, by %s. Each state would undo the changes of the "+
			"other.\n\nTo leave the assignment to the other state, remove it from this one, with removed { from = <address>, "+
			"lifecycle { destroy = false } } or \"terraform state rm\". If they are two assignments, give this one another name. "+
			"To take it over, or if the branch was reset to a commit of a state that is lost, set adopt = true for one apply: the next "+
			"plan of the other state then fails.",
		owner.Name, owner.Location.Branch, by)}
}

// refuseUnwanted reports unwanted folders of the owner's name that no apply of this state wrote. Folders in unsigned
// records are never removed.
func refuseUnwanted(ctx context.Context, view *gitops.OwnerView, name string, unwanted folder.Trees, adopt bool) ([]PlanProblem, error) {
	if len(unwanted) == 0 {
		return nil, nil
	}
	asked := map[string]string{}
	for host := range unwanted {
		asked[host] = ""
	}
	unsigned, err := view.FindUnsigned(ctx, asked)
	switch {
	case err != nil:
		return nil, err
	case len(unsigned) > 0:
		return []PlanProblem{newError("gitops_repo", "Record is not signed by a known key",
			"These folders would be removed, and only records without a valid signature list them: %s. Nothing was written: %s.\n\n"+
				"Revert that commit, or remove its additions from the record. If the record is right, add the key that signed it to "+
				"allowed_signers.",
			wording.List(folder.KeyTexts(unwanted.Keys()), wording.Named), wording.List(slices.Sorted(maps.Values(unsigned)), wording.Named))}, nil
	case adopt:
		return nil, nil
	}
	return []PlanProblem{newError("name", "Another assignment has this name",
		"The repository has %s of an assignment called %q at this location that this state does not know and this fleet does not want: %s.\n\n"+
			"If another configuration writes there, give this assignment another name. If the folders are from an earlier apply of this "+
			"assignment, set adopt = true: they are then removed, within what protection allows.",
		wording.Count(unwanted.Count(), "folder", "folders"), name, wording.List(folder.KeyTexts(unwanted.Keys()), wording.Named))}, nil
}

// presentOwner returns the owner under the name in the repository.
func (d Desired) presentOwner(identity Identity) Owner {
	owner := d.Owner
	if identity == Renamed {
		owner.Name = d.State.Owner.Name
	}
	return owner
}

func (p *Plan) folders() folder.Trees { return mergeTrees(p.Before, p.Found) }

// PlanUnread plans without the repository, which cannot be read yet.
func PlanUnread(desired Desired) *Plan {
	plan := &Plan{Identity: Created, Before: folder.Trees{}}
	if desired.State != nil {
		plan.Identity, plan.Before = Same, desired.State.Current()
	}
	after := desired.Renames.WithFormerNames(desired.After)
	plan.Remove = plan.Before.Without(after)
	plan.Problems = checkProtection(desired, after, *plan)
	return plan
}

// mergeTrees prefers the trees of one.
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

// PlanDestroy plans a destroy.
func (p *Planner) PlanDestroy(
	ctx context.Context, known *OwnerState, protection rollout.Protection, leave bool, clusters func([]string) []string,
) *Plan {
	plan := &Plan{Identity: Same, Before: p.dropTaken(ctx, known).Current()}
	removal := rollout.RemovalOf(plan.Before, nil, rollout.Fleet{})
	if leave {
		if removal.Total > 0 {
			plan.Problems = append(plan.Problems, newWarning("on_destroy", "Folders stay",
				"%s on %s: their folders stay in the repository, and no assignment manages them until one adopts them.",
				wording.Count(removal.Total, "assignment", "assignments"), wording.Count(len(removal.Hosts()), "host", "hosts")))
		}
		return plan
	}
	plan.Remove = plan.Before
	plan.Problems = append(p.warnOfNoBranch(ctx, known), checkRemoval(protection, removal, clusters, func([]folder.Key) []string {
		return []string{fmt.Sprintf("a destroy, or a replacement, of the assignment %q, or its removal from the "+
			"configuration", known.Owner.Name)}
	})...)
	return plan
}

// warnOfNoBranch warns that a missing branch may only have been renamed.
func (p *Planner) warnOfNoBranch(ctx context.Context, known *OwnerState) []PlanProblem {
	at := known.Owner.Location
	view, err := p.reader.view(ctx, known.Owner)
	if err != nil || view.Tip() != "" || view.IsMissing() || known.Trees.Count() == 0 || known.Proposed {
		return nil
	}
	return []PlanProblem{newWarning("gitops_repo", "Branch does not exist any more",
		"There is no branch %q at %s, so nothing is removed. If it was renamed, the %s of the assignment %q at path %q are still on it, "+
			"and clusters keep running them: set its new name in gitops_repo, and apply that before the destroy.",
		at.Branch, at.URL, wording.Count(known.Trees.Count(), "folder", "folders"), known.Owner.Name, at.Path)}
}

// dropTaken returns the state without folders of other holders and owners, if the repository can be read.
func (p *Planner) dropTaken(ctx context.Context, known *OwnerState) *OwnerState {
	view, err := p.reader.view(ctx, known.Owner)
	if err != nil {
		return known
	}
	held, err := view.FindHeldByOthers(ctx, known.Holder, known.Records)
	if err != nil {
		return known
	}
	listed, err := view.FindListedByOthers(ctx, known.Current(), "")
	if err != nil || len(held)+len(listed) == 0 {
		return known
	}
	own := *known
	own.Trees, own.Drift.Trees = known.Trees.Clone(), maps.Clone(known.Drift.Trees)
	for host := range held {
		delete(own.Trees, host)
	}
	maps.DeleteFunc(own.Drift.Trees, func(key folder.Key, _ string) bool { return held[key.Host] != "" })
	for _, conflict := range listed {
		delete(own.Trees[conflict.Host], conflict.DeploymentTarget)
		delete(own.Drift.Trees, conflict.Key)
	}
	return &own
}

// checkProtection reports removals that protection refuses.
func checkProtection(desired Desired, after folder.Trees, plan Plan) []PlanProblem {
	if desired.Unprotected {
		return nil
	}
	removal := rollout.RemovalOf(plan.folders(), after, desired.Fleet)
	problems := checkRemoval(desired.Protection, removal, desired.Clusters, func(removed []folder.Key) []string {
		return findCauses(desired, plan.Before, removed)
	})
	if plan.Cleared == nil {
		return problems
	}
	// Each location counts on its own.
	clearance := rollout.ClearanceOf(plan.Cleared, after)
	return append(problems, checkRemoval(desired.Protection, clearance, desired.Clusters, func([]folder.Key) []string {
		was, is := desired.State.Owner.Location, desired.Owner.Location
		return []string{fmt.Sprintf("gitops_repo is now branch %q at path %q of %s, and was branch %q at path %q of %s",
			is.Branch, is.Path, is.URL, was.Branch, was.Path, was.URL)}
	})...)
}

func findCauses(desired Desired, before folder.Trees, removed []folder.Key) []string {
	known := slices.DeleteFunc(slices.Clone(removed), func(key folder.Key) bool { return !before.Has(key.Host, key.DeploymentTarget) })
	var lines []string
	if len(known) > 0 && desired.Causes != nil {
		lines = desired.Causes(known)
	}
	if found := len(removed) - len(known); found > 0 {
		lines = append(lines, fmt.Sprintf(
			"%s of %q that this state does not know, and that the fleet does not want: an earlier state was lost, or another one writes there",
			wording.Count(found, "folder", "folders"), desired.Owner.Name))
	}
	return lines
}

func checkRemoval(
	protection rollout.Protection, removal rollout.Removal, clusters func(hosts []string) []string, causes func(removed []folder.Key) []string,
) []PlanProblem {
	var names []string
	if clusters != nil {
		names = clusters(removal.Hosts())
	}
	refusal := protection.Check(removal, names)
	if refusal == nil {
		return nil
	}
	lines := causes(removal.Keys)
	if len(lines) == 0 {
		lines = []string{"not known: the state has no fleet to compare with"}
	}
	return []PlanProblem{newError("protection", refusal.Summary, "%s\n\nThe cause:\n%s\n\n%s",
		refusal.Detail, wording.Lines(lines, mostListed), refusal.Remedy)}
}

// checkConflicts reports wanted folders that belong to others.
func (p *Planner) checkConflicts(ctx context.Context, desired Desired, plan Plan) ([]PlanProblem, error) {
	view, err := p.reader.view(ctx, desired.Owner)
	if err != nil {
		return nil, err
	}
	formerly := ""
	if plan.Identity == Renamed {
		formerly = desired.State.Owner.Name
	}
	found, err := view.FindConflicts(ctx, desired.After, plan.folders(), formerly)
	if err != nil {
		return nil, err
	}
	var adopted, refused, adoptable []string
	for _, conflict := range found {
		text := conflict.String()
		text = strings.ToUpper(text[:1]) + text[1:] + "."
		switch {
		case !conflict.IsAdoptable():
			refused = append(refused, text)
		case !desired.Adopt:
			adoptable = append(adoptable, text)
		default:
			adopted = append(adopted, text)
		}
	}
	problems := newConflictErrors(refused, adoptable)
	if len(adopted) > 0 {
		problems = append(problems, newWarning("adopt", "Folders are taken over", "%s", wording.Lines(adopted, mostListed)))
	}
	return problems, nil
}

// newConflictErrors returns one error for all folders: a wrong name may claim hundreds of them.
func newConflictErrors(refused, adoptable []string) []PlanProblem {
	remedy := ""
	if len(adoptable) > 0 {
		remedy = fmt.Sprintf(" To take %s over with all content, set adopt = true.", wording.OneOrMany(len(adoptable), "it", "them"))
		if len(refused) > 0 {
			remedy = fmt.Sprintf("\n\nOf these, %d can be taken over with all content: set adopt = true once the others are resolved.",
				len(adoptable))
		}
	}
	summary := "Folder does not belong to this assignment"
	switch all := slices.Concat(refused, adoptable); len(all) {
	case 0:
		return nil
	case 1:
		return []PlanProblem{newError("gitops_repo", summary, "%s%s", all[0], remedy)}
	default:
		remedy = strings.TrimSpace(remedy + " If they are another assignment's, give this one another path, or take the deployment targets out " +
			"of one of the fleets.")
		return []PlanProblem{newError("gitops_repo", summary, "%d folders that the fleet wants belong to others:\n%s\n\n%s",
			len(all), wording.Lines(all, wording.Named), remedy)}
	}
}

// dropConflicts returns the folders without conflicts.
func dropConflicts(trees folder.Trees, conflicts []gitops.Conflict) folder.Trees {
	if len(conflicts) == 0 {
		return trees
	}
	left := trees.Clone()
	for _, conflict := range conflicts {
		delete(left[conflict.Host], conflict.DeploymentTarget)
		if len(left[conflict.Host]) == 0 {
			delete(left, conflict.Host)
		}
	}
	return left
}

// findListed returns the folders to be removed that other owners' records list. If the owner's own record lists one as
// well, one of the two was changed by hand: a problem names the record, unless adopt rewrites it.
func (p *Planner) findListed(
	ctx context.Context, desired Desired, identity Identity, goes folder.Trees,
) ([]gitops.Conflict, []PlanProblem, error) {
	if goes.Count() == 0 {
		return nil, nil, nil
	}
	owner, commit := desired.presentOwner(identity), ""
	view, err := p.reader.view(ctx, owner)
	if err != nil {
		return nil, nil, err
	}
	if identity == Same || identity == Renamed {
		commit = desired.State.seenCommit()
	}
	listed, err := view.FindListedByOthers(ctx, goes, commit)
	if err != nil || len(listed) == 0 || desired.Adopt {
		return listed, nil, err
	}
	records, err := view.ReadRecords(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	var disputed []string
	for _, conflict := range listed {
		if records.Trees.Has(conflict.Host, conflict.DeploymentTarget) {
			conflict.Record = owner.repositoryOwner().RecordPath(conflict.Host)
			disputed = append(disputed, conflict.String()+".")
		}
	}
	if len(disputed) == 0 {
		return listed, nil, nil
	}
	return listed, []PlanProblem{newError("gitops_repo", "Record lists a folder of another assignment", "%s",
		wording.Lines(disputed, wording.Named))}, nil
}

// checkMoves refuses to move the folders of a renamed host if others have something beside them: see
// gitops.ErrHostNotEmpty.
func (p *Planner) checkMoves(ctx context.Context, desired Desired, plan Plan) ([]PlanProblem, error) {
	moving := folder.Trees{}
	for former := range desired.Renames {
		if targets := plan.folders()[former]; len(targets) > 0 {
			moving[former] = targets
		}
	}
	if len(moving) == 0 || plan.Identity == Moved {
		return nil, nil
	}
	view, err := p.reader.view(ctx, desired.presentOwner(plan.Identity))
	if err != nil {
		return nil, err
	}
	beside, err := view.FindForeignEntries(ctx, moving)
	if err != nil || len(beside) == 0 {
		return nil, err
	}
	return []PlanProblem{newError("gitops_repo", "Folder of a cluster type cannot move",
		"Others have files in the folder of a renamed cluster type: %s. The folder would stay, and agents that follow it would "+
			"remove the moved workloads. Remove the files first. If they belong to another assignment, take its folders over with "+
			"adopt = true, have it leave the cluster type, rename, and give them back: the guide \"Assignments\" has the steps.",
		wording.List(wording.Quoted(beside), wording.Named))}, nil
}
