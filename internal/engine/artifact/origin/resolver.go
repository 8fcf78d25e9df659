// Package origin resolves branches, tags and version ranges in Git, chart repositories and registries to pins, and fetches the
// pinned content. It knows neither fleets nor reconcilers.
package origin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/budget"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// ResolverOptions configure a [Resolver].
type ResolverOptions struct {
	Git *git.Connector
	// Registries and chart repositories get only credentials with a URL.
	Credentials git.Credentials
	// Over sends requests; nil uses a guarded default.
	Over      http.RoundTripper
	UserAgent string
	// DockerConfig is the path of docker's config.json, for registries without credentials of their own; "" uses the user's
	// file. Credential helpers are programs and do not run.
	DockerConfig string
	// Trusted lists all allowed sources with their keys; if empty, the provider requires no signature.
	Trusted []TrustedSource
}

// Resolver resolves artifacts. It asks each repository once, so an unreachable one delays once. It is safe for concurrent use.
type Resolver struct {
	options ResolverOptions
	web     *webClient
	refs    wait.Answers[*git.Refs]
	indexes wait.Answers[*chartIndex]
	charts  wait.Answers[[]chartVersion]
	parsing wait.Locks
	tags    wait.Answers[[]string]
	pins    wait.Answers[folder.Pin]
}

// NewResolver sends no request.
func NewResolver(options ResolverOptions) *Resolver {
	return &Resolver{options: options, web: newWebClient(options)}
}

// Time limits for one repository.
const (
	askTime   = time.Minute
	fetchTime = 5 * time.Minute
)

// Resolve returns the current pin of manifests. A commit or digest in them is their pin and needs no request. sources are the
// allowed URL prefixes; nil allows any. Errors wrap git.ErrUnreachable or access.ErrDenied.
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
		case artifact.IsRegistry(manifests.Repo):
			return c.resolveRegistry(ctx, manifests, sources)
		default:
			return c.resolveChart(ctx, manifests, sources)
		}
	})
	return pin, c.describe(manifests.Repo, err)
}

// Newest returns the greatest release, or "". It ignores pre-releases. sources are as in [Resolver.Resolve].
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
	case artifact.IsRegistry(manifests.Repo):
		versions, err = c.listTags(ctx, artifact.RepositoryURL(manifests), sources)
	default:
		var entries []chartVersion
		if entries, err = c.versions(ctx, manifests.Repo, manifests.Chart, sources); err == nil {
			versions = versionTexts(entries)
		}
	}
	if err != nil {
		return "", c.describe(manifests.Repo, err)
	}
	newest, _ := findNewest(versions, "*")
	return newest, nil
}

// budgetItem names a repository among the slowest tasks.
func budgetItem(repo string) string {
	return fmt.Sprintf("repository %q", wording.Visible(wording.Cut(repo, 200)))
}

// keyOf includes sources, because an answer for some must not serve others.
func keyOf(sources []string, texts ...string) string {
	return fmt.Sprintf("%t %q %q", sources == nil, sources, texts)
}

// allows checks access without a request.
func (c *Resolver) allows(manifests folder.Manifests, sources []string) error {
	_, err := c.options.Credentials.Decide(access.Request{URL: artifact.RepositoryURL(manifests), Sources: sources})
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

// describe names the repository, adds a remedy and removes credentials.
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
		advice = "; check the names in the manifests and the rights of the credentials: many servers hide what the credentials may not read"
	case errors.Is(kind, git.ErrUnreachable), errors.Is(kind, context.DeadlineExceeded):
		kind, advice = git.ErrUnreachable, "; try again"
	}
	text := c.options.Credentials.Scrub(fmt.Sprintf("repository %q: %v", repo, err))
	return &RepositoryError{kind, wording.Cut(wording.Visible(text), 1000) + advice}
}

// RepositoryError is a failure of a repository, without credentials.
type RepositoryError struct {
	kind error // an error of package git, or nil
	text string
}

func (e *RepositoryError) Error() string { return e.text }
func (e *RepositoryError) Unwrap() error { return e.kind }

func orAny(version string) string { return cmp.Or(version, "*") }

var errNoVersion = errors.New("no such version")

// describeMiss explains a miss: ranges exclude pre-releases unless they name one.
func describeMiss(what, within string, versions []string) string {
	text := fmt.Sprintf("none of the %d %s is %q, or in that range", len(versions), what, orAny(within))
	constraint, err := semver.NewConstraint(orAny(within))
	if err != nil {
		return text
	}
	constraint.IncludePrerelease = true
	if newest := findGreatest(versions, constraint); newest != "" {
		text += fmt.Sprintf(
			"; a range matches pre-releases only if it names one, and the newest of these is %[1]q: "+
				"set version to it, or to a range such as \">=%[1]s\"", newest)
	}
	return text
}

// findNewest returns the greatest version in a range, or "". Among equals, it prefers the text that sorts last.
func findNewest(texts []string, within string) (string, error) {
	constraint, err := semver.NewConstraint(orAny(within))
	if err != nil {
		return "", fmt.Errorf("version %q is neither a version nor a range of them, such as \"3.2.1\" or \">=3.2 <4\"", within)
	}
	return findGreatest(texts, constraint), nil
}

func findGreatest(texts []string, constraint *semver.Constraints) string {
	var best *semver.Version
	found := ""
	for _, text := range texts {
		version, ok := artifact.ParseVersion(text)
		if !ok || !constraint.Check(version) {
			continue
		}
		order := 1
		if best != nil {
			order = cmp.Or(version.Compare(best), strings.Compare(text, found))
		}
		if order > 0 {
			best, found = version, text
		}
	}
	return found
}
