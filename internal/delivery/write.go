package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// ErrProposed is the error of a commit that was pushed to its branch, while its pull request could not be
// opened, updated or merged.
var ErrProposed = errors.New("the commit is pushed, but its pull request is not complete")

// written is the outcome of an edit.
type writeOutcome struct {
	gitops.ApplyResult
	commit string // that holds the edit
	url    string // of the pull request; "" where there is none
}

// write applies an edit as the settings say. known is what the state has of the owner, if anything. With ErrProposed the
// URL of the pull request is returned, too, where there is one.
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
		if !result.Held { // else the request is the other holder's
			err = closeRequest(ctx, host, selector, known.requestNumber())
		}
		return writeOutcome{result, result.Commit, ""}, err
	}
	request, err := propose(ctx, host, settings, result.HeadCommit, forge.Wanted{
		Selector: selector, Title: cmp.Or(settings.Title, result.Subject), Body: requestBody(edit, result, host.MaxBody()),
		Labels: settings.Labels, Reviewers: settings.Reviewers,
	})
	done := writeOutcome{ApplyResult: result, commit: result.HeadCommit}
	if request != nil {
		done.url, done.commit = request.URL, cmp.Or(request.MergeCommit, result.HeadCommit)
	}
	if err != nil {
		return done, fmt.Errorf("%w: branch %q has it: %w", ErrProposed, edit.Head, err)
	}
	if known != nil && known.Owner == owner && request.Number != known.requestNumber() {
		err = host.CloseOther(ctx, selector, known.requestNumber())
	}
	return done, err
}

// free makes sure that no other open request comes from the branch that is proposed. The owner's own is closed where the Git
// host has it go into another branch, since the owner's branch was deleted or renamed.
func (w *Writer) freeHead(ctx context.Context, host *forge.GitHost, settings Settings, owner Owner, known *OwnerState, needsBase bool) error {
	selector := settings.selector(owner)
	err := host.Free(ctx, selector)
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
	if err := host.CloseElsewhere(ctx, selector); err != nil {
		return err
	}
	return host.Free(ctx, selector)
}

// propose opens or updates the owner's pull request, and merges it where that is wanted. The request is returned with an
// error, too, where there is one.
func propose(ctx context.Context, host *forge.GitHost, settings Settings, head string, wanted forge.Wanted) (*forge.PullRequest, error) {
	request, err := host.Ensure(ctx, wanted)
	if err != nil {
		if request == nil {
			request, _ = host.Current(ctx, wanted.Selector, 0) // it was open before
		}
		return request, err
	}
	if settings.Merge == "" {
		return request, host.Hold(ctx, request)
	}
	merged, err := host.Merge(ctx, request, head, settings.Merge)
	return cmp.Or(merged, request), err
}

func requestBody(edit gitops.Edit, result gitops.ApplyResult, limit int) string {
	if edit.Abandon {
		return "The records of this assignment are removed, and its folders stay.\n"
	}
	return forge.Body(result.Changes, limit)
}

// closeRequest closes the owner's open pull request, since nothing is left to propose: the one that the selector names,
// else that of the number.
func closeRequest(ctx context.Context, host *forge.GitHost, selector forge.Selector, number int) error {
	request, err := host.Current(ctx, selector, number)
	if err != nil || request == nil {
		return err
	}
	return host.Close(ctx, request)
}

// CloseFormerRequest closes the open pull request from before the owner got other settings, another name or a branch that was
// renamed, unless it is the same request.
func (w *Writer) CloseFormerRequest(ctx context.Context, known *OwnerState, owner Owner, settings Settings) (head string, err error) {
	former := known.Settings.selector(known.Owner)
	if !known.Settings.PullRequest {
		return "", nil
	}
	if settings.PullRequest && known.Owner.Location.URL == owner.Location.URL && settings.selector(owner) == former {
		return "", nil
	}
	host, err := w.hosts.gitHost(known.Settings, known.Owner.Location)
	if err == nil {
		err = closeRequest(ctx, host, former, known.requestNumber())
	}
	return former.Head, err
}
