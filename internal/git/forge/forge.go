// Package forge manages pull requests, which GitLab calls merge requests, and commit statuses on Git hosts, as this project
// calls servers of repositories; see [Kinds].
//
// A pull request belongs to an owner: its body contains the owner's mark, and its head is a branch of the same repository. The
// package never changes, merges or closes others.
//
// Kinds have SDKs, except Azure Repos, see azure.go, and Bitbucket. One HTTP transport below waits, retries and reads errors.
package forge

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Forge is the name of a kind of Git host.
type Forge string

// The kinds of Git hosts. Forgejo has Gitea's API.
const (
	Gitea   Forge = "gitea"
	Forgejo Forge = "forgejo"
	GitHub  Forge = "github"
	GitLab  Forge = "gitlab"
	Azure   Forge = "azure"
	// Bitbucket is Bitbucket Cloud.
	Bitbucket           Forge = "bitbucket"
	BitbucketDataCenter Forge = "bitbucket_datacenter"
)

// HostedRepository is a repository with credentials.
type HostedRepository struct {
	// URL is the clone URL, http(s)://host/owner/name.git. GitLab has nested groups, Azure Repos /_git/ before the name,
	// Bitbucket Data Center /scm/ before the project.
	URL string
	// APIURL is by default derived from URL.
	APIURL string
	// Forge is found from the server by default.
	Forge Forge
	// Credentials go to the server of the API, and on Azure DevOps Services to the server of identities.
	Credentials Credentials
}

// Credentials authenticate a user. A Token wins over a Password, which most kinds take as a token.
type Credentials struct {
	Username string
	Password string
	Token    string
	// App replaces the token unless nil.
	App *GitHubApp
}

// Format hides the secrets from every verb.
func (Credentials) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(credentials)") }

// Selector identifies the pull request of an owner.
type Selector struct {
	// Owner is the text of the mark, without line breaks, "<" and ">".
	Owner string
	// Base is the target branch, Head the source branch in the same repository.
	Base string
	Head string
}

// RequestOptions are the settings of a pull request.
type RequestOptions struct {
	// Title is truncated to 245 characters.
	Title string
	// Missing Labels are created. See GitHostKind.Labels.
	Labels []string
	// Reviewers are names as in GitHostKind.Reviewers.
	Reviewers []string
	// Merge is when to merge. Empty: people merge.
	Merge MergeMode
}

// Wanted is a desired pull request.
type Wanted struct {
	Selector
	RequestOptions
	// Body is Markdown of at most GitHostKind.MaxBody bytes.
	Body string
}

// PullRequest is reported by the Git host.
type PullRequest struct {
	Number int
	URL    string // the web page
	State  RequestState
	Owner  string // from the mark in the body; "" without a mark
	Base   string
	Head   string
	// HeadCommit may be the one before a push.
	HeadCommit string
	// MergeCommit is the tip of the base after the merge.
	MergeCommit string
}

// RequestState is the state of a pull request.
type RequestState string

// The states. A closed pull request was not merged.
const (
	Open   RequestState = "open"
	Merged RequestState = "merged"
	Closed RequestState = "closed"
)

// MergeMode is when to merge a pull request.
type MergeMode string

// The merge modes.
const (
	// Now merges at once or fails.
	Now MergeMode = "now"
	// WhenChecksSucceed turns on auto-merge. It only waits reliably for checks that the base branch's protection requires, on
	// GitLab for an existing pipeline.
	WhenChecksSucceed MergeMode = "when_checks_succeed"
)

// HTTPOptions configure requests.
type HTTPOptions struct {
	// Over sends the requests. Default: the proxy of the environment, and timeouts until the response header.
	Over http.RoundTripper
	// Patience is the longest wait before a retry, and for a Git host that checks a pull request. A longer rate limit is an
	// error with its end. Default: a minute, like GitHub's and GitLab's limits.
	Patience time.Duration
	// UserAgent has the form name/version. Default: terraform-provider-flotilla.
	UserAgent string
}

const (
	defaultPatience  = time.Minute
	defaultUserAgent = "terraform-provider-flotilla"
)

// GitHost is a repository on a Git host. It is safe for concurrent use, with one call at a time for each owner.
type GitHost struct {
	*PullRequests
	*CommitStatuses
}

// NewGitHost returns the GitHost of a repository. It makes no request.
func NewGitHost(repository HostedRepository, options HTTPOptions) (*GitHost, error) {
	c, err := connect(repository, options)
	if err != nil {
		return nil, err
	}
	return &GitHost{&PullRequests{c}, &CommitStatuses{c}}, nil
}

type connection struct {
	session
	api        api
	url        string
	secrets    secret.Scrubber
	mergeCheck time.Duration // for checks before a merge
}

type session struct {
	at       address
	client   *http.Client  // adds the credentials
	settling time.Duration // the longest time to notice a push
}

// maxSettling is the time to notice a push.
const maxSettling = 15 * time.Second

func connect(repository HostedRepository, options HTTPOptions) (connection, error) {
	if options.Over == nil {
		options.Over = bounded.NewGuarded(responseTimeout)
	}
	patience := cmp.Or(options.Patience, defaultPatience)
	at, err := locate(repository)
	if err != nil {
		return connection{}, err
	}
	app := repository.Credentials.App
	if err := checkApp(app, at); err != nil {
		return connection{}, err
	}
	secrets := secret.NewScrubber(
		append(app.Secrets(), repository.Credentials.Password, repository.Credentials.Token),
		append(TokenUsers(), repository.Credentials.Username, "oauth2")...,
	)
	origins := []string{access.OriginOf(at.api)}
	if at.people != nil {
		origins = append(origins, access.OriginOf(at.people))
	}
	client := &http.Client{Transport: &transport{
		next: options.Over, origins: origins, secrets: secrets, patience: patience,
		userAgent: cmp.Or(options.UserAgent, defaultUserAgent), reason: at.kind.reason,
		sign: func(r *http.Request) { at.kind.sign(repository.Credentials, r) }, app: app, repository: at.clone,
	}}
	c := connection{url: repository.URL, secrets: secrets, mergeCheck: patience, session: session{at, client, min(patience, maxSettling)}}
	if c.api, err = at.kind.connect(c.session); err != nil {
		return connection{}, c.describe(err)
	}
	return c, nil
}

func checkApp(app *GitHubApp, at address) error {
	switch {
	case app == nil:
		return nil
	case !at.kind.GitHubApps:
		return fmt.Errorf(
			"the provider's git.github_app is for GitHub, and the repository is on %s; "+
				"give credentials for the URL of its server in git.credentials",
			at.kind.Title,
		)
	case access.OriginOf(at.api) != app.Server():
		return fmt.Errorf("the GitHub App is for %s, and the API of the repository is %s; set url of github_app to that",
			app.Server(), access.OriginOf(at.api))
	}
	return nil
}

// api is the API of a kind of Git host. It knows nothing about owners.
type api interface {
	hostReader
	hostWriter
}

type hostReader interface {
	// listOpen passes open requests from head into base, "" for any, to take, newest first, until take returns false. Others
	// may be among them. Closed requests, of which there may be thousands, are found by number only.
	listOpen(ctx context.Context, base, head string, take func(*request) bool) error
	get(ctx context.Context, number int) (*request, error)
	// checkReviewer returns ErrReviewer for a missing reviewer.
	checkReviewer(ctx context.Context, reviewer string) error
	// listStatuses returns a page, from 1, and whether it is the last. Together they have the latest status of each context.
	listStatuses(ctx context.Context, commit string, page int) (found []status, last bool, err error)
}

type hostWriter interface {
	open(ctx context.Context, base, head, title, body string) (*request, error)
	edit(ctx context.Context, r *request, title, body string) error
	close(ctx context.Context, r *request) error
	// merge requires that the head is headCommit. After errBusy it may be retried.
	merge(ctx context.Context, r *request, headCommit string) error
	// requestReviews adds to the existing reviewers.
	requestReviews(ctx context.Context, r *request, reviewers []string) error
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
