// Package forge opens, updates, merges and closes pull requests on Git hosts:
// those of [Kinds]. GitLab's merge requests are called pull requests here too. It reads and sets the statuses of commits
// there. It knows neither Terraform nor fleets, and nothing of Git but the names of
// branches and commits.
//
// A pull request belongs to an owner: its body carries the owner's mark, an HTML
// comment, and its head is a branch of the same repository. Whatever does not
// carry the mark is never changed, merged or closed.
//
// A host in this project is a cluster type or a cluster; what serves repositories
// is a Git host, always both words.
//
// Each Git host is reached through its own SDK, behind one small interface (api);
// Azure Repos is not, for the reasons in azure.go, and Bitbucket has none. What they have in common
// is done once: ownership and the order of calls in [GitHost], and waiting,
// retries and errors in one HTTP transport below all of the SDKs.
package forge

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

// Forge is a kind of Git host.
type Forge string

// The kinds of Git hosts. Forgejo is reached as Gitea is.
const (
	Gitea   Forge = "gitea"
	Forgejo Forge = "forgejo"
	GitHub  Forge = "github"
	GitLab  Forge = "gitlab"
	Azure   Forge = "azure"
	// Bitbucket is Bitbucket Cloud, and BitbucketDataCenter what was Bitbucket Server.
	Bitbucket           Forge = "bitbucket"
	BitbucketDataCenter Forge = "bitbucket_datacenter"
)

// Repository names a repository on a Git host, and how to reach it.
type Repository struct {
	// URL is what one clones, http(s)://host/owner/name.git. Its owner may be
	// nested groups on GitLab. On Azure Repos it has /_git/ before its name, and on
	// Bitbucket Data Center /scm/ before its project.
	URL string
	// APIURL is where the Git host's API is, when that does not follow from URL.
	APIURL string
	// Forge is the kind of Git host; "" is taken from the Git host's name, as far as
	// Kind.Servers go.
	Forge Forge
	// Credentials are sent to the API's server only, and of Azure DevOps Services
	// also to the server that looks up people.
	Credentials Credentials
}

// Credentials are those of a user of the Git host. A Token wins over a Password;
// GitHub, GitLab, Azure Repos and Bitbucket Cloud know only tokens, and are given
// the Password as one when there is no Token.
type Credentials struct {
	Username string
	Password string
	Token    string
	// App gets the token, in place of the others.
	App *GitHubApp
}

// String keeps credentials out of anything that prints a Repository.
func (c Credentials) String() string { return "(credentials)" }

// GoString does the same for %#v.
func (c Credentials) GoString() string { return "forge.Credentials{}" }

// Selector names the pull request of one owner.
type Selector struct {
	// Owner is the mark: any text without line breaks, "<" or ">".
	Owner string
	// Base is the branch that the request goes into.
	Base string
	// Head is the branch that it comes from, in the same repository.
	Head string
}

// Wanted is a pull request as it has to be.
type Wanted struct {
	Selector
	// Title is cut to 245 characters, which every Git host accepts.
	Title string
	// Body is Markdown of at most GitHost.MaxBody bytes; the mark is put before it.
	Body string
	// Labels are names; those that the repository does not have are created. Bitbucket
	// has none.
	Labels []string
	// Reviewers are usernames, or "organization/team" except on GitLab and Bitbucket
	// Data Center; on Azure Repos email addresses, or "project/team"; on Bitbucket Cloud
	// account IDs, or UUIDs in braces.
	Reviewers []string
}

// PullRequest is a pull request as the Git host has it.
type PullRequest struct {
	Number int
	URL    string // for people
	State  State
	Owner  string // whose mark the body carries; "" where there is none
	Base   string
	Head   string
	// HeadCommit is the head as the Git host knows it; some Git hosts know of a push
	// only moments later.
	HeadCommit string
	// MergeCommit is what the merge made the base's tip; "" unless merged.
	MergeCommit string
}

// State is the state of a pull request.
type State string

// The states of a pull request. Closed is without having been merged.
const (
	Open   State = "open"
	Merged State = "merged"
	Closed State = "closed"
)

// MergeMode says when a pull request is merged.
type MergeMode string

// The merge modes.
const (
	// Now merges at once, and fails when the Git host does not let it.
	Now MergeMode = "now"
	// WhenChecksSucceed has the Git host merge once what it requires is fulfilled;
	// at once when it is. It only waits reliably for checks that the base branch's
	// protection requires (GitLab: for a pipeline that exists).
	WhenChecksSucceed MergeMode = "when_checks_succeed"
)

// Options say how a GitHost works. The zero value has the defaults.
type Options struct {
	// Over is what requests go through, for a custom CA or a test. Default: proxy from the environment, and timeouts on
	// dialling, on the TLS handshake and on the response header.
	Over http.RoundTripper
	// Patience is the longest wait before a request is tried again, and how long a Git host may check whether a pull
	// request can be merged. A Git host that limits requests for longer is an error that says until when. Default: a minute,
	// after which GitHub's and GitLab's limits per minute end.
	Patience time.Duration
	// UserAgent is that of requests, in the form name/version. Default: terraform-provider-flotilla.
	UserAgent string
}

const (
	defaultPatience  = time.Minute
	defaultUserAgent = "terraform-provider-flotilla"
)

// NewGitHost returns the GitHost of a repository. It makes no request.
func NewGitHost(repository Repository, options Options) (*GitHost, error) {
	if options.Over == nil {
		options.Over = bounded.NewGuarded(responseTimeout)
	}
	patience := cmp.Or(options.Patience, defaultPatience)
	at, err := locate(repository)
	if err != nil {
		return nil, err
	}
	if repository.Credentials.App != nil && !at.kind.GitHubApps {
		return nil, fmt.Errorf(
			"the provider's git.github_app is for GitHub, and the repository is on %s; give credentials for the URL of its server in git.credentials",
			at.kind.Title,
		)
	}
	if app := repository.Credentials.App; app != nil && origin(at.api) != app.Server() {
		return nil, fmt.Errorf(
			"the GitHub App is for %s, and the API of the repository is %s; set url of github_app to that",
			app.Server(),
			origin(at.api),
		)
	}
	secrets := secret.NewScrubber(
		append(repository.Credentials.App.Secrets(), repository.Credentials.Password, repository.Credentials.Token),
		append(TokenUsers(), repository.Credentials.Username, "oauth2")...,
	)
	origins := []string{origin(at.api)}
	if at.people != nil {
		origins = append(origins, origin(at.people))
	}
	client := &http.Client{Transport: &transport{
		next: options.Over, origins: origins, secrets: secrets, patience: patience, userAgent: cmp.Or(options.UserAgent, defaultUserAgent), reason: at.kind.reason,
		sign: func(r *http.Request) { at.kind.sign(repository.Credentials, r) }, app: repository.Credentials.App, repository: at.clone,
	}}
	h := &GitHost{url: repository.URL, secrets: secrets, checking: patience, session: session{at, client, min(patience, maxSettling)}}
	if h.api, err = at.kind.connect(h.session); err != nil {
		return nil, h.describe(err)
	}
	return h, nil
}
