package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// Merge merges the request if its head is that commit, or has the Git host do
// so later (auto-merge), and returns it as it then is: merged, or open with
// auto-merge. A request that is merged already with that head is no error. Of
// the request its Number, Owner and Head are read.
//
// What auto-merge does when the head moves later depends on the Git host:
// GitLab and Bitbucket Data Center cancel it; GitHub cancels it when who pushed may not write to the
// repository; Gitea, Forgejo and Azure Repos merge the new head once its checks
// succeed. Bitbucket Cloud has no auto-merge.
func (h *GitHost) Merge(ctx context.Context, p *PullRequest, headCommit string, how MergeMode) (*PullRequest, error) {
	r, err := h.merge(ctx, p, headCommit, how)
	if err != nil {
		return nil, h.describe(err)
	}
	return r.shown(), nil
}

func (h *GitHost) merge(ctx context.Context, p *PullRequest, headCommit string, how MergeMode) (*request, error) {
	do := h.api.merge
	switch {
	case how == WhenChecksSucceed:
		do = h.api.arrange
	case how != Now:
		return nil, fmt.Errorf("a pull request is merged %q or %q, not %q", Now, WhenChecksSucceed, how)
	case headCommit == "":
		return nil, errors.New("a pull request is merged at a given commit only, and none is given")
	}
	if err := h.at.kind.bounds.checkMode(how); err != nil {
		return nil, err
	}
	r, err := h.owned(ctx, p)
	if err != nil {
		return nil, err
	}
	// A Git host checks every request into a branch anew once one of them is merged.
	for settling, checking := newPause(h.settling), newPause(h.checking); ; {
		switch {
		case r.State == Closed:
			return nil, failf(ErrNotMergeable, "pull request #%d was closed", r.Number)
		case r.HeadCommit != headCommit:
			// The Git host may not know of the push yet.
			if r.State == Merged || !settling.wait(ctx) {
				return nil, h.headMoved(ctx, r, headCommit)
			}
		case r.State == Merged:
			return r, nil
		default:
			err := do(ctx, r, headCommit)
			if err == nil && how == WhenChecksSucceed {
				return h.arranged(ctx, r, headCommit)
			}
			if err == nil {
				return h.merged(ctx, r, headCommit)
			}
			// Whatever the Git host answered, the request itself has the present state.
			again, getErr := h.api.get(ctx, r.Number)
			if getErr != nil {
				return nil, fmt.Errorf("pull request #%d cannot be merged: %w", r.Number, err)
			}
			r = again
			if r.HeadCommit != headCommit {
				return nil, fmt.Errorf("%w: %w", h.headMoved(ctx, r, headCommit), err)
			}
			if r.State != Open || h.busy(r, err) && checking.wait(ctx) {
				continue
			}
			return nil, h.notMerged(r, err)
		}
		if r, err = h.api.get(ctx, r.Number); err != nil {
			return nil, fmt.Errorf("pull request #%d: %w", p.Number, err)
		}
	}
}

// arranged reads a request whose auto-merge was turned on, which is turned off again when the head moved meanwhile: a
// Git host may not bind it to a commit.
func (h *GitHost) arranged(ctx context.Context, r *request, headCommit string) (*request, error) {
	again, err := h.api.get(ctx, r.Number)
	if err != nil || again.HeadCommit == headCommit {
		return again, err
	}
	moved := h.headMoved(ctx, again, headCommit)
	if again.State != Open {
		return nil, moved
	}
	if err := h.api.hold(ctx, again); err != nil {
		return nil, fmt.Errorf(
			"%w: auto-merge was turned on, the head moved meanwhile, and auto-merge cannot be turned off: %w; turn it off by hand",
			moved,
			err,
		)
	}
	return nil, fmt.Errorf("%w: auto-merge was turned on, the head moved meanwhile, and auto-merge was turned off again; apply again", moved)
}

// merged waits until the Git host shows the request as merged: it may answer from a
// replica. A Git host that does not bind a merge to a commit may have merged another head.
func (h *GitHost) merged(ctx context.Context, r *request, headCommit string) (*request, error) {
	for pause := newPause(h.settling); ; {
		again, err := h.api.get(ctx, r.Number)
		if err != nil {
			return nil, fmt.Errorf("pull request #%d was merged, but: %w", r.Number, err)
		}
		if again.State == Merged && again.HeadCommit != headCommit {
			return nil, h.headMoved(ctx, again, headCommit)
		}
		if again.State == Merged || !pause.wait(ctx) {
			return again, ctx.Err()
		}
	}
}

func (h *GitHost) headMoved(ctx context.Context, r *request, headCommit string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if r.State == Merged {
		return failf(ErrHeadMoved, "pull request #%d was merged at %s, not at %s", r.Number, r.HeadCommit, headCommit)
	}
	return failf(ErrHeadMoved, "the head of pull request #%d is %s, not %s, and is not merged", r.Number, r.HeadCommit, headCommit)
}

// busy reports whether trying again may help.
func (h *GitHost) busy(r *request, err error) bool {
	return errors.Is(err, errBusy) || r.unsettled && answered(err, notMergeable...)
}

// notMergeable are the statuses for a request that cannot be merged as it is: 405
// of all Git hosts, 406 of GitLab before 16, 409 of Gitea, 422 of GitLab; 423 is
// that of an archived repository.
var notMergeable = []int{
	http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusConflict,
	http.StatusUnprocessableEntity, http.StatusLocked,
}

func (h *GitHost) notMerged(r *request, err error) error {
	because := ""
	if r.status != "" {
		because = fmt.Sprintf(" (its status is %q)", r.status)
	}
	if errors.Is(err, errBusy) || answered(err, notMergeable...) {
		return failf(ErrNotMergeable, "pull request #%d cannot be merged%s: %w", r.Number, because, err)
	}
	return fmt.Errorf("pull request #%d cannot be merged%s: %w", r.Number, because, err)
}
