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
