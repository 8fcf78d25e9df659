package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// PullRequests reads and writes pull requests. A call waits for at most HTTPOptions.Patience.
type PullRequests struct {
	connection
}

// MaxBody is in bytes, without the mark.
func (h *PullRequests) MaxBody() int { return h.at.kind.MaxBody }

// maxUnknown is shorter than maxSettling, because "not found" may also mean a missing permission.
const maxUnknown = 3 * time.Second

// Check makes no request.
func (h *PullRequests) Check(s Selector, options RequestOptions) error {
	return h.describe(cmp.Or(s.check(), options.check(h.at.kind)))
}

// Find returns the owner's open request from the head into the base, else the one with the
// number from Ensure, or nil. Number 0 never matches.
func (h *PullRequests) Find(ctx context.Context, s Selector, number int) (*PullRequest, error) {
	r, err := h.findByNumber(ctx, s, number)
	if err != nil || r == nil {
		return nil, h.describe(err)
	}
	return r.sanitized(), nil
}

func (h *PullRequests) findByNumber(ctx context.Context, s Selector, number int) (*request, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	r, err := h.find(ctx, s.Base, s.Head, func(r *request) bool { return r.Owner == s.Owner })
	if err != nil || r != nil || number == 0 {
		return r, err
	}
	r, err = h.api.get(ctx, number)
	if hasStatus(err, http.StatusNotFound) || err == nil && (r.fromFork || r.Owner != s.Owner) {
		return nil, nil
	}
	return r, err
}

// CheckHead returns ErrNotOwned if a push to the head would change another open request.
func (h *PullRequests) CheckHead(ctx context.Context, s Selector) error {
	if err := s.check(); err != nil {
		return h.describe(err)
	}
	r, err := h.find(ctx, "", s.Head, func(r *request) bool { return r.Base != s.Base || r.Owner != s.Owner })
	if err == nil && r != nil {
		err = s.notOwnedError(r)
	}
	return h.describe(err)
}

func (h *PullRequests) find(ctx context.Context, base, head string, match func(*request) bool) (found *request, err error) {
	err = h.api.listOpen(ctx, base, head, func(r *request) bool {
		if r.State == Open && r.isBetween(head, base) && match(r) {
			found = r
		}
		return found == nil
	})
	return found, err
}

// forEachRequest passes an SDK's requests to take until it returns false.
func forEachRequest[T any](listed iter.Seq2[T, error], convert func(T) *request, take func(*request) bool) error {
	for one, err := range listed {
		if err != nil || !take(convert(one)) {
			return err
		}
	}
	return nil
}

// Ensure opens the owner's request, or updates the open one. It adds labels and reviewers, and requests no second review. A
// draft stays a draft. Another owner's open request between the branches is ErrNotOwned.
//
// If only labels or reviewers could not be added, Ensure returns the request and the error.
func (h *PullRequests) Ensure(ctx context.Context, w Wanted) (*PullRequest, error) {
	r, err := h.ensure(ctx, w)
	if r == nil {
		return nil, h.describe(err)
	}
	return r.sanitized(), h.describe(err)
}

func (h *PullRequests) ensure(ctx context.Context, w Wanted) (*request, error) {
	if err := w.check(h.at.kind); err != nil {
		return nil, err
	}
	r, err := h.findOpen(ctx, w.Selector)
	if err != nil {
		return nil, err
	}
	var there []string
	if r != nil {
		there = r.reviewers
	}
	reviewers := namesNotIn(w.Reviewers, there)
	for _, reviewer := range reviewers {
		if err := h.api.checkReviewer(ctx, reviewer); err != nil {
			return nil, err
		}
	}
	if r == nil {
		if r, err = h.open(ctx, w); err != nil {
			return nil, err
		}
	}
	if title := w.titleFor(r); r.title != title || !isSameText(r.body, w.markedBody()) {
		if err := h.api.edit(ctx, r, title, w.markedBody()); err != nil {
			return nil, fmt.Errorf("pull request #%d cannot be updated: %w", r.Number, err)
		}
	}
	if labels := namesNotIn(w.Labels, r.labels); len(labels) > 0 {
		if err := h.addLabels(ctx, r, labels); err != nil {
			return r, fmt.Errorf("pull request #%d cannot be given the labels %s: %w", r.Number, strings.Join(labels, ", "), err)
		}
	}
	if reviewers = namesNotIn(reviewers, r.reviewers); len(reviewers) > 0 {
		if err := h.api.requestReviews(ctx, r, reviewers); err != nil {
			return r, fmt.Errorf("pull request #%d cannot be given the reviewers %s: %w", r.Number, strings.Join(reviewers, ", "), err)
		}
	}
	return r, nil
}

func (h *PullRequests) addLabels(ctx context.Context, r *request, labels []string) error {
	adder, ok := h.api.(labelAdder)
	if !ok {
		return errors.ErrUnsupported
	}
	return adder.addLabels(ctx, r, labels)
}

// findOpen returns the open request between the branches, of which Git hosts allow one, or ErrNotOwned.
func (h *PullRequests) findOpen(ctx context.Context, s Selector) (*request, error) {
	r, err := h.find(ctx, s.Base, s.Head, func(*request) bool { return true })
	if err != nil || r == nil || r.Owner == s.Owner {
		return r, err
	}
	return nil, s.notOwnedError(r)
}

func (s Selector) notOwnedError(r *request) error {
	switch r.Owner {
	case "":
		return failf(ErrNotOwned, "pull request #%d from %q into %q was not opened by assignment %q, or the mark in its description "+
			"was removed; close it, or use another branch: %s", r.Number, r.Head, r.Base, s.Owner, r.URL)
	case s.Owner:
		return failf(ErrNotOwned, "pull request #%d of assignment %q goes from %q into %q, not into %q; close it, or use another branch: %s",
			r.Number, r.Owner, r.Head, r.Base, s.Base, r.URL)
	}
	return failf(ErrNotOwned, "pull request #%d from %q into %q belongs to assignment %q, not to %q; use another branch: %s",
		r.Number, r.Head, r.Base, r.Owner, s.Owner, r.URL)
}

// open opens the request. After an error it looks for it: the answer may be lost, or another process may have been faster.
func (h *PullRequests) open(ctx context.Context, w Wanted) (*request, error) {
	for pause := newPause(min(h.settling, maxUnknown)); ; {
		r, err := h.api.open(ctx, w.Base, w.Head, w.cleanTitle(), w.markedBody())
		if err == nil {
			return r, nil
		}
		if errors.Is(err, ErrRateLimited) || hasStatus(err, http.StatusUnauthorized, http.StatusForbidden) || ctx.Err() != nil {
			return nil, fmt.Errorf("no pull request from %q into %q can be opened: %w", w.Head, w.Base, err)
		}
		r, findErr := h.findOpen(ctx, w.Selector)
		if findErr != nil || r != nil {
			return r, findErr
		}
		// The Git host may not know a branch that has just been pushed.
		namesHead := answerContains(err, "head") || answerContains(err, "source")
		unknown := hasStatus(err, http.StatusNotFound) ||
			namesHead && hasStatus(err, http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity)
		if !unknown || !pause.wait(ctx) {
			return nil, fmt.Errorf("no pull request from %q into %q can be opened: %w", w.Head, w.Base, err)
		}
	}
}

// Close closes the request. It succeeds if it is merged or closed. Of p it reads Number, Owner and Head.
func (h *PullRequests) Close(ctx context.Context, p *PullRequest) error {
	r, err := h.getOwned(ctx, p)
	if err != nil || r.State != Open {
		return h.describe(err)
	}
	closeErr := h.api.close(ctx, r)
	if closeErr == nil {
		return nil
	}
	if r, err := h.api.get(ctx, r.Number); err == nil && r.State != Open {
		return nil
	}
	return h.describe(fmt.Errorf("pull request #%d cannot be closed: %w", r.Number, closeErr))
}

// CloseFormer closes the owner's open request with the number, unless it is the selector's: a Git host changes the head of a
// request when it is renamed. Number 0 never matches.
func (h *PullRequests) CloseFormer(ctx context.Context, s Selector, number int) error {
	if number == 0 {
		return nil
	}
	r, err := h.api.get(ctx, number)
	switch {
	case hasStatus(err, http.StatusNotFound):
		return nil
	case err != nil:
		return h.describe(fmt.Errorf("pull request #%d: %w", number, err))
	case r.State != Open || r.fromFork || r.Owner != s.Owner || r.Base == s.Base && r.Head == s.Head:
		return nil
	}
	return h.Close(ctx, &r.PullRequest)
}

// CloseRetargeted closes the owner's open request from the head into another branch than the base: a Git host may change the
// base of requests when it is renamed or deleted.
func (h *PullRequests) CloseRetargeted(ctx context.Context, s Selector) error {
	r, err := h.find(ctx, "", s.Head, func(r *request) bool { return r.Base != s.Base && r.Owner == s.Owner })
	if err != nil || r == nil {
		return h.describe(err)
	}
	return h.Close(ctx, &r.PullRequest)
}

// DisableAutoMerge succeeds if auto-merge is off.
func (h *PullRequests) DisableAutoMerge(ctx context.Context, p *PullRequest) error {
	api, ok := h.api.(autoMerger)
	if !ok {
		return nil
	}
	r, err := h.getOwned(ctx, p)
	if err != nil || r.State != Open {
		return h.describe(err)
	}
	disableErr := api.disableAutoMerge(ctx, r)
	if disableErr == nil {
		return nil
	}
	if again, err := h.api.get(ctx, r.Number); err == nil && (again.State != Open || r.autoMerge && !again.autoMerge) {
		return nil
	}
	return h.describe(fmt.Errorf("auto-merge of pull request #%d cannot be turned off: %w", r.Number, disableErr))
}

func (h *PullRequests) getOwned(ctx context.Context, p *PullRequest) (*request, error) {
	if err := checkOwner(p.Owner); err != nil {
		return nil, failf(ErrNotOwned, "pull request #%d does not belong to an assignment: %w", p.Number, err)
	}
	r, err := h.api.get(ctx, p.Number)
	switch {
	case err != nil:
		return nil, fmt.Errorf("pull request #%d: %w", p.Number, err)
	case r.fromFork || r.Head != p.Head:
		return nil, failf(ErrNotOwned, "pull request #%d does not come from branch %q of this repository", p.Number, p.Head)
	case r.Owner != p.Owner:
		return nil, failf(ErrNotOwned, "pull request #%d does not have the mark of assignment %q in its description, and is not changed",
			p.Number, p.Owner)
	}
	return r, nil
}

// namesNotIn returns the wanted names that are missing, each once.
func namesNotIn(wanted, there []string) []string {
	var found []string
	for _, name := range wanted {
		if !contains(there, name) && !contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

// contains ignores case, like Git hosts.
func contains(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

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
