package delivery

import (
	"context"
	"fmt"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// readPending returns the branch with the present content: the branch of the owner's open pull request, whose changes are
// no drift, or else the location's branch. It ignores a request that is not the one in the state, should have been merged
// at once, was left incomplete, has another base or head, or has lost its branch.
func (r *Refresher) readPending(ctx context.Context, known *OwnerState) (view *gitops.OwnerView, request *forge.PullRequest, err error) {
	known.Proposed = false
	if !known.Settings.PullRequest {
		view, err = r.reader.view(ctx, known.Owner)
		return view, nil, err
	}
	host, err := r.hosts.gitHost(known.Settings, known.Owner.Location)
	if err != nil {
		return nil, nil, err
	}
	selector := known.Settings.selector(known.Owner)
	if request, err = host.Find(ctx, selector, known.requestNumber()); err != nil {
		return nil, nil, err
	}
	if request != nil && request.State == forge.Open && request.URL == known.PullRequest && known.Settings.Request.Merge != forge.Now &&
		!known.Incomplete &&
		request.Base == selector.Base &&
		request.Head == selector.Head {
		proposed := known.Owner
		proposed.Location.Branch = selector.Head
		if view, err = r.reader.view(ctx, proposed); err != nil || view.Tip() != "" {
			known.Proposed = err == nil
			return view, request, err
		}
	}
	view, err = r.reader.view(ctx, known.Owner)
	return view, request, err
}

// otherBase returns the base of the open pull request if it is not the location's branch. Git hosts redirect requests when
// their base is renamed.
func otherBase(known *OwnerState, request *forge.PullRequest) string {
	if request == nil || request.State != forge.Open || request.Base == known.Owner.Location.Branch {
		return ""
	}
	return request.Base
}

// compareRequest explains in Drift why the pull request cannot be merged. It does not ask the Git host, because some report
// for ever that they are checking.
func (r *Refresher) compareRequest(ctx context.Context, known *OwnerState, request *forge.PullRequest) error {
	if request == nil || request.State == forge.Merged {
		return nil
	}
	at := known.Owner.Location
	selector := known.Settings.selector(known.Owner)
	known.Drift.Into = otherBase(known, request)
	switch {
	case request.State == forge.Closed:
		if len(known.Drift.Trees) > 0 {
			known.Drift.Request = fmt.Sprintf(
				"pull request %d was closed and not merged: another one is opened from branch %q, into which branch %q is merged",
				request.Number,
				selector.Head,
				at.Branch,
			)
		}
		return nil
	case known.Drift.Into != "":
		known.Drift.Request = fmt.Sprintf("pull request %d goes into branch %q now: it is closed, and another one is opened into branch %q",
			request.Number, request.Base, at.Branch)
		return nil
	case request.Head != selector.Head:
		known.Drift.Request = fmt.Sprintf("pull request %d comes from branch %q now: it is closed, and another one is opened from branch %q",
			request.Number, request.Head, selector.Head)
		return nil
	}
	view, err := r.reader.view(ctx, known.Owner)
	if err != nil {
		return err
	}
	if view.Tip() == "" {
		known.Drift.Cause = BranchGone
		return nil
	}
	asked := folder.Trees{}
	for key := range known.Replaced {
		folder.Put(asked, key, "")
	}
	now, err := view.ReadTrees(ctx, asked)
	if err != nil {
		return err
	}
	var changed []string
	for key, was := range known.Replaced {
		if is := now[key.Host][key.DeploymentTarget]; is != was && is != known.Trees[key.Host][key.DeploymentTarget] {
			changed = append(changed, key.String())
		}
	}
	if len(changed) > 0 && !known.Incomplete {
		slices.Sort(changed)
		known.Drift.Request = fmt.Sprintf("pull request %d conflicts with branch %q, where %s changed: that branch is merged into %q",
			request.Number, at.Branch, wording.List(changed, 3), request.Head)
	}
	return nil
}

// noBranchText explains that a pull request has no base. into is the base of the open request.
func noBranchText(at folder.Location, into string) string {
	text := fmt.Sprintf("There is no branch %q at %s, and a pull request needs a branch to go into. ", at.Branch, at.URL)
	if into != "" {
		return text + fmt.Sprintf("The open pull request goes into branch %q now: set branch = %q in gitops_repo.", into, into)
	}
	return text + "If it was renamed, set its new name in gitops_repo. If it was deleted, create it."
}

type noBranchError struct{ text string }

func (e *noBranchError) Error() string { return e.text }
func (e *noBranchError) Unwrap() error { return git.ErrNoBranch }

// CheckBaseBranch returns git.ErrNoBranch if the base of a wanted pull request does not exist.
func (r *Refresher) CheckBaseBranch(ctx context.Context, settings Settings, owner Owner, known *OwnerState) error {
	if !settings.PullRequest {
		return nil
	}
	tip, err := r.reader.tip(ctx, owner.Location)
	if err != nil || tip != "" {
		return err
	}
	r.reader.forget(owner.Location) // it may be created while the error is read
	host, err := r.hosts.gitHost(settings, owner.Location)
	if err != nil {
		return err
	}
	into := ""
	if request, err := host.Find(ctx, settings.selector(owner), known.requestNumber()); err == nil && known != nil {
		into = otherBase(known, request)
	}
	return &noBranchError{noBranchText(owner.Location, into)}
}

func checkBaseBranch(desired Desired, isNew bool, tip string) []PlanProblem {
	at := desired.Owner.Location
	switch {
	case isNew && tip == "":
		return []PlanProblem{newWarning("gitops_repo", "Branch does not exist yet",
			"There is no branch %q at %s, and a pull request needs a branch to go into. If this run creates it, the apply "+
				"succeeds; otherwise it fails.", at.Branch, at.URL)}
	case !isNew && desired.State.Drift.Cause == BranchGone:
		return []PlanProblem{newError("gitops_repo", "Branch does not exist", "%s", noBranchText(at, desired.State.Drift.Into))}
	}
	return nil
}
