// Package origin resolves branches, tags and version ranges in Git, chart repositories and registries to immutable pins.
// It fetches the pinned content within limits and with the credentials for each URL. It knows neither fleets nor
// reconcilers.
package origin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/budget"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// ResolverOptions configure a [Resolver].
type ResolverOptions struct {
	Git *git.Connector
	// Credentials serve Git. Registries and chart repositories get only credentials with a URL.
	Credentials git.Credentials
	// Over sends http and https requests; nil uses a guarded default.
	Over      http.RoundTripper
	UserAgent string
	// DockerConfig is the path of docker's config.json, for registries without credentials of their own; "" uses the
	// user's file. Credential helpers are not run because they are programs.
	DockerConfig string
	// Trusted lists all allowed sources with their keys; if empty, the provider requires no signature.
	Trusted []TrustedSource
}

// Resolver resolves and fetches artifacts. It asks each repository once, so an unreachable one does not delay every
// deployment target. It is safe for concurrent use.
type Resolver struct {
	options ResolverOptions
	web     *http.Client
	refs    wait.Answers[*git.Refs]
	indexes wait.Answers[*chartIndex]
	charts  wait.Answers[[]chartVersion]
	parsing wait.Locks
	tags    wait.Answers[[]string]
	pins    wait.Answers[folder.Pin]

	verified wait.Answers[struct{}]
}

// NewClient returns a Resolver without sending a request.
func NewClient(options ResolverOptions) *Resolver {
	if options.Over == nil {
		options.Over = bounded.NewGuarded(askTime)
	}
	c := &Resolver{options: options}
	c.web = &http.Client{Transport: &transport{client: c}, CheckRedirect: checkRedirect}
	return c
}

// Time limits for one repository: resolving and fetching.
const (
	askTime   = time.Minute
	fetchTime = 5 * time.Minute
)

// Resolve returns the current pin of manifests. A commit or digest in the manifests is their pin and needs no request.
// sources are the allowed URL prefixes; nil allows any. Errors name the repository and wrap git.ErrUnreachable if it did
// not answer or access.ErrDenied if access is denied.
func (c *Resolver) Resolve(ctx context.Context, manifests folder.Manifests, sources []string) (folder.Pin, error) {
	if err := c.allows(manifests, sources); err != nil {
		return folder.Pin{}, c.describe(manifests.Repo, err)
	}
	if manifests.Storage == "git" && folder.IsCommit(manifests.Commit) {
		return folder.Pin{Commit: manifests.Commit}, nil
	}
	if manifests.Digest != "" {
		return folder.Pin{Version: cmp.Or(manifests.Tag, manifests.Version), Digest: manifests.Digest}, nil
	}
	manifests.Path, manifests.Pin = "", folder.Pin{}
	pin, err := c.pins.Get(ctx, keyOf(sources, manifests.Texts()...), func() (folder.Pin, error) {
		defer budget.Begin(ctx, budgetItem(manifests.Repo))()
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		switch {
		case manifests.Storage == "git":
			return c.resolveGit(ctx, manifests, sources)
		case isRegistry(manifests.Repo):
			return c.resolveRegistry(ctx, manifests, sources)
		default:
			return c.resolveChart(ctx, manifests, sources)
		}
	})
	return pin, c.describe(manifests.Repo, err)
}

// Newest returns the greatest release by semantic versioning: a Git tag, a chart version or a registry tag, in its
// original spelling. It ignores pre-releases and returns "" without a release. sources are as in [Resolver.Resolve].
func (c *Resolver) Newest(ctx context.Context, manifests folder.Manifests, sources []string) (string, error) {
	if err := c.allows(manifests, sources); err != nil {
		return "", c.describe(manifests.Repo, err)
	}
	defer budget.Begin(ctx, budgetItem(manifests.Repo))()
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var versions []string
	var err error
	switch {
	case manifests.Storage == "git":
		var refs *git.Refs
		if refs, err = c.askGit(ctx, manifests.Repo, sources); err == nil {
			versions = refs.Tags()
		}
	case isRegistry(manifests.Repo):
		versions, err = c.listTags(ctx, repositoryOf(manifests), sources)
	default:
		var entries []chartVersion
		if entries, err = c.versions(ctx, manifests.Repo, manifests.Chart, sources); err == nil {
			versions = texts(entries)
		}
	}
	if err != nil {
		return "", c.describe(manifests.Repo, err)
	}
	newest, _ := greatest(versions, "*")
	return newest, nil
}

// budgetItem names a repository in the list of the slowest tasks.
func budgetItem(repo string) string {
	return fmt.Sprintf("repository %q", wording.Visible(wording.Cut(repo, 200)))
}

// keyOf identifies a request. It includes sources because an answer for one set of sources must not serve another.
func keyOf(sources []string, texts ...string) string {
	return fmt.Sprintf("%t %q %q", sources == nil, sources, texts)
}

// allows checks access to the repository of manifests without a request.
func (c *Resolver) allows(manifests folder.Manifests, sources []string) error {
	address := manifests.Repo
	if isRegistry(address) {
		address = repositoryOf(manifests)
	}
	_, err := c.options.Credentials.Decide(access.Request{URL: address, Sources: sources})
	return err
}

func (c *Resolver) remote(repo string, sources []string) git.Remote {
	return git.Remote{URL: repo, Credentials: c.options.Credentials, Sources: sources}
}

func (c *Resolver) askGit(ctx context.Context, repo string, sources []string) (*git.Refs, error) {
	return c.refs.Get(ctx, keyOf(sources, repo), func() (*git.Refs, error) { return c.options.Git.Refs(ctx, c.remote(repo, sources)) })
}

func (c *Resolver) resolveGit(ctx context.Context, manifests folder.Manifests, sources []string) (folder.Pin, error) {
	refs, err := c.askGit(ctx, manifests.Repo, sources)
	if err != nil {
		return folder.Pin{}, err
	}
	ref := "refs/heads/" + cmp.Or(manifests.Branch, "main")
	switch {
	case manifests.Tag != "":
		ref = "refs/tags/" + manifests.Tag
	case manifests.Commit != "":
		ref = manifests.Commit
	}
	commit, err := refs.Commit(ref)
	if err != nil {
		return folder.Pin{}, err
	}
	return folder.Pin{Commit: commit.String()}, nil
}

// describe prepares an error for users: it names the repository, adds a remedy and removes credentials.
func (c *Resolver) describe(repo string, err error) error {
	if err == nil {
		return nil
	}
	var shown *RepositoryError
	if errors.As(err, &shown) {
		return err
	}
	kind, advice := git.Classify(err), ""
	missing := (*git.RefError)(nil)
	switch {
	case errors.As(err, &missing):
	case errors.Is(kind, git.ErrUnauthorized):
		advice = "; give credentials for it in git.credentials of the provider, with its URL, or for a registry in docker's config.json"
	case errors.Is(kind, git.ErrNotFound):
		advice = "; check what the manifests name, and that the credentials may read it: many servers hide what they do not show"
	case errors.Is(kind, git.ErrUnreachable), errors.Is(kind, context.DeadlineExceeded):
		kind, advice = git.ErrUnreachable, "; try again"
	}
	text := c.options.Credentials.Scrub(fmt.Sprintf("repository %q: %v", repo, err))
	return &RepositoryError{kind, wording.Cut(wording.Visible(text), 1000) + advice}
}

// RepositoryError describes a failure of a repository without credentials.
type RepositoryError struct {
	kind error // an error of package git, or nil
	text string
}

func (e *RepositoryError) Error() string { return e.text }
func (e *RepositoryError) Unwrap() error { return e.kind }

// transport limits the size of responses and checks access for every request, so redirects carry no credentials along.
type transport struct{ client *Resolver }

func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("User-Agent", t.client.options.UserAgent)
	request, err := t.client.approach(request)
	if err != nil {
		return nil, err
	}
	response, err := t.client.options.Over.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = bounded.Body(
		response.Body,
		maxDownload,
		fmt.Errorf("%w: the answer of %s has more than %d MiB", git.ErrTooLarge, request.URL.Host, maxDownload>>20),
	)
	return response, nil
}

const (
	maxDownload  = 64 << 20 // bytes of one response
	maxRedirects = 5
)

func checkRedirect(_ *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("%s redirects more than %d times", via[0].URL.Host, maxRedirects)
	}
	return nil
}

// download requests the identity encoding because some servers label gzip archives as compressed responses.
func (c *Resolver) download(ctx context.Context, address string, about *sourceLimits) ([]byte, error) {
	response, err := c.open(ctx, address, "identity", about)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return io.ReadAll(response.Body)
}

// open requests a URL in an encoding. It leaves the body encoded; the caller must close it.
func (c *Resolver) open(ctx context.Context, address, encoding string, about *sourceLimits) (*http.Response, error) {
	request, err := http.NewRequestWithContext(context.WithValue(ctx, questionKey{}, about), http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("its URL cannot be parsed")
	}
	request.Header.Set("Accept-Encoding", encoding)
	response, err := c.web.Do(request)
	if err != nil {
		return nil, withoutURL(err)
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, statusError(response.StatusCode, request.URL.Path)
	}
	return response, nil
}

// firstOf returns the URL before any redirects.
func firstOf(request *http.Request) *url.URL {
	if hops := access.Hops(request); len(hops) > 0 {
		return hops[0]
	}
	return request.URL
}

// withoutURL removes the request's URL from an error because a redirect may have added a signature to it.
func withoutURL(err error) error {
	request, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	if at, wrong := url.Parse(request.URL); wrong == nil && !errors.Is(err, access.ErrDenied) {
		return fmt.Errorf("%s: %w", at.Host, request.Err)
	}
	return request.Err
}

// statusError turns an HTTP status into an error of package git.
func statusError(code int, what string) error {
	err := fmt.Errorf("its server answers %d %s for %s", code, http.StatusText(code), what)
	if kind := git.KindOfStatus(code); kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

func isRegistry(repo string) bool { return artifact.IsRegistry(repo) }
