package forge

import (
	"context"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// api is the API of a kind of Git host. Its errors are those of the transport or of errors.go. It knows nothing about
// owners. A kind that has labels or auto-merge implements labelAdder or autoMerger as well.
type api interface {
	requestReader
	requestWriter
	reviewRequester
	merger
	statusLister
}

type requestReader interface {
	// listOpen passes the open requests from head into base, both branches of this repository, to take, newest first,
	// until take returns false. An empty base stands for any branch. The list may contain other requests, too. Closed
	// requests are only found by number, because there may be thousands.
	listOpen(ctx context.Context, base, head string, take func(*request) bool) error
	get(ctx context.Context, number int) (*request, error)
}

type requestWriter interface {
	open(ctx context.Context, base, head, title, body string) (*request, error)
	edit(ctx context.Context, r *request, title, body string) error
	close(ctx context.Context, r *request) error
}

type reviewRequester interface {
	// checkReviewer returns ErrReviewer if the Git host has no such reviewer.
	checkReviewer(ctx context.Context, reviewer string) error
	// requestReviews adds reviewers to the existing ones.
	requestReviews(ctx context.Context, r *request, reviewers []string) error
}

type merger interface {
	// merge merges the request if its head is still headCommit. After errBusy, it may be tried again.
	merge(ctx context.Context, r *request, headCommit string) error
}

// labelAdder adds labels to pull requests. GitHostKind.Labels reports whether a kind has it.
type labelAdder interface {
	// addLabels adds labels to the existing ones.
	addLabels(ctx context.Context, r *request, names []string) error
}

// autoMerger turns auto-merge on and off. GitHostKind.AutoMerge reports whether a kind has it.
type autoMerger interface {
	// enableAutoMerge makes the Git host merge the request once its requirements are met. After errBusy, it may be
	// tried again. Not every Git host binds auto-merge to the commit.
	enableAutoMerge(ctx context.Context, r *request, headCommit string) error
	// disableAutoMerge turns off auto-merge if it is on.
	disableAutoMerge(ctx context.Context, r *request) error
}

// statusLister lists commit statuses.
type statusLister interface {
	// listStatuses returns one page of statuses in any order, and whether it is the last page. The pages contain at
	// least the latest status of each context. The first page is 1.
	listStatuses(ctx context.Context, commit string, page int) (found []status, last bool, err error)
}

// creatorLister is implemented by an api that needs another request to list statuses with their creators.
type creatorLister interface {
	listStatusesWithCreators(ctx context.Context, commit string, page int) (found []status, last bool, err error)
}

// statusGetter is implemented by an api whose lists of statuses are incomplete.
type statusGetter interface {
	// getStatus returns the status with a key, or nil if there is none.
	getStatus(ctx context.Context, commit, key string) (*status, error)
}

type request struct {
	PullRequest
	title, body   string
	draft         bool // the title says so, too
	fromFork      bool // the head is a branch of another repository
	labels        []string
	reviewers     []string // requested reviewers
	id            string   // GitHub's global id, or the version on Bitbucket Data Center
	autoMerge     bool     // auto-merge is on; Gitea does not report it
	hasPipeline   bool     // GitLab only
	checkingMerge bool     // the Git host is still checking whether it can be merged
	status        string   // why it cannot be merged, in the Git host's terms
}

// sanitized returns the request for callers outside of the package. The Git host controls its URL, so control
// characters are made visible.
func (r *request) sanitized() *PullRequest {
	safe := r.PullRequest
	safe.URL = wording.Visible(safe.URL)
	return &safe
}

// isBetween reports whether the request goes from branch head of this repository into base. An empty base stands for
// any branch.
func (r *request) isBetween(head, base string) bool {
	return !r.fromFork && r.Head == head && (base == "" || r.Base == base)
}
