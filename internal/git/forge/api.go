package forge

import (
	"context"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// api is the API of a kind of Git host. It knows nothing about owners.
type api interface {
	requestReader
	requestWriter
	reviewRequester
	merger
	statusLister
}

type requestReader interface {
	// listOpen passes open requests from head into base, "" for any, to take, newest first, until take returns false. Others
	// may be among them. Closed requests, of which there may be thousands, are found by number only.
	listOpen(ctx context.Context, base, head string, take func(*request) bool) error
	get(ctx context.Context, number int) (*request, error)
}

type requestWriter interface {
	open(ctx context.Context, base, head, title, body string) (*request, error)
	edit(ctx context.Context, r *request, title, body string) error
	close(ctx context.Context, r *request) error
}

type reviewRequester interface {
	// checkReviewer returns ErrReviewer for a missing reviewer.
	checkReviewer(ctx context.Context, reviewer string) error
	// requestReviews adds to the existing reviewers.
	requestReviews(ctx context.Context, r *request, reviewers []string) error
}

type merger interface {
	// merge requires that the head is headCommit. After errBusy it may be retried.
	merge(ctx context.Context, r *request, headCommit string) error
}

// labelAdder is implemented by kinds with GitHostKind.Labels.
type labelAdder interface {
	// addLabels adds to the existing labels.
	addLabels(ctx context.Context, r *request, names []string) error
}

// autoMerger is implemented by kinds with GitHostKind.AutoMerge.
type autoMerger interface {
	// enableAutoMerge may be retried after errBusy. Not every Git host binds it to the commit.
	enableAutoMerge(ctx context.Context, r *request, headCommit string) error
	// disableAutoMerge succeeds if it is off.
	disableAutoMerge(ctx context.Context, r *request) error
}

type statusLister interface {
	// listStatuses returns a page, from 1, and whether it is the last. Together they have the latest status of each context.
	listStatuses(ctx context.Context, commit string, page int) (found []status, last bool, err error)
}

// creatorLister is an api that needs another request for creators of statuses.
type creatorLister interface {
	listStatusesWithCreators(ctx context.Context, commit string, page int) (found []status, last bool, err error)
}

// statusGetter is an api with incomplete lists of statuses.
type statusGetter interface {
	// getStatus returns nil if there is none.
	getStatus(ctx context.Context, commit, key string) (*status, error)
}

type request struct {
	PullRequest
	title, body   string
	draft         bool // also in the title
	fromFork      bool // the head is in another repository
	labels        []string
	reviewers     []string // requested
	id            string   // GitHub's global id, or Bitbucket Data Center's version
	autoMerge     bool     // Gitea does not report it
	hasPipeline   bool     // GitLab only
	checkingMerge bool     // whether it can be merged
	status        string   // in the Git host's terms
}

// sanitized makes control characters of the URL visible.
func (r *request) sanitized() *PullRequest {
	safe := r.PullRequest
	safe.URL = wording.Visible(safe.URL)
	return &safe
}

// isBetween reports whether the request goes from a branch of this repository into base; "" is any.
func (r *request) isBetween(head, base string) bool {
	return !r.fromFork && r.Head == head && (base == "" || r.Base == base)
}
