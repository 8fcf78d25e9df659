package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// GitHosts reaches the APIs of Git hosts.
type GitHosts struct {
	reader  *Reader
	options ServiceOptions
}

// CheckSettings rejects settings that the Git host cannot use, without a request.
func (h *GitHosts) CheckSettings(settings Settings, owner Owner) error {
	if !settings.PullRequest {
		return nil
	}
	host, err := h.gitHost(settings, owner.Location)
	if err != nil {
		return err
	}
	selector := settings.selector(owner)
	if err := git.CheckBranch(selector.Head); err != nil {
		return err
	}
	return host.Check(selector, settings.Request)
}

func (h *GitHosts) gitHost(settings Settings, at folder.Location) (*forge.GitHost, error) {
	return h.newGitHost(settings, at.URL, at.URL)
}

// newGitHost returns the Git host of a repository. plainFor is the URL if it is the GitOps repository: no other one gets plain
// credentials.
func (h *GitHosts) newGitHost(settings Settings, url, plainFor string) (*forge.GitHost, error) {
	return forge.NewGitHost(forge.HostedRepository{
		URL: url, APIURL: settings.APIURL, Forge: settings.Forge, Credentials: h.options.Credentials.Web(url, plainFor),
	}, forge.HTTPOptions{Over: h.options.Over, UserAgent: h.options.UserAgent})
}

// CommitStatuses are the statuses of one commit.
type CommitStatuses struct {
	Commit   string
	Statuses []forge.Status
}

// CheckStatuses fails if statuses, or their creators, cannot be read from a Git host. It makes no request.
func (h *GitHosts) CheckStatuses(settings Settings, at folder.Location, creators bool) error {
	host, err := h.gitHost(settings, at)
	if err == nil && creators {
		err = host.CheckCreators()
	}
	return err
}

// StatusQuery selects statuses.
type StatusQuery struct {
	Settings Settings
	Location folder.Location
	Limit    int
	Creators bool
}

// ReadStatuses reads the statuses of the newest commits of a branch until enough returns true. It skips commits that the
// Git host lacks. An error comes with the statuses so far.
func (h *GitHosts) ReadStatuses(ctx context.Context, query StatusQuery, enough func([]CommitStatuses) bool) ([]CommitStatuses, error) {
	host, err := h.gitHost(query.Settings, query.Location)
	if err != nil {
		return nil, err
	}
	branch, err := h.reader.branch(ctx, query.Location)
	if err != nil {
		return nil, err
	}
	commits, err := branch.ListRecentCommits(ctx, query.Limit)
	if err != nil {
		return nil, err
	}
	read := host.Statuses
	if query.Creators {
		read = host.StatusesWithCreators
	}
	var heard []CommitStatuses
	var unknown error
	for _, commit := range commits {
		statuses, err := read(ctx, commit)
		if errors.Is(err, forge.ErrNotFound) {
			unknown = err
			continue
		}
		if err != nil {
			return heard, err
		}
		heard = append(heard, CommitStatuses{Commit: commit, Statuses: statuses})
		if enough(heard) {
			return heard, nil
		}
	}
	if len(heard) == 0 {
		return nil, unknown
	}
	return heard, nil
}

// ReadStatus reads the status of a commit of any repository.
func (h *GitHosts) ReadStatus(ctx context.Context, settings Settings, url, commit string, wanted forge.Status) (*forge.Status, error) {
	host, err := h.newGitHost(settings, url, "")
	if err != nil {
		return nil, err
	}
	return host.Status(ctx, commit, wanted)
}

// SetStatus sets the status of a commit of any repository.
func (h *GitHosts) SetStatus(ctx context.Context, settings Settings, url, commit string, wanted forge.Status) error {
	host, err := h.newGitHost(settings, url, "")
	if err != nil {
		return err
	}
	return host.SetStatus(ctx, commit, wanted)
}

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
		!known.Incomplete && request.Base == selector.Base && request.Head == selector.Head {
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
				request.Number, selector.Head, at.Branch)
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
