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

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// api is what each kind of Git host implements. Its errors are the transport's, or
// of a kind of errors.go; nothing in it knows owners.
type api interface {
	// list hands over the open requests from head into base, both branches of this repository, newest first, until take
	// returns false; with base "" those into any branch. Others may be among them. Those that are not open are found by
	// number only: there may be thousands.
	list(ctx context.Context, base, head string, take func(*request) bool) error
	get(ctx context.Context, number int) (*request, error)
	open(ctx context.Context, base, head, title, body string) (*request, error)
	edit(ctx context.Context, r *request, title, body string) error
	close(ctx context.Context, r *request) error

	// label adds labels to those that the request has.
	label(ctx context.Context, r *request, names []string) error
	// know returns an ErrReviewer when the Git host does not know a reviewer.
	know(ctx context.Context, reviewer string) error
	// ask asks for reviews, besides those that were asked for.
	ask(ctx context.Context, r *request, reviewers []string) error

	// merge merges if the head is still that commit. An errBusy means that it may
	// be tried again.
	merge(ctx context.Context, r *request, headCommit string) error
	// arrange turns on auto-merge: the Git host merges once its requirements are
	// fulfilled. An errBusy means the same as for merge. Not every Git host binds it to the commit.
	arrange(ctx context.Context, r *request, headCommit string) error
	// hold turns off auto-merge, if it is on.
	hold(ctx context.Context, r *request) error

	// statuses returns a page of at least the latest of each context, in any order, and whether it is the last one. The
	// first page is 1.
	statuses(ctx context.Context, commit string, page int) (found []status, last bool, err error)
}

// creatorLister is an api that reads statuses in another way if their creators are needed.
type creatorLister interface {
	created(ctx context.Context, commit string, page int) (found []status, last bool, err error)
}

// request is a pull request with what only this package needs to know of it.
type request struct {
	PullRequest
	title, body string
	draft       bool // and its title says so
	foreign     bool // the head is a branch of another repository
	labels      []string
	reviewers   []string // who was asked
	id          string   // what a change needs besides the number: GitHub's global id, a version
	arranged    bool     // auto-merge is on; Gitea does not say
	checked     bool     // GitLab: there is a pipeline
	unsettled   bool     // the Git host is still checking whether it can be merged
	status      string   // why it cannot be merged, in the Git host's terms
}

// shown is the request as it leaves the package: its URL, which is the Git host's word, does nothing to a terminal.
func (r *request) shown() *PullRequest {
	shown := r.PullRequest
	shown.URL = wording.Visible(shown.URL)
	return &shown
}

// comes reports whether the request is from this branch of the repository into
// base; "" is any base.
func (r *request) comes(head, base string) bool {
	return !r.foreign && r.Head == head && (base == "" || r.Base == base)
}

// GitHost reads and writes the pull requests and the commit statuses of one repository on a Git host. It is
// safe for concurrent use, with one call at a time for each owner.
//
// Every call ends with its context. A call waits for a Git host that limits
// requests, or has not noticed a push yet, no longer than Options.Patience says.
type GitHost struct {
	session
	api      api
	url      string
	secrets  secret.Scrubber
	checking time.Duration // how long a Git host may check whether a request can be merged
}

// session is how one repository is reached.
type session struct {
	at       address
	client   *http.Client  // which signs
	settling time.Duration // how long a Git host may take to notice a push
}

// MaxBody is how many bytes the body of a request may have, without the mark.
func (h *GitHost) MaxBody() int { return h.at.kind.bounds.maxBody }

// maxSettling is how long a Git host may take to notice a push: seconds, when it has
// much to do.
const maxSettling = 15 * time.Second

// maxUnknown is how long a Git host may take to know a branch. It is shorter, because
// a Git host also answers "not found" for what a credential may not write.
const maxUnknown = 3 * time.Second

// Check reports what is wrong with a request, but for its title and body, and
// with how it is to be merged; "" is not at all. It makes no request.
func (h *GitHost) Check(w Wanted, how MergeMode) error {
	w.Title, w.Body = "any", ""
	return h.describe(cmp.Or(w.check(h.at.kind.bounds), h.at.kind.bounds.checkMode(how)))
}

// Current returns the owner's request from the head into the base: the open
// one, else that of the number, which the caller knows from Ensure; nil when there
// is none. The number 0 is that of no request.
func (h *GitHost) Current(ctx context.Context, s Selector, number int) (*PullRequest, error) {
	r, err := h.current(ctx, s, number)
	if err != nil || r == nil {
		return nil, h.describe(err)
	}
	return r.shown(), nil
}

func (h *GitHost) current(ctx context.Context, s Selector, number int) (*request, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	r, err := h.find(ctx, s.Base, s.Head, func(r *request) bool { return r.Owner == s.Owner })
	if err != nil || r != nil || number == 0 {
		return r, err
	}
	r, err = h.api.get(ctx, number)
	if answered(err, http.StatusNotFound) || err == nil && (r.foreign || r.Owner != s.Owner) {
		return nil, nil
	}
	return r, err
}

// Free is ErrNotOwned while another open request than the owner's into the base
// comes from the head: a push to it would change that one.
func (h *GitHost) Free(ctx context.Context, s Selector) error {
	if err := s.check(); err != nil {
		return h.describe(err)
	}
	r, err := h.find(ctx, "", s.Head, func(r *request) bool { return r.Base != s.Base || r.Owner != s.Owner })
	if err == nil && r != nil {
		err = s.notOwned(r)
	}
	return h.describe(err)
}

// find returns the newest open request from head into base that match takes; nil when there is none.
func (h *GitHost) find(ctx context.Context, base, head string, match func(*request) bool) (found *request, err error) {
	err = h.api.list(ctx, base, head, func(r *request) bool {
		if r.State == Open && r.comes(head, base) && match(r) {
			found = r
		}
		return found == nil
	})
	return found, err
}

// each hands over what an SDK lists, until take returns false.
func each[T any](listed iter.Seq2[T, error], convert func(T) *request, take func(*request) bool) error {
	for one, err := range listed {
		if err != nil || !take(convert(one)) {
			return err
		}
	}
	return nil
}

// Ensure opens the owner's request, or brings the open one to what is
// wanted, in place. Labels and reviewers are added to those that people have
// set; a reviewer who has reviewed already is not asked again. What people
// have made a draft stays one. An open request of others between the same
// branches is ErrNotOwned.
//
// A request that was opened, but could not be given its labels or reviewers,
// is returned beside the error.
func (h *GitHost) Ensure(ctx context.Context, w Wanted) (*PullRequest, error) {
	r, err := h.ensure(ctx, w)
	if r == nil {
		return nil, h.describe(err)
	}
	return r.shown(), h.describe(err)
}

func (h *GitHost) ensure(ctx context.Context, w Wanted) (*request, error) {
	if err := w.check(h.at.kind.bounds); err != nil {
		return nil, err
	}
	r, err := h.opened(ctx, w.Selector)
	if err != nil {
		return nil, err
	}
	var reviewers []string
	if r == nil {
		reviewers = missing(w.Reviewers, nil)
	} else {
		reviewers = missing(w.Reviewers, r.reviewers)
	}
	for _, reviewer := range reviewers {
		if err := h.api.know(ctx, reviewer); err != nil {
			return nil, err
		}
	}
	if r == nil {
		if r, err = h.open(ctx, w); err != nil {
			return nil, err
		}
	}
	if title := w.titleFor(r); r.title != title || !sameText(r.body, w.body()) {
		if err := h.api.edit(ctx, r, title, w.body()); err != nil {
			return nil, fmt.Errorf("pull request #%d cannot be updated: %w", r.Number, err)
		}
	}
	if labels := missing(w.Labels, r.labels); len(labels) > 0 {
		if err := h.api.label(ctx, r, labels); err != nil {
			return r, fmt.Errorf("pull request #%d cannot be given the labels %s: %w", r.Number, strings.Join(labels, ", "), err)
		}
	}
	if reviewers = missing(reviewers, r.reviewers); len(reviewers) > 0 {
		if err := h.api.ask(ctx, r, reviewers); err != nil {
			return r, fmt.Errorf("pull request #%d cannot be given the reviewers %s: %w", r.Number, strings.Join(reviewers, ", "), err)
		}
	}
	return r, nil
}

// opened returns the open request between the branches; it is an ErrNotOwned when
// that belongs to others. Git hosts allow only one.
func (h *GitHost) opened(ctx context.Context, s Selector) (*request, error) {
	r, err := h.find(ctx, s.Base, s.Head, func(*request) bool { return true })
	if err != nil || r == nil || r.Owner == s.Owner {
		return r, err
	}
	return nil, s.notOwned(r)
}

// notOwned is the error for an open request of others.
func (s Selector) notOwned(r *request) error {
	switch r.Owner {
	case "":
		return failf(
			ErrNotOwned,
			"pull request #%d from %q into %q was not opened by assignment %q, or the mark in its description was removed; close it, or use another branch: %s",
			r.Number,
			r.Head,
			r.Base,
			s.Owner,
			r.URL,
		)
	case s.Owner:
		return failf(ErrNotOwned, "pull request #%d of assignment %q goes from %q into %q, not into %q; close it, or use another branch: %s",
			r.Number, r.Owner, r.Head, r.Base, s.Base, r.URL)
	}
	return failf(ErrNotOwned, "pull request #%d from %q into %q belongs to assignment %q, not to %q; use another branch: %s",
		r.Number, r.Head, r.Base, r.Owner, s.Owner, r.URL)
}

// open opens the request, and then reads it: the answer may be lost although the Git
// host has opened it, and another process may have been faster.
func (h *GitHost) open(ctx context.Context, w Wanted) (*request, error) {
	for pause := newPause(min(h.settling, maxUnknown)); ; {
		r, err := h.api.open(ctx, w.Base, w.Head, w.title(), w.body())
		if err == nil {
			return r, nil
		}
		if errors.Is(err, ErrRateLimited) || answered(err, http.StatusUnauthorized, http.StatusForbidden) || ctx.Err() != nil {
			return nil, fmt.Errorf("no pull request from %q into %q can be opened: %w", w.Head, w.Base, err)
		}
		r, findErr := h.opened(ctx, w.Selector)
		if findErr != nil || r != nil {
			return r, findErr
		}
		// A branch that was pushed a moment ago may not be in the Git host's database.
		unknown := answered(err, http.StatusNotFound) ||
			answered(err, http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity) && (says(err, "head") || says(err, "source"))
		if !unknown || !pause.wait(ctx) {
			return nil, fmt.Errorf("no pull request from %q into %q can be opened: %w", w.Head, w.Base, err)
		}
	}
}

// Close closes the request without merging it. One that is merged or closed
// already is no error. Of the request its Number, Owner and Head are read.
func (h *GitHost) Close(ctx context.Context, p *PullRequest) error {
	r, err := h.owned(ctx, p)
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

// CloseOther closes the owner's open request of a number, unless it is the one that the selector names: a Git host has it come
// from another branch when its head is renamed. The number 0 is that of no request.
func (h *GitHost) CloseOther(ctx context.Context, s Selector, number int) error {
	if number == 0 {
		return nil
	}
	r, err := h.api.get(ctx, number)
	switch {
	case answered(err, http.StatusNotFound):
		return nil
	case err != nil:
		return h.describe(fmt.Errorf("pull request #%d: %w", number, err))
	case r.State != Open || r.foreign || r.Owner != s.Owner || r.Base == s.Base && r.Head == s.Head:
		return nil
	}
	return h.Close(ctx, &r.PullRequest)
}

// CloseElsewhere closes the owner's open request from the head if it goes into another branch than the base: a Git host may
// have it go elsewhere when its base is renamed or deleted.
func (h *GitHost) CloseElsewhere(ctx context.Context, s Selector) error {
	r, err := h.find(ctx, "", s.Head, func(r *request) bool { return r.Base != s.Base && r.Owner == s.Owner })
	if err != nil || r == nil {
		return h.describe(err)
	}
	return h.Close(ctx, &r.PullRequest)
}

// Hold turns off auto-merge, if it is on.
func (h *GitHost) Hold(ctx context.Context, p *PullRequest) error {
	r, err := h.owned(ctx, p)
	if err != nil || r.State != Open {
		return h.describe(err)
	}
	holdErr := h.api.hold(ctx, r)
	if holdErr == nil {
		return nil
	}
	if again, err := h.api.get(ctx, r.Number); err == nil && (again.State != Open || r.arranged && !again.arranged) {
		return nil
	}
	return h.describe(fmt.Errorf("auto-merge of pull request #%d cannot be turned off: %w", r.Number, holdErr))
}

// owned reads a request again, and makes sure that it is its owner's.
func (h *GitHost) owned(ctx context.Context, p *PullRequest) (*request, error) {
	if err := checkOwner(p.Owner); err != nil {
		return nil, failf(ErrNotOwned, "pull request #%d does not belong to an assignment: %w", p.Number, err)
	}
	r, err := h.api.get(ctx, p.Number)
	switch {
	case err != nil:
		return nil, fmt.Errorf("pull request #%d: %w", p.Number, err)
	case r.foreign || r.Head != p.Head:
		return nil, failf(ErrNotOwned, "pull request #%d does not come from branch %q of this repository", p.Number, p.Head)
	case r.Owner != p.Owner:
		return nil, failf(
			ErrNotOwned,
			"pull request #%d does not have the mark of assignment %q in its description, and is not changed",
			p.Number,
			p.Owner,
		)
	}
	return r, nil
}

// missing returns those of wanted that are not there yet, each once.
func missing(wanted, there []string) []string {
	var found []string
	for _, name := range wanted {
		if !contains(there, name) && !contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

// contains compares as Git hosts do, which ignore case in names.
func contains(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

// pause waits longer each time, and altogether no longer than its limit.
type pause struct {
	next, left time.Duration
}

func newPause(limit time.Duration) *pause {
	return &pause{next: 200 * time.Millisecond, left: limit}
}

// wait returns false when the limit is reached or the context is done.
func (p *pause) wait(ctx context.Context) bool {
	if p.left < p.next || wait.For(ctx, p.next) != nil {
		return false
	}
	p.left -= p.next
	p.next = min(p.next*3/2, 3*time.Second)
	return true
}
