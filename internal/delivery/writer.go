package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// ApplyRequest is the input of Apply.
type ApplyRequest struct {
	Desired
	// Decisions has the action for each folder. All trees are known.
	Decisions rollout.Decisions
	// Contents returns the content of a folder. Kept folders may be relocated.
	Contents func(host, deploymentTarget string) gitops.FolderEdit
	// Verify checks the files of a folder before the push, if set.
	Verify func(files []git.File, at folder.Location) error
	// Subject begins the commit message; "" means a summary of the changes.
	Subject string
	Source  folder.Source
}

// ApplyOutcome is the outcome of Apply.
type ApplyOutcome struct {
	Commit      string
	PullRequest string
	Records     map[string]string // by host
	Holder      string
	Time        time.Time // zero without changes
	Proposed    bool      // in an open pull request
	// Replaced is OwnerState.Replaced of the new state.
	Replaced map[folder.Key]string
	Identity Identity
	// FormerGone reports that the former location does not exist.
	FormerGone bool
	Former     folder.Former
	Problems   []PlanProblem // warnings
}

// HeldError reports that problems prevent an apply or a destroy. Nothing was written.
type HeldError struct{ Problems []PlanProblem }

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s: %s", e.Problems[0].Summary, e.Problems[0].Detail)
}

// Writer applies plans.
type Writer struct {
	reader    *Reader
	hosts     *GitHosts
	refresher *Refresher
	registry  *Registry
	planner   *Planner
	options   ServiceOptions

	heads wait.Locks // by repository and proposed branch
	names wait.Locks // two URLs may be one repository
}

// Apply writes the target state: one commit at the location, or none. Then it clears the former location. A changed folder
// that differs from the state, or that others wrote, is a gitops.ErrUnplanned that names the commit.
//
// Errors: *HeldError, ErrDuplicate, ErrProposed, or see gitops.BranchClient.Apply. Nothing was written, except with
// ErrProposed or if the text says that this is unknown.
func (w *Writer) Apply(ctx context.Context, request ApplyRequest) (ApplyOutcome, error) {
	release, err := w.names.Take(ctx, request.Owner.Location.Branch+" "+request.Owner.Location.Path+" "+request.Owner.Name)
	if err != nil {
		return ApplyOutcome{}, err
	}
	defer release()
	if err := w.registry.checkDuplicate(ctx, request.Owner, true); err != nil {
		return ApplyOutcome{}, err
	}
	plan, err := w.planner.Plan(ctx, request.Desired)
	if err != nil {
		return ApplyOutcome{}, err
	}
	if plan.HasError() {
		return ApplyOutcome{}, newHeldError(plan)
	}
	if err := w.checkFormerLocation(ctx, request.State, plan); err != nil {
		return ApplyOutcome{}, err
	}
	edit := w.newEdit(request, plan)
	written, err := w.write(ctx, request.Settings, request.Owner, request.State, edit)
	if err != nil {
		return ApplyOutcome{PullRequest: written.url}, addCommits(ctx, w.reader, request.Owner, err)
	}
	done := ApplyOutcome{
		Commit: written.commit, PullRequest: written.url, Records: written.Records, Holder: edit.Holder, Time: written.Time,
		Identity: plan.Identity, FormerGone: plan.formerGone,
	}
	isHost := func(name string) bool { _, is := edit.Hosts[name]; return is }
	done.Former = request.Former.Next(request.Renames, isHost, edit.FormerName, request.Owner.Name)
	done.Proposed = done.PullRequest != "" && done.Commit == written.HeadCommit && request.Settings.Request.Merge != forge.Now
	if done.PullRequest != "" {
		done.Replaced = map[folder.Key]string{}
		for _, change := range written.Changes {
			done.Replaced[change.Key] = ""
			done.Replaced[change.Origin()] = change.Was
		}
	}
	if plan.Cleared != nil || plan.letGo {
		w.clearFormerLocation(ctx, request, plan.letGo, &done)
	}
	return done, nil
}

func newHeldError(plan *Plan) error {
	return &HeldError{slices.DeleteFunc(slices.Clone(plan.Problems), func(p PlanProblem) bool { return p.Warning })}
}

func (w *Writer) newEdit(request ApplyRequest, plan *Plan) gitops.Edit {
	edit := gitops.Edit{
		Owner: request.Owner.repositoryOwner(), Hosts: make(gitops.FolderEdits, len(request.Decisions)),
		Written: plan.folders(), Remove: plan.folders().Without(request.After),
		Author: w.options.Author, Subject: request.Subject, Release: w.options.Release, Run: w.options.Run, Source: request.Source,
		Adopt:   request.Adopt,
		Renames: request.Renames,
	}
	switch plan.Identity {
	case Renamed:
		edit.FormerName = request.State.Owner.Name
		fallthrough
	case Same:
		edit.Written, edit.Records, edit.Holder = request.State.Trees, request.State.Records, request.State.Holder
	case Created, Moved: // the new location may be a mirror of the former one
	}
	// Unsigned records are rewritten, regardless of their holder.
	edit.TakesOver = edit.Holder == "" || request.Adopt || request.State.Imported != "" || len(request.State.Drift.Unsigned) > 0
	if edit.Holder == "" || request.State.Imported != "" {
		edit.Holder = NewHolder()
	}
	if plan.Identity != Created && plan.Identity != Moved && request.State.Trees != nil && !request.State.Proposed {
		edit.Seen = plan.folders()
	}
	if request.Verify != nil {
		edit.Verify = func(at string, files []git.File) error {
			place := request.Owner.Location
			place.Path = at
			return request.Verify(files, place)
		}
	}
	for host, targets := range request.Decisions {
		folders := make(map[string]gitops.FolderEdit, len(targets))
		for target, decision := range targets {
			folder := request.Contents(host, target)
			if decision.Action == rollout.Keep && folder.Action != gitops.Relocate {
				folder = gitops.FolderEdit{Action: gitops.Keep}
			}
			folders[target] = folder
		}
		edit.Hosts[host] = folders
	}
	return edit
}

// addCommits adds the commits that changed folders to an error about them.
func addCommits(ctx context.Context, r *Reader, owner Owner, err error) error {
	changed, ok := errors.AsType[*gitops.ChangedError](err)
	if !ok {
		return err
	}
	history, failed := r.ReadHistory(ctx, owner, gitops.HistoryFilter{Limit: maxSearched})
	if failed != nil {
		return err
	}
	for i := range changed.Folders {
		folder := &changed.Folders[i]
		for _, commit := range history.Commits {
			if folder.Commit == "" && slices.ContainsFunc(commit.Changes, func(change gitops.HistoryChange) bool {
				return change.Key == folder.Key
			}) {
				folder.Commit = commit.Commit
			}
		}
	}
	return err
}

// checkFormerLocation fails if others changed the former location after the plan.
func (w *Writer) checkFormerLocation(ctx context.Context, known *OwnerState, plan *Plan) error {
	if plan.Cleared == nil || known.Proposed {
		return nil
	}
	now := *known
	if err := w.refresher.Refresh(ctx, &now); err != nil {
		return err
	}
	e, current := &gitops.ChangedError{}, now.Current()
	for _, key := range current.Keys() {
		if current[key.Host][key.DeploymentTarget] != plan.Cleared[key.Host][key.DeploymentTarget] {
			e.Folders = append(e.Folders, gitops.ChangedFolder{
				Key: key, Folder: path.Join(known.Owner.Location.Path, key.Host, key.DeploymentTarget),
			})
		}
	}
	if len(e.Folders) == 0 {
		return nil
	}
	return addCommits(ctx, w.reader, known.Owner, e)
}

// clearFormerLocation removes the owner from its former location; with letGo, only its records. Content with another holder
// stays: it is the same location, or belongs to another assignment.
func (w *Writer) clearFormerLocation(ctx context.Context, request ApplyRequest, letGo bool, done *ApplyOutcome) {
	known := request.State
	settings := known.Settings
	if known.Owner.Location.URL == request.Owner.Location.URL && settings.Head == request.Settings.Head {
		settings.Head = "" // the new location is proposed from there
	}
	if _, err := w.write(ctx, settings, known.Owner, known, w.newRemoval(known, request.Subject, letGo)); err != nil && !isGone(err) {
		done.Problems = append(done.Problems, newWarning("gitops_repo", "Folders remain in the former repository",
			"The new location is written, but the old one could not be cleared: %s.", addCommits(ctx, w.reader, known.Owner, err)))
	}
}

// newRemoval removes an owner as last seen; with leave, only its records.
func (w *Writer) newRemoval(known *OwnerState, subject string, leave bool) gitops.Edit {
	edit := gitops.Edit{
		Owner: known.Owner.repositoryOwner(), Written: known.Trees, Remove: known.Trees, LeaveOthers: true,
		Holder: known.Holder, Records: known.Records, Author: w.options.Author, Subject: subject, Release: w.options.Release, Run: w.options.Run,
	}
	if !known.Proposed { // otherwise the branch has other content
		edit.Seen = known.Current()
	}
	if leave {
		edit.Remove, edit.LeaveOthers, edit.Abandon = nil, false, true
	}
	return edit
}

// Destroy removes an owner; with leave, only its records. Content with another holder stays, and everything if others
// changed folders after the last refresh. It checks protection, since Terraform does not plan the destroy half of a
// replacement.
func (w *Writer) Destroy(ctx context.Context, known *OwnerState, protection rollout.Protection, leave bool, subject string) error {
	if plan := w.planner.PlanDestroy(ctx, known, protection, leave, nil); plan.HasError() {
		return newHeldError(plan)
	}
	_, err := w.write(ctx, known.Settings, known.Owner, known, w.newRemoval(known, subject, leave))
	if isGone(err) {
		return nil
	}
	return addCommits(ctx, w.reader, known.Owner, err)
}

// ErrProposed reports that the commit was pushed, but its pull request could not be opened, updated or merged.
var ErrProposed = errors.New("the commit is pushed, but its pull request is not complete")

type writeOutcome struct {
	gitops.ApplyResult
	commit string
	url    string
}

// write applies an edit by push or by pull request. ErrProposed comes with the URL of the request, if there is one.
func (w *Writer) write(ctx context.Context, settings Settings, owner Owner, known *OwnerState, edit gitops.Edit) (writeOutcome, error) {
	remote := w.reader.remote(owner.Location)
	defer w.reader.branches.forget(remote)
	if !settings.PullRequest {
		result, err := w.options.Git.Apply(ctx, remote, edit)
		return writeOutcome{result, result.Commit, ""}, err
	}
	host, err := w.hosts.gitHost(settings, owner.Location)
	if err != nil {
		return writeOutcome{}, err
	}
	selector := settings.selector(owner)
	edit.Head = selector.Head
	proposed := remote
	proposed.Branch = edit.Head
	defer w.reader.branches.forget(proposed)
	release, err := w.heads.Take(ctx, owner.Location.URL+" "+edit.Head)
	if err != nil {
		return writeOutcome{}, err
	}
	defer release()
	if err := w.freeHead(ctx, host, settings, owner, known, len(edit.Hosts) > 0); err != nil {
		return writeOutcome{}, err
	}
	result, err := w.options.Git.Apply(ctx, remote, edit)
	if errors.Is(err, git.ErrNoBranch) {
		return writeOutcome{}, cmp.Or(w.refresher.CheckBaseBranch(ctx, settings, owner, known), err)
	}
	if err != nil {
		return writeOutcome{}, err
	}
	if result.HeadCommit == "" {
		if !result.Held { // otherwise the request belongs to the other holder
			err = closeRequest(ctx, host, selector, known.requestNumber())
		}
		return writeOutcome{result, result.Commit, ""}, err
	}
	wanted := forge.Wanted{Selector: selector, RequestOptions: settings.Request, Body: requestBody(edit, result, host.MaxBody())}
	wanted.Title = cmp.Or(wanted.Title, result.Subject)
	request, err := openRequest(ctx, host, result.HeadCommit, wanted)
	done := writeOutcome{ApplyResult: result, commit: result.HeadCommit}
	if request != nil {
		done.url, done.commit = request.URL, cmp.Or(request.MergeCommit, result.HeadCommit)
	}
	if err != nil {
		return done, fmt.Errorf("%w: branch %q has it: %w", ErrProposed, edit.Head, err)
	}
	if known != nil && known.Owner == owner && request.Number != known.requestNumber() {
		err = host.CloseFormer(ctx, selector, known.requestNumber())
	}
	return done, err
}

// freeHead fails if another open request comes from the proposed branch. It closes the owner's own request if the Git host
// redirected that.
func (w *Writer) freeHead(
	ctx context.Context, host *forge.GitHost, settings Settings, owner Owner, known *OwnerState, needsBase bool,
) error {
	selector := settings.selector(owner)
	err := host.CheckHead(ctx, selector)
	if !errors.Is(err, forge.ErrNotOwned) {
		return err
	}
	if gone := w.refresher.CheckBaseBranch(ctx, settings, owner, known); errors.Is(gone, git.ErrNoBranch) {
		if needsBase {
			return gone
		}
		return nil
	}
	if settings.Head != "" && (known == nil || known.Owner != owner) {
		return err // owners on several branches may share this head by mistake
	}
	if err := host.CloseRetargeted(ctx, selector); err != nil {
		return err
	}
	return host.CheckHead(ctx, selector)
}

// openRequest opens or updates the pull request, and merges it if the settings say so. A request may come with an error.
func openRequest(ctx context.Context, host *forge.GitHost, head string, wanted forge.Wanted) (*forge.PullRequest, error) {
	request, err := host.Ensure(ctx, wanted)
	if err != nil {
		if request == nil {
			request, _ = host.Find(ctx, wanted.Selector, 0)
		}
		return request, err
	}
	if wanted.Merge == "" {
		return request, host.DisableAutoMerge(ctx, request)
	}
	merged, err := host.Merge(ctx, request, head, wanted.Merge)
	return cmp.Or(merged, request), err
}

func requestBody(edit gitops.Edit, result gitops.ApplyResult, limit int) string {
	if edit.Abandon {
		return "The records of this assignment are removed, and its folders stay.\n"
	}
	return forge.Body(result.Changes, limit)
}

func closeRequest(ctx context.Context, host *forge.GitHost, selector forge.Selector, number int) error {
	request, err := host.Find(ctx, selector, number)
	if err != nil || request == nil {
		return err
	}
	return host.Close(ctx, request)
}

// CloseFormerRequest closes the open pull request from before a change of settings, name or branch.
func (w *Writer) CloseFormerRequest(ctx context.Context, known *OwnerState, owner Owner, settings Settings) (head string, err error) {
	former := known.Settings.selector(known.Owner)
	isSame := settings.PullRequest && known.Owner.Location.URL == owner.Location.URL && settings.selector(owner) == former
	if !known.Settings.PullRequest || isSame {
		return "", nil
	}
	host, err := w.hosts.gitHost(known.Settings, known.Owner.Location)
	if err == nil {
		err = closeRequest(ctx, host, former, known.requestNumber())
	}
	return former.Head, err
}
