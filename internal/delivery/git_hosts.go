package delivery

import (
	"context"
	"errors"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// GitHosts reaches the APIs of Git hosts.
type GitHosts struct {
	reader  *Reader
	options ServiceOptions
}

// CheckSettings reports settings with which no pull request can be opened. It makes no request.
func (h *GitHosts) CheckSettings(settings Settings, owner Owner) error {
	if !settings.PullRequest {
		return nil
	}
	host, err := h.gitHost(settings, owner.Location)
	if err != nil {
		return err
	}
	selector := settings.selector(owner)
	if err := git.CheckBranch(selector.Head); err != nil {
		return err
	}
	return host.Check(forge.Wanted{Selector: selector, Labels: settings.Labels, Reviewers: settings.Reviewers}, settings.Merge)
}

// forge is the Git host of the GitOps repository.
func (h *GitHosts) gitHost(settings Settings, at folder.Location) (*forge.GitHost, error) {
	return h.newGitHost(settings, at.URL, h.options.Credentials.Web(at.URL, at.URL))
}

// forgeOfAny is the Git host of any repository, which gets the credentials for its URL and no plain ones.
func (h *GitHosts) gitHostOfAny(settings Settings, url string) (*forge.GitHost, error) {
	return h.newGitHost(settings, url, h.options.Credentials.Web(url, ""))
}

func (h *GitHosts) newGitHost(settings Settings, url string, credentials forge.Credentials) (*forge.GitHost, error) {
	return forge.NewGitHost(forge.Repository{
		URL: url, APIURL: settings.APIURL, Forge: settings.Forge, Credentials: credentials,
	}, forge.Options{Over: h.options.Over, UserAgent: h.options.UserAgent})
}

// CommitStatuses are the statuses of one commit on a Git host.
type CommitStatuses struct {
	Commit   string
	Statuses []forge.Status
}

// CheckStatuses returns an error if commit statuses cannot be read from a location's Git host, with their creators if these are
// needed. It makes no request. Of the settings it uses the kind of Git host and the URL of its API.
func (h *GitHosts) CheckStatuses(settings Settings, at folder.Location, creators bool) error {
	host, err := h.gitHost(settings, at)
	if err == nil && creators {
		err = host.CheckCreators()
	}
	return err
}

// StatusQuery says which statuses are read, and how.
type StatusQuery struct {
	Settings Settings // of which the kind of Git host and the URL of its API are used
	Location folder.Location
	Limit    int  // commits
	Creators bool // who set the statuses is needed
}

// ReadStatuses reads the statuses of the newest commits of a location's branch, newest first, until enough returns
// true, or of as many commits as the limit. A commit that the Git host does not have yet has none. enough is called after
// each commit with all statuses so far; when the Git host stops answering, the error comes with those.
func (h *GitHosts) ReadStatuses(ctx context.Context, query StatusQuery, enough func([]CommitStatuses) bool) ([]CommitStatuses, error) {
	host, err := h.gitHost(query.Settings, query.Location)
	if err != nil {
		return nil, err
	}
	look, err := h.reader.branch(ctx, query.Location)
	if err != nil {
		return nil, err
	}
	commits, err := look.ListRecentCommits(ctx, query.Limit)
	if err != nil {
		return nil, err
	}
	read := host.Statuses
	if query.Creators {
		read = host.StatusesWithCreators
	}
	var heard []CommitStatuses
	var unknown error
	for _, commit := range commits {
		statuses, err := read(ctx, commit)
		if errors.Is(err, forge.ErrNotFound) {
			unknown = err
			continue
		}
		if err != nil {
			return heard, err
		}
		heard = append(heard, CommitStatuses{Commit: commit, Statuses: statuses})
		if enough(heard) {
			return heard, nil
		}
	}
	if len(heard) == 0 {
		return nil, unknown
	}
	return heard, nil
}

// ReadStatus returns the status of a commit of any repository as forge.GitHost does. Of the settings it uses the kind of Git
// host and the URL of its API.
func (h *GitHosts) ReadStatus(ctx context.Context, settings Settings, url, commit string, wanted forge.Status) (*forge.Status, error) {
	host, err := h.gitHostOfAny(settings, url)
	if err != nil {
		return nil, err
	}
	return host.Status(ctx, commit, wanted)
}

// SetStatus sets the status of a commit of any repository, unless it is set already.
func (h *GitHosts) SetStatus(ctx context.Context, settings Settings, url, commit string, wanted forge.Status) error {
	host, err := h.gitHostOfAny(settings, url)
	if err != nil {
		return err
	}
	return host.SetStatus(ctx, commit, wanted)
}
