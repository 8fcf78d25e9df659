package delivery

import (
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
