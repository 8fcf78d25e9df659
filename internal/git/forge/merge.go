package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// Merge merges the request if its head is headCommit, or turns on auto-merge, and returns it as it is then. A request merged at
// that head is a success. Of p it reads Number, Owner and Head.
//
// If the head moves later, GitLab and Bitbucket Data Center cancel auto-merge; GitHub does if the pusher may not write. Gitea,
// Forgejo and Azure Repos merge the new head once its checks succeed.
func (h *PullRequests) Merge(ctx context.Context, p *PullRequest, headCommit string, how MergeMode) (*PullRequest, error) {
	r, err := h.merge(ctx, p, headCommit, how)
	if err != nil {
		return nil, h.describe(err)
	}
	return r.sanitized(), nil
}

func (h *PullRequests) merge(ctx context.Context, p *PullRequest, headCommit string, how MergeMode) (*request, error) {
	if err := h.at.kind.checkMergeMode(how); err != nil {
		return nil, err
	}
	api, hasAutoMerge := h.api.(autoMerger)
	do := h.api.merge
	switch {
	case how == WhenChecksSucceed && hasAutoMerge:
		do = api.enableAutoMerge
	case how != Now:
		return nil, fmt.Errorf("a pull request is merged %q or %q, not %q", Now, WhenChecksSucceed, how)
	case headCommit == "":
		return nil, errors.New("a pull request is merged at a given commit only, and none is given")
	}
	r, err := h.getOwned(ctx, p)
	if err != nil {
		return nil, err
	}
	// A Git host checks every other request again after a merge.
	for settling, checking := newPause(h.settling), newPause(h.mergeCheck); ; {
		switch {
		case r.State == Closed:
			return nil, failf(ErrNotMergeable, "pull request #%d was closed", r.Number)
		case r.HeadCommit != headCommit:
			// The Git host may not have noticed the push.
			if r.State == Merged || !settling.wait(ctx) {
				return nil, headMovedError(ctx, r, headCommit)
			}
		case r.State == Merged:
			return r, nil
		default:
			err := do(ctx, r, headCommit)
			if err == nil && how == WhenChecksSucceed {
				return h.confirmAutoMerge(ctx, api, r, headCommit)
			}
			if err == nil {
				return h.confirmMerged(ctx, r, headCommit)
			}
			// The error may not describe the present state.
			again, getErr := h.api.get(ctx, r.Number)
			if getErr != nil {
				return nil, fmt.Errorf("pull request #%d cannot be merged: %w", r.Number, err)
			}
			r = again
			if r.HeadCommit != headCommit {
				return nil, fmt.Errorf("%w: %w", headMovedError(ctx, r, headCommit), err)
			}
			if r.State != Open || canRetryMerge(r, err) && checking.wait(ctx) {
				continue
			}
			return nil, notMergedError(r, err)
		}
		if r, err = h.api.get(ctx, r.Number); err != nil {
			return nil, fmt.Errorf("pull request #%d: %w", p.Number, err)
		}
	}
}

// confirmAutoMerge turns auto-merge off if the head has moved: it may not be bound to a commit.
func (h *PullRequests) confirmAutoMerge(ctx context.Context, api autoMerger, r *request, headCommit string) (*request, error) {
	again, err := h.api.get(ctx, r.Number)
	if err != nil || again.HeadCommit == headCommit {
		return again, err
	}
	moved := headMovedError(ctx, again, headCommit)
	if again.State != Open {
		return nil, moved
	}
	if err := api.disableAutoMerge(ctx, again); err != nil {
		return nil, fmt.Errorf(
			"%w: auto-merge was turned on, the head moved meanwhile, and auto-merge cannot be turned off: %w; turn it off by hand",
			moved,
			err,
		)
	}
	return nil, fmt.Errorf("%w: auto-merge was turned on, the head moved meanwhile, and auto-merge was turned off again; apply again", moved)
}

// confirmMerged waits for the Git host to report the merge, because a replica may answer. It may have merged another head.
func (h *PullRequests) confirmMerged(ctx context.Context, r *request, headCommit string) (*request, error) {
	for pause := newPause(h.settling); ; {
		again, err := h.api.get(ctx, r.Number)
		if err != nil {
			return nil, fmt.Errorf("pull request #%d was merged, but: %w", r.Number, err)
		}
		if again.State == Merged && again.HeadCommit != headCommit {
			return nil, headMovedError(ctx, again, headCommit)
		}
		if again.State == Merged || !pause.wait(ctx) {
			return again, ctx.Err()
		}
	}
}

func headMovedError(ctx context.Context, r *request, headCommit string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if r.State == Merged {
		return failf(ErrHeadMoved, "pull request #%d was merged at %s, not at %s", r.Number, r.HeadCommit, headCommit)
	}
	return failf(ErrHeadMoved, "the head of pull request #%d is %s, not %s, and is not merged", r.Number, r.HeadCommit, headCommit)
}

func canRetryMerge(r *request, err error) bool {
	return errors.Is(err, errBusy) || r.checkingMerge && hasStatus(err, notMergeable...)
}

// notMergeable: 405 of all Git hosts, 406 of GitLab before 16, 409 of Gitea, 422 of GitLab. 423 is an archived repository.
var notMergeable = []int{
	http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusConflict,
	http.StatusUnprocessableEntity, http.StatusLocked,
}

func notMergedError(r *request, err error) error {
	because := ""
	status := r.status
	if status == "" && r.draft {
		status = "draft"
	}
	if status != "" {
		because = fmt.Sprintf(" (its status is %q)", status)
	}
	if errors.Is(err, errBusy) || hasStatus(err, notMergeable...) {
		return failf(ErrNotMergeable, "pull request #%d cannot be merged%s: %w", r.Number, because, err)
	}
	return fmt.Errorf("pull request #%d cannot be merged%s: %w", r.Number, because, err)
}

// pause waits longer each time, up to a limit.
type pause struct {
	next, left time.Duration
}

func newPause(limit time.Duration) *pause {
	return &pause{next: 200 * time.Millisecond, left: limit}
}

func (p *pause) wait(ctx context.Context) bool {
	if p.left < p.next || wait.For(ctx, p.next) != nil {
		return false
	}
	p.left -= p.next
	p.next = min(p.next*3/2, 3*time.Second)
	return true
}
